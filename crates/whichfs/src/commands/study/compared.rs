//! A study that another command makes up: run, and its differences.

use super::trials::{Limits, Runner};
use crate::failure::Outcome;
use whichfs_report::documents::check::TuningGain;
use whichfs_report::documents::study::gain_tables;
use whichfs_study::{PerformanceStudy, gains};

/// Runs what the store does not have of `study`, and compares.
pub fn compared(study: &PerformanceStudy) -> Outcome<TuningGain> {
    let mut runner = Runner::new(study, &Limits::default())?;
    runner.run_all(None)?;
    let gains = gains(study, &runner.trials);
    let tables = gain_tables(study, &gains, usize::MAX);
    let mut lacking = super::trials::failed(runner.study, &runner.trials);
    lacking.extend(runner.left_out());
    Ok(TuningGain {
        rows: tables.into_iter().flat_map(|table| table.rows).collect(),
        gains,
        lacking,
    })
}
