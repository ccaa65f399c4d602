//! Workload `tree`: a source tree is written, read cold, and removed.
//!
//! After LinuxPlanet (2010), which copied a kernel tree onto a card and read it back with empty
//! caches. `--tree DIR` takes the tree itself, for example Debian's `linux-source-6.12` unpacked.
//! The generated one has the shape of a Debian root (`workloads/rootfs.toml`: depth, names, sizes,
//! links) at the mean size of a kernel's file, 16 KiB: it stands for many small files, not for that
//! tree. [`crate::tarball`] is the other half of that study.

use crate::distribution::Distribution;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::rsync;
use crate::tree::{self, Size};
use crate::tree_ops::{Writer, create, read, remove};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::borrow::Cow;
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, MIB};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(140, &SourceTree)];

/// Many small files, as in a source tree.
pub struct SourceTree;

const PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of all files; a user's tree has its own",
        min: MIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "files",
        default: 4_096,
        unit: "files",
        meaning: "regular files; sizes are scaled to bytes; a user's tree has its own",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "rsync",
        default: 0,
        unit: "",
        meaning: "0: written and read as tar does, 1: as rsync -r does",
        min: 0,
        max: 1,
    },
];

const PHASES: [PhaseDef; 3] = [
    PhaseDef::warm(
        "tree_write",
        "write the whole tree, then syncfs (MB/s)",
        true,
        &MetricDef::one("tree_write", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::cold(
        "tree_read",
        "read all as tar -c does, in the order in which the filesystem lists it, cold; with rsync \
         by name (MB/s)",
        &MetricDef::one("tree_read", Rule::Throughput),
    ),
    PhaseDef::warm(
        "tree_remove",
        "remove all as rm -r does, then syncfs (files/s)",
        true,
        &MetricDef::one("tree_remove", Rule::FileRate),
    ),
];

impl Workload for SourceTree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn title(&self) -> &'static str {
        "source tree: many small files written, read cold, removed"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }

    fn takes_tree(&self) -> bool {
        true
    }

    fn generated_tree(
        &self,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Option<Listing>, WorkloadError> {
        self.check(spec)?;
        if spec.tree.is_some() {
            return Ok(None);
        }
        let size = Size {
            files: parameter(self, spec, "files"),
            bytes: parameter(self, spec, "bytes"),
        };
        Ok(Some(tree::draw(Distribution::rootfs(), size, seed, &[])))
    }
}

impl Operations for SourceTree {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let tree = match tree {
            Some(listed) => Some(Cow::Borrowed(listed)),
            None => self.generated_tree(spec, seed)?.map(Cow::Owned),
        };
        let Some(mut tree) = tree else {
            return Err(WorkloadError::Conflict {
                workload: self.name(),
                reason: "a tree of the user is named, but its listing is missing".to_owned(),
            });
        };
        if !spec.unix {
            tree = Cow::Owned(tree.into_owned().without_unix());
        }
        let rsync = parameter(self, spec, "rsync") == 1;
        match phase {
            "tree_write" if rsync => {
                Ok(Box::new(rsync::copy(&tree, spec.unix).into_iter().chain([Op::SyncFs])))
            }
            "tree_read" if rsync => Ok(Box::new(rsync::read(&tree).into_iter())),
            "tree_write" => Ok(Box::new(
                create(&tree, spec.unix, Writer::Tar)
                    .into_iter()
                    .chain([Op::SyncFs]),
            )),
            "tree_read" => Ok(Box::new([read()].into_iter())),
            "tree_remove" => {
                let ops: Vec<Op> = remove(&tree).chain([Op::SyncFs]).collect();
                Ok(Box::new(ops.into_iter()))
            }
            other => Err(unknown_phase(self, other)),
        }
    }
}
