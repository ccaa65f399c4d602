//! A metric of a trial as one row: what is exported and what is judged.

use crate::judge::Sample;
use serde::{Deserialize, Serialize};
use whichfs_trial::Trial;

/// One figure of one trial. The fields are the columns of `study export`, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
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

impl Row {
    /// The columns, in the order of DESIGN.md §5.
    pub const COLUMNS: [&str; 12] = [
        "card",
        "kernel",
        "clock",
        "candidate",
        "mount_options",
        "workload",
        "metric",
        "value",
        "unit",
        "lower_is_better",
        "seed",
        "trial",
    ];

    /// The rows of a trial, one for each of its metrics; none are averaged.
    pub fn of_trial(trial: &Trial) -> Vec<Row> {
        let identity = &trial.identity;
        let id = identity.id();
        let metrics = trial.outcome.metrics.iter();
        metrics
            .map(|metric| Row {
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

    /// The figures of a file in the form of `results.csv`. Lines of trials that failed (a text
    /// in the column `failed`) have none and are left out.
    ///
    /// # Errors
    /// The line that is no row, and why.
    pub fn read_csv(text: &str) -> Result<Vec<Row>, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headers = reader.headers().map_err(|error| error.to_string())?.clone();
        let failed = headers.iter().position(|name| name == "failed");
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let field = failed.and_then(|at| record.get(at));
            if field.is_some_and(|why| !why.is_empty()) {
                continue;
            }
            let row = record.deserialize(Some(&headers));
            rows.push(row.map_err(|error| error.to_string())?);
        }
        Ok(rows)
    }

    /// The figures of a file in the form of `results.json`. Objects with a text in `failed` are
    /// trials without figures and are left out.
    ///
    /// # Errors
    /// The object that is no row, and why.
    pub fn read_json(text: &str) -> Result<Vec<Row>, String> {
        let objects = serde_json::from_str::<Vec<serde_json::Value>>(text);
        let mut rows = Vec::new();
        for object in objects.map_err(|error| error.to_string())? {
            if object
                .get("failed")
                .is_some_and(serde_json::Value::is_string)
            {
                continue;
            }
            let row = serde_json::from_value(object).map_err(|error| error.to_string())?;
            rows.push(row);
        }
        Ok(rows)
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
