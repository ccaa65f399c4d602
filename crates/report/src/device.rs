//! What the trials say of the device under each candidate: requests by size, what was written and
//! programmed phase by phase, wear, and latencies of operations.

use crate::commands::repeated;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_trial::{DeviceFigures, LatencyHistogram, PhaseFigures, Slot, Status, Trial};

/// A trial behind the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TrialLine {
    /// Candidate name.
    pub candidate: String,
    /// Decides the data that the workload writes.
    pub seed: u64,
    /// Digest of all that decided the trial.
    pub id: String,
    /// True if it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The command that runs it again; empty in files of an older program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// The device under one candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct DeviceView {
    /// Candidate name.
    pub candidate: String,
    /// Finished trials that are summed.
    pub trials: u64,
    /// All phases of all trials together.
    pub total: DeviceFigures,
    /// Phases of the trial with the lowest seed, in order.
    pub phases: Vec<PhaseView>,
    /// What the device did over time in that trial; none of trials that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesView>,
    /// Latencies by phase, all trials together, in the order of the phases.
    pub latencies: Vec<LatencyView>,
}

/// A phase of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct PhaseView {
    /// Name of the phase.
    pub phase: String,
    /// Virtual seconds from the first phase on.
    pub begin_s: f64,
    /// Virtual seconds from the begin of the first phase.
    pub end_s: f64,
    /// Bytes that the host wrote.
    pub write_bytes: u64,
    /// Bytes that the card programmed.
    pub programmed_bytes: u64,
    /// Allocation units that the card copied: one more was open than it holds.
    pub au_copies: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl PhaseView {
    /// Bytes programmed for each byte written; none if nothing was written, or if it is not known
    /// what was programmed: a real device does not tell.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.write_bytes as f64;
        let known = self.write_bytes > 0 && self.programmed_bytes > 0;
        known.then(|| self.programmed_bytes as f64 / written)
    }
}

/// What a device did over time, in slots of equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct SeriesView {
    /// Begin of the first slot, in virtual seconds from the first phase on.
    pub begin_s: f64,
    /// Length of a slot in virtual seconds.
    pub slot_s: f64,
    /// AUs that the card can have open at once; none where it has no such limit.
    pub open_limit: Option<u32>,
    /// AUs that were open at the end of each slot.
    pub open_aus: Vec<u32>,
    /// Write requests, by slot.
    pub writes: Vec<u64>,
    /// Bytes that they wrote, by slot.
    pub write_bytes: Vec<u64>,
    /// Bytes that the card programmed, by slot.
    pub programmed_bytes: Vec<u64>,
    /// AUs that the card copied, by slot.
    pub au_copies: Vec<u64>,
}

/// How long operations of a phase took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct LatencyView {
    /// Name of the phase.
    pub phase: String,
    /// Number of timed operations.
    pub operations: u64,
    /// Half of them took no longer, in nanoseconds.
    pub p50_ns: u64,
    /// 90 % of them.
    pub p90_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p999_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// The trials, by candidate and seed; `repeat` is the command of one, in which CANDIDATE and SEED
/// stand for what they say.
pub fn trial_lines(trials: &[Trial], repeat: &str) -> Vec<TrialLine> {
    let mut lines: Vec<TrialLine> = trials
        .iter()
        .map(|trial| TrialLine {
            candidate: trial.identity.candidate.clone(),
            seed: trial.identity.seed,
            id: trial.identity.id(),
            failed: trial.outcome.status != Status::Done,
            command: repeated(repeat, &trial.identity.candidate, trial.identity.seed),
        })
        .collect();
    lines.sort_by(|a, b| (&a.candidate, a.seed, &a.id).cmp(&(&b.candidate, b.seed, &b.id)));
    lines
}

/// The device under each candidate of finished `trials`, by name.
pub fn devices(trials: &[Trial]) -> Vec<DeviceView> {
    let mut by_name: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        if trial.outcome.status == Status::Done {
            let own = by_name.entry(&trial.identity.candidate).or_default();
            own.push(trial);
        }
    }
    by_name
        .into_iter()
        .map(|(name, own)| of(name, own))
        .collect()
}

fn of(candidate: &str, mut trials: Vec<&Trial>) -> DeviceView {
    trials.sort_by_key(|trial| trial.identity.seed);
    let mut total = DeviceFigures::default();
    let mut latencies: Vec<(String, LatencyHistogram)> = Vec::new();
    for phase in trials.iter().flat_map(|trial| &trial.outcome.phases) {
        total.add(&phase.device);
        add_latency(&mut latencies, phase);
    }
    let first = trials.first().map(|trial| trial.outcome.phases.as_slice());
    DeviceView {
        candidate: candidate.to_owned(),
        trials: trials.len() as u64,
        total,
        phases: first.map_or(Vec::new(), phases),
        series: trials.first().and_then(|trial| series(trial)),
        latencies: latencies.iter().filter_map(latency).collect(),
    }
}

/// The series of `trial` from its first phase to its last.
fn series(trial: &Trial) -> Option<SeriesView> {
    let all = trial.outcome.series.as_ref()?;
    let phases = &trial.outcome.phases;
    let (begin, end) = (phases.first()?.begin, phases.last()?.end);
    let slot = all.slot.0.max(1);
    let first = (begin.0 / slot) as usize;
    let count = (end.0.div_ceil(slot) as usize).saturating_sub(first);
    let slots: Vec<&Slot> = all.slots.iter().skip(first).take(count).collect();
    Some(SeriesView {
        begin_s: (first as u64 * slot) as f64 / 1e9 - begin.as_secs_f64(),
        slot_s: slot as f64 / 1e9,
        open_limit: all.open_limit,
        open_aus: slots.iter().map(|slot| slot.open_aus).collect(),
        writes: slots.iter().map(|slot| slot.writes).collect(),
        write_bytes: slots.iter().map(|slot| slot.write_bytes).collect(),
        programmed_bytes: slots.iter().map(|slot| slot.programmed_bytes).collect(),
        au_copies: slots.iter().map(|slot| slot.au_copies).collect(),
    })
}

fn add_latency(all: &mut Vec<(String, LatencyHistogram)>, phase: &PhaseFigures) {
    let at = match all.iter().position(|(name, _)| *name == phase.phase) {
        Some(at) => at,
        None => {
            all.push((phase.phase.clone(), LatencyHistogram::default()));
            all.len() - 1
        }
    };
    for (&ns, &count) in &phase.latency.0 {
        all[at].1.record_many(ns, count);
    }
}

fn latency((phase, latency): &(String, LatencyHistogram)) -> Option<LatencyView> {
    let at = |numerator, denominator| latency.quantile_ns(numerator, denominator);
    Some(LatencyView {
        phase: phase.clone(),
        operations: latency.count(),
        p50_ns: at(1, 2)?,
        p90_ns: at(9, 10)?,
        p99_ns: at(99, 100)?,
        p999_ns: at(999, 1000)?,
        max_ns: at(1, 1)?,
    })
}

fn phases(all: &[PhaseFigures]) -> Vec<PhaseView> {
    let start = all.first().map_or(0.0, |phase| phase.begin.as_secs_f64());
    all.iter()
        .map(|phase| PhaseView {
            phase: phase.phase.clone(),
            begin_s: phase.begin.as_secs_f64() - start,
            end_s: phase.end.as_secs_f64() - start,
            write_bytes: phase.device.write_bytes,
            programmed_bytes: phase.device.programmed_bytes,
            au_copies: phase.device.au_copies,
            erases: phase.device.erases,
        })
        .collect()
}
