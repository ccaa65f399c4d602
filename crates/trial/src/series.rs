//! What a device did over time, in a bounded number of slots.

use serde::{Deserialize, Serialize};
use whichfs_units::Nanos;

/// A device's work over virtual time, from the begin of a trial. There are at most
/// [`Series::SLOTS`] slots of equal length; when time goes on beyond them, two become one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Series {
    /// Length of a slot; zero in an empty series.
    pub slot: Nanos,
    /// AUs that the card can have open at once; none where it has no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_limit: Option<u32>,
    /// The slots up to that of the last request.
    pub slots: Vec<Slot>,
}

/// One slot. In JSON a list of its five numbers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
#[serde(from = "(u32, u64, u64, u64, u64)", into = "(u32, u64, u64, u64, u64)")]
pub struct Slot {
    /// AUs that were open at its end.
    pub open_aus: u32,
    /// Write requests.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
    /// Bytes programmed into flash, copies included.
    pub programmed_bytes: u64,
    /// AUs that the card copied.
    pub au_copies: u64,
}

impl From<(u32, u64, u64, u64, u64)> for Slot {
    fn from(numbers: (u32, u64, u64, u64, u64)) -> Slot {
        let (open_aus, writes, write_bytes, programmed_bytes, au_copies) = numbers;
        Slot {
            open_aus,
            writes,
            write_bytes,
            programmed_bytes,
            au_copies,
        }
    }
}

impl From<Slot> for (u32, u64, u64, u64, u64) {
    fn from(slot: Slot) -> (u32, u64, u64, u64, u64) {
        (
            slot.open_aus,
            slot.writes,
            slot.write_bytes,
            slot.programmed_bytes,
            slot.au_copies,
        )
    }
}

impl Slot {
    /// What happened in this slot and then in `later`.
    fn with(self, later: Slot) -> Slot {
        Slot {
            open_aus: later.open_aus,
            writes: self.writes + later.writes,
            write_bytes: self.write_bytes + later.write_bytes,
            programmed_bytes: self.programmed_bytes + later.programmed_bytes,
            au_copies: self.au_copies + later.au_copies,
        }
    }
}

impl Series {
    /// Slots of a series, at most.
    pub const SLOTS: usize = 128;

    /// Length of the first slots.
    const SHORTEST: Nanos = Nanos(1_000_000);

    /// Adds what one request that was done at `at` did; `done.open_aus` is how many AUs were open
    /// then. They stay open until the next request. Requests come in the order of time.
    pub fn record(&mut self, at: Nanos, done: Slot) {
        self.slot = self.slot.max(Series::SHORTEST);
        while at.0 / self.slot.0 >= Series::SLOTS as u64 {
            self.halve();
        }
        let place = (at.0 / self.slot.0) as usize;
        let open_aus = self.slots.last().map_or(0, |last| last.open_aus);
        let still = Slot {
            open_aus,
            ..Slot::default()
        };
        while self.slots.len() <= place {
            self.slots.push(still);
        }
        self.slots[place] = self.slots[place].with(done);
    }

    /// Two slots become one.
    fn halve(&mut self) {
        let pairs = self.slots.chunks(2);
        let joined = pairs.map(|pair| pair.iter().fold(Slot::default(), |all, one| all.with(*one)));
        self.slots = joined.collect();
        self.slot = Nanos(self.slot.0 * 2);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn write(open_aus: u32, bytes: u64) -> Slot {
        Slot {
            open_aus,
            writes: 1,
            write_bytes: bytes,
            programmed_bytes: 2 * bytes,
            au_copies: 1,
        }
    }

    #[test]
    fn nothing_is_lost_when_slots_are_joined() {
        let mut series = Series::default();
        for at in 0..100_000_u64 {
            series.record(Nanos(at * 7_000_000), write((at % 5) as u32, 4096));
        }
        assert!(series.slots.len() <= Series::SLOTS && series.slots.len() > Series::SLOTS / 2);
        let sum = |of: fn(&Slot) -> u64| series.slots.iter().map(of).sum::<u64>();
        assert_eq!(sum(|slot| slot.writes), 100_000);
        assert_eq!(sum(|slot| slot.programmed_bytes), 100_000 * 8192);
        assert_eq!(series.slots.last().unwrap().open_aus, 4);
        let end = series.slot.0 * series.slots.len() as u64;
        assert!(end > 99_999 * 7_000_000);
    }

    #[test]
    fn what_is_open_stays_open_in_a_rest() {
        let mut series = Series::default();
        series.record(Nanos(0), write(3, 1));
        series.record(Nanos(5_500_000), write(1, 1));
        let open: Vec<u32> = series.slots.iter().map(|slot| slot.open_aus).collect();
        assert_eq!(open, [3, 3, 3, 3, 3, 1]);
    }

    #[test]
    fn a_slot_is_a_short_list_and_a_series_without_a_limit_says_nothing_of_it() {
        let mut series = Series::default();
        series.record(Nanos(1), write(3, 4096));
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(text, r#"{"slot":1000000,"slots":[[3,1,4096,8192,1]]}"#);
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
    }
}
