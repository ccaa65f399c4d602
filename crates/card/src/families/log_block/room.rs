//! Which AU is closed to make room for another.

use super::{LogBlock, Slot};
use crate::flash::Violation;
use crate::stats::Stats;

impl LogBlock {
    /// Makes room for `au`, which is not open, and returns the time for it.
    pub(super) fn make_room(&mut self, au: u32, stats: &mut Stats) -> u64 {
        if self.rules.first_opened {
            return self.take_place(au, stats);
        }
        if self.slots.len() < self.rules.open_linear {
            return 0;
        }
        self.close(self.oldest(false), false, stats)
    }

    /// Gives `au` a place, unless it has one: if none is free, the one that was taken first.
    fn take_place(&mut self, au: u32, stats: &mut Stats) -> u64 {
        if self.places.contains(&au) {
            return 0;
        }
        let mut spent = 0;
        if self.places.len() >= self.rules.open_linear {
            let first = self.places.remove(0);
            if let Some(at) = self.slots.iter().position(|slot| slot.au == first) {
                spent = self.close(at, false, stats);
            }
        }
        self.places.push(au);
        spent
    }

    /// Index of the slot to be closed first, among the chaotic ones if asked. The slot just
    /// stamped is the last used.
    pub(super) fn oldest(&self, chaotic: bool) -> usize {
        let eligible = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.chaotic || !chaotic);
        let oldest = eligible.min_by_key(|(_, slot)| self.age(slot));
        oldest.map_or(0, |(at, _)| at)
    }

    /// When a slot took its place, or was used last; the lesser the older.
    fn age(&self, slot: &Slot) -> u64 {
        if !self.rules.first_opened || slot.used_at == self.clock {
            return slot.used_at;
        }
        let place = self.places.iter().position(|au| *au == slot.au);
        place.map_or(self.clock, |place| place as u64)
    }

    /// Every open AU has one of the places, where there are such.
    pub(super) fn verify_places(&self) -> Result<(), Violation> {
        if self.places.len() > self.rules.open_linear {
            return Err(Violation(format!("{} places", self.places.len())));
        }
        let without = self
            .slots
            .iter()
            .find(|slot| !self.places.contains(&slot.au));
        match without.filter(|_| self.rules.first_opened) {
            Some(slot) => Err(Violation(format!("open AU {} has no place", slot.au))),
            None => Ok(()),
        }
    }
}
