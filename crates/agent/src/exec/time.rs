//! Operations about time: laps, pauses, waits.

use whichfs_trial::LatencyHistogram;
use whichfs_workload::Op;

/// The clock in force.
pub struct Time<'a> {
    /// Nanoseconds since any fixed moment.
    pub now: &'a dyn Fn() -> u64,
    /// Sleeps for so many nanoseconds.
    pub sleep: &'a dyn Fn(u64),
}

impl Time<'static> {
    /// A clock that stands still, for operations whose latency nobody asks for.
    pub const fn still() -> Time<'static> {
        Time {
            now: &|| 0,
            sleep: &|_| (),
        }
    }
}

/// Whether `op` is done by the clock alone.
pub(super) fn is_about_time(op: &Op) -> bool {
    matches!(op, Op::Lap | Op::Pause { .. } | Op::WaitUntil { .. })
}

/// What operations about time refer to; it starts with the first of them.
#[derive(Default)]
pub(super) struct Watch {
    started: Option<u64>,
    /// When the last of them ended.
    last: u64,
}

impl Watch {
    /// Performs `op`, which is about time.
    pub(super) fn perform(&mut self, op: &Op, time: &Time<'_>, latency: &mut LatencyHistogram) {
        let now = (time.now)();
        if self.started.is_some() && *op == Op::Lap {
            latency.record(now.saturating_sub(self.last));
        }
        let started = *self.started.get_or_insert(now);
        self.last = match op {
            Op::Lap => now,
            Op::Pause { nanoseconds } => slept(*nanoseconds, time),
            Op::WaitUntil { nanoseconds } => {
                slept((started + nanoseconds).saturating_sub(now), time)
            }
            other => unreachable!("not about time: {other:?}"),
        };
    }
}

/// The time after a sleep.
fn slept(nanoseconds: u64, time: &Time<'_>) -> u64 {
    if nanoseconds > 0 {
        (time.sleep)(nanoseconds);
    }
    (time.now)()
}
