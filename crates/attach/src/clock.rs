//! The card's time beside this machine's.
//!
//! The card's clock begins at zero when the device is ready and runs at `speed` times the
//! monotonic clock. All instants here are nanoseconds of one or the other; [`Clock`] is the
//! only place that turns one into the other.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};
use whichfs_units::Nanos;

/// How fast the card's time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Thousandths of real time: 1000 is the card as it is, 2000 one twice as fast.
    Thousandths(u64),
    /// Requests complete at once; the card's time is the sum of their service times. This
    /// measures the tool itself.
    Max,
}

impl Speed {
    /// The card as it is.
    pub const REAL: Speed = Speed::Thousandths(1000);
    /// Slowest and fastest factor that is no typing error, in thousandths.
    const RANGE: std::ops::RangeInclusive<u64> = 1..=1_000_000;
}

impl FromStr for Speed {
    type Err = String;

    /// `max`, or a factor with at most three decimals from 0.001 to 1000.
    fn from_str(text: &str) -> Result<Speed, String> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        let wrong = || {
            format!(
                "speed: found {text:?}; expected max, or a factor from 0.001 to 1000 with at \
                 most three decimals, such as 1.0"
            )
        };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 3 || whole.len() > 4 {
            return Err(wrong());
        }
        let number = |part: &str| part.parse::<u64>().map_err(|_| wrong());
        let thousandths = number(whole)? * 1000 + number(&format!("{decimals:0<3}"))?;
        if !Speed::RANGE.contains(&thousandths) {
            return Err(wrong());
        }
        Ok(Speed::Thousandths(thousandths))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Speed::Max => f.write_str("max"),
            Speed::Thousandths(n) if n % 1000 == 0 => write!(f, "{}.0", n / 1000),
            Speed::Thousandths(n) => {
                let text = format!("{}.{:03}", n / 1000, n % 1000);
                f.write_str(text.trim_end_matches('0'))
            }
        }
    }
}

/// The monotonic clock now, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both parts are non-negative on this clock.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until `target` of the monotonic clock: by the kernel's timer until `spin` before
/// it, then by looking at the clock. Never returns early.
pub(crate) fn sleep_until(target: u64, spin: u64) {
    let early = target.saturating_sub(spin);
    while monotonic() < early {
        let until = Timespec {
            tv_sec: (early / 1_000_000_000) as i64,
            tv_nsec: (early % 1_000_000_000) as _,
        };
        // Interrupted by a signal: the loop looks again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    }
    while monotonic() < target {
        std::hint::spin_loop();
    }
}

/// Card time ↔ monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begun: u64,
    base: Nanos,
    thousandths: u64,
}

impl Clock {
    /// A clock whose card time is `base` at `begun`.
    pub fn new(begun: u64, base: Nanos, thousandths: u64) -> Clock {
        Clock {
            begun,
            base,
            thousandths,
        }
    }

    /// Card time at `monotonic`.
    pub fn card(&self, monotonic: u64) -> Nanos {
        let passed = monotonic.saturating_sub(self.begun);
        self.base + Nanos(scale(passed, self.thousandths, 1000))
    }

    /// The monotonic clock at `card`, rounded up: never before the card is done.
    pub fn monotonic(&self, card: Nanos) -> u64 {
        self.begun + scale(card.saturating_sub(self.base).0, 1000, self.thousandths)
    }
}

/// `value * numerator / denominator`, rounded up.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    if numerator == denominator {
        return value;
    }
    (u128::from(value) * u128::from(numerator)).div_ceil(u128::from(denominator)) as u64
}

/// Whether `done` becomes true in time.
pub(crate) fn within(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if done() {
            return true;
        }
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn speeds_are_read_and_written() {
        for (text, thousandths, shown) in [
            ("1.0", 1000, "1.0"),
            ("1", 1000, "1.0"),
            ("0.25", 250, "0.25"),
            ("1000", 1_000_000, "1000.0"),
            ("0.001", 1, "0.001"),
        ] {
            let speed: Speed = text.parse().unwrap();
            assert_eq!(speed, Speed::Thousandths(thousandths), "{text}");
            assert_eq!(speed.to_string(), shown);
        }
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!(Speed::Max.to_string(), "max");
    }

    #[test]
    fn other_speeds_are_refused_with_what_is_legal() {
        for text in [
            "",
            "0",
            "0.0",
            "-1",
            "1e3",
            "1.0001",
            "1001",
            "MAX",
            ".",
            "1.",
            "nan",
            "99999999999",
        ] {
            let error = text.parse::<Speed>().unwrap_err();
            assert!(error.contains("0.001 to 1000"), "{text}: {error}");
        }
    }

    #[test]
    fn card_time_runs_at_the_speed_and_never_completes_early() {
        let real = Clock::new(1_000, Nanos::ZERO, 1000);
        assert_eq!(real.card(5_000), Nanos(4_000));
        assert_eq!(real.monotonic(Nanos(4_000)), 5_000);
        assert_eq!(real.card(0), Nanos::ZERO, "before it began");
        let third = Clock::new(0, Nanos::ZERO, 3_000);
        assert_eq!(third.card(1_000), Nanos(3_000));
        assert_eq!(third.monotonic(Nanos(1_000)), 334, "rounded up");
        let later = Clock::new(1_000, Nanos(70), 1000);
        assert_eq!(later.card(1_005), Nanos(75));
        assert_eq!(later.monotonic(Nanos(75)), 1_005);
        let day = 86_400_000_000_000;
        assert_eq!(
            Clock::new(day, Nanos::ZERO, 1).monotonic(Nanos(day)),
            1001 * day
        );
    }

    #[test]
    fn sleeping_never_ends_early() {
        for ns in [0, 1_000, 300_000] {
            let target = monotonic() + ns;
            sleep_until(target, 50_000);
            assert!(monotonic() >= target);
        }
    }
}
