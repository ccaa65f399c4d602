//! Properties that any verdict must have.
use super::{evidence, sample, two_metrics};
use crate::{Excluded, Failure, Grade, JudgeError, NOISE_FLOOR, Need, Sample, Verdict, judge};
use proptest::prelude::*;

fn verdict(samples: Vec<Sample>) -> Verdict {
    judge(&two_metrics(), &evidence(samples)).unwrap()
}

fn score(verdict: &Verdict, candidate: &str) -> f64 {
    let found = verdict
        .ranking
        .iter()
        .find(|ranked| ranked.candidate == candidate);
    found.unwrap().score
}

fn order(verdict: &Verdict) -> Vec<&str> {
    verdict
        .ranking
        .iter()
        .map(|ranked| ranked.candidate.as_str())
        .collect()
}

/// Three candidates, two metrics, up to three seeds; later seeds only for some.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let values = proptest::collection::vec(0.01_f64..100.0, 18);
    let seeds = proptest::collection::vec(1_u64..=3, 3);
    (values, seeds).prop_map(|(values, seeds)| {
        let mut samples = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            let (candidate, metric, seed) = (index / 6, index / 3 % 2, index as u64 % 3 + 1);
            if seed <= seeds[candidate] {
                let names = (["x", "y", "z"][candidate], ["a", "b"][metric]);
                samples.push(sample(names.0, names.1, seed, value));
            }
        }
        samples
    })
}

proptest! {
    // Each case judges twice with two thousand draws.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn units_do_not_matter(samples in samples(), factor in 0.001_f64..1000.0) {
        let mut scaled = samples.clone();
        for sample in scaled.iter_mut().filter(|sample| sample.metric == "a") {
            sample.value *= factor;
        }
        let (one, other) = (verdict(samples), verdict(scaled));
        for ranked in &one.ranking {
            prop_assert!((ranked.score - score(&other, &ranked.candidate)).abs() < 2e-4);
        }
    }

    #[test]
    fn rates_and_durations_judge_alike(samples in samples()) {
        let mut rates = samples.clone();
        for sample in rates.iter_mut().filter(|sample| sample.metric == "a") {
            sample.value = 1.0 / sample.value;
            sample.unit = "1/s".into();
            sample.lower_is_better = false;
        }
        let (one, other) = (verdict(samples), verdict(rates));
        for ranked in &one.ranking {
            prop_assert!((ranked.score - score(&other, &ranked.candidate)).abs() < 2e-4);
        }
    }

    #[test]
    fn improving_a_figure_never_lowers_the_score(
        samples in samples(), which in 0_usize..18, better in 0.05_f64..1.0
    ) {
        let mut improved = samples.clone();
        let which = which % improved.len();
        improved[which].value *= better;
        let name = improved[which].candidate.clone();
        let (before, after) = (verdict(samples), verdict(improved));
        prop_assert!(score(&after, &name) >= score(&before, &name) - 1e-4);
        let place = |v: &Verdict| order(v).iter().position(|c| *c == name);
        prop_assert!(place(&after) <= place(&before));
    }

    #[test]
    fn the_order_of_the_rows_is_irrelevant(samples in samples(), seed: u64) {
        let mut shuffled = samples.clone();
        whichfs_units::Rng::named(seed, "rows").shuffle(&mut shuffled);
        prop_assert_eq!(verdict(samples), verdict(shuffled));
    }

    #[test]
    fn probabilities_add_up_and_scores_are_sorted(samples in samples()) {
        let verdict = verdict(samples);
        let all = verdict.ranking.iter().filter_map(|ranked| ranked.p_best);
        let sum: f64 = all.sum();
        prop_assert!((sum - 1.0).abs() < 0.003 || verdict.ranking.len() < 2);
        prop_assert!(verdict.ranking.windows(2).all(|pair| pair[0].score >= pair[1].score));
        prop_assert!(verdict.ranking.iter().all(|r| r.score > 0.0 && r.score <= 1.0));
    }
}

