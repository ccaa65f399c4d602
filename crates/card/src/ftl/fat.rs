//! The FAT region: a few AUs near the beginning with a mapping of their own, in any family.
//!
//! **Mechanism.** Cards keep the AUs in which FAT filesystems have their tables mapped by
//! page, so that small scattered writes there cost no merge; written in order they are often
//! slower than the rest (`flash.md` §2.5). Which AUs: the first two on Phison-type cards
//! (WB6: 16 KiB at 4.0 against 10.4 MB/s, WB7, WB10, WB21), three on WB8, only the *second*
//! on SanDisk SU04G and SL08G (where it is faster), the second on a Panasonic [LWNp]. So the
//! region is `fat.aus` AUs from AU `fat.first_au` on.
//!
//! **Cost.** Overhead, whole pages at the region's rate, and for a page covered in part its
//! bytes at that rate and `fat.sub_page_us` (WB21 there: 1 KiB 3.4 ms, 4 KiB 3.9, 8 KiB 4.8,
//! 16 KiB 5.1, 32 KiB 8.4 ms). The region has its own blocks, erased in turn.

use crate::bus::span_ns;
use crate::figures::CardFigures;
use crate::flash::{Fill, Order, Violation};
use crate::stats::Stats;
use std::ops::Range;

/// Parameters, from the profile.
#[derive(Clone, Debug, PartialEq)]
struct Rules {
    start: u64,
    end: u64,
    page_bytes: u64,
    au_bytes: u64,
    overhead_ns: u64,
    rate: u64,
    sub_page_ns: u64,
}

/// State of the region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fat {
    rules: Rules,
    fill: Fill,
    /// The block to be erased next.
    next: u32,
    erases: Vec<u32>,
}

impl Fat {
    /// The region that the profile states, if any.
    pub fn new(card: &CardFigures) -> Option<Fat> {
        let range = card.fat_range();
        if range.is_empty() {
            return None;
        }
        let rules = Rules {
            start: range.start,
            end: range.end,
            au_bytes: card.au_bytes(),
            page_bytes: card.page_bytes(),
            overhead_ns: card.fat.overhead_us.nanos(),
            rate: card.fat.rate_bytes_per_s.value,
            sub_page_ns: card.fat.sub_page_us.nanos(),
        };
        Some(Fat {
            fill: Fill::new(rules.au_bytes),
            rules,
            next: 0,
            erases: vec![0; card.fat_aus() as usize],
        })
    }

    /// Its bytes on the card.
    pub fn range(&self) -> Range<u64> {
        self.rules.start..self.rules.end
    }

    /// A write that lies in the region; returns its time in nanoseconds.
    pub fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        let page = self.rules.page_bytes;
        let touched = (offset + bytes).div_ceil(page) - offset / page;
        let whole = ((offset + bytes) / page).saturating_sub(offset.div_ceil(page));
        for _ in 0..self.fill.program(touched * page, stats) {
            self.erases[self.next as usize] += 1;
            self.next = (self.next + 1) % self.erases.len() as u32;
        }
        let transfer = span_ns(bytes, self.rules.rate);
        if order.joined {
            return transfer;
        }
        self.rules.overhead_ns + transfer + (touched - whole) * self.rules.sub_page_ns
    }

    /// Erase count of each of its blocks.
    pub fn erase_counts(&self) -> &[u32] {
        &self.erases
    }

    /// Its books are those of a region that exists.
    pub fn verify(&self) -> Result<(), Violation> {
        let Rules {
            start,
            end,
            au_bytes,
            ..
        } = self.rules;
        let blocks = self.erases.len() as u64;
        if start >= end || blocks * au_bytes < end - start {
            return Err(Violation(format!("a FAT region of {blocks} blocks")));
        }
        if u64::from(self.next) >= blocks || !self.fill.fits() {
            let (next, fill) = (self.next, &self.fill);
            return Err(Violation(format!("FAT block {next} with {fill:?}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Profile;

    fn region() -> Fat {
        let (name, toml) = crate::builtin()
            .iter()
            .find(|(name, _)| *name == "class10-16gb")
            .unwrap();
        Fat::new(&Profile::parse(name, toml).unwrap()).unwrap()
    }

    #[test]
    fn its_blocks_wear_in_turn() {
        let (mut fat, mut stats) = (region(), Stats::default());
        for page in 0..5 * 256 {
            fat.write(page % 256 * 16_384, 512, Order::default(), &mut stats);
            fat.verify().unwrap();
        }
        assert_eq!((fat.erase_counts(), stats.erases), (&[3, 2][..], 5));
    }

    #[test]
    fn the_checker_finds_planted_faults() {
        let plants: [fn(&mut Fat); 3] = [
            |fat| fat.next = 2,
            |fat| fat.fill.overfill(),
            |fat| fat.erases.truncate(1),
        ];
        for plant in plants {
            let mut fat = region();
            plant(&mut fat);
            assert!(fat.verify().is_err());
        }
    }
}
