//! A study that another command makes up: run, and its differences.

use super::gains_told;
use super::trials::{Limits, Runner};
use crate::failure::Outcome;
use serde::Serialize;
use whichfs_study::{Gain, PerformanceStudy, gains};

/// What a comparison gave.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// Differences by metric.
    pub gains: Vec<Gain>,
    /// Trials that failed or could not be run, with the reason.
    pub lacking: Vec<String>,
    /// The differences as rows of a table: metric and change.
    #[serde(skip)]
    pub rows: Vec<Vec<String>>,
}

/// Runs what the store does not have of `study`, and compares.
pub fn compared(study: &PerformanceStudy) -> Outcome<Compared> {
    let mut runner = Runner::new(study, &Limits::default())?;
    runner.run_all(None)?;
    let gains = gains(study, &runner.trials);
    let tables = gains_told::tables(study, &gains, usize::MAX);
    let mut lacking = super::trials::failed(runner.study, &runner.trials);
    lacking.extend(runner.left_out());
    Ok(Compared {
        rows: tables.into_iter().flat_map(|table| table.rows).collect(),
        gains,
        lacking,
    })
}
