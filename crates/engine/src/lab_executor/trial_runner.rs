//! Runs a prepared trial in the lab and turns the events of its guest into a record.

use super::{LabExecutor, Prepared};
use crate::cards::CardState;
use crate::error::{Error, ErrorKind, Outcome};
use crate::program;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_card::Wear;
use whichfs_lab::{CpuPrices, GuestRun, GuestSpec, LabError, Stamped};
use whichfs_trial::{
    Counts, CpuTime, Event, LatencyHistogram, Metric, PhaseFigures, Status, Trial,
};
use whichfs_units::Nanos;

/// Why there is no CPU time under the clock `device`.
const FREE: &str = "with the clock device the CPU is free; measure with the clock cpu";

/// Runs `prepared` on `core`; `on_phase` hears each phase as it begins.
///
/// # Errors
/// The caller's interruption, or what this machine lacks.
pub fn run(
    bench: &LabExecutor,
    prepared: &Prepared,
    core: Option<usize>,
    interrupted: &AtomicBool,
    on_phase: &mut dyn FnMut(&str, Nanos),
) -> Outcome<Trial> {
    let images = prepared.images()?;
    let spec = GuestSpec {
        images: &images,
        shared: &prepared.shared,
        root: prepared.root(bench),
        kernel: prepared.kernel(bench),
        ..bench.guest(&prepared.job, core)
    };
    let mut on_event = |stamped: &Stamped| {
        if let Event::PhaseBegin { phase } = &stamped.event {
            on_phase(phase, stamped.at);
        }
    };
    let disks = prepared.disks(bench)?;
    let worn = disks.first().map(|disk| disk.card().erases_per_au());
    let life =
        whichfs_lab::run(&spec, disks, interrupted, &mut on_event).map_err(Error::environment)?;
    let (life, overran) = match program::overran(prepared.workload, &life) {
        Some(reason) => (life, Some(reason)),
        None => (judgeable(life)?, None),
    };
    let spread = worn.as_deref().and_then(|worn| spread(&life, worn));
    let mut trial = record(prepared, life, &spec.cpu, overran);
    trial.outcome.erase_spread = spread.filter(|_| bench.card_state == CardState::Sustained);
    Ok(trial)
}

/// How unevenly the first card of `life` was erased, whose blocks had been erased `before`.
fn spread(life: &GuestRun, before: &[u32]) -> Option<f64> {
    let after = life.disks.first()?.card().erases_per_au();
    Some(Wear::between(before, &after)?.spread())
}

/// A life that says something about its candidate; one that the user or the host ended early
/// does not.
///
/// # Errors
/// The user's interrupt, or what this machine lacks.
pub fn judgeable(life: GuestRun) -> Outcome<GuestRun> {
    match &life.result {
        Err(LabError::Interrupted) => Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        Err(error) => match error.blames_host() {
            Some(sentence) => Err(Error::environment(sentence)),
            None => Ok(life),
        },
        Ok(()) => Ok(life),
    }
}

/// The record of a trial from what its guest said; `overran` is why it is its own fault that it
/// reached the wall limit.
fn record(
    prepared: &Prepared,
    life: GuestRun,
    prices: &CpuPrices,
    overran: Option<String>,
) -> Trial {
    let workload = prepared.workload;
    let (mut phases, mut others) = figures(&life.events, prices);
    let told = program::tell(workload, &life.events, &mut phases);
    let status = match (&life.result, &told) {
        (Ok(()), Ok(_)) => Status::Done,
        (Ok(()), Err(why)) => Status::Failed {
            reason: why.clone(),
            log: Vec::new(),
        },
        (Err(error), _) => Status::Failed {
            reason: overran.unwrap_or_else(|| error.to_string()),
            log: match error {
                LabError::Agent { kernel_log, .. } => kernel_log.clone(),
                _ => life.console.clone(),
            },
        },
    };
    others.extend(told.unwrap_or_default());
    let metrics = whichfs_workload::metrics(workload, &phases, &others);
    Trial {
        identity: prepared.identity.clone(),
        outcome: whichfs_trial::TrialOutcome {
            status,
            phases,
            metrics,
            trace_sha256: life.trace_sha256,
            virtual_time: life.time,
            series: life.disks.first().map(|disk| disk.series().clone()),
            erase_spread: None,
            conditions: None,
        },
    }
}

