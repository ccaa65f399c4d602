//! The order of trials.
use super::{evidence, sample, two_metrics};
use crate::judge;
use crate::plan::{Planned, first_round, next_round};

fn planned(seed: u64, candidate: &str) -> Planned {
    Planned {
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
fn then_one_more_seed_for_those_within_a_quarter() {
    let mut samples = vec![sample("a", "a", 1, 1.0), sample("b", "a", 1, 1.2)];
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
fn a_leader_without_rival_needs_no_more() {
    let samples = vec![sample("a", "a", 1, 1.0), sample("b", "a", 1, 2.0)];
    let verdict = judge(&two_metrics(), &evidence(samples)).unwrap();
    assert!(verdict.next_seeds.is_empty() && next_round(&verdict, 1, 9).is_empty());
}
