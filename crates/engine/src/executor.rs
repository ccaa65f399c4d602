//! Where a trial runs: in the lab, on a device, in a directory, on a remote board, or in a mock.
//!
//! A campaign sees executors through the trait [`Executor`] alone, so the same campaign runs in
//! virtual time, in real time, and in tests that start nothing.

use crate::error::Outcome;
use crate::images::Images;
pub use crate::prepare_error::PrepareError;
use crate::workload_run::WorkloadRun;
use std::sync::atomic::AtomicBool;
use whichfs_decide::{CardKind, FigureOrigin, ModelError, PossibleCards};
use whichfs_fs::{Candidate, Geometry};
use whichfs_study::Variant;
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
    /// Bytes that a modelled card has beside its capacity, for garbage collection or for the logs
    /// of its open AUs; 0 where nobody knows.
    pub spare_bytes: u64,
    /// Whether figures are modelled or measured.
    pub origin: FigureOrigin,
    /// Trials that run at once, at least 1.
    pub slots: usize,
    /// Relative uncertainty of the card's figures: 0.3 is ±30 %.
    pub card_uncertainty: f64,
    /// Relative error of the card's model on what was measured of the card.
    pub fit_error: Option<ModelError>,
}

/// A trial that was prepared, as a campaign sees it.
pub trait PreparedTrial {
    /// Candidate and seed, for people.
    fn label(&self) -> &str;
    /// Calls the trial something else for people.
    fn set_label(&mut self, label: String);
    /// Everything that decides the result; its digest is the trial's id.
    fn identity(&self) -> &Identity;
    /// What the figures of this trial leave out, one sentence each.
    fn caveats(&self) -> &[String];
    /// Bytes of the partition that it formats on a real device; 0 if it formats none.
    fn formats_bytes(&self) -> u64 {
        0
    }
}

/// What preparing a trial gives.
pub type Prepared<T> = Result<T, PrepareError>;

/// Hears each phase of a trial as it begins, with the time since the trial began.
pub type Phases<'a> = &'a mut dyn FnMut(&str, Nanos);

/// Prepares trials, and gives a lease on which they run.
pub trait Executor: Sync {
    /// A trial of this executor that can be run.
    type Prepared: PreparedTrial + Send + Sync;

    /// What trials run on between the first and the last.
    type Lease<'l>: Lease<Self::Prepared>
    where
        Self: 'l;

    /// What this executor is and can do.
    fn capabilities(&self) -> Capabilities;

    /// What kind of card trials with `seed` run on; none where that is one card.
    fn card_kind(&self, seed: u64) -> Option<CardKind> {
        let _ = seed;
        None
    }

    /// The cards that trials of other seeds may run on, and what a probe would tell of them; none
    /// where that is one card.
    fn possible_cards(&self) -> Option<PossibleCards> {
        None
    }

    /// Prepares the trial of `spec` without running anything but builders of images.
    ///
    /// # Errors
    /// [`PrepareError::Excluded`] if the candidate cannot run here, [`PrepareError::Failed`] if
    /// something else is wrong.
    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Prepared<Self::Prepared>;

    /// Leases what trials run on; `name` is what a device's journal calls them.
    ///
    /// # Errors
    /// Somebody else uses the device, or this machine lacks something.
    fn lease(&self, name: &str) -> Outcome<Self::Lease<'_>>;
}

/// Which worker runs a trial, and what the trial may write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerSlot {
    /// The worker, from 0.
    pub worker: usize,
    /// Bytes after which the trial is ended; none: any number.
    pub write_limit: Option<u64>,
}

/// What trials run on while they run: the lab itself, or a device that nobody else uses meanwhile.
/// A lease that is dropped is over, as one that ended.
pub trait Lease<P>: Sync {
    /// Runs `prepared` in `slot`; `on_phase` hears each phase as it begins, with the time since
    /// the trial began. A trial that fails is a [`Trial`] with that status; none if it reached its
    /// write limit and was ended.
    ///
    /// # Errors
    /// The caller set `interrupted`, or this machine cannot run trials.
    fn run(
        &self,
        prepared: &P,
        slot: WorkerSlot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>>;

    /// Bytes written to the device since it appeared; none if nobody counts them. The number
    /// begins at 0 again when the device's machine restarts.
    fn written(&self) -> Option<u64> {
        None
    }

    /// Gives back what was leased: no more trials follow.
    ///
    /// # Errors
    /// The journal of the device cannot be written.
    fn end(self) -> Outcome
    where
        Self: Sized,
    {
        Ok(())
    }
}
