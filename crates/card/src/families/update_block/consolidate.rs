//! Programming and consolidation of family S: what is copied, what it takes, what it wears.

use super::{Piece, Slot, UpdateBlock};
use crate::bus::span_ns;
use crate::stats::Stats;
use std::num::NonZeroU64;

impl UpdateBlock {
    /// Index of the slot used longest ago, or of the one used last, among those that `count`.
    pub(super) fn by_age(&self, count: fn(&Slot) -> bool, newest: bool) -> usize {
        let eligible = || {
            self.slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| count(slot))
        };
        let found = match newest {
            true => eligible().max_by_key(|(_, slot)| slot.used_at),
            false => eligible().min_by_key(|(_, slot)| slot.used_at),
        };
        found.map_or(0, |(at, _)| at)
    }

    /// Number of chaotic slots.
    pub(super) fn chaotic(&self) -> usize {
        self.slots.iter().filter(|slot| slot.chaotic).count()
    }

    /// Time of programming `piece`.
    pub(super) fn program(&self, piece: Piece, scattered: bool) -> u64 {
        let program = &self.rules.program;
        program.units_ns(piece.within, piece.bytes(), piece.order, scattered)
    }

    /// Time of programming `piece` into the shared block.
    pub(super) fn program_shared(&mut self, piece: Piece, stats: &mut Stats) -> u64 {
        let pages = self.rules.pages_behind(0, piece.within, piece.end);
        self.program(piece, false) + self.fill_shared(pages, stats)
    }

    fn fill_shared(&mut self, bytes: u64, stats: &mut Stats) -> u64 {
        let erased = self.shared_fill.program(bytes, stats);
        self.pool.wear(self.shared, erased);
        erased * self.rules.erase_ns
    }

    /// Copies the complete AU once more into a block of its own.
    pub(super) fn fold(&mut self, au: u32, stats: &mut Stats) -> u64 {
        let rate = self.rules.fold_rate.map_or(u64::MAX, NonZeroU64::get);
        let bytes = self.data_bytes(au, 0);
        stats.programmed_bytes += bytes.next_multiple_of(self.rules.page_bytes);
        stats.au_copies += 1;
        let block = self.pool.take();
        span_ns(bytes, rate) + self.switch(au, block, bytes, stats)
    }

    /// Consolidates `count` groups of AUs without an update block.
    pub(super) fn shared_groups_ns(&mut self, count: u64, stats: &mut Stats) -> u64 {
        let bytes = count * self.rules.group_bytes;
        span_ns(bytes, self.rules.group_rate) + self.fill_shared(bytes, stats)
    }

    /// Consolidates the small writes of `au` in the shared area, or all of them.
    pub(super) fn consolidate_shared(&mut self, au: Option<u32>, stats: &mut Stats) -> u64 {
        let gone = self.forget_groups(au);
        match gone {
            0 => 0,
            gone => self.shared_groups_ns(gone, stats),
        }
    }

    /// Takes the groups of `au`, or all of them, out of the shared area, and their share of the
    /// bytes there; returns how many they were.
    pub(super) fn forget_groups(&mut self, au: Option<u32>) -> u64 {
        let before = self.shared_groups.len() as u64;
        if before == 0 {
            return 0;
        }
        match au {
            None => self.shared_groups.clear(),
            Some(au) => self.shared_groups.retain(|(of, _)| *of != au),
        }
        let left = self.shared_groups.len() as u64;
        self.shared_small = self.shared_small * left / before;
        before - left
    }

    /// What consolidating the `groups` of `au` copies, whose small writes fill its area.
    pub(super) fn groups_bytes(&mut self, au: u32, groups: u128) -> u64 {
        let data = self.data_bytes(au, 0);
        let group_bytes = self.rules.group_bytes;
        let mut copied = 0;
        for group in (0..128_u64).filter(|group| groups >> group & 1 == 1) {
            let end = data.min((group + 1) * group_bytes);
            copied += end.saturating_sub(group * group_bytes);
        }
        copied
    }

    /// What `piece` leaves of the groups it touches; `high` bytes of the AU hold data.
    pub(super) fn rest_bytes(&mut self, piece: Piece, high: u64) -> u64 {
        let group_bytes = self.rules.group_bytes;
        let data = self.data_bytes(piece.au, high);
        let start = piece.within / group_bytes * group_bytes;
        let end = data.min(piece.end.next_multiple_of(group_bytes));
        end.saturating_sub(start).saturating_sub(piece.bytes())
    }

    /// Bytes from the beginning of `au` that may hold data, at least `high`.
    fn data_bytes(&mut self, au: u32, high: u64) -> u64 {
        let mother = u64::from(self.filled.read(au as usize)) * self.rules.page_bytes;
        let open = self.slots.iter().find(|slot| slot.au == au);
        mother.max(high).max(open.map_or(0, |slot| slot.high))
    }
}
