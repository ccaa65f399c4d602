//! Several runs side by side: what changed beyond noise since the first.
//!
//! Figures are compared where filesystem, workload and metric are the same, and the card, if a
//! run has several; what all rows of a run have in common may differ between runs: that is what
//! is compared (another card, kernel, clock, image). Seeds that both have are paired. The noise of
//! a change is the 97.5 % point of Student's t times the standard error of the paired
//! differences of logarithms, at least [`LEAST_NOISE`]; of less than [`PAIRS`] pairs it is the
//! noise floor of the verdict.

mod answers;
mod read;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_decide::FigureRow;
use whichfs_decide::NOISE_FLOOR;
use whichfs_decide::mean;

pub use answers::{
    AnswerChange, Cause, PlaceChange, RankedPlace, RunVerdict, Stopped, TrialFailure, TrialName,
    Was,
};

pub use read::{read_csv, read_json};

/// Ratio below which nothing is called a change, however little it scatters.
pub const LEAST_NOISE: f64 = 1.02;

/// Pairs from which on their own scatter tells the noise.
pub const PAIRS: usize = 3;

/// Rows of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegressionRun {
    /// What it is called: where it was read from.
    pub name: String,
    /// A figure of each filesystem, workload, metric and seed.
    pub rows: Vec<FigureRow>,
    /// What it decided; none where only its figures are known.
    pub answer: Option<RunVerdict>,
    /// Its trials that failed, where they are known one by one (a store).
    pub failed: Vec<TrialFailure>,
    /// The command that shows a trial of it; TRIAL stands for its id. Empty if unknown.
    pub show: String,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The runs, the first of which the others are compared with.
    pub runs: Vec<RunLine>,
    /// Filesystems that have no place in a later run, those that worked in the first run at the
    /// head, of these those whose trials failed.
    pub stopped: Vec<Stopped>,
    /// The decision of each later run beside that of the first, where both are known.
    pub answers: Vec<AnswerChange>,
    /// Figures, the largest worsening first.
    pub lines: Vec<ComparedMetric>,
}

/// What all rows of a run have in common.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunLine {
    /// What it is called.
    pub name: String,
    /// Every card that has a figure in the run.
    pub cards: Vec<String>,
    /// Every kernel release that has a figure in the run.
    pub kernels: Vec<String>,
    /// Every clock that has a figure in the run.
    pub clocks: Vec<String>,
    /// Figures in it.
    pub rows: usize,
    /// Whether what it decided, and so what failed in it, is known.
    pub decided: bool,
    /// The command that shows a trial of it; TRIAL stands for its id. Empty if unknown.
    pub show: String,
}

/// One metric of one filesystem in all runs.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedMetric {
    /// The card; empty where each run has one.
    pub card: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Name of the workload in the catalogue.
    pub workload: String,
    /// Name as trials report it.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
    /// Geometric mean in each run; none where it has no figure.
    pub values: Vec<Option<f64>>,
    /// Each later run beside the first.
    pub changes: Vec<Option<Change>>,
    /// The samples behind each run's value, by seed.
    pub samples: Vec<Vec<Taken>>,
}

/// A sample, and the trial that it is of.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Taken {
    /// Seed of the trial.
    pub seed: u64,
    /// Value in the metric's unit.
    pub value: f64,
    /// Beginning of the trial's id, which `whichfs trial show` takes.
    pub trial: String,
}

/// A run beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Worse beyond noise.
    Worse,
    /// Better beyond noise.
    Better,
    /// Within noise.
    Same,
    /// Beyond noise, and neither figure is the better one: a share of time.
    Other,
}

/// Runs that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegressError {
    /// A run has no figures.
    #[error("{run} holds no figures; name the directory of a finished report, or its results.csv")]
    Empty {
        /// Name of the run: that of its directory.
        run: String,
    },
    /// No figure of a run is in the first one too.
    #[error(
        "{run} and {first} have no filesystem, workload and metric in common: nothing compares"
    )]
    Nothing {
        /// Name of the later run.
        run: String,
        /// The first one.
        first: String,
    },
    /// A metric came in two units.
    #[error("{metric} of {candidate} is in {first} and in {second}: these cannot be compared")]
    Units {
        /// Name as trials report it.
        metric: String,
        /// Name of the filesystem in the catalogue.
        candidate: String,
        /// Unit of the first figure.
        first: String,
        /// Unit of another figure.
        second: String,
    },
}

impl Comparison {
    /// Filesystems that worked in the first run and do not in a later one.
    pub fn broken(&self) -> impl Iterator<Item = &Stopped> {
        self.stopped.iter().filter(|one| one.was == Was::Worked)
    }

    /// Why `line` has no figure in run `run` (the second is 2), where that is known.
    pub fn why_gone(&self, line: &ComparedMetric, run: usize) -> Option<&Stopped> {
        let of_line = |one: &&Stopped| {
            one.run == run
                && (one.card.is_empty() || one.card == line.card)
                && one.candidate == line.candidate
                && (one.workload.is_empty() || one.workload == line.workload)
        };
        self.stopped.iter().find(of_line)
    }

    /// Lines in which a later run is worse than the first by more than `share` (0.1 is 10 %) and
    /// beyond noise, or has no figure where the first has one.
    pub fn failures(&self, share: f64) -> Vec<&ComparedMetric> {
        let lines = self.lines.iter();
        lines.filter(|line| line.fails(share).is_some()).collect()
    }
}

