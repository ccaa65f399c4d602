//! What an expert would sign: baselines, ties, standards, intervals, counts.
use super::{evidence, sample, two_metrics};
use crate::{Evidence, Need, Sample, Verdict, judge};

fn score(verdict: &Verdict, candidate: &str) -> f64 {
    let mut all = verdict.ranking.iter();
    all.find(|ranked| ranked.candidate == candidate)
        .unwrap()
        .score
}

fn order(verdict: &Verdict) -> Vec<&str> {
    let all = verdict.ranking.iter();
    all.map(|ranked| ranked.candidate.as_str()).collect()
}

/// `two_metrics` with a baseline, a tie-breaker and, if wanted, standards.
fn advised(standards: &str) -> Need {
    let text = format!(
        "name = \"test\"\ntitle = \"Test\"\nworkload = \"rootfs\"\nbaseline = \"ext4\"\n\
         tie_breakers = [\"snapshots=yes\", \"grow=yes\"]\n\
         [weights.a]\nweight = 1\nbecause = \"x\"\n\
         [weights.b]\nweight = 1\nbecause = \"x\"\n{standards}"
    );
    Need::parse("test.toml", &text).unwrap()
}

/// With two metrics of one cost each.
fn costs(all: &[(&str, u64, f64)]) -> Vec<Sample> {
    let both = |&(name, seed, cost): &(&str, u64, f64)| {
        ["a", "b"].map(|metric| sample(name, metric, seed, cost))
    };
    all.iter().flat_map(both).collect()
}

/// Whoever else ran, and on however many seeds: a candidate's figures and score are a matter of
/// its own trials and the baseline's.
#[test]
fn figures_and_score_do_not_depend_on_which_others_ran() {
    let pair = [
        ("ext4", 1, 1.0),
        ("ext4", 2, 1.3),
        ("ext4", 3, 0.8),
        ("xfs", 1, 1.2),
        ("xfs", 2, 1.4),
    ];
    let alone = judge(&advised(""), &evidence(costs(&pair))).unwrap();
    let others = [("f2fs", 1, 0.4), ("f2fs", 3, 9.0), ("btrfs", 2, 0.1)];
    let all = judge(
        &advised(""),
        &evidence(costs(&[&pair[..], &others].concat())),
    )
    .unwrap();
    for name in ["ext4", "xfs"] {
        let of = |verdict: &Verdict| {
            let mut ranking = verdict.ranking.iter();
            let one = ranking.find(|one| one.candidate == name).unwrap().clone();
            (one.score, one.interval, one.figures["a"].value)
        };
        assert_eq!(of(&alone), of(&all), "{name}");
    }
    assert_eq!(score(&all, "ext4"), 1.0, "it is the scale");
    assert!(all.baseline.unwrap().is_scale);
    let xfs = score(&alone, "xfs");
    let expected = ((1.0_f64 / 1.2) * (1.3 / 1.4)).sqrt();
    assert!((xfs - expected).abs() < 1e-4, "{xfs}");
}

#[test]
fn an_interval_holds_the_score_and_one_candidate_has_no_probability() {
    let sure = judge(
        &two_metrics(),
        &evidence(costs(&[("x", 1, 1.0), ("y", 1, 1.5)])),
    );
    let verdict = sure.unwrap();
    for one in &verdict.ranking {
        let [low, high] = one.interval;
        assert!(low < one.score && one.score < high, "{one:?}");
        assert!(high / low < 1.5 && high / low > 1.1, "{one:?}");
    }
    let mut given = evidence(costs(&[("x", 1, 1.0), ("y", 1, 1.5)]));
    given.card_uncertainty = 1.0;
    let unsure = judge(&two_metrics(), &given).unwrap();
    let width = |verdict: &Verdict| verdict.ranking[0].interval[1] - verdict.ranking[0].interval[0];
    assert!(width(&unsure) > width(&verdict));
    given.samples.retain(|one| one.candidate == "x");
    assert_eq!(
        judge(&two_metrics(), &given).unwrap().ranking[0].p_best,
        None
    );
}

/// Nobody should change for a difference that is not noticed: what most use takes part if it is
/// near the one that the tie-breakers leave, though not the first.
#[test]
fn the_usual_one_takes_part_where_it_ties_with_the_advised() {
    let with_ext4 = |cost: f64| costs(&[("f2fs", 1, 1.0), ("xfs", 1, 1.05), ("ext4", 1, cost)]);
    let mut given = evidence(with_ext4(1.12));
    given.facts = ["f2fs", "xfs", "ext4"].map(super::able).into();
    given.facts[0].care.clear();
    let advice = |given: &Evidence| judge(&advised(""), given).unwrap().advice.unwrap();
    let first = advice(&given);
    assert_eq!(first.candidate, "ext4");
    assert_eq!(first.among, ["f2fs", "xfs", "ext4"]);
    assert_eq!(first.because, "it can grow, unlike f2fs");
    // Not if the tie-breakers are for the other, nor if one would notice.
    given.facts[2].care.clear();
    assert_eq!(advice(&given).among, ["f2fs", "xfs"]);
    given.facts[2] = super::able("ext4");
    given.samples = with_ext4(1.2);
    assert_eq!(advice(&given).candidate, "xfs");
}

