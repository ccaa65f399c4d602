//! What a study compares with what: a variant, a candidate or a workload that the others are set
//! against.

use super::keys::names;
use super::{Known, PerformanceStudy};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use whichfs_decide::{FileError, Position};

/// Which figures of a study are set against which others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Compare {
    /// What the others are compared with.
    pub with: Base,
    /// Metrics that count; empty for all.
    pub metrics: Vec<String>,
    /// Whether the workloads are a series with something growing, in which the turning point is
    /// looked for.
    pub series: bool,
}

/// What others are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// A variant: each candidate with itself.
    Variant(String),
    /// A candidate, in the same variant.
    Candidate(String),
    /// A workload, of the same candidate in the same variant: how figures scale with what differs
    /// between the workloads.
    Workload(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareFile {
    variant: Option<Spanned<String>>,
    candidate: Option<Spanned<String>>,
    workload: Option<Spanned<String>>,
    #[serde(default)]
    metrics: Vec<Spanned<String>>,
    #[serde(default)]
    series: bool,
}

/// The comparison of a study file; what it names must be in the `study`.
pub(super) fn compare(
    at: &Position,
    raw: &CompareFile,
    study: &PerformanceStudy,
    known: &Known,
) -> Result<Compare, FileError> {
    let one = |key: &str, name: &Spanned<String>, legal: &[&str]| {
        let found = names(at, key, std::slice::from_ref(name), legal)?;
        Ok::<String, FileError>(found.concat())
    };
    let variants: Vec<&str> = study.variants.iter().map(|v| v.name.as_str()).collect();
    let candidates: Vec<&str> = study.candidates.iter().map(String::as_str).collect();
    let loads: Vec<&str> = study.workloads.iter().map(|l| l.name.as_str()).collect();
    let with = match (&raw.variant, &raw.candidate, &raw.workload) {
        (Some(name), None, None) => Base::Variant(one("compare.variant", name, &variants)?),
        (None, Some(name), None) => Base::Candidate(one("compare.candidate", name, &candidates)?),
        (None, None, Some(name)) => Base::Workload(one("compare.workload", name, &loads)?),
        (None, None, None) => {
            let found = "neither variant nor candidate nor workload";
            return Err(at.whole("compare", found, "one of them"));
        }
        (Some(name), ..) | (None, Some(name), Some(_)) => {
            let legal = "one of them: what the others are compared with";
            return Err(at.error(
                name,
                "compare",
                "two of variant, candidate, workload",
                legal,
            ));
        }
    };
    if let (Base::Workload(_), true) = (&with, raw.series) {
        let legal = "variant or candidate: a turning point is where one falls behind another";
        return Err(at.whole("compare", "series beside workload", legal));
    }
    for metric in &raw.metrics {
        let yields = |load: &super::StudyWorkload| (known.metric)(&load.workload, metric.get_ref());
        let answers: Vec<Result<(), String>> = study.workloads.iter().map(yields).collect();
        if let Some(Err(why)) = answers.iter().find(|a| a.is_err())
            && answers.iter().all(Result::is_err)
        {
            let found = format!("'{}'", metric.get_ref());
            return Err(at.error(metric, "compare.metrics", found, why));
        }
    }
    Ok(Compare {
        with,
        metrics: raw
            .metrics
            .iter()
            .map(|name| name.get_ref().clone())
            .collect(),
        series: raw.series,
    })
}
