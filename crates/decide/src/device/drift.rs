//! Whether a device changed while it was measured: seen by runs of one trial between the others.

use super::median;
use crate::judge::NOISE_FLOOR;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// With fewer reference runs a change cannot be told from noise.
pub const REFERENCES_MIN: usize = 3;

/// A change counts if it is so many times the distance of the runs from the line through them.
const OVER_SPREAD: f64 = 2.0;

/// One of the reference runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceRun {
    /// Its place among them: a time, or a number.
    pub at: f64,
    /// Its figures by metric, all above 0.
    pub figures: BTreeMap<String, f64>,
}

/// A change of a metric from the first to the last reference run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Drift {
    /// Name as trials report it.
    pub metric: String,
    /// Change as a fraction: 0.2 is a fifth more at the end.
    pub change: f64,
    /// Median distance of the runs from the line, as a fraction.
    pub spread: f64,
    /// Runs that it is seen by.
    pub runs: usize,
}

/// The metrics of `runs` that changed by more than the noise floor and more than they scatter:
/// a line through the logarithms (Theil and Sen: the median of all slopes), which one odd run
/// does not move. The largest change first.
pub fn drifts(runs: &[ReferenceRun]) -> Vec<Drift> {
    let metrics: BTreeSet<&String> = runs.iter().flat_map(|run| run.figures.keys()).collect();
    let mut found: Vec<Drift> = metrics
        .into_iter()
        .filter_map(|name| drift(runs, name))
        .collect();
    found.sort_by(|a, b| (b.change.abs().total_cmp(&a.change.abs())).then(a.metric.cmp(&b.metric)));
    found
}

fn drift(runs: &[ReferenceRun], metric: &str) -> Option<Drift> {
    let logs = runs.iter().filter_map(|run| {
        let value = run.figures.get(metric).filter(|value| **value > 0.0)?;
        Some((run.at, value.ln()))
    });
    let points: Vec<(f64, f64)> = logs.collect();
    if points.len() < REFERENCES_MIN {
        return None;
    }
    let slope = slope(&points)?;
    let level = median(points.iter().map(|(at, log)| log - slope * at).collect())?;
    let distances = points
        .iter()
        .map(|(at, log)| (log - slope * at - level).abs());
    let spread = median(distances.collect())?;
    let times = || points.iter().map(|(at, _)| *at);
    let span = times().fold(f64::MIN, f64::max) - times().fold(f64::MAX, f64::min);
    let change = slope * span;
    let counts = change.abs() > NOISE_FLOOR.ln() && change.abs() > OVER_SPREAD * spread;
    counts.then(|| Drift {
        metric: metric.to_owned(),
        change: change.exp() - 1.0,
        spread: spread.exp() - 1.0,
        runs: points.len(),
    })
}

/// The median of the slopes between all pairs; `None` if all are at one time.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, (at, log)) in points.iter().enumerate() {
        for (later, other) in &points[index + 1..] {
            if later != at {
                slopes.push((other - log) / (later - at));
            }
        }
    }
    median(slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64]) -> Vec<ReferenceRun> {
        let run = |(at, value): (usize, &f64)| ReferenceRun {
            at: at as f64 * 60.0,
            figures: BTreeMap::from([("tree_write".to_owned(), *value)]),
        };
        values.iter().enumerate().map(run).collect()
    }

    #[test]
    fn a_steady_change_is_seen_with_its_size() {
        let found = drifts(&runs(&[10.0, 11.0, 12.1, 13.31]));
        assert_eq!(found.len(), 1);
        assert!((found[0].change - 0.331).abs() < 1e-9, "{found:?}");
        assert!(found[0].spread < 1e-9 && found[0].runs == 4);
        let slower = drifts(&runs(&[20.0, 15.0, 10.0]));
        assert!(slower[0].change < -0.4, "{slower:?}");
    }

    #[test]
    fn noise_one_odd_run_and_too_few_runs_are_none() {
        assert_eq!(drifts(&runs(&[10.0, 10.5, 9.8, 10.3, 10.1])), []);
        assert_eq!(
            drifts(&runs(&[10.0, 10.0, 50.0, 10.0, 10.0])),
            [],
            "one odd run"
        );
        assert_eq!(drifts(&runs(&[10.0, 20.0])), [], "two runs tell nothing");
        assert_eq!(drifts(&runs(&[10.0, 18.0, 9.0, 17.0, 12.0])), [], "scatter");
        assert_eq!(
            drifts(&runs(&[0.0, 0.0, 0.0])),
            [],
            "nothing to take a ratio of"
        );
        assert_eq!(drifts(&[]), []);
        let mut together = runs(&[10.0, 20.0, 30.0]);
        together.iter_mut().for_each(|run| run.at = 5.0);
        assert_eq!(drifts(&together), [], "all at one time");
    }
}
