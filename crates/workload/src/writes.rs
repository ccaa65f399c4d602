//! What a trial will write, before it runs. Pure.

use crate::listing::Listing;
use crate::phase::{OnDevice, Phase};
use crate::workload::{Workload, WorkloadError};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::KIB;

/// Filesystems write whole blocks; all of those that are tried have blocks of 4 KiB or more.
const BLOCK: u64 = 4 * KIB;
/// Blocks that making one operation durable writes beside its data: an inode, a directory or map
/// block, and a journal's descriptor and commit.
const SYNC_BLOCKS: u64 = 4;

/// What a trial writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Bytes in whole blocks, without what making the filesystem writes.
    pub bytes: u64,
    /// A program of the user writes too, as much as it likes.
    pub unknown: bool,
}

/// What a trial of `workload` writes; `tree` is the listing of the user's tree if `spec` has one.
///
/// # Errors
/// If `spec` is not legal.
pub fn writes(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
    tree: Option<&Listing>,
) -> Result<Writes, WorkloadError> {
    sum(workload, spec, seed, tree, &written)
}

/// The same of the bytes alone that go into files: write amplification is beside these.
///
/// # Errors
/// As [`writes`].
pub fn file_writes(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
) -> Result<Writes, WorkloadError> {
    sum(workload, spec, seed, None, &Op::written)
}

fn sum(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
    tree: Option<&Listing>,
    written: &dyn Fn(&Op) -> u64,
) -> Result<Writes, WorkloadError> {
    workload.check(spec)?;
    let generated = match tree {
        Some(_) => None,
        None => workload.generated_tree(spec, seed)?,
    };
    let tree = tree.or(generated.as_ref());
    let mut all = Writes::default();
    for phase in workload.phases().iter().filter(|phase| phase.writes) {
        match workload.phase(phase) {
            Phase::Operations(phases) => {
                let operations = phases.operations(phase.name, spec, tree, seed)?;
                let each = operations.map(|operation| written(&operation));
                all.bytes = each.fold(all.bytes, u64::saturating_add);
            }
            Phase::Program(programs) | Phase::OnDevice(OnDevice::Program(programs)) => {
                match programs.writes(phase.name, spec) {
                    Some(bytes) => all.bytes = all.bytes.saturating_add(bytes),
                    None => all.unknown = true,
                }
            }
            Phase::OnDevice(OnDevice::Check | OnDevice::Modules) => {}
        }
    }
    Ok(all)
}

/// Bytes that `operation` writes in whole blocks.
fn written(operation: &Op) -> u64 {
    let data = operation.written().next_multiple_of(BLOCK);
    let entry = u64::from(operation.changes() && data == 0) * BLOCK;
    let sync = u64::from(operation.syncs()) * SYNC_BLOCKS * BLOCK;
    data.saturating_add(entry + sync)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{every, find};

    fn spec(workload: &dyn Workload) -> WorkloadSpec {
        let defaults = workload.parameters().iter();
        WorkloadSpec {
            name: workload.name().to_owned(),
            parameters: defaults
                .map(|one| (one.name.to_owned(), one.default))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: match workload.name() {
                "fio-job" => Some("[a]\nrw=write\nsize=1M\n".to_owned()),
                "command" => Some("/bin/true".to_owned()),
                _ => None,
            },
        }
    }

    #[test]
    fn every_workload_says_what_it_writes_or_that_nobody_knows() {
        // The operations of `script` come with the specification, which has none here.
        for workload in every().filter(|workload| workload.name() != "script") {
            let found = writes(workload, &spec(workload), 1, None).unwrap();
            match workload.name() {
                "fio-job" | "command" => assert!(found.unknown, "{}", workload.name()),
                name => assert!(found.bytes > 0 && !found.unknown, "{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn small_records_that_are_synced_write_blocks() {
        let logger = find("logger").unwrap();
        let mut spec = spec(logger);
        let data: u64 = logger
            .phases()
            .iter()
            .flat_map(|phase| logger.operations(phase.name, &spec, None, 1).unwrap())
            .map(|operation| operation.written())
            .sum();
        assert_eq!(file_writes(logger, &spec, 1).unwrap().bytes, data);
        let found = writes(logger, &spec, 1, None).unwrap();
        assert!(found.bytes > 4 * data, "{found:?} of {data}");
        spec.parameters.insert("nothing".into(), 1);
        assert!(writes(logger, &spec, 1, None).is_err());
    }
}
