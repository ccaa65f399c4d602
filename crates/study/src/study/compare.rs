//! What a study compares with what: a variant or a candidate that the others are set against.

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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareFile {
    variant: Option<Spanned<String>>,
    candidate: Option<Spanned<String>>,
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
    let with = match (&raw.variant, &raw.candidate) {
        (Some(name), None) => Base::Variant(one("compare.variant", name, &variants)?),
        (None, Some(name)) => Base::Candidate(one("compare.candidate", name, &candidates)?),
        (Some(name), Some(_)) => {
            let legal = "one of them: what the others are compared with";
            return Err(at.error(name, "compare", "a variant and a candidate", legal));
        }
        (None, None) => {
            return Err(at.whole("compare", "neither variant nor candidate", "one of them"));
        }
    };
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