/// Phases and the agent's own metrics out of stamped events; what the kernel did costs `prices`.
pub fn figures(events: &[Stamped], prices: &CpuPrices) -> (Vec<PhaseFigures>, Vec<Metric>) {
    let mut begun: BTreeMap<&str, &Stamped> = BTreeMap::new();
    let mut phases: Vec<PhaseFigures> = Vec::new();
    let mut others = Vec::new();
    for stamped in events {
        match &stamped.event {
            Event::PhaseBegin { phase } => {
                begun.insert(phase, stamped);
            }
            Event::PhaseEnd {
                phase,
                counts,
                latency,
            } => {
                if let Some(begin) = begun.remove(phase.as_str()) {
                    phases.push(phase_figures(phase, begin, stamped, *counts, latency));
                }
            }
            // It follows the end of its phase.
            Event::Work { phase, work } => {
                let time = prices.time(work);
                if let Some(last) = phases.last_mut().filter(|last| last.phase == *phase) {
                    // The counts hold the two events as well: one CPU cannot work longer than
                    // the phase took.
                    let took = last.end.saturating_sub(last.begin);
                    let known = |time: Nanos| CpuTime::Spent {
                        nanoseconds: time.min(took),
                    };
                    last.cpu = Some(time.map_or_else(|| CpuTime::unknown(FREE), known));
                }
            }
            Event::Metric { name, value, unit } => others.push(Metric {
                metric: name.clone(),
                value: *value,
                unit: unit.clone(),
                lower_is_better: true,
            }),
            _ => {}
        }
    }
    (phases, others)
}

fn phase_figures(
    phase: &str,
    begin: &Stamped,
    end: &Stamped,
    counts: Counts,
    latency: &LatencyHistogram,
) -> PhaseFigures {
    let second = end.others.first().zip(begin.others.first());
    PhaseFigures {
        phase: phase.to_owned(),
        begin: begin.at,
        end: end.at,
        counts,
        latency: latency.clone(),
        device: end.device.since(&begin.device),
        cpu: None,
        second_card: second.map(|(end, begin)| end.since(begin)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;
    use whichfs_trial::{CpuCounts, DeviceFigures};

    fn life(result: Result<(), LabError>) -> GuestRun {
        GuestRun {
            result,
            events: Vec::new(),
            trace_sha256: String::new(),
            requests: 0,
            time: Nanos(0),
            console: Vec::new(),
            disks: Vec::new(),
        }
    }

    #[test]
    fn what_the_host_did_is_no_property_of_a_candidate() {
        let kind = |error| {
            judgeable(life(Err(error)))
                .err()
                .map(|failure| failure.kind)
        };
        let slow = LabError::WallLimit(Duration::from_secs(300));
        assert_eq!(kind(slow), Some(ErrorKind::Environment));
        assert_eq!(kind(LabError::Interrupted), Some(ErrorKind::Interrupted));
        assert_eq!(kind(LabError::SleepsForever), None, "the candidate's own");
        assert!(judgeable(life(Ok(()))).is_ok());
    }

    fn stamped(at: u64, writes: u64, event: Event) -> Stamped {
        Stamped {
            at: Nanos(at),
            event,
            device: DeviceFigures {
                writes,
                ..DeviceFigures::default()
            },
            others: vec![DeviceFigures {
                writes: 2 * writes,
                ..DeviceFigures::default()
            }],
        }
    }

    #[test]
    fn a_phase_is_what_happened_between_its_events() {
        let end = Event::PhaseEnd {
            phase: "mount".into(),
            counts: Counts::default(),
            latency: LatencyHistogram::default(),
        };
        let work = Event::Work {
            phase: "mount".into(),
            work: CpuCounts {
                code: 3,
                ..CpuCounts::default()
            },
        };
        let events = [
            stamped(
                5,
                3,
                Event::PhaseBegin {
                    phase: "mount".into(),
                },
            ),
            stamped(9, 10, end),
            stamped(11, 10, work),
        ];
        let (phases, others) = figures(&events, &CpuPrices::of_instructions(1000));
        assert_eq!((phases[0].begin, phases[0].end), (Nanos(5), Nanos(9)));
        assert_eq!(phases[0].device.writes, 7);
        let second = phases[0].second_card.as_ref();
        assert_eq!(second.map(|second| second.writes), Some(14));
        assert!(others.is_empty());
        let spent = |phases: &[PhaseFigures]| phases[0].cpu.as_ref().unwrap().spent();
        assert_eq!(spent(&phases), Some(Nanos(3)));
        let (phases, _) = figures(&events, &CpuPrices::of_instructions(2000));
        assert_eq!(spent(&phases), Some(Nanos(4)), "not longer than the phase");
        let (phases, _) = figures(&events, &CpuPrices::default());
        assert_eq!(spent(&phases), None);
        assert_eq!(phases[0].cpu, Some(CpuTime::unknown(FREE)));
        let (phases, _) = figures(&events[..2], &CpuPrices::default());
        assert_eq!(phases[0].cpu, None, "nobody counted");
    }

    #[test]
    fn a_phase_without_an_end_yields_nothing() {
        let events = [stamped(
            5,
            3,
            Event::PhaseBegin {
                phase: "mount".into(),
            },
        )];
        assert!(figures(&events, &CpuPrices::default()).0.is_empty());
    }
}
