//! An event with the time and the state of the machine, as an agent outside of the lab tells it.

use crate::device_figures::DeviceFigures;
use crate::event::Event;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_units::Nanos;

/// A line of an agent that no lab stamps: the event, when it was, and at the begin and the end of
/// phases what the machine had done by then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StampedEvent {
    /// Time since the agent began.
    pub at: Nanos,
    /// What happened.
    pub event: Event,
    /// What was read of the machine: right before a phase, and right after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<CounterReading>,
}

/// What the machine has done so far, and how it is. Counters only grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterReading {
    /// What the disk has done since it appeared (`/sys/block/DISK/stat`).
    pub device: DeviceFigures,
    /// CPU time in user space of the agent and its programs.
    pub user: Nanos,
    /// CPU time in the kernel of the agent and its programs.
    pub system: Nanos,
    /// CPU time of the machine's kernel threads, by the first part of their names.
    #[serde(default)]
    pub threads: BTreeMap<String, Nanos>,
    /// Temperatures in °C by what they are of (`disk`, `cpu`); none where `/sys` has none.
    #[serde(default)]
    pub temperatures: BTreeMap<String, f64>,
    /// How often a core of the CPU was throttled because of heat, where `/sys` counts that.
    #[serde(default)]
    pub throttled: Option<u64>,
    /// Why the sizes of requests are not among the disk's counters, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_unknown: Option<String>,
    /// Requests whose size was not seen, because they came too fast.
    #[serde(default)]
    pub sizes_lost: u64,
    /// Time in which the agent was kept from running, while the clock of its times went on.
    #[serde(default)]
    pub stopped: Nanos,
    /// Time that the machine was suspended since it started, while that clock stood still.
    #[serde(default)]
    pub suspended: Nanos,
}

impl CounterReading {
    /// CPU time in the kernel since `earlier`: of the agent's own calls, and of all kernel threads.
    /// What a thread did that has ended since is not known.
    pub fn kernel_since(&self, earlier: &CounterReading) -> Nanos {
        let threads = self.threads_since(earlier).map(|(_, spent)| spent.0);
        let own = self.system.saturating_sub(earlier.system);
        Nanos(own.0 + threads.sum::<u64>())
    }

    /// CPU time of kernel threads since `earlier`, of those that had some.
    fn threads_since<'a>(
        &'a self,
        earlier: &'a CounterReading,
    ) -> impl Iterator<Item = (&'a String, Nanos)> {
        let spent = |(name, now): (&'a String, &Nanos)| {
            let then = earlier.threads.get(name).copied().unwrap_or_default();
            (name, now.saturating_sub(then))
        };
        self.threads
            .iter()
            .map(spent)
            .filter(|(_, spent)| *spent > Nanos(0))
    }
}

/// How the machine was during a trial on a real device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Conditions {
    /// Lowest and highest temperature read, in °C, by what it is of; empty where none is told.
    pub temperatures: BTreeMap<String, (f64, f64)>,
    /// How often a core was throttled meanwhile; `None` where that is not counted.
    pub throttled: Option<u64>,
    /// Bytes that reached the disk, also between phases.
    pub written_bytes: u64,
    /// CPU time of kernel threads that had some, by the first part of their names.
    pub threads: BTreeMap<String, Nanos>,
    /// CPU time in user space of the agent and its programs.
    pub user: Nanos,
    /// CPU time in the kernel of the agent and its programs.
    pub system: Nanos,
    /// Why the sizes of requests are not known, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_unknown: Option<String>,
    /// Requests whose size was not seen, because they came too fast.
    #[serde(default)]
    pub sizes_lost: u64,
    /// Time in which the agent was kept from running.
    #[serde(default)]
    pub stopped: Nanos,
    /// Time that the machine was suspended.
    #[serde(default)]
    pub suspended: Nanos,
}

/// Suspensions that are shorter are the difference between two looks at clocks.
const SUSPENDED_LEAST: Nanos = Nanos(1_000_000);
/// Why there are no sizes of a disk that told of requests, but of none of a size.
const NO_REQUESTS: &str = "the disk's driver takes bios: the kernel issues no requests to it";

