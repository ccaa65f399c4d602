//! Two and more runs: what changed, what stopped, what cannot be compared.

#![allow(clippy::unwrap_used)]
use super::*;

fn row(candidate: &str, metric: &str, seed: u64, value: f64) -> FigureRow {
    FigureRow {
        card: "a1-32gb".into(),
        kernel: "6.12".into(),
        clock: "cpu:b".into(),
        candidate: candidate.into(),
        mount_options: "noatime".into(),
        workload: "rootfs".into(),
        metric: metric.into(),
        value,
        unit: if metric == "mount" { "s" } else { "MB/s" }.into(),
        lower_is_better: metric == "mount",
        seed,
        trial: format!("{candidate}{metric}{seed}"),
    }
}

pub(super) fn run(name: &str, factor: f64, scatter: f64) -> RegressionRun {
    let values = (1..=5).flat_map(|seed| {
        let noisy = 1.0 + scatter * (seed as f64 - 3.0) / 2.0;
        [
            row("ext4", "mount", seed, 2.0 * factor * noisy),
            row("ext4", "tree_read", seed, 10.0 / factor * noisy),
            row("f2fs", "mount", seed, 4.0),
        ]
    });
    RegressionRun {
        name: name.into(),
        rows: values.collect(),
        ..RegressionRun::default()
    }
}

fn of<'a>(comparison: &'a Comparison, candidate: &str, metric: &str) -> &'a ComparedMetric {
    let mut lines = comparison.lines.iter();
    lines
        .find(|line| line.candidate == candidate && line.metric == metric)
        .unwrap()
}

#[test]
fn what_got_worse_beyond_noise_fails_in_both_directions() {
    let both = compare(&[run("a", 1.0, 0.0), run("b", 1.3, 0.0)]).unwrap();
    for metric in ["mount", "tree_read"] {
        let change = of(&both, "ext4", metric).changes[0].unwrap();
        assert!((change.worse - 1.3).abs() < 1e-9, "{metric}");
        assert_eq!((change.meaning, change.pairs), (Meaning::Worse, 5));
    }
    assert_eq!(
        of(&both, "f2fs", "mount").changes[0].unwrap().meaning,
        Meaning::Same
    );
    assert_eq!(both.failures(0.1).len(), 2);
    assert_eq!(both.failures(0.4).len(), 0, "not by more than 40 %");
    let back = compare(&[run("b", 1.3, 0.0), run("a", 1.0, 0.0)]).unwrap();
    assert!(
        back.failures(0.0).is_empty(),
        "what got better does not fail"
    );
    assert_eq!(
        of(&back, "ext4", "mount").changes[0].unwrap().meaning,
        Meaning::Better
    );
    assert_eq!(
        both.lines[2].candidate, "f2fs",
        "the largest worsening first"
    );
}

#[test]
fn noise_is_no_change_and_a_small_step_without_noise_is() {
    let noisy = compare(&[run("a", 1.0, 0.0), run("b", 1.05, 0.3)]).unwrap();
    assert_eq!(
        of(&noisy, "ext4", "mount").changes[0].unwrap().meaning,
        Meaning::Same
    );
    let still = compare(&[run("a", 1.0, 0.0), run("b", 1.05, 0.0)]).unwrap();
    assert_eq!(
        of(&still, "ext4", "mount").changes[0].unwrap().meaning,
        Meaning::Worse
    );
    let less = compare(&[run("a", 1.0, 0.0), run("b", 1.01, 0.0)]).unwrap();
    assert_eq!(
        of(&less, "ext4", "mount").changes[0].unwrap().meaning,
        Meaning::Same
    );
}

#[test]
fn of_two_shares_of_cpu_time_neither_is_better() {
    let one = |name: &str, factor| RegressionRun {
        name: name.into(),
        rows: ["cpu", "mount_cpu"]
            .map(|metric| row("ext4", metric, 1, factor))
            .to_vec(),
        ..RegressionRun::default()
    };
    for (first, second) in [(1.0, 4.0), (4.0, 1.0)] {
        let both = compare(&[one("a", first), one("b", second)]).unwrap();
        let meanings = both
            .lines
            .iter()
            .map(|line| line.changes[0].unwrap().meaning);
        assert_eq!(meanings.collect::<Vec<_>>(), [Meaning::Other; 2]);
        assert!(both.failures(0.0).is_empty(), "no share fails a run");
    }
}

#[test]
fn one_seed_each_has_the_noise_floor() {
    let one = |factor| RegressionRun {
        name: "x".into(),
        rows: vec![row("ext4", "mount", 1, factor)],
        ..RegressionRun::default()
    };
    let meaning = |factor| {
        let both = compare(&[one(1.0), one(factor)]).unwrap();
        of(&both, "ext4", "mount").changes[0].unwrap().meaning
    };
    assert_eq!(
        [meaning(1.09), meaning(1.11)],
        [Meaning::Same, Meaning::Worse]
    );
}

#[test]
fn what_is_gone_fails_and_what_is_new_does_not() {
    let mut second = run("b", 1.0, 0.0);
    second.rows.retain(|row| row.candidate == "ext4");
    second.rows.push(row("xfs", "mount", 1, 1.0));
    let both = compare(&[run("a", 1.0, 0.0), second]).unwrap();
    let failed: Vec<&str> = (both.failures(0.1).iter())
        .map(|line| line.candidate.as_str())
        .collect();
    assert_eq!(failed, ["f2fs"]);
    assert_eq!(of(&both, "xfs", "mount").values, [None, Some(1.0)]);
}

#[test]
fn another_card_or_kernel_is_what_is_compared() {
    let mut other = run("b", 1.2, 0.0);
    for row in &mut other.rows {
        (row.card, row.kernel) = ("class4-4gb".into(), "6.1".into());
    }
    let both = compare(&[run("a", 1.0, 0.0), other.clone()]).unwrap();
    assert_eq!(both.runs[1].cards, ["class4-4gb"]);
    assert_eq!(both.failures(0.1).len(), 2);
    // Two cards in a run are told apart.
    let mut two = run("a", 1.0, 0.0);
    two.rows.extend(other.rows.clone());
    let apart = compare(&[two.clone(), two]).unwrap();
    assert_eq!(apart.lines.len(), 6);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let empty = RegressionRun {
        name: "e".into(),
        rows: Vec::new(),
        ..RegressionRun::default()
    };
    let said = compare(&[run("a", 1.0, 0.0), empty])
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("e holds no figures"), "{said}");
    let mut strange = run("s", 1.0, 0.0);
    strange
        .rows
        .iter_mut()
        .for_each(|row| row.workload = "logger".into());
    let said = compare(&[run("a", 1.0, 0.0), strange])
        .unwrap_err()
        .to_string();
    assert!(said.contains("nothing compares"), "{said}");
    let mut units = run("u", 1.0, 0.0);
    units.rows[0].unit = "ms".into();
    let said = compare(&[run("a", 1.0, 0.0), units])
        .unwrap_err()
        .to_string();
    assert!(said.contains("mount of ext4 is in s and in ms"), "{said}");
}
