//! What is measured: a workload with its parameters and its data.

use crate::error::{Error, Outcome};
use crate::tree;
use std::collections::BTreeMap;
use std::path::PathBuf;
use whichfs_trial::WorkloadSpec;
use whichfs_workload::{Workload, Writes};

/// What a workload run consists of, apart from candidate and seed.
#[derive(Clone)]
pub struct WorkloadRun {
    /// Entry of the catalogue.
    pub workload: &'static dyn Workload,
    /// Every parameter by name, given or default.
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
    /// The workload called `name` with its own parameters, changed by `parameters`.
    ///
    /// # Errors
    /// There is none of that name, or it takes no such parameters.
    pub fn named(name: &str, parameters: &BTreeMap<String, u64>) -> Outcome<WorkloadRun> {
        let workload = whichfs_workload::find(name).map_err(Error::input)?;
        let defaults = workload.parameters().iter();
        let mut all: BTreeMap<String, u64> = defaults
            .map(|parameter| (parameter.name.to_owned(), parameter.default))
            .collect();
        all.extend(parameters.clone());
        let run = WorkloadRun {
            workload,
            parameters: all,
            tree: None,
            tree_sha256: String::new(),
            input: None,
            data_seed: None,
            partition_bytes: None,
            any_size: false,
        };
        workload.check(&run.spec()).map_err(Error::input)?;
        Ok(run)
    }

    /// The specification of its operations without a tree, on a filesystem with permissions.
    fn spec(&self) -> WorkloadSpec {
        WorkloadSpec {
            name: self.workload.name().to_owned(),
            parameters: self.parameters.clone(),
            tree: None,
            unix: true,
            script: None,
            input: self.input.clone(),
        }
    }

    /// The seed that its data are made from in the trial of `seed`.
    pub fn data_seed(&self, seed: u64) -> u64 {
        self.data_seed.unwrap_or(seed)
    }

    /// The same, where an identity must say so.
    pub fn other_data_seed(&self, seed: u64) -> Option<u64> {
        self.data_seed.filter(|data| *data != seed)
    }

    /// What a trial of it writes into files.
    ///
    /// # Errors
    /// The user's tree cannot be listed.
    pub fn writes(&self) -> Outcome<Writes> {
        let listing = self.tree.as_deref().map(whichfs_agent::list_tree);
        let listing = listing.transpose().map_err(Error::input)?;
        let seed = self.data_seed.unwrap_or(1);
        let writes = whichfs_workload::writes(self.workload, &self.spec(), seed, listing.as_ref());
        writes.map_err(Error::input)
    }

    /// Bytes that one run of it writes into files.
    ///
    /// # Errors
    /// It writes nothing, or as much as a program of the user likes.
    pub fn file_bytes(&self) -> Outcome<u64> {
        let name = self.workload.name();
        let seed = self.data_seed.unwrap_or(1);
        let writes = whichfs_workload::file_writes(self.workload, &self.spec(), seed);
        match writes.map_err(Error::input)? {
            Writes { unknown: true, .. } => Err(Error::input(format!(
                "what a run of the workload {name} writes is not known beforehand: state the bytes \
                 that are written into files in a day"
            ))),
            Writes { bytes: 0, .. } => Err(Error::input(format!(
                "the workload {name} writes nothing: wear does not end the card"
            ))),
            Writes { bytes, .. } => Ok(bytes),
        }
    }

    /// Checks that the user's tree, if there is one, is still what its digest says.
    pub fn check_tree(&self) -> Outcome {
        match &self.tree {
            Some(tree) => tree::check_unchanged(tree, self.workload, &self.tree_sha256),
            None => Ok(()),
        }
    }
}
