//! Marks: blocks that tell where and when they were written, sector by sector.
//!
//! A sector holds its place, the epoch of its writing, and what only seed, place and epoch
//! produce. So a mark is known for what it is at a wrong place too, and a block that was
//! written in part (power cut) shows in which sectors.

use whichfs_units::{KIB, Rng, SECTOR as SECTOR_BYTES};

/// Size of a marked block.
pub(crate) const BLOCK: u64 = 4 * KIB;
const SECTOR: usize = SECTOR_BYTES as usize;

/// The contents of a mark at `at`.
pub(crate) fn mark(seed: u64, at: u64, epoch: u64) -> Vec<u8> {
    let places = (at..at + BLOCK).step_by(SECTOR);
    places
        .flat_map(|place| sector(seed, place, epoch))
        .collect()
}

/// Place and epoch of the mark that `block` is.
pub(crate) fn read(seed: u64, block: &[u8]) -> Option<(u64, u64)> {
    let (at, epoch) = label(block.get(..SECTOR)?);
    // The first sector tells nearly all that are no marks, without making the rest.
    let is_mark = block[..SECTOR] == sector(seed, at, epoch) && block == mark(seed, at, epoch);
    is_mark.then_some((at, epoch))
}

/// Place and epoch of each sector of `block` that is one of a mark.
pub(crate) fn sectors(seed: u64, block: &[u8]) -> Vec<Option<(u64, u64)>> {
    let told = block.chunks_exact(SECTOR).map(|found| {
        let (place, epoch) = label(found);
        (found == sector(seed, place, epoch)).then_some((place, epoch))
    });
    told.collect()
}

/// Whether any sector of `block` is one of a mark.
pub(crate) fn any(seed: u64, block: &[u8]) -> bool {
    sectors(seed, block).iter().any(Option::is_some)
}

fn sector(seed: u64, place: u64, epoch: u64) -> [u8; SECTOR] {
    let key = seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ epoch.rotate_left(32);
    let mut data = [0; SECTOR];
    Rng::named(key, "capacity mark").fill(&mut data);
    data[..8].copy_from_slice(&place.to_le_bytes());
    data[8..16].copy_from_slice(&epoch.to_le_bytes());
    data
}

/// Place and epoch that a sector claims.
fn label(sector: &[u8]) -> (u64, u64) {
    let word = |from: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&sector[from..from + 8]);
        u64::from_le_bytes(bytes)
    };
    (word(0), word(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_by_place_epoch_and_seed() {
        let block = mark(7, 3 * BLOCK, 2);
        assert_eq!(block.len() as u64, BLOCK);
        assert_eq!(read(7, &block), Some((3 * BLOCK, 2)));
        assert_eq!(read(8, &block), None);
        assert!(!any(8, &block));
        assert_eq!(read(7, &[0; BLOCK as usize]), None);
        assert_eq!(read(7, &[]), None);
    }

    #[test]
    fn a_block_that_was_written_in_part_shows_it() {
        let mut block = vec![0x55; BLOCK as usize];
        assert!(!any(7, &block));
        block[3 * SECTOR..4 * SECTOR].copy_from_slice(&mark(7, 0, 1)[3 * SECTOR..4 * SECTOR]);
        assert!(any(7, &block));
        assert_eq!(read(7, &block), None);
    }
}
