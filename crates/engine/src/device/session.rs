//! Trials on a device while it is leased: the executor of real time.

use super::host::RunLimits;
use super::{DeviceExecutor, DeviceLease, Run};
use crate::error::{Error, Outcome};
use crate::executor::{Capabilities, Executor, PrepareError, TrialSpec};
use crate::images::Images;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use whichfs_device::sandboxed_agent::Ended;
use whichfs_study::Origin;
use whichfs_trial::{Event, StampedEvent, Trial};
use whichfs_units::Nanos;

/// A device of this machine, of a board, or a directory, between the first trial and the last. It
/// runs one trial at a time. The guard looks at the device before and after each.
pub struct DeviceSession<'a> {
    device: &'a DeviceExecutor,
    lease: Mutex<DeviceLease<'a>>,
}

impl<'a> DeviceSession<'a> {
    /// Leases `device`, which the user has consented to lose, for trials that the journal calls
    /// `name`.
    ///
    /// # Errors
    /// A tool is missing, the journal cannot be written, or somebody else uses the device.
    pub fn begin(device: &'a DeviceExecutor, name: &str) -> Outcome<DeviceSession<'a>> {
        Ok(DeviceSession {
            lease: Mutex::new(device.around.lease(&device.device, name)?),
            device,
        })
    }

    /// Runs `prepared`, which may write `most` bytes; `None` if it wrote more and was ended.
    ///
    /// # Errors
    /// As of [`Executor::run`].
    pub fn run_within(
        &self,
        prepared: &Run,
        most: Option<u64>,
        interrupted: &AtomicBool,
        on_phase: &mut dyn FnMut(&str, Nanos),
    ) -> Outcome<Option<Trial>> {
        let mut hear = |told: &StampedEvent| {
            if let Event::PhaseBegin { phase } = &told.event {
                on_phase(phase, told.at);
            }
        };
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = RunLimits {
            wall: self.device.wall_limit,
            written: most,
        };
        let life = lease.perform(prepared, limits, interrupted, &mut hear)?;
        Ok((life.ended != Ended::TooMuch).then(|| prepared.record(&life)))
    }

    /// Bytes written to the device since it appeared, if the machine counts them.
    pub fn written(&self) -> Option<u64> {
        let lease = self.lease.lock();
        lease.unwrap_or_else(PoisonError::into_inner).written()
    }

    /// Gives the device back: no more trials follow.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn end(self) -> Outcome {
        let lease = self.lease.into_inner();
        lease.unwrap_or_else(PoisonError::into_inner).end()
    }
}

impl Executor for DeviceSession<'_> {
    type Prepared = Run;

    fn capabilities(&self) -> Capabilities {
        let bytes = self.device.whole().map_or(0, |span| span.bytes);
        Capabilities {
            card: self.device.id().to_owned(),
            geometry: self.device.medium.geometry(bytes),
            origin: Origin::Measured,
            slots: 1,
            card_uncertainty: 0.0,
            fit_error: None,
        }
    }

    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Result<Run, PrepareError> {
        let TrialSpec {
            candidate,
            work,
            variant,
            seed,
        } = *spec;
        self.device.prepare(candidate, work, variant, seed, images)
    }

    fn run(
        &self,
        prepared: &Run,
        _slot: usize,
        interrupted: &AtomicBool,
        on_phase: &mut dyn FnMut(&str, Nanos),
    ) -> Outcome<Trial> {
        let trial = self.run_within(prepared, None, interrupted, on_phase)?;
        trial.ok_or_else(|| Error::environment("a trial without a limit reached one"))
    }
}
