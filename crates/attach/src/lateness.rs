//! How far from their times completions were delivered: a histogram of fixed size and its
//! percentiles.
//!
//! Eight buckets to the octave: a percentile is known to 12.5 %, from 1 ns to a minute and
//! beyond, in 2.4 KiB, whatever the number of requests.

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// Buckets to a doubling.
const STEPS: u64 = 8;
/// Enough for 2^40 ns, 18 minutes; longer ones are counted in the last.
const BUCKETS: usize = 8 * 38;

/// Histogram of |delivered − modelled|, in nanoseconds of this machine's clock.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
}

/// How late completions were delivered, beside the instants at which the model had them due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct DeliveryError {
    /// Completions delivered.
    pub count: u64,
    /// Half of them were at most this far off: delivered minus modelled, in nanoseconds of this
    /// machine's clock, rounded up by at most 12.5 %. They are late; only answers with 64 KiB
    /// and more can be early, by the spread of what copying them takes.
    pub median_ns: u64,
    /// 99 of 100 were at most this far off.
    pub p99_ns: u64,
    /// All of them were at most this far off.
    pub max_ns: u64,
    /// `(upper bound in nanoseconds, completions)` of each bucket that is not empty.
    pub histogram: Vec<(u64, u64)>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness {
            counts: vec![0; BUCKETS],
            count: 0,
            max_ns: 0,
        }
    }
}

impl Lateness {
    /// Counts one completion that was `ns` off.
    pub fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Median, 99th percentile, greatest and histogram.
    pub fn figures(&self) -> DeliveryError {
        let filled = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        DeliveryError {
            count: self.count,
            median_ns: self.percentile(50),
            p99_ns: self.percentile(99),
            max_ns: self.max_ns,
            histogram: filled.map(|(at, n)| (bound(at), *n)).collect(),
        }
    }

    /// The least bucket bound that `percent` of the completions do not exceed.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (at, n) in self.counts.iter().enumerate() {
            seen += n;
            if *n > 0 && seen >= wanted {
                return bound(at).min(self.max_ns);
            }
        }
        0
    }
}

/// The [`Lateness`] of a device, added to by who answers and read by who asks.
#[derive(Debug, Default)]
pub(crate) struct Punctuality(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    lateness: Lateness,
    /// What was due before this instant of the monotonic clock does not count.
    from: u64,
}

impl Punctuality {
    /// Counts one completion that was due at `due` and ended at `ended` of the monotonic clock.
    pub fn add(&self, due: u64, ended: u64) {
        let counted = &mut *self.lock();
        if due >= counted.from {
            counted.lateness.add(ended.abs_diff(due));
        }
    }

    /// Forgets all completions that were due before `now`, including those that are added only
    /// later: a client may have its answer before it is counted.
    pub fn forget(&self, now: u64) {
        *self.lock() = Counted {
            lateness: Lateness::default(),
            from: now,
        };
    }

    /// The figures up to now.
    pub fn figures(&self) -> DeliveryError {
        self.lock().lateness.figures()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock()
    }
}

/// Values below two octaves of steps have a bucket each; then eight to the octave.
fn bucket(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let octave = u64::from(ns.ilog2());
    let within = (ns >> (octave - 3)) & (STEPS - 1);
    (((octave - 2) * STEPS + within) as usize).min(BUCKETS - 1)
}

/// The greatest value in bucket `at`.
fn bound(at: usize) -> u64 {
    let at = at as u64;
    if at < STEPS {
        return at;
    }
    let (octave, within) = (at / STEPS + 2, at % STEPS);
    ((STEPS + within + 1) << (octave - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_units::Rng;

    #[test]
    fn what_was_due_before_is_forgotten_however_late_it_is_told() {
        let punctuality = Punctuality::default();
        punctuality.add(5, 6);
        punctuality.forget(10);
        punctuality.add(9, 11);
        assert_eq!(punctuality.figures().count, 0);
        punctuality.add(10, 12);
        assert_eq!(punctuality.figures().count, 1);
    }

    #[test]
    fn every_value_lies_in_its_bucket_and_within_an_eighth_of_its_bound() {
        let mut rng = Rng::named(1, "lateness");
        for _ in 0..100_000 {
            let ns = rng.next_u64() >> (27 + rng.below(37));
            let at = bucket(ns);
            assert!(ns <= bound(at), "{ns} in {at}");
            assert!(at == 0 || ns > bound(at - 1), "{ns} in {at}");
            assert!(bound(at) - ns <= ns / 8, "{ns} below {}", bound(at));
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut lateness = Lateness::default();
        (1..=1000).for_each(|us| lateness.add(us * 1000));
        let figures = lateness.figures();
        assert_eq!((figures.count, figures.max_ns), (1000, 1_000_000));
        assert!((500_000..=562_500).contains(&figures.median_ns));
        assert!((990_000..=1_000_000).contains(&figures.p99_ns));
        let counted: u64 = figures.histogram.iter().map(|(_, n)| n).sum();
        assert_eq!(counted, 1000);
    }

    #[test]
    fn one_late_completion_in_a_hundred_does_not_move_the_99th_percentile_but_two_do() {
        let mut lateness = Lateness::default();
        (0..99).for_each(|_| lateness.add(7));
        lateness.add(9_000_000);
        assert_eq!(lateness.figures().p99_ns, 7);
        lateness.add(9_000_000);
        assert_eq!(lateness.figures().p99_ns, 9_000_000);
    }

    #[test]
    fn nothing_delivered_is_no_error() {
        assert_eq!(Lateness::default().figures(), DeliveryError::default());
        let mut endless = Lateness::default();
        endless.add(u64::MAX);
        assert_eq!(endless.figures().max_ns, u64::MAX);
    }
}
