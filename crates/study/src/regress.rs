//! Several runs side by side: what changed beyond noise since the first.
//!
//! Figures are compared where filesystem, workload and metric are the same, and the card, if a
//! run has several; what all rows of a run have in common may differ between runs: that is what
//! is compared (another card, kernel, clock, image). Seeds that both have are paired. The noise of
//! a change is the 97.5 % point of Student's t times the standard error of the paired
//! differences of logarithms, at least [`LEAST_NOISE`]; of less than [`PAIRS`] pairs it is the
//! noise floor of the verdict.

use crate::fit::mean;
use crate::judge::NOISE_FLOOR;
use crate::row::Row;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Ratio below which nothing is called a change, however little it scatters.
pub const LEAST_NOISE: f64 = 1.02;

/// Pairs from which on their own scatter tells the noise.
pub const PAIRS: usize = 3;

/// Rows of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is called: where it was read from.
    pub name: String,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, the first of which the others are compared with.
    pub runs: Vec<RunLine>,
    /// Figures, the largest worsening first.
    pub lines: Vec<Compared>,
}

/// What all rows of a run have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunLine {
    /// What it is called.
    pub name: String,
    /// Its cards.
    pub cards: Vec<String>,
    /// Its kernels.
    pub kernels: Vec<String>,
    /// Its clocks.
    pub clocks: Vec<String>,
    /// Figures in it.
    pub rows: usize,
}

/// One metric of one filesystem in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The card; empty where each run has one.
    pub card: String,
    /// Filesystem.
    pub candidate: String,
    /// Workload.
    pub workload: String,
    /// Metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
    /// Geometric mean in each run; none where it has no figure.
    pub values: Vec<Option<f64>>,
    /// Each later run beside the first.
    pub changes: Vec<Option<Change>>,
}

/// A run beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// How many times worse; below 1 it is better.
    pub worse: f64,
    /// Ratio up to which it is noise.
    pub noise: f64,
    /// Seeds that both have.
    pub pairs: usize,
    /// What that means.
    pub meaning: Meaning,
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Worse beyond noise.
    Worse,
    /// Better beyond noise.
    Better,
    /// Within noise.
    Same,
    /// Beyond noise, and neither figure is the better one: a share of CPU time.
    Other,
}

/// Runs that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegressError {
    /// A run has no figures.
    #[error("{run} holds no figures; name the directory of a finished report, or its results.csv")]
    Empty {
        /// Its name.
        run: String,
    },
    /// No figure of a run is in the first one too.
    #[error(
        "{run} and {first} have no filesystem, workload and metric in common: nothing compares"
    )]
    Nothing {
        /// The run.
        run: String,
        /// The first one.
        first: String,
    },
    /// A metric came in two units.
    #[error("{metric} of {candidate} is in {first} and in {second}: these cannot be compared")]
    Units {
        /// The metric.
        metric: String,
        /// The filesystem.
        candidate: String,
        /// A unit.
        first: String,
        /// Another.
        second: String,
    },
}

impl Comparison {
    /// Lines in which a later run is worse than the first by more than `share` (0.1 is 10 %) and
    /// beyond noise, or has no figure where the first has one.
    pub fn failures(&self, share: f64) -> Vec<&Compared> {
        let lines = self.lines.iter();
        lines.filter(|line| line.fails(share).is_some()).collect()
    }
}

impl Compared {
    /// Whether one of two figures is the better one: not of two shares of CPU time.
    pub fn is_judged(&self) -> bool {
        !whichfs_trial::is_cpu_share(&self.metric)
    }

