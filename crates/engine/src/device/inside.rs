//! Trials in a directory of a mounted filesystem: nothing is formatted, and what they write is
//! removed.

use super::host::{DeviceHost, DeviceLease, RunLimits, Within};
use super::{DeviceExecutor, DeviceOptions, DeviceRun, Made};
use crate::error::{Error, ErrorKind, Outcome};
use crate::prepare_error::PrepareError;
use crate::workload_run::WorkloadRun;
use crate::{places, program};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use whichfs_device::sandboxed_agent::{self, AgentEnd, AgentRun, Directory, SandboxedAgent};
use whichfs_device::{Inside, Roots, SANDBOX_DIRECTORY, Scratch};
use whichfs_format::Span;
use whichfs_fs::Candidate;
use whichfs_remote::{Machine, RemoteDisk};
use whichfs_trial::{StampedEvent, Step, WorkloadSpec};
use whichfs_units::Bytes;

/// Bytes that a trial may need for each byte that its workload says it writes: what a workload
/// replaces is there twice for a while, and filesystems take their own.
const ROOM: u64 = 2;

/// The directory at `path` as the place of trials, and the machine around it.
///
/// # Errors
/// What speaks against trials there; an argument that is of whole devices.
pub fn open(path: &Path, options: &DeviceOptions) -> Outcome<(DeviceHost, RemoteDisk, Machine)> {
    let shown = path.display();
    if let Some(option) = options.of_devices() {
        return Err(Error::input(format!(
            "{option}: {shown} is a directory, where nothing is formatted or lost: leave that out"
        )));
    }
    let roots = Roots::default();
    let inside = Inside::find(path, options.internal, &roots)?;
    if whichfs_fs::find(&inside.kind).is_err() {
        return Err(Error::input(format!(
            "{shown} is on {}, which is not in the catalogue (whichfs fs list): name a directory \
             on one that is",
            inside.kind
        )));
    }
    let device = RemoteDisk {
        path: inside.shown.clone(),
        name: inside.disk.clone(),
        id: inside.id.clone(),
        identity: inside.identity.clone(),
        bytes: inside.bytes,
        erase_bytes: None,
        discard: inside.discard,
        sector_bytes: 512,
    };
    let within = Within {
        inside,
        roots,
        agent: places::agent()?,
    };
    Ok((
        DeviceHost::Inside(Box::new(within)),
        device,
        Machine::this(),
    ))
}

