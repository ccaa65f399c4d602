//! What is known of the card that is laid out: its allocation unit, and how that is known.

use crate::error::LayoutError;
use whichfs_fs::Geometry;
use whichfs_units::{Bytes, GIB, KIB, MIB, SECTOR};

/// The smallest unit that is laid out in: smaller ones are pages, not units that are erased.
const SMALLEST_UNIT: u64 = 64 * KIB;
/// What partitions and the fields of image builders can express.
const GRAIN: u64 = 4 * KIB;
/// A flash page where nothing is known (research/flash.md 1: 16 KiB on most measured cards).
const USUAL_PAGE: u64 = 16 * KIB;
/// What is programmed at once where nothing is known: two planes of two dies.
const USUAL_WRITE_UNIT: u64 = 64 * KIB;

/// An allocation unit and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Size of the allocation unit in bytes.
    pub bytes: u64,
    /// How it is known, in words.
    pub why: String,
}

impl Unit {
    /// A unit that somebody or something says.
    ///
    /// # Errors
    /// If nothing can be laid out in it.
    pub fn new(bytes: u64, why: impl Into<String>) -> Result<Unit, LayoutError> {
        let range = SMALLEST_UNIT..=Geometry::LARGEST_AU_BYTES;
        if !range.contains(&bytes) || !bytes.is_multiple_of(GRAIN) {
            return Err(LayoutError::Unit { bytes });
        }
        Ok(Unit {
            bytes,
            why: why.into(),
        })
    }

    /// What is safe where nothing is known: the boundary unit that the SD Association's formatter
    /// gives a card of this capacity, at least 4 MiB. Every unit that is a power of two and no
    /// larger then begins where a partition does.
    pub fn safe(capacity_bytes: u64) -> Unit {
        // SD File System Specification, Annex C: boundary units by capacity.
        let bytes = match capacity_bytes {
            0..=0x8_0000_0000 => 4 * MIB,
            bytes if bytes <= 128 * GIB => 16 * MIB,
            bytes if bytes <= 512 * GIB => 32 * MIB,
            _ => 64 * MIB,
        };
        Unit {
            bytes,
            why: format!(
                "nothing is known of the card: {} is the boundary unit of the SD Association's \
                 formatter for this capacity, and each smaller power of two fits into it",
                Bytes(bytes)
            ),
        }
    }
}

/// What filesystems are laid out on and tuned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// Its allocation unit.
    pub unit: Unit,
    /// Flash page in bytes.
    pub page_bytes: u64,
    /// What it programs at once, in bytes.
    pub write_unit_bytes: u64,
    /// Whether discard reaches it.
    pub discard: bool,
    /// Whether it has a cache that is flushed.
    pub flush: bool,
    /// Its logical sector in bytes, the unit of its partition table: 512, or 4096 (4Kn).
    pub sector_bytes: u64,
}

impl Medium {
    /// One of which only the unit is known: page and write unit are the usual ones, no larger
    /// than it.
    pub fn of_unit(capacity_bytes: u64, unit: Unit, discard: bool) -> Medium {
        Medium {
            capacity_bytes,
            page_bytes: USUAL_PAGE.min(unit.bytes),
            write_unit_bytes: USUAL_WRITE_UNIT.min(unit.bytes),
            unit,
            discard,
            flush: false,
            sector_bytes: SECTOR,
        }
    }

    /// One that is modelled or was probed; `geometry` is that of any partition on it.
    ///
    /// # Errors
    /// If nothing can be laid out in its unit.
    pub fn of_geometry(
        capacity_bytes: u64,
        geometry: &Geometry,
        why: impl Into<String>,
    ) -> Result<Medium, LayoutError> {
        Ok(Medium {
            capacity_bytes,
            unit: Unit::new(geometry.au_bytes, why)?,
            page_bytes: geometry.page_bytes,
            write_unit_bytes: geometry.write_unit_bytes,
            discard: geometry.discard,
            flush: geometry.flush,
            sector_bytes: SECTOR,
        })
    }

    /// The same with logical sectors of `bytes`.
    pub fn with_sectors(self, bytes: u64) -> Medium {
        Medium {
            sector_bytes: bytes,
            ..self
        }
    }

    /// What a filesystem in a partition of `partition_bytes` is tuned to.
    pub fn geometry(&self, partition_bytes: u64) -> Geometry {
        Geometry {
            partition_bytes,
            page_bytes: self.page_bytes,
            write_unit_bytes: self.write_unit_bytes,
            au_bytes: self.unit.bytes,
            discard: self.discard,
            flush: self.flush,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn units_need_not_be_powers_of_two() {
        for mib in [1, 3, 4, 6, 12, 24, 64] {
            assert_eq!(Unit::new(mib * MIB, "given").unwrap().bytes, mib * MIB);
        }
        assert!(Unit::new(3 * MIB / 2, "given").is_ok());
        for wrong in [0, 512, 4096, 100_000, 65 * MIB, 128 * MIB, u64::MAX] {
            let error = Unit::new(wrong, "given").unwrap_err().to_string();
            assert!(error.contains("such as 4M or 12M"), "{error}");
        }
    }

    #[test]
    fn the_safe_unit_follows_the_capacity_and_says_why() {
        for (gib, mib) in [(1, 4), (32, 4), (33, 16), (128, 16), (256, 32), (1024, 64)] {
            let unit = Unit::safe(gib * GIB);
            assert_eq!(unit.bytes, mib * MIB, "{gib}");
            assert!(unit.why.contains("SD Association"), "{}", unit.why);
        }
    }

    #[test]
    fn usual_figures_stay_within_the_unit() {
        let unit = Unit::new(64 * KIB, "given").unwrap();
        let medium = Medium::of_unit(GIB, unit, false);
        assert!(medium.write_unit_bytes <= 64 * KIB);
        medium.geometry(GIB).check().unwrap();
    }
}
