//! Translation layers: one file per family behind one enum.
//!
//! A family answers what a write, a discard or an idle spell costs and moves its mapping;
//! bus, read timing, volatile cache and counters of the host's side are not its business.
//! To add a family: its file, a variant here, its name in `profile::Family`, its figures in
//! `figures::SPECS`.

mod fat;
mod log_block;
mod page_map;
mod pool;

use crate::profile::{Family, Profile};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use fat::Fat;
pub(crate) use log_block::{LogBlock, MAX_LOGS};
pub(crate) use page_map::PageMap;

/// An invariant of the mapping that does not hold: a bug of the model, or a corrupt snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the card's map is inconsistent: {0}")]
pub struct Violation(pub String);

/// The translation layer of a card: a family's mapping, and a FAT region where it has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ftl {
    fat: Option<Fat>,
    map: Mapping,
}

/// The mapping of a family.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Mapping {
    LogBlock(LogBlock),
    PageMap(PageMap),
}

impl Ftl {
    pub fn new(profile: &Profile) -> Ftl {
        let map = match profile.family() {
            Family::LogBlock => Mapping::LogBlock(LogBlock::new(profile)),
            Family::PageMap => Mapping::PageMap(PageMap::new(profile)),
        };
        let fat = Fat::new(profile);
        Ftl { fat, map }
    }

    /// Writes and returns the time in nanoseconds that programming, copying and erasing take.
    /// `follows` tells that the write begins where the previous one ended. To the card, a
    /// write that crosses the border of the FAT region is one on each side.
    #[inline]
    pub fn write(&mut self, offset: u64, bytes: u64, follows: bool, stats: &mut Stats) -> u64 {
        let Some(fat) = &mut self.fat else {
            return self.map.write(offset, bytes, follows, stats);
        };
        let mut spent = 0;
        for (inside, part) in parts(offset..offset + bytes, fat.range()) {
            let length = part.end - part.start;
            let follows = follows || part.start > offset;
            spent += match inside {
                true => fat.write(part.start, length, follows, stats),
                false => self.map.write(part.start, length, follows, stats),
            };
        }
        spent
    }

    /// Forgets what it wholly holds of the range; returns the time in nanoseconds. The FAT
    /// region keeps what it has.
    pub fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        let fat = self.fat.as_ref().map_or(0..0, Fat::range);
        parts(offset..offset + bytes, fat)
            .filter(|(inside, _)| !inside)
            .map(|(_, part)| self.map.discard(part.start, part.end - part.start, stats))
            .sum()
    }

    /// Erase count of every physical block; those of the FAT region come last.
    pub fn erase_counts(&self) -> Vec<u32> {
        let mut counts = match &self.map {
            Mapping::LogBlock(map) => map.erase_counts(),
            Mapping::PageMap(map) => map.erase_counts(),
        };
        counts.extend(self.fat.iter().flat_map(Fat::erase_counts));
        counts
    }

    /// Checks every invariant of the mapping; linear in the size of the card.
    pub fn verify(&self) -> Result<(), Violation> {
        self.fat.as_ref().map_or(Ok(()), Fat::verify)?;
        match &self.map {
            Mapping::LogBlock(map) => map.verify(),
            Mapping::PageMap(map) => map.verify(),
        }
    }
}

impl Mapping {
    #[inline]
    fn write(&mut self, offset: u64, bytes: u64, follows: bool, stats: &mut Stats) -> u64 {
        match self {
            Mapping::LogBlock(map) => map.write(offset, bytes, follows, stats),
            Mapping::PageMap(map) => map.write(offset, bytes, follows, stats),
        }
    }

    fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        match self {
            Mapping::LogBlock(map) => map.discard(offset, bytes, stats),
            Mapping::PageMap(map) => map.discard(offset, bytes, stats),
        }
    }
}

/// What of `range` lies before, in (`true`) and behind `fat`, in order, without empty parts.
fn parts(range: Range<u64>, fat: Range<u64>) -> impl Iterator<Item = (bool, Range<u64>)> {
    let before = range.start..range.end.min(fat.start.max(range.start));
    let inside = range.start.max(fat.start)..range.end.min(fat.end);
    let behind = range.start.max(fat.end)..range.end;
    let (before, behind) = match fat.is_empty() {
        true => (range, 0..0),
        false => (before, behind),
    };
    [(false, before), (true, inside), (false, behind)]
        .into_iter()
        .filter(|(_, part)| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cut_at_the_borders_of_the_fat_region() {
        let check = |range, fat, expect: &[(bool, Range<u64>)]| {
            assert_eq!(parts(range, fat).collect::<Vec<_>>(), expect);
        };
        check(0..9, 0..0, &[(false, 0..9)]);
        check(0..9, 4..6, &[(false, 0..4), (true, 4..6), (false, 6..9)]);
        check(5..9, 4..6, &[(true, 5..6), (false, 6..9)]);
        check(0..5, 4..6, &[(false, 0..4), (true, 4..5)]);
        check(0..4, 4..6, &[(false, 0..4)]);
        check(6..9, 4..6, &[(false, 6..9)]);
        check(7..9, 4..6, &[(false, 7..9)]);
        check(0..9, 0..4, &[(true, 0..4), (false, 4..9)]);
    }
}