#[test]
fn a_known_case_by_hand() {
    // x: best in a, 4 times worse in b: sqrt(1/4) = 0.5. y: 2 times worse in a: sqrt(1/2).
    let rows = [("x", 1.0, 8.0), ("y", 2.0, 2.0)];
    let both = |(c, a, b): (&str, f64, f64)| [sample(c, "a", 1, a), sample(c, "b", 1, b)];
    let verdict = verdict(rows.into_iter().flat_map(both).collect());
    assert_eq!(order(&verdict), ["y", "x"]);
    assert_eq!(score(&verdict, "x"), 0.5);
    assert!((score(&verdict, "y") - 0.5_f64.sqrt()).abs() < 1e-4);
    assert_eq!(
        verdict.ranking[0].reasons,
        [
            "y wins b 4.0× (2.00 against 8.00 s) over x",
            "y loses a 2.0× (2.00 against 1.00 s) to x"
        ]
    );
    assert_eq!(verdict.ranking[1].grades["b"], Grade::Fair);
    assert_eq!(verdict.ranking[1].figures["b"].ratio, 4.0);
    assert!(
        verdict.changes.is_empty(),
        "a at double weight is a tie that y wins: 2/3 ln 2 each"
    );
}

/// A share of CPU time is lower too where everything else takes longer.
#[test]
fn a_share_of_cpu_time_has_no_grade_unless_the_need_counts_it() {
    let rows = [("x", 1.0, 90.0), ("y", 2.0, 5.0)];
    let both =
        |(c, a, cpu): (&str, f64, f64)| [sample(c, "a", 1, a), sample(c, "mount_cpu", 1, cpu)];
    let verdict = verdict(rows.into_iter().flat_map(both).collect());
    let metric = verdict
        .metrics
        .iter()
        .find(|m| m.metric == "mount_cpu")
        .unwrap();
    assert!(!metric.judged);
    assert_eq!(metric.label, "mount: share of CPU time");
    assert!(
        verdict
            .ranking
            .iter()
            .all(|one| !one.grades.contains_key("mount_cpu"))
    );
    assert_eq!(verdict.ranking[1].figures["mount_cpu"].value, 5.0);

    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"rootfs\"\n[weights.mount_cpu]\n\
                weight = 1\nbecause = \"a battery\"\n";
    let need = Need::parse("n.toml", text).unwrap();
    let samples = rows.into_iter().flat_map(both).collect();
    let counted = judge(&need, &evidence(samples)).unwrap();
    assert!(counted.metrics[0].judged);
    assert_eq!(counted.ranking[0].candidate, "y");
}

#[test]
fn what_would_change_it_names_the_metric() {
    let rows = [("x", 1.0, 3.0), ("y", 2.0, 1.0)];
    let both = |(c, a, b): (&str, f64, f64)| [sample(c, "a", 1, a), sample(c, "b", 1, b)];
    let verdict = verdict(rows.into_iter().flat_map(both).collect());
    assert_eq!(order(&verdict), ["y", "x"]);
    assert_eq!(
        verdict.changes[0].text,
        "if \"a\" weighed twice, x would lead"
    );
}

#[test]
fn below_the_noise_floor_candidates_tie_above_they_do_not() {
    let pair = |value| verdict(vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, value)]);
    assert_eq!(pair(1.09).ranking[0].ties_with, ["y"]);
    assert_eq!(pair(1.09).ranking[1].ties_with, ["x"]);
    assert!(pair(1.11).ranking[0].ties_with.is_empty());
}

#[test]
fn one_seed_never_claims_certainty_for_a_small_lead() {
    let lead = |value| {
        let samples = vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, value)];
        verdict(samples).ranking[0].p_best.unwrap()
    };
    assert!((0.4..0.6).contains(&lead(1.0)), "{}", lead(1.0));
    assert!((0.6..0.86).contains(&lead(1.1)), "{}", lead(1.1));
    assert!(lead(2.0) > 0.99);
}

#[test]
fn a_less_certain_card_makes_a_less_certain_verdict() {
    let samples = vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, 1.3)];
    let mut given = evidence(samples);
    let sure = judge(&two_metrics(), &given).unwrap().ranking[0]
        .p_best
        .unwrap();
    given.card_uncertainty = 1.0;
    let unsure = judge(&two_metrics(), &given).unwrap().ranking[0]
        .p_best
        .unwrap();
    assert!(unsure < sure - 0.05, "{unsure} {sure}");
}

