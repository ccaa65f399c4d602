//! One cut and what became of it.

use crate::{Checked, Cut, FilesystemCondition, LiveRun, PathFinding, PathOutcome, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_units::Nanos;

/// One cut and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CutResult {
    /// Where the power went.
    pub cut: Cut,
    /// Where it went again, in the recovery of the cut before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Cut>,
    /// Operations that were durable, and that had begun.
    pub window: (u64, u64),
    /// What became of the filesystem.
    pub condition: FilesystemCondition,
    /// It breaks what the filesystem promises.
    pub broken: bool,
    /// Time of the first mount, recovery included.
    pub mount: Option<Nanos>,
    /// Time of the filesystem's checker when it changes nothing; none if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsck_check: Option<Nanos>,
    /// Time of its repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsck_repair: Option<Nanos>,
    /// What became of how many paths.
    pub outcomes: BTreeMap<PathOutcome, u64>,
    /// What only a real cut has to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredCut>,
    /// What became of the system, where the card failed while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRun>,
    /// All that was seen; of the findings those that matter most.
    #[serde(flatten)]
    pub checked: Checked,
}

/// What was seen of a real cut, beside what became of the filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct MeasuredCut {
    /// What took the power: `sysrq`, `watchdog`, or the user's command.
    pub power: String,
    /// Promises that were told before the power had gone.
    pub promises: u64,
    /// Promises of a whole run.
    pub of_promises: u64,
    /// Operations of a whole run.
    pub operations: u64,
    /// The run had ended before the power went.
    pub ended: bool,
    /// How long after the cut the board could be asked again.
    pub away: Nanos,
    /// Time of the run without a cut.
    pub run: Nanos,
    /// Bytes that reached the device in it.
    pub run_bytes: u64,
}

impl CutResult {
    /// Findings that a result keeps; a replay of the cut shows all.
    pub const KEPT: usize = 20;

    /// What a user would see of it.
    pub fn seen(&self) -> Seen {
        let read_errors = self.outcomes.get(&PathOutcome::ReadError);
        Seen {
            condition: self.condition,
            broken: self.broken,
            read_error: read_errors.is_some_and(|count| *count > 0),
            faults: self.checked.check.is_some_and(|status| status != 0),
        }
    }

    /// Keeps of the findings only those that matter, and few of them.
    pub fn shorten(&mut self) {
        for findings in [&mut self.checked.findings, &mut self.checked.findings_again] {
            findings.retain(PathFinding::matters);
            findings.sort_by_key(|finding| !finding.broken);
            findings.truncate(Self::KEPT);
        }
    }
}