impl Conditions {
    /// The conditions between the first and the last of `readings`; `None` without any.
    pub fn of<'a>(readings: impl IntoIterator<Item = &'a CounterReading>) -> Option<Conditions> {
        let all: Vec<&CounterReading> = readings.into_iter().collect();
        let (first, last) = (all.first()?, all.last()?);
        let mut temperatures: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (what, &now) in all.iter().flat_map(|reading| &reading.temperatures) {
            let range = temperatures.entry(what.clone()).or_insert((now, now));
            *range = (range.0.min(now), range.1.max(now));
        }
        let since = |now: Nanos, then: Nanos| now.saturating_sub(then);
        let mut threads: BTreeMap<String, Nanos> = BTreeMap::new();
        // Those of a filesystem end with its mount: from reading to reading less is lost.
        for pair in all.windows(2) {
            for (name, spent) in pair[1].threads_since(pair[0]) {
                threads.entry(name.clone()).or_default().0 += spent.0;
            }
        }
        Some(Conditions {
            temperatures,
            throttled: (first.throttled.zip(last.throttled)).map(|(a, b)| b.saturating_sub(a)),
            written_bytes: (last.device.write_bytes).saturating_sub(first.device.write_bytes),
            threads,
            user: since(last.user, first.user),
            system: since(last.system, first.system),
            sizes_unknown: (last.sizes_unknown.clone()).or_else(|| {
                let done = last.device.since(&first.device);
                let seen = !done.write_sizes.is_empty() || !done.read_sizes.is_empty();
                (done.writes + done.reads > 0 && !seen).then(|| NO_REQUESTS.to_owned())
            }),
            sizes_lost: last.sizes_lost.saturating_sub(first.sizes_lost),
            stopped: since(last.stopped, first.stopped),
            suspended: since(last.suspended, first.suspended),
        })
    }

    /// What kept the agent from measuring, if something did: its times cannot be believed then.
    pub fn disturbed(&self) -> Option<String> {
        if self.suspended > SUSPENDED_LEAST {
            return Some(format!(
                "the machine was suspended for {} in it",
                self.suspended
            ));
        }
        (self.stopped > Nanos(0)).then(|| {
            format!(
                "it was stopped for {} (SIGSTOP, a frozen machine, or one far too busy)",
                self.stopped
            )
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reading(celsius: f64, throttled: Option<u64>, threads: &[(&str, u64)]) -> CounterReading {
        let threads = threads
            .iter()
            .map(|(name, time)| ((*name).to_owned(), Nanos(*time)));
        CounterReading {
            system: Nanos(5),
            threads: threads.collect(),
            temperatures: BTreeMap::from([("cpu".to_owned(), celsius)]),
            throttled,
            ..CounterReading::default()
        }
    }

    #[test]
    fn conditions_are_what_happened_between_the_first_and_the_last_reading() {
        let all = [
            reading(40.0, Some(2), &[("jbd2", 10), ("kworker", 5)]),
            reading(55.5, Some(2), &[("jbd2", 20), ("kworker", 2)]),
            reading(50.0, Some(3), &[("kworker", 5), ("xfsaild", 1)]),
            reading(50.0, Some(3), &[("jbd2", 10)]),
        ];
        let found = Conditions::of(&all).unwrap();
        assert_eq!(found.temperatures["cpu"], (40.0, 55.5));
        assert_eq!(found.throttled, Some(1));
        let expected = [("jbd2", 20), ("kworker", 3), ("xfsaild", 1)];
        let expected = expected.map(|(name, time)| (name.to_owned(), Nanos(time)));
        assert_eq!(found.threads, BTreeMap::from(expected));
        assert_eq!(all[1].kernel_since(&all[0]), Nanos(10));
        assert_eq!(all[2].kernel_since(&all[1]), Nanos(4), "jbd2 has ended");
        assert_eq!(Conditions::of([]), None);
        let untold = [reading(40.0, None, &[]), reading(40.0, Some(1), &[])];
        assert_eq!(Conditions::of(&untold).unwrap().throttled, None);
    }

    #[test]
    fn a_trial_that_was_kept_from_running_is_known() {
        let of = |stopped, suspended| {
            let last = CounterReading {
                stopped: Nanos(stopped),
                suspended: Nanos(suspended),
                ..CounterReading::default()
            };
            let first = CounterReading {
                suspended: Nanos(7_000_000_000),
                ..CounterReading::default()
            };
            Conditions::of(&[first, last]).unwrap().disturbed()
        };
        assert_eq!(of(0, 7_000_000_100), None, "suspended before it began");
        let told = of(0, 9_000_000_000).unwrap();
        assert!(told.contains("suspended for 2"), "{told}");
        let told = of(3_000_000_000, 7_000_000_000).unwrap();
        assert!(told.contains("stopped for 3"), "{told}");
    }

    #[test]
    fn sizes_of_requests_are_known_or_there_is_a_reason() {
        let device = |writes, sizes: &[(u64, u64)]| CounterReading {
            device: crate::DeviceFigures {
                writes,
                write_sizes: sizes.iter().copied().collect(),
                ..crate::DeviceFigures::default()
            },
            ..CounterReading::default()
        };
        let of = |last| {
            Conditions::of(&[device(1, &[]), last])
                .unwrap()
                .sizes_unknown
        };
        assert_eq!(of(device(3, &[(4096, 2)])), None);
        assert_eq!(of(device(1, &[])), None, "there was nothing to see");
        assert_eq!(of(device(3, &[])).unwrap(), NO_REQUESTS);
        let mut without = device(3, &[]);
        without.sizes_unknown = Some("no tracefs".into());
        assert_eq!(of(without).unwrap(), "no tracefs");
    }

    #[test]
    fn a_line_comes_back_from_its_json() {
        for reading in [None, Some(reading(40.0, None, &[("jbd2", 10)]))] {
            let told = StampedEvent {
                at: Nanos(7),
                event: Event::PhaseBegin {
                    phase: "mount".into(),
                },
                reading,
            };
            let text = serde_json::to_string(&told).unwrap();
            assert_eq!(serde_json::from_str::<StampedEvent>(&text).unwrap(), told);
        }
    }
}
