//! What a defective card does to the requests of its host: it refuses them or gives wrong bytes.
//!
//! Pure: which sectors are bad, and how, comes in; counts of what was done to the host come out.
//! A refused request changes nothing, as a card that answers with an error bit in its status
//! (SD specification 4.10.1, `ERROR`, `CARD_ECC_FAILED`, `WP_VIOLATION`) has done nothing with it.
//!
//! A bad sector is well again once it is written or discarded: a card writes elsewhere and maps
//! its address there. That is what Linux' dm-dust does too (Documentation/admin-guide/
//! device-mapper/dm-dust.rst: a write to a bad block removes it from the list and succeeds). A
//! flipped bit stays through writes: it stands for a path or a cell that the card takes as good.

use std::collections::BTreeMap;
use whichfs_card::RequestKind;
use whichfs_units::SECTOR;

/// Defects of a card, and what they have done so far. Sectors are named by their first byte on
/// the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// What it refuses whatever the place.
    pub refuses: Refuses,
    /// Sectors whose reads fail, until they are written or discarded.
    pub unreadable: BTreeMap<u64, Tries>,
    /// Sectors whose writes fail: a card that finds no block to map such an address to.
    pub unwritable: BTreeMap<u64, Tries>,
    /// Sectors that read with this bit (0 to 4095, counted from the first byte's lowest) flipped.
    pub flipped: BTreeMap<u64, u16>,
    /// Requests that were refused or failed.
    pub failed: u64,
    /// Sectors that were read with a flipped bit.
    pub corrupted: u64,
}

/// What a card refuses whatever the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refuses {
    /// Every request is served.
    #[default]
    Nothing,
    /// Writes and discards.
    Writes,
    /// Reads, writes, discards and flushes.
    All,
}

/// How long requests of a sector fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// Every request of the sector fails.
    Fail,
    /// So many more times.
    FailMore(u32),
}

impl Tries {
    /// Whether the next one fails; it counts.
    fn fails(&mut self) -> bool {
        match self {
            Tries::Fail => true,
            Tries::FailMore(0) => false,
            Tries::FailMore(more) => {
                *more -= 1;
                true
            }
        }
    }
}

impl Defects {
    /// Whether the card does this request; if not, it answers with an error.
    pub fn admits(&mut self, op: RequestKind, offset: u64, bytes: u64) -> bool {
        let refused = match (self.refuses, op) {
            (Refuses::All, _) | (Refuses::Writes, RequestKind::Write | RequestKind::Discard) => {
                true
            }
            (_, RequestKind::Read) => fails(&mut self.unreadable, offset, bytes),
            (_, RequestKind::Write) if fails(&mut self.unwritable, offset, bytes) => true,
            (_, RequestKind::Write | RequestKind::Discard) => {
                self.heal(offset, bytes);
                false
            }
            (_, RequestKind::Flush) => false,
        };
        self.failed += u64::from(refused);
        !refused
    }

    /// Does to `data`, read from `offset`, what the card does.
    pub fn corrupt(&mut self, offset: u64, data: &mut [u8]) {
        let end = offset.saturating_add(data.len() as u64);
        for (&sector, &bit) in self.flipped.range(offset..end) {
            let at = (sector - offset) as usize + usize::from(bit / 8);
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << (bit % 8);
                self.corrupted += 1;
            }
        }
    }

    fn heal(&mut self, offset: u64, bytes: u64) {
        self.unreadable
            .retain(|sector, _| !sectors(offset, bytes).contains(sector));
    }
}

/// Whether a request of this range fails; each of its bad sectors counts that it was tried.
fn fails(bad: &mut BTreeMap<u64, Tries>, offset: u64, bytes: u64) -> bool {
    let mut fails = false;
    for (_, tries) in bad.range_mut(sectors(offset, bytes)) {
        fails |= tries.fails();
    }
    fails
}

/// First bytes of the sectors that a range touches.
fn sectors(offset: u64, bytes: u64) -> std::ops::Range<u64> {
    offset / SECTOR * SECTOR..offset.saturating_add(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(reads: Tries) -> Defects {
        Defects {
            unreadable: [(4096, reads)].into(),
            ..Defects::default()
        }
    }

    #[test]
    fn a_card_at_its_end_reads_and_does_not_write() {
        let mut card = Defects {
            refuses: Refuses::Writes,
            ..Defects::default()
        };
        assert!(card.admits(RequestKind::Read, 0, 4096) && card.admits(RequestKind::Flush, 0, 0));
        assert!(
            !card.admits(RequestKind::Write, 0, 512) && !card.admits(RequestKind::Discard, 0, 512)
        );
        assert_eq!(card.failed, 2);
        card.refuses = Refuses::All;
        assert!(!card.admits(RequestKind::Read, 0, 4096) && !card.admits(RequestKind::Flush, 0, 0));
    }

    #[test]
    fn a_bad_sector_fails_every_read_over_it_until_it_is_written() {
        let mut card = bad(Tries::Fail);
        assert!(
            !card.admits(RequestKind::Read, 0, 8192) && !card.admits(RequestKind::Read, 4096, 512)
        );
        assert!(
            card.admits(RequestKind::Read, 0, 4096) && card.admits(RequestKind::Read, 4608, 512)
        );
        assert!(card.admits(RequestKind::Write, 0, 4096));
        assert!(!card.admits(RequestKind::Read, 4096, 512), "another sector");
        assert!(
            card.admits(RequestKind::Write, 0, 8192) && card.admits(RequestKind::Read, 4096, 512)
        );
        let mut card = bad(Tries::Fail);
        assert!(
            card.admits(RequestKind::Discard, 0, 1 << 20)
                && card.admits(RequestKind::Read, 4096, 512)
        );
    }

    #[test]
    fn a_passing_error_passes() {
        let mut card = bad(Tries::FailMore(2));
        let tries: Vec<bool> = (0..4)
            .map(|_| card.admits(RequestKind::Read, 0, 65536))
            .collect();
        assert_eq!(tries, [false, false, true, true]);
        assert_eq!(card.failed, 2);
    }

    #[test]
    fn a_sector_that_takes_no_writes_can_be_read() {
        let bad = |tries| Defects {
            unwritable: [(4096, tries)].into(),
            ..Defects::default()
        };
        let mut card = bad(Tries::Fail);
        assert!(
            !card.admits(RequestKind::Write, 0, 8192)
                && !card.admits(RequestKind::Write, 4096, 512)
        );
        assert!(
            card.admits(RequestKind::Write, 0, 4096) && card.admits(RequestKind::Read, 0, 8192)
        );
        assert!(
            card.admits(RequestKind::Discard, 0, 8192)
                && !card.admits(RequestKind::Write, 4096, 512)
        );
        assert_eq!(card.failed, 3);
        let mut card = bad(Tries::FailMore(1));
        assert!(
            !card.admits(RequestKind::Write, 0, 8192) && card.admits(RequestKind::Write, 0, 8192)
        );
    }

    #[test]
    fn a_flipped_bit_is_flipped_in_every_read_and_told_by_nobody() {
        let mut card = Defects {
            flipped: [(512, 9)].into(),
            ..Defects::default()
        };
        for offset in [0, 512] {
            let mut data = [0; 1024];
            card.corrupt(offset, &mut data);
            let at = 512 - offset as usize + 1;
            assert_eq!((data[at], data.iter().map(|b| u32::from(*b)).sum()), (2, 2));
        }
        let mut before = [0; 512];
        card.corrupt(0, &mut before);
        assert!(before == [0; 512]);
        assert_eq!((card.corrupted, card.failed), (2, 0));
    }
}
