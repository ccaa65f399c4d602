//! What trials on a device may cost, in time and in bytes written, and what they will.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A filesystem that nothing is known of writes this many times what the workload does: mkfs,
/// metadata and journal beside the data.
const UNKNOWN_FACTOR: u64 = 3;

/// The most that a run may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Wall-clock time; none if unlimited.
    pub time: Option<Duration>,
    /// Bytes that the device is given to write; none if unlimited.
    pub bytes: Option<u64>,
}

/// What a trial costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrialCost {
    /// Time; zero where it is not known.
    pub time: Duration,
    /// Bytes that reach the device.
    pub bytes: u64,
}

/// A device's counter of written bytes, which begins at 0 again when its machine restarts.
#[derive(Debug)]
pub struct Counter {
    last: u64,
    sum: u64,
}

impl Counter {
    /// A counter that shows `now`, if that is known.
    pub fn new(now: Option<u64>) -> Counter {
        let last = now.unwrap_or(0);
        Counter { last, sum: 0 }
    }

    /// What was counted since the beginning, now that it shows `now`.
    pub fn since(&mut self, now: Option<u64>) -> u64 {
        if let Some(now) = now {
            let more = now.checked_sub(self.last).unwrap_or(now);
            self.sum = self.sum.saturating_add(more);
            self.last = now;
        }
        self.sum
    }
}

/// What a budget has been spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// The next trial would end after the time.
    Time,
    /// The next trial would write more than is left.
    Bytes,
}

impl Budget {
    /// Bytes that may still be written after `spent`; `None`: any number.
    pub fn bytes_left(&self, spent: &TrialCost) -> Option<u64> {
        self.bytes.map(|most| most.saturating_sub(spent.bytes))
    }

    /// Whether a trial of `next` may begin after `spent`; else what is used up.
    ///
    /// # Errors
    /// What is used up.
    pub fn check(&self, spent: &TrialCost, next: &TrialCost) -> Result<(), BudgetLimit> {
        if self
            .time
            .is_some_and(|time| spent.time.saturating_add(next.time) > time)
        {
            return Err(BudgetLimit::Time);
        }
        let bytes = spent.bytes.saturating_add(next.bytes);
        match self.bytes.is_some_and(|most| bytes > most) {
            true => Err(BudgetLimit::Bytes),
            false => Ok(()),
        }
    }
}

/// What trials have cost, by workload and candidate.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    known: BTreeMap<(String, String), TrialCost>,
}

impl Ledger {
    /// A trial of `load` on `candidate` has cost `cost`; the dearest counts.
    pub fn record(&mut self, load: &str, candidate: &str, cost: TrialCost) {
        let known = self
            .known
            .entry((load.to_owned(), candidate.to_owned()))
            .or_default();
        known.time = known.time.max(cost.time);
        known.bytes = known.bytes.max(cost.bytes);
    }

    /// What a trial of `load` on `candidate` will cost: what it did before, else the most that
    /// one of the same workload did, else a multiple of `data`, the bytes that the workload writes
    /// into files, and no time.
    pub fn estimate(&self, load: &str, candidate: &str, data: u64) -> TrialCost {
        let key = (load.to_owned(), candidate.to_owned());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let unknown = TrialCost {
            time: Duration::ZERO,
            bytes: data.saturating_mul(UNKNOWN_FACTOR),
        };
        let alike = self.known.iter().filter(|((other, _), _)| other == load);
        let dearest = alike.map(|(_, cost)| *cost).reduce(|a, b| TrialCost {
            time: a.time.max(b.time),
            bytes: a.bytes.max(b.bytes),
        });
        dearest.unwrap_or(unknown)
    }

    /// Whether the time of a trial of `load` can be told.
    pub fn knows(&self, load: &str) -> bool {
        self.known.keys().any(|(other, _)| other == load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(seconds: u64, bytes: u64) -> TrialCost {
        TrialCost {
            time: Duration::from_secs(seconds),
            bytes,
        }
    }

    #[test]
    fn bytes_are_counted_across_a_restart() {
        let mut counter = Counter::new(Some(1000));
        let shown = [Some(1500), None, Some(1700), Some(300), Some(400)];
        let sums = shown.map(|now| counter.since(now));
        assert_eq!(sums, [500, 500, 700, 1000, 1100]);
    }

    #[test]
    fn no_trial_begins_that_would_go_over() {
        let free = Budget::default();
        assert_eq!(free.check(&cost(u64::MAX, u64::MAX), &cost(1, 1)), Ok(()));
        let tight = Budget {
            time: Some(Duration::from_secs(100)),
            bytes: Some(1000),
        };
        assert_eq!(
            tight.check(&cost(90, 900), &cost(10, 100)),
            Ok(()),
            "to the last"
        );
        assert_eq!(
            tight.check(&cost(90, 0), &cost(11, 0)),
            Err(BudgetLimit::Time)
        );
        assert_eq!(
            tight.check(&cost(0, 900), &cost(0, 101)),
            Err(BudgetLimit::Bytes)
        );
        assert_eq!(
            tight.check(&cost(0, u64::MAX), &cost(0, 1)),
            Err(BudgetLimit::Bytes)
        );
        assert_eq!(
            tight.check(&cost(101, 0), &cost(0, 0)),
            Err(BudgetLimit::Time)
        );
    }

    #[test]
    fn estimates_go_by_what_is_most_alike() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.estimate("tree", "ext4", 100), cost(0, 300));
        ledger.record("tree", "ext4", cost(5, 400));
        ledger.record("tree", "ext4", cost(4, 500));
        ledger.record("tree", "btrfs", cost(9, 200));
        ledger.record("video", "xfs", cost(99, 9999));
        assert_eq!(ledger.estimate("tree", "ext4", 100), cost(5, 500));
        assert_eq!(
            ledger.estimate("tree", "f2fs", 100),
            cost(9, 500),
            "the dearest alike"
        );
        assert_eq!(ledger.estimate("mail", "ext4", 7), cost(0, 21));
        assert!(ledger.knows("tree") && !ledger.knows("mail"));
    }
}
