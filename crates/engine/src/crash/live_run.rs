//! Runs on a card that fails while the system uses it: the run that was recorded on a good card
//! begins anew from the same state, and a seeded fault befalls it.

use super::look::attempt;
use super::record::{Recorded, RecordingPlan, only_disk, operate_phases, run_of};
use crate::error::{Error, ErrorKind, Outcome};
use crate::guest_places::{DEVICE, MOUNT_POINT};
use crate::lab_executor::trial_runner::judgeable;
use std::sync::atomic::AtomicBool;
use whichfs_blockdev::LiveFault;
use whichfs_crash::{Cut, CutPlace, LiveRun, LiveSeen, Promise, SystemOutcome};
use whichfs_lab::{GuestLimits, GuestRun, LabError, Stamped};
use whichfs_trial::{Event, Step};
use whichfs_units::Nanos;

/// Names of the attempts in the job.
const WORKLOAD: &str = "workload";
/// The program after it.
const NEXT: &str = "next";
const UNMOUNT: &str = "unmount";
/// What the promise of an unmount is called.
const UMOUNT: &str = "umount";
/// Pause before the program after that, in milliseconds: longer than any of these filesystems waits
/// until it writes by itself (f2fs: 60 s), so that it has met the fault.
const PAUSE_MS: u64 = 61_000;
/// What is mounted, and how.
const MOUNTS: &str = "/proc/mounts";
/// Virtual time after which a run hangs, beside that of the run on a good card: an hour is more
/// than any kernel waits by itself, and some thousand slow requests take less.
const PATIENCE: Nanos = Nanos(3_600_000_000_000);

/// A run on a card that failed, and the cut that ends it: what is then on the card is judged.
pub struct FailedRun {
    /// The run, as one that was recorded.
    pub recorded: Recorded,
    /// The cut after the last request of that run.
    pub cut: Cut,
    /// What became of the system.
    pub run: LiveRun,
}

/// The run of `recorded` once more, on a card that fails as the seed of `cut` draws it.
///
/// # Errors
/// What is not the filesystem's doing.
pub fn failed_run(
    plan: &RecordingPlan<'_>,
    recorded: &Recorded,
    cut: &Cut,
    core: Option<usize>,
    cancelled: &AtomicBool,
) -> Outcome<FailedRun> {
    let written = &recorded.timeline.log()[recorded.first..];
    let faults = whichfs_crash::live_faults(written, &plan.spec.faults, cut.seed);
    befallen(plan, recorded, (cut, faults), core, cancelled)
}

/// The same with these `faults`.
///
/// # Errors
/// As [`failed_run`].
pub fn befallen(
    plan: &RecordingPlan<'_>,
    recorded: &Recorded,
    (cut, faults): (&Cut, Vec<LiveFault>),
    core: Option<usize>,
    cancelled: &AtomicBool,
) -> Outcome<FailedRun> {
    let Some(clean) = &recorded.clean else {
        let why = "the run was recorded without what it began with";
        return Err(Error::new(ErrorKind::Trial, why));
    };
    let phases = operate_phases(&clean.steps);
    let disk = clean.disk.twin().recording().with_live_faults(faults);
    let base = disk.contents().clone();
    let job = plan.job(steps(&clean.steps), clean.told);
    let mut guest = plan.bench.guest(&job, core);
    guest.limits = GuestLimits {
        virtual_time: Some(recorded.time + recorded.time + PATIENCE),
        ..guest.limits
    };
    let life = whichfs_lab::run(&guest, vec![disk], cancelled, &mut |_| {});
    let life = judgeable(life.map_err(Error::environment)?)?;
    let run = seen(&life)?.judged();
    let time = life.time;
    let mut timeline = run_of(&life.events, &phases, &clean.counts);
    withdraw_unmount(run.outcome, &mut timeline.promises);
    let disk = only_disk(life)?;
    let (refused, programmed) = (disk.refused().to_vec(), disk.figures().programmed_bytes);
    let log = disk.into_log();
    let cut = Cut {
        request: log.len().saturating_sub(1),
        place: CutPlace::After,
        at: time,
        ..*cut
    };
    let recorded = Recorded {
        recipe: recorded.recipe.clone(),
        mount_options: recorded.mount_options.clone(),
        contract: recorded.contract.clone(),
        timeline: plan.timeline(base, log)?,
        first: recorded.first,
        operations: Vec::new(),
        history: recorded.history.clone(),
        run: timeline,
        card: recorded.card,
        profile: recorded.profile.clone(),
        time,
        refused,
        ended: run.error.clone(),
        programmed_bytes: programmed,
        clean: None,
    };
    Ok(FailedRun { recorded, cut, run })
}

