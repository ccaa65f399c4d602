//! Where a trial runs: in the lab, on a device, in a directory, on a remote board, or in a mock.
//!
//! A campaign sees executors through the trait [`Executor`] alone, so the same campaign runs in
//! virtual time, in real time, and in tests that start nothing.

use crate::error::{Error, Outcome};
use crate::images::Images;
use crate::observer::ProgressEvent;
use crate::workload_run::WorkloadRun;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use whichfs_fs::{Candidate, Geometry};
use whichfs_study::{CardKind, FitError, Origin, Variant};
use whichfs_trial::{Identity, Trial};
use whichfs_units::Nanos;

/// What distinguishes one trial of an executor from another.
#[derive(Clone, Copy)]
pub struct TrialSpec<'a> {
    /// The filesystem with its recipe.
    pub candidate: &'a Candidate,
    /// The workload with its parameters and its data.
    pub work: &'a WorkloadRun,
    /// How the filesystem is made and mounted, where that is not its usual way.
    pub variant: &'a Variant,
    /// Seed of the card sample and of the workload's data; on a device the number of the repeat.
    pub seed: u64,
}

/// What an executor is and can do.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Name of the card in results.
    pub card: String,
    /// Geometry of the partition that filesystems are tuned to.
    pub geometry: Geometry,
    /// Whether figures are modelled or measured.
    pub origin: Origin,
    /// Trials that run at once, at least 1.
    pub slots: usize,
    /// Relative uncertainty of the card's figures: 0.3 is ±30 %.
    pub card_uncertainty: f64,
    /// Relative error of the card's model on what was measured of the card.
    pub fit_error: Option<FitError>,
}

/// A trial that was prepared, as a campaign sees it.
pub trait PreparedTrial {
    /// Candidate and seed, for people.
    fn label(&self) -> &str;
    /// Everything that decides the result; its digest is the trial's id.
    fn identity(&self) -> &Identity;
    /// What the figures of this trial leave out, one sentence each.
    fn caveats(&self) -> &[String];
}

/// What preparing a trial gives.
pub type Prepared<T> = Result<T, PrepareError>;

/// Hears each phase of a trial as it begins, with the time since the trial began.
pub type Phases<'a> = &'a mut dyn FnMut(&str, Nanos);

/// Prepares and runs trials.
pub trait Executor: Sync {
    /// A trial of this executor that can be run.
    type Prepared: PreparedTrial + Send;

    /// What this executor is and can do.
    fn capabilities(&self) -> Capabilities;

    /// What kind of card trials with `seed` run on; none where that is one card.
    fn card_kind(&self, seed: u64) -> Option<CardKind> {
        let _ = seed;
        None
    }

    /// Prepares the trial of `spec` without running anything but builders of images.
    ///
    /// # Errors
    /// [`PrepareError::Excluded`] if the candidate cannot run here, [`PrepareError::Failed`] if
    /// something else is wrong.
    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Prepared<Self::Prepared>;

    /// Runs `prepared` in the slot `slot` (from 0); `on_phase` hears each phase as it begins, with
    /// the time since the trial began. A trial that fails is a [`Trial`] with that status.
    ///
    /// # Errors
    /// The caller set `interrupted`, or this machine cannot run trials.
    fn run(
        &self,
        prepared: &Self::Prepared,
        slot: usize,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Trial>;
}

/// Why a trial was not prepared.
#[derive(Debug)]
pub enum PrepareError {
    /// The filesystem does not fit the card, or a tool is missing: the candidate is left out.
    Excluded {
        /// One sentence, with the remedy where there is one.
        why: String,
        /// Where the limit comes from.
        source: Option<String>,
    },
    /// Something else is wrong: the whole campaign ends.
    Failed(Error),
}

impl From<whichfs_fs::Unfit> for PrepareError {
    fn from(unfit: whichfs_fs::Unfit) -> PrepareError {
        PrepareError::Excluded {
            why: unfit.reason,
            source: Some(unfit.source.to_owned()),
        }
    }
}

/// Runs `trials` on `executor`, as many at once as it has slots; `hear` gets all events, in the
/// calling thread. After the first error no trial is begun, and those under way are waited for.
///
/// # Errors
/// The first failure that is not a trial's own, the caller's interruption, or that of `hear`.
pub fn run_all<E: Executor>(
    executor: &E,
    trials: Vec<E::Prepared>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(&ProgressEvent) -> Outcome,
) -> Outcome {
    let slots = executor.capabilities().slots.clamp(1, trials.len().max(1));
    let queue = Mutex::new(trials.into_iter());
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for worker in 0..slots {
            let (queue, stop, sender) = (&queue, &stop, sender.clone());
            scope.spawn(move || {
                let next = || {
                    if stop.load(Ordering::Relaxed) || interrupted.load(Ordering::Relaxed) {
                        return None;
                    }
                    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
                };
                // The receiver lives as long as any worker.
                let tell = |event| drop(sender.send(event));
                while let Some(prepared) = next() {
                    run_one(executor, &prepared, worker, interrupted, &tell);
                }
            });
        }
        drop(sender);
        let mut result = Ok(());
        for event in receiver {
            let heard = match event {
                ProgressEvent::Stopped(error) => Err(error),
                event => hear(&event),
            };
            if let Err(error) = heard {
                stop.store(true, Ordering::Relaxed);
                if result.is_ok() {
                    result = Err(error);
                }
            }
        }
        if interrupted.load(Ordering::Relaxed) && result.is_ok() {
            result = Err(Error::interrupted());
        }
        result
    })
}

/// Runs one trial and tells what happens to it.
fn run_one<E: Executor>(
    executor: &E,
    prepared: &E::Prepared,
    worker: usize,
    interrupted: &AtomicBool,
    tell: &dyn Fn(ProgressEvent),
) {
    let what = prepared.label().to_owned();
    tell(ProgressEvent::Begun {
        worker,
        what: what.clone(),
    });
    let begun = Instant::now();
    let mut on_phase = |phase: &str, at: Nanos| {
        tell(ProgressEvent::Phase {
            worker,
            phase: phase.to_owned(),
            at,
        });
    };
    match executor.run(prepared, worker, interrupted, &mut on_phase) {
        Err(error) => tell(ProgressEvent::Stopped(error.about(&what))),
        Ok(trial) => tell(ProgressEvent::Ended {
            worker,
            what,
            trial: Box::new(trial),
            wall: begun.elapsed(),
        }),
    }
}
