//! Trials on a device while it is leased: the executor of real time.

use super::host::RunLimits;
use super::{DeviceExecutor, DeviceLease, DeviceRun};
use crate::error::Outcome;
use crate::executor::{Capabilities, Executor, Lease, Phases, TrialSpec, WorkerSlot};
use crate::images::Images;
use crate::prepare_error::PrepareError;
use parking_lot::Mutex;
use std::sync::atomic::AtomicBool;
use whichfs_decide::{Counter, FigureOrigin};
use whichfs_device::sandboxed_agent::AgentEnd;
use whichfs_trial::{Event, StampedEvent, Status, Trial};
use whichfs_units::Nanos;

/// How often a trial is run again whose machine was suspended or stopped in it.
const AGAIN_MAX: usize = 2;

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

    /// Runs `prepared` once; it may write `most` bytes. `None` if it wrote more and was ended.
    fn run_once(
        &self,
        prepared: &DeviceRun,
        most: Option<u64>,
        interrupted: &AtomicBool,
        on_phase: &mut dyn FnMut(&str, Nanos),
    ) -> Outcome<Option<Trial>> {
        let mut hear = |told: &StampedEvent| {
            if let Event::PhaseBegin { phase } = &told.event {
                on_phase(phase, told.at);
            }
        };
        let mut lease = self.lease.lock();
        let limits = RunLimits {
            wall: self.device.wall_limit,
            written: most,
        };
        let life = lease.perform(prepared, limits, interrupted, &mut hear)?;
        Ok((life.ended != AgentEnd::TooMuch).then(|| prepared.record(&life)))
    }
}

impl Lease<DeviceRun> for DeviceSession<'_> {
    /// Runs the trial again if something kept it from measuring. A trial that is disturbed again
    /// and again has failed: nothing of it is believed.
    fn run(
        &self,
        prepared: &DeviceRun,
        slot: WorkerSlot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>> {
        let mut counter = Counter::new(self.written());
        let mut again = 0;
        loop {
            let left = slot
                .write_limit
                .map(|most| most.saturating_sub(counter.since(self.written())));
            let Some(mut trial) = self.run_once(prepared, left, interrupted, on_phase)? else {
                return Ok(None);
            };
            let Some(why) = disturbance(&trial.outcome) else {
                return Ok(Some(trial));
            };
            if again == AGAIN_MAX {
                trial.outcome.metrics.clear();
                trial.outcome.status = Status::Failed {
                    reason: format!(
                        "disturbed {} times, at last because {why}: leave the machine alone \
                         meanwhile",
                        again + 1
                    ),
                    log: Vec::new(),
                };
                return Ok(Some(trial));
            }
            again += 1;
            log::warn!("{}: {why}; it is run again", prepared.label);
        }
    }

    fn written(&self) -> Option<u64> {
        let lease = self.lease.lock();
        lease.written()
    }

    fn end(self) -> Outcome {
        let lease = self.lease.into_inner();
        lease.end()
    }
}

impl Executor for DeviceExecutor {
    type Prepared = DeviceRun;
    type Lease<'l> = DeviceSession<'l>;

    fn capabilities(&self) -> Capabilities {
        let bytes = self.whole().map_or(0, |span| span.bytes);
        Capabilities {
            card: self.id().to_owned(),
            geometry: self.medium.geometry(bytes),
            spare_bytes: 0,
            origin: FigureOrigin::Measured,
            slots: 1,
            card_uncertainty: 0.0,
            fit_error: None,
        }
    }

    fn prepare(
        &self,
        spec: &TrialSpec<'_>,
        images: &Images<'_>,
    ) -> Result<DeviceRun, PrepareError> {
        let TrialSpec {
            candidate,
            work,
            variant,
            seed,
        } = *spec;
        DeviceExecutor::prepare(self, candidate, work, variant, seed, images)
    }

    fn lease(&self, name: &str) -> Outcome<DeviceSession<'_>> {
        DeviceSession::begin(self, name)
    }
}

/// What kept a finished trial from measuring, if something did.
fn disturbance(outcome: &whichfs_trial::TrialOutcome) -> Option<String> {
    match outcome.status {
        Status::Done => outcome.conditions.as_ref()?.disturbed(),
        Status::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_finished_trial_is_disturbed() {
        let outcome = |status, stopped| whichfs_trial::TrialOutcome {
            status,
            phases: Vec::new(),
            metrics: Vec::new(),
            trace_sha256: String::new(),
            virtual_time: Nanos(0),
            series: None,
            erase_spread: None,
            conditions: Some(whichfs_trial::Conditions {
                stopped: Nanos(stopped),
                ..whichfs_trial::Conditions::default()
            }),
        };
        assert_eq!(disturbance(&outcome(Status::Done, 0)), None);
        let why = disturbance(&outcome(Status::Done, 2_000_000_000)).unwrap_or_default();
        assert!(why.contains("stopped for 2"), "{why}");
        let failed = Status::Failed {
            reason: "full".to_owned(),
            log: Vec::new(),
        };
        assert_eq!(disturbance(&outcome(failed, 2_000_000_000)), None);
    }
}
