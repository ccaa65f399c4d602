//! One trial on a device: done by the agent, and its record.

use crate::executor::PreparedTrial;
use crate::lab_executor::trial_runner;
use crate::program;
use whichfs_device::sandboxed_agent::{AgentEnd, AgentRun};
use whichfs_format::Span;
use whichfs_lab::{CpuPrices, Stamped};
use whichfs_trial::{
    Conditions, CounterReading, CpuTime, DeviceFigures, Event, Identity, Job, PhaseFigures,
    StampedEvent, Status, Trial,
};
use whichfs_units::Nanos;
use whichfs_workload::Workload;

/// Why there is no CPU time of a phase.
const UNREAD: &str = "the phase did not end";

/// A trial that can be run.
pub struct DeviceRun {
    /// Candidate and repeat, for people.
    pub label: String,
    /// What is measured.
    pub workload: &'static dyn Workload,
    /// Everything that decides its result.
    pub identity: Identity,
    /// What the agent does.
    pub job: Job,
    /// Where on the device.
    pub span: Span,
    /// What the figures leave out, where they do.
    pub caveat: Option<String>,
    /// The commands that make the filesystem.
    pub commands: Vec<Vec<String>>,
    /// Whether it runs as the owner of the directory under test.
    pub as_owner: bool,
}

impl DeviceRun {
    /// Phases, metrics and status from what the agent reported in `life`.
    pub(super) fn record(&self, life: &AgentRun) -> Trial {
        let workload = self.workload;
        let events = stamped(&life.told);
        let (mut phases, mut others) = trial_runner::figures(&events, &CpuPrices::default());
        let told = program::tell(workload, &events, &mut phases);
        let status = match (&life.ended, &told) {
            (AgentEnd::Done, Ok(_)) => Status::Done,
            (AgentEnd::Done, Err(why)) => failed(why.clone()),
            (
                AgentEnd::Failed {
                    message,
                    kernel_log,
                },
                _,
            ) => Status::Failed {
                reason: message.clone(),
                log: kernel_log.clone(),
            },
            (AgentEnd::TooLong(limit), _) => failed(format!(
                "it took more than {} s and was ended: raise the wall limit",
                limit.as_secs()
            )),
            (AgentEnd::TooMuch, _) => failed("it wrote more than the limit allows".to_owned()),
            (AgentEnd::Interrupted, _) => failed("interrupted".to_owned()),
        };
        others.extend(told.unwrap_or_default());
        for phase in &mut phases {
            phase.cpu = Some(cpu(phase, &life.told));
        }
        let metrics = whichfs_workload::metrics(workload, &phases, &others);
        let readings = life.told.iter().filter_map(|told| told.reading.as_ref());
        Trial {
            identity: self.identity.clone(),
            outcome: whichfs_trial::TrialOutcome {
                status,
                phases,
                metrics,
                trace_sha256: String::new(),
                virtual_time: life.told.last().map_or(Nanos(0), |told| told.at),
                series: None,
                erase_spread: None,
                conditions: Conditions::of(readings),
            },
        }
    }
}

impl PreparedTrial for DeviceRun {
    fn label(&self) -> &str {
        &self.label
    }

    fn set_label(&mut self, label: String) {
        self.label = label;
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn caveats(&self) -> &[String] {
        self.caveat.as_slice()
    }

    fn formats_bytes(&self) -> u64 {
        match self.commands.is_empty() {
            true => 0,
            false => self.span.bytes,
        }
    }
}

fn failed(reason: String) -> Status {
    Status::Failed {
        reason,
        log: Vec::new(),
    }
}

/// The events as the lab stamps them: each with what the device had done by the last reading.
pub fn stamped(told: &[StampedEvent]) -> Vec<Stamped> {
    let mut device = DeviceFigures::default();
    let stamp = |told: &StampedEvent| {
        if let Some(reading) = &told.reading {
            device = reading.device.clone();
        }
        Stamped {
            at: told.at,
            event: told.event.clone(),
            device: device.clone(),
            others: Vec::new(),
        }
    };
    told.iter().map(stamp).collect()
}

/// CPU time of the kernel in `phase`: of the agent's calls and of all kernel threads.
fn cpu(phase: &PhaseFigures, told: &[StampedEvent]) -> CpuTime {
    let reading = |begins: bool| -> Option<&CounterReading> {
        let is_it = |told: &&StampedEvent| match &told.event {
            Event::PhaseBegin { phase: name } => begins && *name == phase.phase,
            Event::PhaseEnd { phase: name, .. } => !begins && *name == phase.phase,
            _ => false,
        };
        told.iter().find(is_it)?.reading.as_ref()
    };
    match reading(true).zip(reading(false)) {
        Some((before, after)) => CpuTime::Spent {
            nanoseconds: after.kernel_since(before),
        },
        None => CpuTime::unknown(UNREAD),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::{Counts, LatencyHistogram};

    fn told(at: u64, writes: u64, system: u64, event: Event) -> StampedEvent {
        let reading = CounterReading {
            device: DeviceFigures {
                writes,
                ..DeviceFigures::default()
            },
            system: Nanos(system),
            ..CounterReading::default()
        };
        StampedEvent {
            at: Nanos(at),
            event,
            reading: Some(reading),
        }
    }

    #[test]
    fn a_phase_has_the_time_the_requests_and_the_cpu_between_its_readings() {
        let phase = || "mount".to_owned();
        let end = Event::PhaseEnd {
            phase: phase(),
            counts: Counts::default(),
            latency: LatencyHistogram::default(),
        };
        let mut all = vec![
            told(5, 10, 100, Event::PhaseBegin { phase: phase() }),
            told(25, 14, 107, end),
        ];
        all.push(StampedEvent {
            at: Nanos(30),
            event: Event::Done,
            reading: None,
        });
        let events = stamped(&all);
        assert_eq!(events[2].device.writes, 14, "what was read last");
        let (phases, _) = trial_runner::figures(&events, &CpuPrices::default());
        assert_eq!(phases[0].device.writes, 4);
        assert_eq!(phases[0].end.saturating_sub(phases[0].begin), Nanos(20));
        assert_eq!(cpu(&phases[0], &all).spent(), Some(Nanos(7)));
        assert_eq!(cpu(&phases[0], &all[..1]), CpuTime::unknown(UNREAD));
    }
}