impl ComparedMetric {
    /// Whether one of two figures is the better one: not of two shares of time.
    pub fn is_judged(&self) -> bool {
        !whichfs_trial::is_share(&self.metric)
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
/// Values of a key by seed, with the trials that they are of.
type Values<'a> = BTreeMap<Key, BTreeMap<u64, (f64, &'a str)>>;

/// Digits of a trial's id that tell it from all others of a run.
const DIGITS: usize = 12;

fn short(id: &str) -> String {
    id.get(..DIGITS).unwrap_or(id).to_owned()
}

/// Puts `runs` side by side.
///
/// # Errors
/// [`RegressError`]: a run without figures, none in common with the first, two units.
pub fn compare(runs: &[RegressionRun]) -> Result<Comparison, RegressError> {
    let lines: Vec<RunLine> = runs.iter().map(run_line).collect();
    let nothing =
        |run: &&RegressionRun| run.rows.is_empty() && run.answer.is_none() && run.failed.is_empty();
    if let Some(empty) = runs.iter().find(nothing) {
        let run = empty.name.clone();
        return Err(RegressError::Empty { run });
    }
    let by_card = lines.iter().any(|line| line.cards.len() > 1);
    let units = units(runs)?;
    let values: Vec<Values> = runs.iter().map(|run| values(run, by_card)).collect();
    let stopped = answers::stopped(runs, &values, by_card);
    for (at, (run, own)) in runs.iter().zip(&values).enumerate().skip(1) {
        // Where what there was to compare stopped working, that is the result.
        let known = |one: &Stopped| one.run == at + 1 && one.cause != Cause::Absent;
        let explained = stopped.iter().any(known);
        if !explained && !own.keys().any(|key| values[0].contains_key(key)) {
            let (run, first) = (run.name.clone(), runs[0].name.clone());
            return Err(RegressError::Nothing { run, first });
        }
    }
    let keys: BTreeSet<&Key> = values.iter().flat_map(BTreeMap::keys).collect();
    let mut compared: Vec<ComparedMetric> = (keys.into_iter())
        .map(|key| compared(key, &units[&(key.1.clone(), key.3.clone())], &values))
        .collect();
    compared.sort_by(|a, b| b.worst().total_cmp(&a.worst()));
    Ok(Comparison {
        runs: lines,
        stopped,
        answers: answers::changes(runs),
        lines: compared,
    })
}

fn run_line(run: &RegressionRun) -> RunLine {
    let distinct = |of: fn(&FigureRow) -> &String| -> Vec<String> {
        let all: BTreeSet<&String> = run.rows.iter().map(of).collect();
        all.into_iter().cloned().collect()
    };
    RunLine {
        name: run.name.clone(),
        cards: distinct(|row| &row.card),
        kernels: distinct(|row| &row.kernel),
        clocks: distinct(|row| &row.clock),
        rows: run.rows.len(),
        decided: run.answer.is_some() || !run.failed.is_empty(),
        show: run.show.clone(),
    }
}

/// Unit and direction of each filesystem's metric.
fn units(runs: &[RegressionRun]) -> Result<Units, RegressError> {
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

fn values(run: &RegressionRun, by_card: bool) -> Values<'_> {
    let mut values = Values::new();
    let positive = |row: &&FigureRow| row.value.is_finite() && row.value > 0.0;
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
        values
            .entry(key)
            .or_default()
            .insert(row.seed, (row.value, &row.trial));
    }
    values
}

fn compared(key: &Key, (unit, lower): &(String, bool), runs: &[Values]) -> ComparedMetric {
    let of = |run: &Values| {
        let row = run.get(key)?;
        Some(mean(row.values().map(|(value, _)| value.ln())).exp())
    };
    let taken = |run: &Values| -> Vec<Taken> {
        let each = run.get(key).into_iter().flatten();
        each.map(|(seed, (value, trial))| Taken {
            seed: *seed,
            value: *value,
            trial: short(trial),
        })
        .collect()
    };
    let sign = if *lower { 1.0 } else { -1.0 };
    let (card, candidate, workload, metric) = key.clone();
    let judged = !whichfs_trial::is_share(&metric);
    ComparedMetric {
        card,
        candidate,
        workload,
        metric,
        unit: unit.clone(),
        lower_is_better: *lower,
        values: runs.iter().map(of).collect(),
        samples: runs.iter().map(taken).collect(),
        changes: (runs.iter().skip(1))
            .map(|run| Some(change(runs[0].get(key)?, run.get(key)?, sign, judged)))
            .collect(),
    }
}

/// Log costs of `second` beside `first`, paired by seed where both have seeds in common.
fn change(
    first: &BTreeMap<u64, (f64, &str)>,
    second: &BTreeMap<u64, (f64, &str)>,
    sign: f64,
    judged: bool,
) -> Change {
    let pairs: Vec<f64> = (first.iter())
        .filter_map(|(seed, (value, _))| Some(sign * (second.get(seed)?.0 / value).ln()))
        .collect();
    let level =
        |row: &BTreeMap<u64, (f64, &str)>| mean(row.values().map(|(value, _)| sign * value.ln()));
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
mod tests;