/// Takes the promise of the unmount out of `promises`, unless the system told of no failure.
///
/// umount(2) returns no error of the writes that it waited for: a system that had told the program
/// or the log that writes fail has said all it can, and its unmount promises nothing. Where nobody
/// was told (the card lost writes in silence), the unmount stays a promise, and a loss breaks it.
/// What an fsync, a syncfs or a synchronous write promised by returning without an error stays
/// promised whatever failed later: that is what the caller relied on.
fn withdraw_unmount(outcome: SystemOutcome, promises: &mut Vec<Promise>) {
    if outcome != SystemOutcome::Completed {
        promises.retain(|promise| promise.call != UMOUNT);
    }
}

/// The steps of a run, in which a failure ends only the workload. What follows the last unmount
/// only measures a mount.
fn steps(all: &[Step]) -> Vec<Step> {
    let is_unmount = |step: &Step| matches!(step, Step::Unmount { .. });
    let until = all.iter().position(is_unmount).unwrap_or(all.len());
    let unmount = Step::Unmount {
        phase: Some(UNMOUNT.to_owned()),
        target: MOUNT_POINT.to_owned(),
    };
    let exercise = || Step::Exercise {
        dir: MOUNT_POINT.to_owned(),
    };
    vec![
        attempt(WORKLOAD, all[..until].to_vec()),
        attempt(NEXT, vec![exercise()]),
        Step::Settle {
            milliseconds: PAUSE_MS,
        },
        attempt(NEXT, vec![exercise()]),
        Step::ShowFile {
            path: MOUNTS.to_owned(),
        },
        Step::KernelLog,
        attempt(UNMOUNT, vec![unmount]),
        Step::KernelLog,
    ]
}

/// What was seen of a run.
fn seen(life: &GuestRun) -> Outcome<LiveSeen> {
    let mut seen = LiveSeen::default();
    for Stamped { at, event, .. } in &life.events {
        match event {
            Event::Failed { attempt, message } if attempt == WORKLOAD => {
                seen.failed = Some((*at, message.clone()));
            }
            Event::Failed { attempt, message } if attempt == NEXT => {
                seen.next = Some(message.clone());
            }
            Event::Failed { attempt, message } if attempt == UNMOUNT => {
                seen.unmount = Some(message.clone());
                seen.unmounted = true;
            }
            Event::PhaseEnd { phase, .. } if phase == UNMOUNT => seen.unmounted = true,
            Event::Output { stream, text } if stream == MOUNTS => {
                seen.program_ended = true;
                seen.read_only |= text.lines().any(is_read_only);
            }
            Event::KernelLog { lines, times_us } => {
                let times = times_us.iter().map(|us| Some(Nanos(us * 1000)));
                let times = times.chain(std::iter::repeat(None));
                seen.messages.extend(times.zip(lines.iter().cloned()));
            }
            _ => {}
        }
    }
    if let Some(disk) = life.disks.first() {
        let live = disk.live_faults();
        seen.hits = (live.hits, live.first_hit);
    }
    match &life.result {
        Ok(()) => {}
        Err(LabError::Panic { line }) => seen.panicked = Some(line.clone()),
        Err(
            error @ (LabError::Spins(_)
            | LabError::SleepsForever
            | LabError::NoProgress(_)
            | LabError::VirtualLimit(_)
            | LabError::ConsoleFlood(_)
            | LabError::OutputFlood(_)),
        ) => seen.hung = Some(error.to_string()),
        Err(LabError::Interrupted) => {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        Err(error) => return Err(Error::new(ErrorKind::Trial, error.to_string())),
    }
    if life.result.is_err() {
        // The agent could not read the kernel's log any more.
        let console = life.console.iter();
        seen.messages
            .extend(console.map(|line| (None, line.clone())));
    }
    Ok(seen)
}

/// Whether a line of /proc/mounts says that the device under test is mounted read-only.
fn is_read_only(line: &str) -> bool {
    let mut fields = line.split(' ');
    let options = (fields.next() == Some(DEVICE))
        .then(|| fields.nth(2))
        .flatten();
    options.is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
#[path = "live_run_tests.rs"]
mod tests;