#[test]
fn errors_of_the_lab_make_less_sure_and_move_neither_ranks_nor_what_runs_next() {
    let mut samples = Vec::new();
    for seed in 1..=4 {
        samples.push(sample("x", "a", seed, 1.0));
        samples.push(sample("y", "a", seed, 1.3));
    }
    let mut given = evidence(samples);
    let by_seeds = judge(&two_metrics(), &given).unwrap();
    given.discrepancy = Some(crate::Discrepancy::measured());
    let stated = judge(&two_metrics(), &given).unwrap();
    let [sure, less] = [&by_seeds, &stated].map(|verdict| verdict.ranking[0].p_best.unwrap());
    assert!(sure > 0.95 && (0.5..0.85).contains(&less), "{sure} {less}");
    let [narrow, wide] = [&by_seeds, &stated].map(|verdict| {
        let [low, high] = verdict.ranking[1].interval;
        high / low
    });
    assert!(wide > 2.0 * narrow, "{wide} {narrow}");
    assert_eq!(stated.next_seeds, by_seeds.next_seeds);
    let order = |verdict: &Verdict| -> Vec<(String, f64)> {
        let all = verdict.ranking.iter();
        all.map(|one| (one.candidate.clone(), one.score)).collect()
    };
    assert_eq!(order(&stated), order(&by_seeds));
    assert!(stated.method.contains("published"), "{}", stated.method);
}

#[test]
fn seeds_that_disagree_lower_the_probability() {
    let pair = |ys: [f64; 3]| {
        let mut samples = Vec::new();
        for (seed, y) in (1..).zip(ys) {
            samples.push(sample("x", "a", seed, 1.0));
            samples.push(sample("y", "a", seed, y));
        }
        verdict(samples)
            .ranking
            .iter()
            .find(|r| r.candidate == "x")
            .unwrap()
            .p_best
            .unwrap()
    };
    assert!(pair([1.2, 1.2, 1.2]) > pair([0.6, 1.2, 2.4]) + 0.05);
}

#[test]
fn a_harder_seed_does_not_count_against_those_who_ran_it() {
    let mut samples = vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, 1.1)];
    samples.extend([sample("z", "a", 1, 1.5)]);
    // Seed 2 takes ten times as long, and z did not run it.
    samples.extend([sample("x", "a", 2, 10.0), sample("y", "a", 2, 11.0)]);
    let verdict = verdict(samples);
    assert_eq!(order(&verdict), ["x", "y", "z"]);
    assert!((verdict.ranking[2].figures["a"].ratio - 1.5).abs() < 1e-6);
}

/// The leaders ran more seeds than the others: what is shown beside a ratio has that ratio.
#[test]
fn ratios_are_those_of_the_figures_shown() {
    let mut samples = vec![sample("z", "a", 1, 30.4), sample("z", "b", 1, 2.0)];
    for (seed, x, y) in [(1, 8.0, 14.0), (2, 8.4, 15.5), (3, 9.1, 13.2)] {
        samples.extend([sample("x", "a", seed, x), sample("y", "a", seed, y)]);
        samples.extend([sample("x", "b", seed, 1.0), sample("y", "b", seed, 1.5)]);
    }
    let verdict = verdict(samples);
    let figure = |name: &str| {
        let found = verdict.ranking.iter().find(|one| one.candidate == name);
        found.unwrap().figures["a"].clone()
    };
    let (x, z) = (figure("x"), figure("z"));
    assert_eq!((z.value, z.samples.len(), x.samples.len()), (30.4, 1, 3));
    assert!((z.ratio - z.value / x.value).abs() < 1e-5, "{z:?} {x:?}");
    let mean = (8.0_f64 * 8.4 * 9.1).powf(1.0 / 3.0);
    assert!(
        (z.ratio - z.value / mean).abs() > 0.1,
        "not the mean of all seeds"
    );
    let z = verdict
        .ranking
        .iter()
        .find(|one| one.candidate == "z")
        .unwrap();
    let said = format!("{:.1}× (30.4 against {:.2} s)", 30.4 / x.value, x.value);
    assert!(
        z.reasons.iter().any(|reason| reason.contains(&said)),
        "{said}: {z:?}"
    );
    assert!(
        verdict
            .method
            .contains("compared with the one with the most seeds on the seeds that both ran")
    );
}

/// Where a bound makes figures count alike, the sentence says so.
#[test]
fn a_ratio_that_a_bound_made_is_told_with_the_bound() {
    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"w\"\n[weights.a]\nweight = 1\n\
                because = \"x\"\nenough = 0.1\nenough_because = \"nobody sees it\"\n";
    let need = Need::parse("n.toml", text).unwrap();
    let samples = vec![sample("x", "a", 1, 0.678), sample("y", "a", 1, 0.0271)];
    let verdict = judge(&need, &evidence(samples)).unwrap();
    assert_eq!(
        verdict.ranking[0].reasons,
        ["y wins a 6.8× (27.1 against 678 ms; up to 100 ms all count alike) over x"]
    );
    assert_eq!(verdict.ranking[0].figures["a"].value, 0.0271);
}

