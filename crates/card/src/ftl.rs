//! The translation layer of a card: a family's mapping behind what all families have alike, which
//! is the FAT region, the cost of discards, and what a card that lies about its size does.

mod fat;

use crate::families::Mapping;
use crate::flash::{OpenAus, Order, Violation};
use crate::profile::Profile;
use crate::stats::Stats;
use fat::Fat;
use std::ops::Range;

/// The translation layer of a card: a family's mapping, and a FAT region where it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ftl {
    fat: Option<Fat>,
    map: Mapping,
    flash_bytes: u64,
    vanish: bool,
    discard: DiscardRules,
}

/// What a discard costs, in nanoseconds and bytes.
#[derive(Clone, Debug, PartialEq)]
struct DiscardRules {
    au_bytes: u64,
    granularity_bytes: u64,
    au_ns: u64,
    partial_au_ns: u64,
}

impl Ftl {
    pub fn new(profile: &Profile) -> Ftl {
        let discard = DiscardRules {
            au_bytes: profile.au_bytes(),
            granularity_bytes: profile.discard.granularity_bytes.value,
            au_ns: profile.discard.au_us.nanos(),
            partial_au_ns: profile.discard.partial_au_us.nanos(),
        };
        Ftl {
            fat: Fat::new(profile),
            map: Mapping::new(profile, profile.own()),
            flash_bytes: profile.flash_bytes(),
            vanish: profile.layout().vanish,
            discard,
        }
    }

    /// Writes and returns the time in nanoseconds that programming, copying and erasing take.
    /// To the card, a write that crosses the border of the FAT region is one on each side.
    #[inline]
    pub fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        if offset + bytes > self.flash_bytes {
            return self.write_beyond(offset, bytes, order, stats);
        }
        match &self.fat {
            None => self.map.write(offset, bytes, order, stats),
            Some(_) => self.write_around_fat(offset, bytes, order, stats),
        }
    }

    fn write_around_fat(
        &mut self,
        offset: u64,
        bytes: u64,
        order: Order,
        stats: &mut Stats,
    ) -> u64 {
        let mut spent = 0;
        let region = self.fat.as_ref().map_or(0..0, Fat::range);
        for (inside, part) in parts(offset..offset + bytes, region) {
            let length = part.end - part.start;
            let order = order.next_part(part.start > offset);
            spent += match &mut self.fat {
                Some(fat) if inside => fat.write(part.start, length, order, stats),
                _ => self.map.write(part.start, length, order, stats),
            };
        }
        spent
    }

    /// A card that lies about its size takes as long for what it does not have: the address
    /// wraps in the controller, whether or not the data are kept.
    #[cold]
    fn write_beyond(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        for (at, length) in wrapped(offset, bytes, self.flash_bytes) {
            spent += self.write(at, length, order, stats);
        }
        spent
    }

    /// The card is idle for `ns`; families that work meanwhile do.
    #[inline]
    pub fn idle(&mut self, ns: u64, stats: &mut Stats) {
        self.map.idle(ns, stats);
    }

    /// Forgets what it wholly holds of the range, in steps of the granularity; returns the
    /// time in nanoseconds: `discard.au_us` for each AU covered wholly and
    /// `discard.partial_au_us` for each covered in part [SD124, SD125], beside what the
    /// family erases at once. The FAT region keeps what it has.
    pub fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        for (at, length) in wrapped(offset, bytes, self.flash_bytes) {
            if self.vanish && offset + bytes > self.flash_bytes && at < offset {
                continue;
            }
            spent += self.discard.time_ns(at, at + length, self.flash_bytes);
            let range = self.discard.covered(at, at + length, self.flash_bytes);
            let fat = self.fat.as_ref().map_or(0..0, Fat::range);
            spent += parts(range, fat)
                .filter(|(inside, _)| !inside)
                .map(|(_, part)| self.map.discard(part.start, part.end - part.start, stats))
                .sum::<u64>();
        }
        spent
    }

    /// AUs that are open now, of how many that can be; `None` where the family has no such limit.
    pub fn open_aus(&self) -> Option<OpenAus> {
        self.map.open_aus()
    }

    /// Erase count of every physical block; those of the FAT region come last.
    pub fn erase_counts(&self) -> Vec<u32> {
        let mut counts = self.map.erase_counts();
        counts.extend(self.fat.iter().flat_map(Fat::erase_counts));
        counts
    }

    /// Checks every invariant of the mapping; linear in the size of the card.
    pub fn verify(&self) -> Result<(), Violation> {
        self.fat.as_ref().map_or(Ok(()), Fat::verify)?;
        self.map.verify()
    }
}

impl DiscardRules {
    /// Time for the AUs of `start..end`; the card's end counts as the end of an AU.
    fn time_ns(&self, start: u64, end: u64, card_bytes: u64) -> u64 {
        let au = self.au_bytes;
        let end = if end == card_bytes {
            end.next_multiple_of(au)
        } else {
            end
        };
        let touched = end.div_ceil(au) - start / au;
        let whole = (end / au).saturating_sub(start.div_ceil(au));
        whole * self.au_ns + (touched - whole) * self.partial_au_ns
    }

    /// What is forgotten of `start..end`.
    fn covered(&self, start: u64, end: u64, card_bytes: u64) -> Range<u64> {
        let step = self.granularity_bytes;
        let start = start.next_multiple_of(step);
        let end = if end == card_bytes {
            end
        } else {
            end / step * step
        };
        start..end.max(start)
    }
}

/// The pieces of a request on a card of `real` bytes: addresses beyond wrap around.
fn wrapped(offset: u64, bytes: u64, real: u64) -> impl Iterator<Item = (u64, u64)> {
    let (mut at, end) = (offset, offset + bytes);
    std::iter::from_fn(move || {
        let place = at % real;
        let length = (end - at).min(real - place);
        at += length;
        (length > 0).then_some((place, length))
    })
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
    fn aus_covered_wholly_and_in_part_are_counted() {
        let rules = DiscardRules {
            au_bytes: 100,
            granularity_bytes: 10,
            au_ns: 1000,
            partial_au_ns: 1,
        };
        let ns = |start, end| rules.time_ns(start, end, 950);
        assert_eq!([ns(0, 100), ns(0, 99), ns(50, 60)], [1000, 1, 1]);
        assert_eq!([ns(50, 250), ns(99, 101), ns(850, 950)], [1002, 2, 1001]);
        assert_eq!(rules.covered(5, 38, 950), 10..30);
        assert_eq!(rules.covered(941, 950, 950), 950..950);
        assert_eq!(rules.covered(3, 8, 950), 10..10);
    }

    #[test]
    fn addresses_beyond_the_flash_wrap() {
        let pieces = |offset, bytes| wrapped(offset, bytes, 100).collect::<Vec<_>>();
        assert_eq!(pieces(20, 30), [(20, 30)]);
        assert_eq!(pieces(250, 30), [(50, 30)]);
        assert_eq!(pieces(90, 130), [(90, 10), (0, 100), (0, 20)]);
    }

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