    /// Why this line fails at `share`, if it does.
    pub fn fails(&self, share: f64) -> Option<String> {
        self.values.first().copied().flatten()?;
        let mut said = Vec::new();
        for (at, change) in self.changes.iter().enumerate() {
            match change {
                None => said.push(format!("run {} has no figure", at + 2)),
                Some(change) if change.meaning == Meaning::Worse && change.worse > 1.0 + share => {
                    let percent = (change.worse - 1.0) * 100.0;
                    said.push(format!("run {} is worse by {percent:.0} %", at + 2));
                }
                Some(_) => {}
            }
        }
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// The largest worsening of a later run, for sorting; what is missing comes first.
    fn worst(&self) -> f64 {
        let each = self.changes.iter().map(|change| match change {
            None if self.values[0].is_none() => 1.0,
            None => f64::INFINITY,
            Some(change) if matches!(change.meaning, Meaning::Same | Meaning::Other) => 1.0,
            Some(change) => change.worse,
        });
        each.fold(0.0, f64::max)
    }
}

/// Card (if told apart), filesystem, workload, metric.
type Key = (String, String, String, String);
/// Filesystem and metric → unit, and whether lower is better.
type Units = BTreeMap<(String, String), (String, bool)>;
/// Values of a key by seed.
type Values = BTreeMap<Key, BTreeMap<u64, f64>>;

/// Puts `runs` side by side.
///
/// # Errors
/// [`RegressError`]: a run without figures, none in common with the first, two units.
pub fn compare(runs: &[Run]) -> Result<Comparison, RegressError> {
    let lines: Vec<RunLine> = runs.iter().map(run_line).collect();
    if let Some(empty) = lines.iter().find(|line| line.rows == 0) {
        let run = empty.name.clone();
        return Err(RegressError::Empty { run });
    }
    let by_card = lines.iter().any(|line| line.cards.len() > 1);
    let units = units(runs)?;
    let values: Vec<Values> = runs.iter().map(|run| values(run, by_card)).collect();
    for (run, own) in runs.iter().zip(&values).skip(1) {
        if !own.keys().any(|key| values[0].contains_key(key)) {
            let (run, first) = (run.name.clone(), runs[0].name.clone());
            return Err(RegressError::Nothing { run, first });
        }
    }
    let keys: BTreeSet<&Key> = values.iter().flat_map(BTreeMap::keys).collect();
    let mut compared: Vec<Compared> = (keys.into_iter())
        .map(|key| compared(key, &units[&(key.1.clone(), key.3.clone())], &values))
        .collect();
    compared.sort_by(|a, b| b.worst().total_cmp(&a.worst()));
    Ok(Comparison {
        runs: lines,
        lines: compared,
    })
}

fn run_line(run: &Run) -> RunLine {
    let distinct = |of: fn(&Row) -> &String| -> Vec<String> {
        let all: BTreeSet<&String> = run.rows.iter().map(of).collect();
        all.into_iter().cloned().collect()
    };
    RunLine {
        name: run.name.clone(),
        cards: distinct(|row| &row.card),
        kernels: distinct(|row| &row.kernel),
        clocks: distinct(|row| &row.clock),
        rows: run.rows.len(),
    }
}

/// Unit and direction of each filesystem's metric.
fn units(runs: &[Run]) -> Result<Units, RegressError> {
    let mut units = Units::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        let this = (row.unit.clone(), row.lower_is_better);
        let key = (row.candidate.clone(), row.metric.clone());
        let known = units.entry(key).or_insert_with(|| this.clone());
        if *known != this {
            return Err(RegressError::Units {
                metric: row.metric.clone(),
                candidate: row.candidate.clone(),
                first: known.0.clone(),
                second: this.0,
            });
        }
    }
    Ok(units)
}

fn values(run: &Run, by_card: bool) -> Values {
    let mut values = Values::new();
    let positive = |row: &&Row| row.value.is_finite() && row.value > 0.0;
    for row in run.rows.iter().filter(positive) {
        let card = if by_card {
            row.card.clone()
        } else {
            String::new()
        };
        let key = (
            card,
            row.candidate.clone(),
            row.workload.clone(),
            row.metric.clone(),
        );
        values.entry(key).or_default().insert(row.seed, row.value);
    }
    values
}