/// A winner whose figures leave something out: the answer without it, and how sure that is.
#[test]
fn a_winner_with_a_caveat_is_told_beside_the_answer_without_it() {
    let mut given = evidence(vec![
        sample("log", "a", 1, 1.0),
        sample("x", "a", 1, 1.4),
        sample("y", "a", 1, 2.8),
    ]);
    assert_eq!(judge(&two_metrics(), &given).unwrap().without, None);
    // A change below the noise floor is a caveat; no answer without the winner is needed.
    given
        .unsettled
        .insert("log".into(), "from 4.46 to 4.15".into());
    let told = judge(&two_metrics(), &given).unwrap();
    assert_eq!(told.ranking[0].caveats, ["from 4.46 to 4.15"]);
    assert_eq!(told.without, None);
    given
        .caveats
        .insert("log".into(), vec!["without its cleaner".into()]);
    let verdict = judge(&two_metrics(), &given).unwrap();
    assert_eq!(order(&verdict), ["log", "x", "y"]);
    let without = verdict.without.unwrap();
    assert_eq!((without.left_out.len(), without.winner.as_str()), (1, "x"));
    assert!(without.p_best.unwrap() > 0.9 && verdict.ranking[1].p_best.unwrap() < 0.3);
    // One is left, which was compared with nobody, then none: there is no answer without them.
    for name in ["x", "y"] {
        given.caveats.insert(name.into(), vec!["as well".into()]);
        assert_eq!(judge(&two_metrics(), &given).unwrap().without, None);
    }
}

/// A rule that keeps out who was measured: what the answer would be without it.
#[test]
fn a_rule_is_dropped_to_see_what_would_change() {
    let mut given = evidence(vec![
        sample("x", "a", 1, 2.0),
        sample("fast", "a", 1, 1.0),
        sample("slow", "a", 1, 9.0),
        sample("both", "a", 1, 0.1),
    ]);
    let out = |candidate: &str, rule: &str| Excluded {
        candidate: candidate.into(),
        rule: Some(rule.into()),
        ..Excluded::default()
    };
    let mut both = out("both", "power_loss");
    both.also = vec![crate::Broken {
        rule: "windows".into(),
        why: "w".into(),
        source: "s".into(),
        allow: None,
    }];
    given.excluded = vec![out("fast", "power_loss"), out("slow", "macos"), both];
    let verdict = judge(&two_metrics(), &given).unwrap();
    assert_eq!(order(&verdict), ["x"]);
    let said: Vec<&str> = verdict
        .changes
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(
        said,
        ["without the rule power_loss, fast would lead (of those that were measured)"]
    );
    assert_eq!(verdict.changes[0].rule.as_deref(), Some("power_loss"));
    // Trials of before serve as well, and change nothing else.
    let mut recalled = given.clone();
    recalled.samples.retain(|one| one.candidate == "x");
    recalled.aside = given.samples.clone();
    recalled.aside.retain(|one| one.candidate != "x");
    let from_store = judge(&two_metrics(), &recalled).unwrap();
    assert_eq!(from_store.changes, verdict.changes);
    recalled.aside.clear();
    let alone = judge(&two_metrics(), &recalled).unwrap();
    assert_eq!(alone.ranking, from_store.ranking);
    assert!(alone.changes.is_empty());
}

#[test]
fn grades_follow_the_ratio() {
    let cases = [
        (1.0, "best"),
        (1.1, "best"),
        (1.11, "very good"),
        (1.5, "very good"),
    ];
    let worse = [
        (2.0, "good"),
        (2.1, "fair"),
        (4.0, "fair"),
        (10.0, "bad"),
        (10.1, "worst"),
    ];
    for (ratio, grade) in cases.into_iter().chain(worse) {
        assert_eq!(Grade::of_ratio(ratio).name(), grade, "{ratio}");
        let json = serde_json::to_value(Grade::of_ratio(ratio)).unwrap();
        assert_eq!(json, grade, "the same words in JSON");
    }
}

