//! The record of a finished trial: what decided it and what came out.

use crate::cpu_counts::CpuTime;
use crate::device_figures::DeviceFigures;
use crate::event::{Counts, LatencyHistogram};
use crate::series::Series;
use crate::stamped_event::Conditions;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use whichfs_units::Nanos;

/// Clock of a trial on a real device.
pub const REAL: &str = "real";

/// A finished trial. Serialised, one of the lab is a pure function of its identity:
/// nothing about wall time or the machine's load is in it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Trial {
    /// Everything that decides the result.
    pub identity: Identity,
    /// What came out.
    pub outcome: TrialOutcome,
}

/// A finished trial as it is kept in a store and sent between machines.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TrialRecord {
    /// Id of the trial: the digest of its identity.
    pub id: String,
    /// Wall time it took, in nanoseconds.
    pub wall_ns: u64,
    /// When it ended, in seconds since 1970, by the clock of the machine that ran it.
    pub finished_at_unix: i64,
    /// The trial, whole.
    pub trial: Trial,
}

impl TrialRecord {
    /// Name of its JSON document: the command that prints it.
    pub const DOCUMENT: &'static str = "trial run";
    /// Number of the schema of its JSON document.
    pub const SCHEMA: u32 = 1;

    /// The record of `trial`, which ran for `wall_ns` nanoseconds and ended so many seconds after
    /// 1970.
    pub fn new(trial: Trial, wall_ns: u64, finished_at_unix: i64) -> TrialRecord {
        TrialRecord {
            id: trial.identity.id(),
            wall_ns,
            finished_at_unix,
            trial,
        }
    }
}

/// Everything that decides a trial's result; its hash is the trial's id.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Identity {
    /// Name of the card profile.
    pub card: String,
    /// SHA-256 of the resolved profile (after the seed's parameter draw).
    pub card_sha256: String,
    /// `used` or `fresh`.
    pub card_state: String,
    /// Name of the board.
    pub board: String,
    /// SHA-256 of the board file's content.
    pub board_sha256: String,
    /// `cpu:<board>`, `device` or `real`.
    pub clock: String,
    /// Release of the lab kernel, for example `6.12.117`.
    pub kernel: String,
    /// SHA-256 of the kernel image.
    pub kernel_sha256: String,
    /// Candidate name, for example `ext4-nojournal`.
    pub candidate: String,
    /// The mkfs commands as run, and that of a process that runs beside the filesystem.
    pub mkfs: Vec<Vec<String>>,
    /// Mount options as in fstab.
    pub mount_options: String,
    /// Name of the workload.
    pub workload: String,
    /// Parameters of the workload.
    pub parameters: BTreeMap<String, u64>,
    /// Digest of the user's tree; empty for a generated one.
    pub tree_sha256: String,
    /// What the user gives the workload's program ([`crate::WorkloadSpec::input`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Byte offset of the partition on the card.
    pub partition_offset: u64,
    /// Size of the partition that holds the filesystem.
    pub partition_bytes: u64,
    /// Memory of the guest in MiB.
    pub memory_mib: u64,
    /// Version of the program and of its method.
    pub version: String,
    /// SHA-256 of the agent's binary.
    pub agent_sha256: String,
    /// SHA-256 of the sealed userland, from which mkfs, fsck and the workload's programs ran; none
    /// where programs of the host did, and in trials of versions before 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userland_sha256: Option<String>,
    /// Programs of the host that were used and their versions, and modules of the kernel.
    pub tools: BTreeMap<String, String>,
    /// SHA-256 of the host CPU's feature flags: tools pick code by them.
    pub cpu_features_sha256: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Seed of the workload's data, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_seed: Option<u64>,
    /// What tells a trial that was measured on a real device from the same one done again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// A second card beside the first, or RAM; its own commands are among `mkfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_card: Option<SecondCardIdentity>,
}

/// The second card of a trial: which, and what of the filesystem is on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct SecondCardIdentity {
    /// Name of the card profile; `ram` for tmpfs in the board's memory.
    pub card: String,
    /// SHA-256 of the resolved profile (after the seed's parameter draw); empty for `ram`.
    pub card_sha256: String,
    /// `journal` or `upper`.
    pub holds: String,
    /// Byte offset of its partition on the card.
    pub partition_offset: u64,
    /// Size of that partition; 0 for `ram`.
    pub partition_bytes: u64,
}

/// Where and when a trial was measured. Its seed is the number of the repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Measured {
    /// What tells the device from others: its register or serial number, and its size.
    pub device: String,
    /// A study that is made anew on the same device is another session.
    pub session: u64,
    /// Number of the reference run, which is repeated to detect drift; none if the trial is no
    /// reference run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<u64>,
}

impl Identity {
    /// Whether it was measured on a real device.
    pub fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// SHA-256 of the canonical JSON (fields in declaration order, maps sorted), in hex.
    pub fn id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_else(|error| {
            unreachable!("an Identity is strings, numbers and sorted maps: {error}")
        });
        hex(&Sha256::digest(json))
    }
}

/// Lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What came out of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct TrialOutcome {
    /// Done, or failed with the reason.
    pub status: Status,
    /// Figures of each phase, in order.
    pub phases: Vec<PhaseFigures>,
    /// The metrics derived from them.
    pub metrics: Vec<Metric>,
    /// SHA-256 over every request with its virtual times, in hex.
    pub trace_sha256: String,
    /// Virtual time at the end; on a real device the time that the agent took.
    pub virtual_time: Nanos,
    /// What the first disk did over time; `None` where nobody recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Erases of the card's most worn block for each of the mean, during the trial; only of
    /// sustained trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_spread: Option<f64>,
    /// How the machine was; only of trials on a real device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// All steps were done.
    Done,
    /// It failed; the figures up to there are kept.
    Failed {
        /// One sentence.
        reason: String,
        /// Tail of console and kernel log.
        log: Vec<String>,
    },
}

/// Figures of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct PhaseFigures {
    /// Name of the phase.
    pub phase: String,
    /// Virtual instant of its begin.
    pub begin: Nanos,
    /// Virtual instant of its end.
    pub end: Nanos,
    /// What the agent did.
    pub counts: Counts,
    /// Latencies the agent recorded.
    pub latency: LatencyHistogram,
    /// What the device did meanwhile; the first card, where there are two.
    pub device: DeviceFigures,
    /// What the second card did meanwhile; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_card: Option<DeviceFigures>,
    /// CPU time of the kernel; `None` where nobody counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuTime>,
}

impl PhaseFigures {
    /// Duration in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.begin).as_secs_f64()
    }
}

/// One figure with its meaning.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Metric {
    /// Metric name (`tree_write`, `mount`, `space`, …).
    pub metric: String,
    /// Value in `unit`.
    pub value: f64,
    /// Unit, for example `s`, `MB/s`, `B`.
    pub unit: String,
    /// True for durations and space, false for rates.
    pub lower_is_better: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_id_of_a_stored_trial_without_a_sealed_userland_stays() {
        let old = include_str!("identity-0.1.json");
        let mut identity: Identity = serde_json::from_str(old).unwrap();
        assert_eq!(identity.userland_sha256, None);
        assert_eq!(
            identity.id(),
            "9f2417729abf238dd7c46d4d8a25067490e238441ac0711e006677c41ea0abba"
        );
        let before = identity.id();
        identity.userland_sha256 = Some("00".into());
        assert_ne!(identity.id(), before);
    }
}