/// The third digit decides nothing: the need's tie-breakers do, and the commands are those of the
/// advised.
#[test]
fn a_tie_is_broken_by_the_need_and_not_by_the_third_digit() {
    let mut given = evidence(costs(&[
        ("xfs", 1, 1.0),
        ("ext4", 1, 1.02),
        ("f2fs", 1, 1.03),
        ("jfs", 1, 1.5),
    ]));
    given
        .commands
        .insert("ext4".into(), vec!["mkfs.ext4".into()]);
    given.facts = ["xfs", "ext4", "f2fs", "jfs"].map(super::able).into();
    given.facts[0].care.clear();
    let verdict = judge(&advised(""), &given).unwrap();
    let advice = verdict.advice.clone().unwrap();
    assert_eq!(verdict.ranking[0].candidate, "xfs");
    assert_eq!(advice.among, ["xfs", "ext4", "f2fs"]);
    // Nobody takes snapshots; f2fs can grow too, and ext4 is what everybody uses.
    assert_eq!(advice.candidate, "ext4");
    assert_eq!(advice.because, "it can grow, unlike xfs");
    assert_eq!(verdict.advised().unwrap().candidate, "ext4");
    assert_eq!(verdict.commands, ["mkfs.ext4"]);
    assert_eq!(
        verdict.baseline.unwrap().told,
        "nothing is lost, it is the answer"
    );
    // Who of them would have the highest score is no change.
    given.samples = vec![
        sample("xfs", "a", 1, 1.0),
        sample("xfs", "b", 1, 1.05),
        sample("ext4", "a", 1, 1.06),
        sample("ext4", "b", 1, 1.0),
    ];
    let close = judge(&advised(""), &given).unwrap();
    assert_eq!(
        (close.ranking[0].candidate.as_str(), close.changes),
        ("xfs", Vec::new())
    );
    given.samples = costs(&[("xfs", 1, 1.0), ("ext4", 1, 1.02), ("f2fs", 1, 1.03)]);
    // Without any fact that parts them: the usual one, and without it the best score.
    given.facts.clear();
    let usual = judge(&advised(""), &given).unwrap().advice.unwrap();
    assert_eq!(
        (usual.candidate.as_str(), usual.because.as_str()),
        ("ext4", "it is what most use for this")
    );
    // A clear winner needs no advice, and the baseline says what it costs.
    given.samples = costs(&[("xfs", 1, 1.0), ("ext4", 1, 2.0)]);
    let clear = judge(&advised(""), &given).unwrap();
    assert_eq!(clear.advice, None);
    let told = clear.baseline.unwrap().told;
    assert!(
        told.starts_with("you lose a factor of 2.0 on the weighted average, most in a 2.0×"),
        "{told}"
    );
}

/// Up to its size the standard's filesystem is advised, whatever measures better; where a rule
/// excludes it, the next one.
#[test]
fn a_standard_goes_before_the_score() {
    let need = advised(
        "[[standards]]\ncandidate = \"vfat\"\nup_to_bytes = 1000\nbecause = \"small\"\n\
         source = \"s\"\n[[standards]]\ncandidate = \"exfat\"\nbecause = \"large\"\n\
         source = \"s\"\n",
    );
    let mut given = evidence(costs(&[
        ("ntfs3", 1, 1.0),
        ("vfat", 1, 1.3),
        ("exfat", 1, 1.6),
    ]));
    let advice = |given: &crate::Evidence| judge(&need, given).unwrap().advice;
    given.partition_bytes = Some(1000);
    let small = advice(&given).unwrap();
    assert_eq!(
        (small.candidate.as_str(), small.because.as_str()),
        ("vfat", "small")
    );
    assert!(
        small
            .deviation
            .unwrap()
            .starts_with("ntfs3 measures 1.30 times as good")
    );
    given.partition_bytes = Some(1001);
    assert_eq!(advice(&given).unwrap().candidate, "exfat");
    given.partition_bytes = Some(1000);
    given.samples.retain(|one| one.candidate != "vfat");
    assert_eq!(advice(&given).unwrap().because, "large");
}

/// A bound of a share is told as what was counted.
#[test]
fn counts_are_told_as_counts() {
    let mut given = evidence(costs(&[("x", 1, 16.1), ("y", 1, 47.0)]));
    let count = |hits, low, high| crate::Count {
        hits,
        of: 20,
        low,
        high,
    };
    let counts = [
        ("x".to_owned(), count(0, 0.0, 0.161)),
        ("y".to_owned(), count(5, 0.112, 0.469)),
    ];
    given.counts.insert("a".into(), counts.into());
    let verdict = judge(&two_metrics(), &given).unwrap();
    let said = &verdict.ranking[0].reasons[0];
    assert!(
        said.contains("a 0 of 20 (≤ 16 %) against 5 of 20 (11 to 47 %)"),
        "{said}"
    );
    assert_eq!(verdict.ranking[0].figures["a"].count.unwrap().of, 20);
    assert_eq!(verdict.ranking[0].figures["b"].count, None);
}

/// Whose trial cannot be sustained is shown with its figures, never ranked, whatever they are.
#[test]
fn what_is_not_comparable_has_figures_and_no_place() {
    let mut given = evidence(vec![
        sample("log", "a", 1, 0.1),
        sample("x", "a", 1, 1.0),
        sample("y", "a", 1, 2.0),
    ]);
    let facts = super::able("log");
    assert!(crate::not_comparable(std::slice::from_ref(&facts)).is_empty());
    let mut uncleaned = facts;
    let care = crate::Care {
        can: crate::Can::No,
        how: "its cleaner does not run".into(),
        source: "s".into(),
    };
    uncleaned.care.insert(crate::Matter::Reclaims, care);
    given.excluded = crate::not_comparable(&[uncleaned]);
    let verdict = judge(&two_metrics(), &given).unwrap();
    assert_eq!(order(&verdict), ["x", "y"]);
    let apart = &verdict.excluded[0];
    assert_eq!(apart.rule.as_deref(), Some(crate::NOT_COMPARABLE));
    assert!(apart.why.contains("its cleaner does not run"), "{apart:?}");
    assert!((apart.figures["a"].value - 0.1).abs() < 1e-12);
    assert!(verdict.changes.is_empty(), "{:?}", verdict.changes);
}
