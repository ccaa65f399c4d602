//! Limits on wall time, CPU time and console output of a guest.

use crate::error::LabError;
use crate::guest::Guest;
use rustix::event::Timespec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_units::Nanos;

/// How long one wait for a message lasts before limits are looked at.
const POLL: Duration = Duration::from_millis(100);
/// Messages after which the clock is read even if the guest never falls silent.
const MESSAGES_PER_LOOK: u32 = 16;

/// What a guest may use before it is stopped.
#[derive(Clone, Copy, Debug)]
pub struct GuestLimits {
    /// Wall time of the whole trial (`--wall-limit`).
    pub wall: Duration,
    /// Virtual instant at which it is stopped; none: no limit but that of a guest in which nothing
    /// happens.
    pub virtual_time: Option<Nanos>,
    /// CPU time of the guest without a message: then it spins.
    pub silent_cpu: Duration,
    /// Console output in bytes.
    pub console_bytes: u64,
    /// Output of programs that is passed on, in bytes; all of it is kept in memory.
    pub output_bytes: u64,
}

impl GuestLimits {
    /// Part of the wall time that a guest may compute without a message, and its least: a short
    /// limit is to end a guest by itself.
    const SILENT_PART: u32 = 5;
    const SILENT_MIN: Duration = Duration::from_secs(60);

    /// The usual limits of a trial that may take `wall`.
    pub fn of_wall(wall: Duration) -> GuestLimits {
        GuestLimits {
            wall,
            virtual_time: None,
            silent_cpu: (wall / GuestLimits::SILENT_PART).max(GuestLimits::SILENT_MIN),
            console_bytes: 4 << 20,
            output_bytes: 64 << 20,
        }
    }
}

impl Default for GuestLimits {
    fn default() -> GuestLimits {
        GuestLimits::of_wall(Duration::from_secs(300))
    }
}

/// Watches one guest.
pub(crate) struct Watchdog<'a> {
    limits: GuestLimits,
    cancelled: &'a AtomicBool,
    started: Instant,
    messages: u32,
    /// When limits were looked at last.
    checked: Instant,
    /// CPU seconds of the guest when it fell silent.
    silent_since: Option<f64>,
}

impl<'a> Watchdog<'a> {
    pub(crate) fn new(limits: GuestLimits, cancelled: &'a AtomicBool) -> Watchdog<'a> {
        Watchdog {
            limits,
            cancelled,
            started: Instant::now(),
            messages: 0,
            checked: Instant::now(),
            silent_since: None,
        }
    }

    /// Longest time to wait for a message.
    pub(crate) fn poll_time(&self) -> Timespec {
        Timespec {
            tv_sec: 0,
            tv_nsec: POLL.subsec_nanos().into(),
        }
    }

    /// A message came.
    pub(crate) fn heard(&mut self, guest: &Guest) -> Result<(), LabError> {
        self.silent_since = None;
        self.messages += 1;
        if self.messages < MESSAGES_PER_LOOK {
            return Ok(());
        }
        self.messages = 0;
        // A guest may send few messages without ever being silent: the clock decides.
        if self.checked.elapsed() < POLL {
            return Ok(());
        }
        self.checked = Instant::now();
        self.check_console(guest)?;
        self.check_limits()
    }

    /// The virtual instant at which the guest is stopped.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.limits.virtual_time
    }

    /// The guest's programs have said `bytes` so far.
    pub(crate) fn printed(&self, bytes: u64) -> Result<(), LabError> {
        if bytes > self.limits.output_bytes {
            return Err(LabError::OutputFlood(self.limits.output_bytes));
        }
        Ok(())
    }

    /// No message came in a poll's time.
    pub(crate) fn silent(&mut self, guest: &mut Guest) -> Result<(), LabError> {
        if let Some(how) = guest.ended() {
            return Err(LabError::GuestEnded { how });
        }
        self.check_console(guest)?;
        let used = guest.cpu_seconds();
        let since = *self.silent_since.get_or_insert(used);
        if used - since > self.limits.silent_cpu.as_secs_f64() {
            return Err(LabError::Spins(self.limits.silent_cpu));
        }
        self.check_limits()
    }

    /// Wall time and Ctrl-C.
    pub(crate) fn check_limits(&self) -> Result<(), LabError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if self.started.elapsed() > self.limits.wall {
            return Err(LabError::WallLimit(self.limits.wall));
        }
        Ok(())
    }

    fn check_console(&self, guest: &Guest) -> Result<(), LabError> {
        if guest.console_bytes() > self.limits.console_bytes {
            return Err(LabError::ConsoleFlood(self.limits.console_bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_wall_limit_lets_a_guest_compute_longer() {
        let silent = |wall| {
            GuestLimits::of_wall(Duration::from_secs(wall))
                .silent_cpu
                .as_secs()
        };
        assert_eq!([1, 300, 3600].map(silent), [60, 60, 720]);
    }
}
