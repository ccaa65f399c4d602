//! What is watched while the phases run: the sizes of the disk's requests, and whether this process
//! was kept from running.
//!
//! A thread of its own takes the requests out of the kernel's rings and looks at the clock. If it
//! looks much later than it meant to, the process was stopped (SIGSTOP, a frozen container or
//! virtual machine, a machine far too busy), and so were the phases that are being timed.

use crate::requests::{Requests, Sizes};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use whichfs_units::Nanos;

/// How often the thread looks.
const PERIOD: Duration = Duration::from_millis(50);
/// A look that comes so much later than it should was kept from coming.
const LATE: Duration = Duration::from_millis(500);

/// What has been seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Requests by size, or why they are not known.
    pub sizes: Result<Sizes, String>,
    /// Time in which this process could not run, while the clock went on.
    pub stopped: Nanos,
    /// Time that the machine was suspended since it started: the clock stood still.
    pub suspended: Nanos,
}

/// Watches until it is dropped.
#[derive(Clone)]
pub struct Monitor(Arc<Mutex<State>>);

struct State {
    requests: Result<Requests, String>,
    beat: Beat,
}

impl Monitor {
    /// Begins to watch the requests of `disk` and this process.
    pub fn start(disk: &str) -> Monitor {
        let state = Arc::new(Mutex::new(State {
            requests: Requests::of(disk),
            beat: Beat::new(Instant::now()),
        }));
        let watched = Arc::downgrade(&state);
        thread::spawn(move || {
            while let Some(state) = watched.upgrade() {
                state.lock().look();
                drop(state);
                thread::sleep(PERIOD);
            }
        });
        Monitor(state)
    }

    /// What has been seen by now.
    pub fn seen(&self) -> Seen {
        let mut state = self.0.lock();
        state.look();
        Seen {
            sizes: match &mut state.requests {
                Ok(requests) => Ok(requests.read()),
                Err(why) => Err(why.clone()),
            },
            stopped: state.beat.stopped,
            suspended: suspended(),
        }
    }
}

impl State {
    fn look(&mut self) {
        self.beat.at(Instant::now());
        if let Ok(requests) = &mut self.requests {
            requests.read();
        }
    }
}

/// Looks at the clock, and how late they came.
struct Beat {
    last: Instant,
    stopped: Nanos,
}

impl Beat {
    fn new(now: Instant) -> Beat {
        Beat {
            last: now,
            stopped: Nanos(0),
        }
    }

    /// A look at `now`.
    fn at(&mut self, now: Instant) {
        let late = now.duration_since(self.last).saturating_sub(PERIOD);
        if late > LATE {
            self.stopped.0 += u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        }
        self.last = now;
    }
}

/// Time that the machine was suspended since it started: the clock that counts it, less the one
/// that does not.
fn suspended() -> Nanos {
    let of = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
    };
    // In this order: what passes between both looks is no suspension.
    let boot = of(ClockId::Boottime);
    Nanos(boot.saturating_sub(of(ClockId::Monotonic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_that_come_far_too_late_count() {
        let begin = Instant::now();
        let mut beat = Beat::new(begin);
        let at = |ms: u64| begin + Duration::from_millis(ms);
        for ms in [50, 100, 400, 450] {
            beat.at(at(ms));
        }
        assert_eq!(beat.stopped, Nanos(0), "busy, not stopped");
        beat.at(at(3500));
        assert_eq!(beat.stopped, Nanos(3_000_000_000));
        beat.at(at(3550));
        assert_eq!(beat.stopped, Nanos(3_000_000_000));
    }

    #[test]
    fn what_is_not_known_of_requests_has_a_reason() {
        let monitor = Monitor::start("no-such-disk");
        let seen = monitor.seen();
        assert!(seen.sizes.is_err_and(|why| why.contains("no-such-disk")));
        assert_eq!(seen.stopped, Nanos(0));
        assert!(seen.suspended <= monitor.seen().suspended + Nanos(1_000_000));
    }
}