fn compared(key: &Key, (unit, lower): &(String, bool), runs: &[Values]) -> Compared {
    let of = |run: &Values| {
        let row = run.get(key)?;
        Some(mean(row.values().map(|value| value.ln())).exp())
    };
    let sign = if *lower { 1.0 } else { -1.0 };
    let (card, candidate, workload, metric) = key.clone();
    let judged = !whichfs_trial::is_cpu_share(&metric);
    Compared {
        card,
        candidate,
        workload,
        metric,
        unit: unit.clone(),
        lower_is_better: *lower,
        values: runs.iter().map(of).collect(),
        changes: (runs.iter().skip(1))
            .map(|run| Some(change(runs[0].get(key)?, run.get(key)?, sign, judged)))
            .collect(),
    }
}

/// Log costs of `second` beside `first`, paired by seed where both have seeds in common.
fn change(
    first: &BTreeMap<u64, f64>,
    second: &BTreeMap<u64, f64>,
    sign: f64,
    judged: bool,
) -> Change {
    let pairs: Vec<f64> = (first.iter())
        .filter_map(|(seed, value)| Some(sign * (second.get(seed)? / value).ln()))
        .collect();
    let level = |row: &BTreeMap<u64, f64>| mean(row.values().map(|value| sign * value.ln()));
    let moved = match pairs.is_empty() {
        true => level(second) - level(first),
        false => mean(pairs.iter().copied()),
    };
    let noise = noise(&pairs, moved);
    let meaning = match () {
        () if moved.abs() > noise && !judged => Meaning::Other,
        () if moved > noise => Meaning::Worse,
        () if moved < -noise => Meaning::Better,
        () => Meaning::Same,
    };
    Change {
        worse: moved.exp(),
        noise: noise.exp(),
        pairs: pairs.len(),
        meaning,
    }
}

/// The logarithm up to which a mean of these pairs is noise.
fn noise(pairs: &[f64], mean_of: f64) -> f64 {
    if pairs.len() < PAIRS {
        return NOISE_FLOOR.ln();
    }
    let degrees = pairs.len() - 1;
    let squares: f64 = pairs.iter().map(|pair| (pair - mean_of).powi(2)).sum();
    let error = (squares / degrees as f64 / pairs.len() as f64).sqrt();
    (student(degrees) * error).max(LEAST_NOISE.ln())
}

/// The 97.5 % point of Student's t (Abramowitz and Stegun, table 26.10).
fn student(degrees: usize) -> f64 {
    const POINTS: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    match degrees {
        0 => f64::INFINITY,
        n if n <= POINTS.len() => POINTS[n - 1],
        n if n <= 20 => 2.145,
        _ => 2.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn row(candidate: &str, metric: &str, seed: u64, value: f64) -> Row {
        Row {
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

    fn run(name: &str, factor: f64, scatter: f64) -> Run {
        let values = (1..=5).flat_map(|seed| {
            let noisy = 1.0 + scatter * (seed as f64 - 3.0) / 2.0;
            [
                row("ext4", "mount", seed, 2.0 * factor * noisy),
                row("ext4", "tree_read", seed, 10.0 / factor * noisy),
                row("f2fs", "mount", seed, 4.0),
            ]
        });
        Run {
            name: name.into(),
            rows: values.collect(),
        }
    }

    fn of<'a>(comparison: &'a Comparison, candidate: &str, metric: &str) -> &'a Compared {
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
        let one = |name: &str, factor| Run {
            name: name.into(),
            rows: ["cpu", "mount_cpu"]
                .map(|metric| row("ext4", metric, 1, factor))
                .to_vec(),
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
        let one = |factor| Run {
            name: "x".into(),
            rows: vec![row("ext4", "mount", 1, factor)],
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
        let empty = Run {
            name: "e".into(),
            rows: Vec::new(),
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
}
