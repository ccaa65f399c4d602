//! What is measured: a workload with its parameters and its data.

use crate::error::Outcome;
use crate::tree;
use std::collections::BTreeMap;
use std::path::PathBuf;
use whichfs_workload::Workload;

/// What a workload run consists of, apart from candidate and seed.
pub struct WorkloadRun {
    /// The workload.
    pub workload: &'static dyn Workload,
    /// Its parameters.
    pub parameters: BTreeMap<String, u64>,
    /// The user's own tree (`--tree`).
    pub tree: Option<PathBuf>,
    /// Digest of that tree; empty without one.
    pub tree_sha256: String,
    /// What the user gives the workload's program (`--fio`, `--command`).
    pub input: Option<String>,
    /// Seed of its data in every trial, if not the trial's.
    pub data_seed: Option<u64>,
    /// Bytes of the partition, if not all of the card.
    pub partition_bytes: Option<u64>,
    /// Leave it to mkfs to refuse a partition that is too small.
    pub any_size: bool,
}

impl WorkloadRun {
    /// The seed that its data are made from in the trial of `seed`.
    pub fn data_seed(&self, seed: u64) -> u64 {
        self.data_seed.unwrap_or(seed)
    }

    /// The same, where an identity must say so.
    pub fn other_data_seed(&self, seed: u64) -> Option<u64> {
        self.data_seed.filter(|data| *data != seed)
    }

    /// Checks that the user's tree, if there is one, is still what its digest says.
    pub fn check_tree(&self) -> Outcome {
        match &self.tree {
            Some(tree) => tree::check_unchanged(tree, self.workload, &self.tree_sha256),
            None => Ok(()),
        }
    }
}
