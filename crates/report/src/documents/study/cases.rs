//! The trials of a study as test cases.

use crate::junit::{Case, CaseResult};
use whichfs_study::Spot;
use whichfs_trial::{Status, Trial};

/// A test case for each of `trials`: one with figures passes. Its output has a line for each
/// figure: name, value, unit.
pub fn study_cases(trials: &[(Spot<'_>, Trial)]) -> Vec<Case> {
    let case = |(spot, trial): &(Spot<'_>, Trial)| {
        let outcome = &trial.outcome;
        let seed = format!("seed-{}", spot.seed);
        let name = [spot.candidate, spot.variant.name.as_str(), seed.as_str()];
        let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
        let shown = outcome
            .metrics
            .iter()
            .filter(|one| spot.load.shows(&one.metric));
        let figures = shown.map(|one| format!("{} {} {}\n", one.metric, one.value, one.unit));
        Case {
            class: format!("{}.{}", spot.card, spot.load.name),
            name: name.join("."),
            seconds: outcome.virtual_time.as_secs_f64(),
            told: match &outcome.status {
                Status::Done => CaseResult::Passed,
                Status::Failed { reason, .. } => CaseResult::Failed(reason.clone()),
            },
            output: figures.collect(),
        }
    };
    trials.iter().map(case).collect()
}
