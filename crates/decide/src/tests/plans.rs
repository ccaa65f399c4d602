//! The order of trials.
use super::{evidence, sample, two_metrics};
use crate::judge;
use crate::plan::{PlannedTrial, first_round, later, next_round};

fn planned(seed: u64, candidate: &str) -> PlannedTrial {
    PlannedTrial {
        seed,
        candidate: candidate.to_owned(),
    }
}

#[test]
fn first_every_candidate_once() {
    let names = ["b".to_owned(), "a".to_owned(), "b".to_owned()];
    assert_eq!(first_round(&names, 7), [planned(7, "b"), planned(7, "a")]);
}

#[test]
fn then_one_more_seed_for_those_that_may_be_best() {
    let mut samples = vec![sample("a", "a", 1, 1.0), sample("b", "a", 1, 1.1)];
    samples.push(sample("c", "a", 1, 1.3));
    let verdict = judge(&two_metrics(), &evidence(samples.clone())).unwrap();
    assert_eq!(verdict.next_seeds, ["a", "b"]);
    assert_eq!(
        next_round(&verdict, 1, 3),
        [planned(2, "a"), planned(2, "b")]
    );
    samples.push(sample("a", "a", 2, 1.0));
    let verdict = judge(&two_metrics(), &evidence(samples)).unwrap();
    assert_eq!(next_round(&verdict, 1, 3), [planned(2, "b")]);
    assert_eq!(next_round(&verdict, 1, 1), []);
}

#[test]
fn a_leader_without_rival_needs_a_few_seeds_and_no_more() {
    let mut samples = vec![sample("a", "a", 1, 1.0), sample("b", "a", 1, 2.0)];
    samples.push(sample("c", "a", 1, 9.0));
    let verdict = judge(&two_metrics(), &evidence(samples.clone())).unwrap();
    assert_eq!(
        next_round(&verdict, 1, 9),
        [planned(2, "a"), planned(2, "b")],
        "one seed decides nothing"
    );
    samples.extend([sample("a", "a", 2, 1.0), sample("b", "a", 2, 2.0)]);
    let verdict = judge(&two_metrics(), &evidence(samples)).unwrap();
    assert!(verdict.next_seeds.is_empty() && next_round(&verdict, 1, 9).is_empty());
}

#[test]
fn later_rounds_are_counted_for_the_time_to_go() {
    let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    let first = first_round(&names, 1);
    assert_eq!(later(&first, 1, 6), 10, "two rivals, five more seeds each");
    assert_eq!(later(&first[..1], 1, 6), 5, "one candidate");
    assert_eq!(later(&first, 1, 1), 0);
    assert_eq!(later(&[planned(4, "a"), planned(4, "b")], 1, 6), 4);
    assert_eq!(later(&[], 1, 6), 0);
}

/// With `seeds` seeds each: a leads, b is 2 % behind, c 6 %.
fn close_contest(seeds: std::ops::RangeInclusive<u64>) -> Vec<crate::Sample> {
    let of = |seed| [("a", 1.0), ("b", 1.02), ("c", 1.06)].map(|(n, v)| sample(n, "a", seed, v));
    seeds.flat_map(of).collect()
}

#[test]
fn after_three_seeds_only_those_a_trifle_behind_get_more() {
    let next = |samples| {
        let verdict = judge(&two_metrics(), &evidence(samples)).unwrap();
        next_round(&verdict, 1, 6)
    };
    let named = |seed, names: &[&str]| names.iter().map(|n| planned(seed, n)).collect::<Vec<_>>();
    assert_eq!(next(close_contest(1..=2)), named(3, &["a", "b", "c"]));
    assert_eq!(next(close_contest(1..=3)), named(4, &["a", "b"]));
    assert_eq!(next(close_contest(1..=6)), []);
    // Who has fewer may still come near.
    let mut samples = close_contest(1..=3);
    samples.retain(|one| one.candidate != "c" || one.seed == 1);
    assert_eq!(next(samples), named(2, &["c"]));
}