#[test]
fn missing_required_metrics_exclude_others_are_named() {
    let samples = vec![
        sample("x", "a", 1, 1.0),
        sample("x", "b", 1, 1.0),
        sample("y", "b", 1, 1.0),
        sample("z", "a", 1, 1.0),
    ];
    let verdict = verdict(samples);
    assert_eq!(verdict.excluded[0].candidate, "y");
    assert_eq!(
        verdict.excluded[0].why,
        "gives no figure for a, which test requires"
    );
    let z = verdict.ranking.iter().find(|r| r.candidate == "z").unwrap();
    assert!(
        z.reasons
            .iter()
            .any(|r| r == "z gives no figure for b: judged without")
    );
}

#[test]
fn failed_trials_and_impossible_figures_exclude_loudly() {
    let mut given = evidence(vec![
        sample("x", "a", 1, 1.0),
        sample("y", "a", 1, 0.1),
        sample("nan", "a", 1, f64::NAN),
        sample("zero", "a", 1, 0.0),
        sample("ruled", "a", 1, 0.1),
    ]);
    given.failures = vec![Failure {
        candidate: "y".into(),
        seed: 2,
        reason: "kernel panic".into(),
    }];
    given.excluded = vec![Excluded {
        candidate: "ruled".into(),
        why: "w".into(),
        ..Excluded::default()
    }];
    let verdict = judge(&two_metrics(), &given).unwrap();
    assert_eq!(order(&verdict), ["x"]);
    let names: Vec<&str> = verdict
        .excluded
        .iter()
        .map(|e| e.candidate.as_str())
        .collect();
    assert_eq!(names, ["nan", "ruled", "y", "zero"]);
    assert_eq!(
        verdict.excluded[2].why,
        "1 of its 2 trials failed, that with seed 2: kernel panic"
    );
    assert!(verdict.excluded[3].why.contains("not a positive figure"));
}

#[test]
fn a_ranking_by_nothing_is_refused() {
    let mut need = two_metrics();
    need.requires.clear();
    let samples = vec![sample("x", "c", 1, 1.0), sample("y", "c", 1, 2.0)];
    let error = judge(&need, &evidence(samples)).unwrap_err();
    assert!(error.to_string().contains("counts (a, b)"), "{error}");
    judge(&need, &evidence(Vec::new())).unwrap();
}

/// Latencies that are a noise floor apart never share a bucket, and a step from one bucket to
/// the next alone decides nothing.
#[test]
fn latency_buckets_are_finer_than_the_noise_floor() {
    let bound = |ns: u64| {
        let mut latency = whichfs_trial::LatencyHistogram::default();
        latency.record(ns);
        latency.quantile_ns(99, 100).unwrap()
    };
    for octave in 10..40 {
        for ns in [(1 << octave) - 1, 1 << octave, (1 << octave) * 3 / 2] {
            let (this, next) = (bound(ns), bound(bound(ns) + 1));
            let step = next as f64 / this as f64;
            assert!(step < NOISE_FLOOR.sqrt(), "{this} to {next} ns");
        }
    }
}

#[test]
fn two_units_of_one_metric_are_refused() {
    let mut samples = vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, 1.0)];
    samples[1].unit = "ms".into();
    let error = judge(&two_metrics(), &evidence(samples)).unwrap_err();
    assert!(matches!(error, JudgeError::MixedUnits { .. }), "{error}");
}

#[test]
fn nothing_at_all_is_an_empty_ranking() {
    let verdict = verdict(Vec::new());
    assert!(verdict.ranking.is_empty() && verdict.commands.is_empty());
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let mut given = evidence(vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, 1.05)]);
    given.commands.insert("x".into(), vec!["mkfs.x".into()]);
    given.failures = vec![Failure {
        candidate: "f".into(),
        seed: 1,
        reason: "r".into(),
    }];
    let verdict = judge(&two_metrics(), &given).unwrap();
    let json = serde_json::to_value(&verdict).unwrap();
    for key in [
        "card",
        "needs",
        "ranking",
        "excluded",
        "commands",
        "trials",
        "virtual_s",
        "wall_s",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in [
        "candidate",
        "score",
        "p_best",
        "ties_with",
        "grades",
        "reasons",
    ] {
        assert!(json["ranking"][0].get(key).is_some(), "{key}");
    }
    assert_eq!(json["ranking"][0]["ties_with"][0], "y");
    assert_eq!(json["ranking"][0]["grades"]["a"], "best");
    assert_eq!(json["excluded"][0]["candidate"], "f");
    assert!(
        json["excluded"][0]["why"]
            .as_str()
            .unwrap()
            .contains("failed")
    );
    assert_eq!(json["commands"][0], "mkfs.x");
    assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
}
