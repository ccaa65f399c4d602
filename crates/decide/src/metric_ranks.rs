//! What a candidate is good and bad at, by the trials that there are.
//!
//! Only like is compared with like: trials of one workload with the same parameters, board, clock,
//! kernel and state of the card. Where there are several such sets, the one with the most
//! candidates counts.

use crate::fit::mean;
use crate::verdict::Grade;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_trial::{Identity, Status, Trial, is_share, is_use_of_phase};

/// Candidates that must have a figure, so that one of them can be called good or bad.
const LEAST: usize = 3;

/// One metric of a candidate beside those of the others.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Standing {
    /// Name of the workload in the catalogue.
    pub workload: String,
    /// Name as trials report it.
    pub metric: String,
    /// Geometric mean over the candidate's seeds.
    pub value: f64,
    /// Unit of `value`.
    pub unit: String,
    /// How many times worse than the best; 1 is the best.
    pub ratio: f64,
    /// That in a word.
    pub grade: Grade,
    /// Who is the best.
    pub best: String,
    /// Candidates that have a figure.
    pub candidates: usize,
    /// Ids of the candidate's trials behind it.
    pub trials: Vec<String>,
}

/// Where `candidate` stands in each metric of finished `trials`, the best ratios first.
pub fn standings(trials: &[Trial], candidate: &str) -> Vec<Standing> {
    let mut found: Vec<Standing> = (alike(trials).into_iter())
        .flat_map(|set| in_set(&set, candidate))
        .collect();
    let key = |one: &Standing| (one.workload.clone(), one.metric.clone());
    found.sort_by(|a, b| a.ratio.total_cmp(&b.ratio).then(key(a).cmp(&key(b))));
    found
}

/// For each workload the set of like trials with the most candidates.
fn alike(trials: &[Trial]) -> Vec<Vec<&Trial>> {
    let mut sets: BTreeMap<String, Vec<&Trial>> = BTreeMap::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.outcome.status == Status::Done)
    {
        sets.entry(conditions(&trial.identity))
            .or_default()
            .push(trial);
    }
    let mut best: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
    let candidates = |set: &[&Trial]| {
        let names: BTreeSet<&str> = set.iter().map(|t| t.identity.candidate.as_str()).collect();
        names.len()
    };
    for set in sets.into_values() {
        let own = best.entry(&set[0].identity.workload).or_default();
        if candidates(&set) > candidates(own) {
            *own = set;
        }
    }
    best.into_values().collect()
}

/// All that must be the same so that figures can be compared.
fn conditions(identity: &Identity) -> String {
    format!(
        "{:?}",
        (
            &identity.workload,
            &identity.parameters,
            (&identity.tree_sha256, &identity.input),
            (&identity.card, &identity.card_state),
            (
                &identity.board_sha256,
                &identity.clock,
                &identity.kernel_sha256
            ),
            identity.partition_bytes,
        )
    )
}

fn in_set(set: &[&Trial], candidate: &str) -> Vec<Standing> {
    // Metric → candidate → log costs.
    let mut costs: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for trial in set {
        let judged = |metric: &str| !is_share(metric) && !is_use_of_phase(metric);
        for metric in trial
            .outcome
            .metrics
            .iter()
            .filter(|m| judged(&m.metric) && m.value > 0.0)
        {
            let sign = if metric.lower_is_better { 1.0 } else { -1.0 };
            let own = costs.entry(&metric.metric).or_default();
            own.entry(&trial.identity.candidate)
                .or_default()
                .push(sign * metric.value.ln());
        }
    }
    let own = |trial: &&&Trial| trial.identity.candidate == candidate;
    let ids: Vec<String> = set
        .iter()
        .filter(own)
        .map(|trial| trial.identity.id())
        .collect();
    let Some(first) = set
        .iter()
        .find(|trial| trial.identity.candidate == candidate)
    else {
        return Vec::new();
    };
    let metrics = first.outcome.metrics.iter();
    metrics
        .filter_map(|metric| {
            let levels = costs.get(metric.metric.as_str())?;
            let level = |name: &str| Some(mean(levels.get(name)?.iter().copied()));
            let best = (levels.keys())
                .min_by(|a, b| level(a).unwrap_or(0.0).total_cmp(&level(b).unwrap_or(0.0)))?;
            let ratio = (level(candidate)? - level(best)?).exp();
            let sign = if metric.lower_is_better { 1.0 } else { -1.0 };
            (levels.len() >= LEAST).then(|| Standing {
                workload: first.identity.workload.clone(),
                metric: metric.metric.clone(),
                value: (sign * level(candidate).unwrap_or(0.0)).exp(),
                unit: metric.unit.clone(),
                ratio,
                grade: Grade::of_ratio(ratio),
                best: (*best).to_owned(),
                candidates: levels.len(),
                trials: ids.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn trial(candidate: &str, seed: u64, bytes: u64, mount: f64, read: f64) -> Trial {
        let text = format!(
            r#"{{"identity":{{"card":"c","card_sha256":"","card_state":"used","board":"b",
            "board_sha256":"","clock":"cpu:b","kernel":"6.12","kernel_sha256":"",
            "candidate":"{candidate}","mkfs":[],"mount_options":"","workload":"rootfs",
            "parameters":{{"bytes":{bytes}}},"tree_sha256":"","partition_offset":0,
            "partition_bytes":1,"memory_mib":1,"version":"","agent_sha256":"","tools":{{}},
            "cpu_features_sha256":"","seed":{seed}}},"outcome":{{"status":{{"status":"done"}},
            "phases":[],"trace_sha256":"","virtual_time":0,"metrics":[
            {{"metric":"mount","value":{mount},"unit":"s","lower_is_better":true}},
            {{"metric":"mount_cpu","value":1.0,"unit":"%","lower_is_better":true}},
            {{"metric":"tree_read","value":{read},"unit":"MB/s","lower_is_better":false}}]}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn figures_stand_beside_the_best_of_like_trials() {
        let trials = [
            trial("ext4", 1, 9, 0.01, 10.0),
            trial("ext4", 2, 9, 0.04, 10.0),
            trial("f2fs", 1, 9, 0.4, 20.0),
            trial("xfs", 1, 9, 0.2, 20.0),
            // Of another size, and of fewer candidates: not compared.
            trial("ext4", 1, 5, 9.0, 90.0),
            trial("f2fs", 1, 5, 1.0, 1.0),
        ];
        let found = standings(&trials, "f2fs");
        let told: Vec<(&str, u64, &str, usize)> = (found.iter())
            .map(|one| {
                let ratio = one.ratio.round() as u64;
                (
                    one.metric.as_str(),
                    ratio,
                    one.best.as_str(),
                    one.candidates,
                )
            })
            .collect();
        assert_eq!(
            told,
            [("tree_read", 1, "f2fs", 3), ("mount", 20, "ext4", 3)]
        );
        assert_eq!(found[1].grade, Grade::Worst);
        assert_eq!(found[1].trials, [trials[2].identity.id()]);
        assert!((standings(&trials, "ext4")[0].value - 0.02).abs() < 1e-9);
        assert!(standings(&trials, "jfs").is_empty());
        assert!(
            standings(&trials[..3], "f2fs").is_empty(),
            "two are too few"
        );
    }
}
