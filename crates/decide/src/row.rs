//! A metric of a trial as one row: what is exported and what is judged.

use crate::evidence::Sample;
use crate::sustained;
use serde::{Deserialize, Serialize};
use whichfs_trial::Trial;

/// One figure of one trial. The fields are the first columns of `results.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// Name of the card profile.
    pub card: String,
    /// Release of the kernel.
    pub kernel: String,
    /// `cpu:<board>`, `device` or `real`.
    pub clock: String,
    /// Candidate name.
    pub candidate: String,
    /// Mount options as in fstab.
    pub mount_options: String,
    /// Name of the workload.
    pub workload: String,
    /// Metric name.
    pub metric: String,
    /// Value in `unit`.
    pub value: f64,
    /// Unit of the value.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
    /// Seed of the trial.
    pub seed: u64,
    /// Id of the trial.
    pub trial: String,
}

impl FigureRow {
    /// The rows of a trial, one for each of its metrics that counts; none are averaged.
    pub fn of_trial(trial: &Trial) -> Vec<FigureRow> {
        let identity = &trial.identity;
        let id = identity.id();
        let metrics = trial.outcome.metrics.iter();
        metrics
            .filter(|metric| sustained::counts(trial, &metric.metric))
            .map(|metric| FigureRow {
                card: identity.card.clone(),
                kernel: identity.kernel.clone(),
                clock: identity.clock.clone(),
                candidate: identity.candidate.clone(),
                mount_options: identity.mount_options.clone(),
                workload: identity.workload.clone(),
                metric: metric.metric.clone(),
                value: metric.value,
                unit: metric.unit.clone(),
                lower_is_better: metric.lower_is_better,
                seed: identity.seed,
                trial: id.clone(),
            })
            .collect()
    }

    /// What [`crate::judge`] needs of it.
    pub fn sample(&self) -> Sample {
        Sample {
            candidate: self.candidate.clone(),
            metric: self.metric.clone(),
            seed: self.seed,
            value: self.value,
            unit: self.unit.clone(),
            lower_is_better: self.lower_is_better,
        }
    }
}
