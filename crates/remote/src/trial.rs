//! One trial on a disk of the machine that this runs on.

use crate::refusal::{Refusal, Why};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_device::sandboxed_agent::{self, AgentEnd, AgentRun, SandboxedAgent};
use whichfs_format::{PartitionLease, Span};
use whichfs_trial::{Job, StampedEvent};

/// What a trial is done with.
pub struct Means<'a> {
    /// The agent's program.
    pub agent: &'a Path,
    /// Kernel's name of the disk.
    pub disk: &'a str,
    /// Time after which the trial is ended.
    pub wall_limit: Duration,
    /// Bytes after which the trial is ended.
    pub write_limit: Option<u64>,
}

/// Does `job` on the partition `span` of `lease`, which is made unless it is to be as it is
/// (`keeps`); `hear` gets each event. The disk is the same and free before and after.
///
/// # Errors
/// The disk is in use, another or gone; the user's interrupt: nothing is known of the candidate
/// then.
pub fn trial(
    lease: &mut PartitionLease<'_>,
    means: &Means<'_>,
    (span, keeps, label, job): (Span, bool, &str, &Job),
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(&StampedEvent),
) -> Result<AgentRun, Refusal> {
    let partition = match keeps {
        true => lease.keep(span, label)?,
        false => lease.lay(span, label)?,
    };
    let writable = [Path::new("/dev").join(means.disk), partition.into()];
    let sandboxed = SandboxedAgent {
        agent: means.agent,
        job,
        disk: means.disk,
        writable: &writable,
        directory: None,
        wall_limit: means.wall_limit,
        write_limit: means.write_limit,
    };
    let life = sandboxed_agent::run(&sandboxed, interrupted, hear)?;
    if life.ended == AgentEnd::Interrupted {
        return Err(Refusal::new(Why::Interrupted, "interrupted"));
    }
    // What a device did that is gone is not its filesystem's fault.
    lease.check()?;
    Ok(life)
}