impl Within {
    /// Makes the place of the trials.
    ///
    /// # Errors
    /// Another run has it, or it cannot be made.
    pub(super) fn begin(&self) -> Outcome<DeviceLease<'_>> {
        let scratch = Scratch::begin(self.inside.open()?, &self.inside.shown)?;
        if scratch.was_left {
            log::warn!(
                "what an interrupted run had left in {} was removed",
                self.inside.shown
            );
        }
        Ok(DeviceLease::Inside {
            within: self,
            scratch,
        })
    }

    /// Has the agent do `run` in a fresh directory; `hear` gets each event.
    ///
    /// # Errors
    /// The filesystem is another or gone; the user's interrupt: nothing is known of it then.
    pub(super) fn perform(
        &self,
        scratch: &Scratch,
        run: &DeviceRun,
        limits: RunLimits,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Outcome<AgentRun> {
        self.inside.check(&self.roots)?;
        let owner = Some(self.inside.owner).filter(|_| run.as_owner);
        let trial = scratch.fresh(owner)?;
        let sandboxed = SandboxedAgent {
            agent: &self.agent.path,
            job: &run.job,
            disk: &self.inside.disk,
            writable: &[],
            directory: Some(Directory {
                open: &trial,
                user: owner,
            }),
            wall_limit: limits.wall,
            write_limit: limits.written,
        };
        let life = sandboxed_agent::run(&sandboxed, interrupted, hear)?;
        if life.ended == AgentEnd::Interrupted {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        self.inside.check(&self.roots)?;
        scratch.check()?;
        scratch.clear()?;
        Ok(life)
    }
}

impl DeviceExecutor {
    /// Prepares one trial in `dir`; `seed` is the number of the repeat.
    ///
    /// # Errors
    /// Why it cannot run here.
    pub(super) fn prepare_inside(
        &self,
        dir: &Inside,
        candidate: &Candidate,
        work: &WorkloadRun,
        seed: u64,
    ) -> Result<DeviceRun, PrepareError> {
        let left_out = |why| Err(PrepareError::Excluded { why, source: None });
        if candidate.name != dir.kind {
            return left_out(format!(
                "{} is on {}, and nothing is formatted there",
                dir.shown, dir.kind
            ));
        }
        if work.partition_bytes.is_some() {
            return left_out(format!(
                "{} wants a partition of a size of its own",
                work.workload.name()
            ));
        }
        let spec = WorkloadSpec {
            name: work.workload.name().to_owned(),
            parameters: work.parameters.clone(),
            tree: work.tree.as_ref().map(|tree| tree.display().to_string()),
            unix: candidate.facts().unix_permissions,
            script: None,
            input: work.input.clone(),
        };
        let data = work.data_seed(seed);
        let programs = program::programs(work.workload, &spec, data);
        let programs = programs.map_err(PrepareError::Failed)?;
        let as_owner = dir.owner.0 != 0 && work.tree.is_none() && all_may_run(&programs);
        let place = SANDBOX_DIRECTORY.to_owned();
        let steps = whichfs_workload::steps_inside(work.workload, &spec, data, &place)
            .map_err(|error| PrepareError::Failed(Error::input(error)))?;
        let span = Span {
            start: 0,
            bytes: dir.bytes,
        };
        let made = Made {
            commands: Vec::new(),
            mount_options: &dir.options,
            tools: Vec::new(),
        };
        let begin = [
            Step::Forget { dir: place },
            Step::Settle {
                milliseconds: self.settle_ms(),
            },
        ];
        Ok(DeviceRun {
            label: format!("{}, repeat {seed}", candidate.name),
            workload: work.workload,
            identity: self
                .identity(candidate.name, &made, work, span, seed)
                .map_err(PrepareError::Failed)?,
            job: Self::job_of(begin, steps, data),
            span,
            caveat: Some(caveat(work)),
            as_owner,
            commands: Vec::new(),
        })
    }

    /// Checks that there is room for a trial that writes `most` bytes, and says what is going to
    /// be written, if trials are run in a directory.
    ///
    /// # Errors
    /// Too little room.
    pub fn announce(&self, most: u64, all: u64) -> Outcome {
        let Some(dir) = self.inside() else {
            return Ok(());
        };
        dir.require_room(most.saturating_mul(ROOM))?;
        log::warn!(
            "about {} will be written to {} ({}, {} at a time) and removed again; a limit of \
             bytes to write ends it earlier",
            Bytes(all),
            dir.shown,
            dir.id,
            Bytes(most)
        );
        Ok(())
    }
}

/// Whether every user may read and run `programs` with their files, as far as their places tell.
fn all_may_run(programs: &[whichfs_workload::Program]) -> bool {
    let mut paths = program::parts(programs).filter(|part| part.starts_with('/'));
    paths.all(|path| {
        ["/usr/", "/bin/", "/sbin/"]
            .iter()
            .any(|dir| path.starts_with(dir))
    })
}

/// What is not measured in a directory.
fn caveat(work: &WorkloadRun) -> String {
    let names = whichfs_workload::not_inside(work.workload).join(", ");
    let dropped = match drops_caches() {
        true => "all caches are dropped before cold phases, but",
        false => {
            "only the files' own pages are forgotten before cold phases (drop_caches cannot be \
             written here), and"
        }
    };
    format!(
        "not measured in a directory: {names}; {dropped} what the mounted filesystem itself keeps \
         in memory stays"
    )
}

/// Whether this process may drop all caches.
fn drops_caches() -> bool {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).open("/proc/sys/vm/drop_caches").is_ok()
}
