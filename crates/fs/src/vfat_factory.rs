//! FAT as a card leaves the factory: laid out as the SD Association's formatter does.
//!
//! The boundary unit and the cluster follow from the capacity alone (SD Specifications Part 2,
//! File System, Annex C: Format Parameter Recommendations), whatever AU the card really has.

use crate::fat_layout::{SECTOR, Width, aligned};
use crate::model::{Candidate, Facts, Geometry, Purpose, Recipe, Unfit};
use crate::vfat;
use whichfs_units::{Bytes, GIB, MIB};

/// FAT, as from the factory.
pub(crate) const VFAT_FACTORY: Candidate = Candidate {
    name: "vfat-factory",
    title: "FAT (as the SD Association's formatter)",
    facts: Facts {
        good_for: "cards for cameras and other devices, as they come out of the packet",
        ..vfat::FACTS
    },
    build,
};

/// Where the layout table comes from.
const SOURCE: &str = "SD Specifications Part 2 File System Specification, Annex C";

/// A line of the specification's table: cards up to `capacity` bytes.
struct Row {
    capacity: u64,
    width: Width,
    cluster_sectors: u64,
    boundary_sectors: u64,
}

/// The specification's table for FAT; larger cards get exFAT.
const TABLE: [Row; 5] = [
    row(64 * MIB, Width::Fat16, 32, 32),
    row(256 * MIB, Width::Fat16, 32, 64),
    row(GIB, Width::Fat16, 32, 128),
    row(2 * GIB, Width::Fat16, 64, 128),
    row(32 * GIB, Width::Fat32, 64, 8192),
];

const fn row(capacity: u64, width: Width, cluster_sectors: u64, boundary_sectors: u64) -> Row {
    Row {
        capacity,
        width,
        cluster_sectors,
        boundary_sectors,
    }
}

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let bytes = geometry.partition_bytes;
    let row = TABLE
        .iter()
        .find(|row| bytes <= row.capacity)
        .ok_or_else(|| Unfit {
            reason: format!(
                "the SD Association's formatter gives cards over 32 GiB exFAT; this has {}",
                Bytes(bytes)
            ),
            source: SOURCE,
        })?;
    let sectors = bytes / SECTOR;
    let layout = aligned(
        row.width,
        sectors,
        row.cluster_sectors,
        row.boundary_sectors,
    );
    let layout = layout.ok_or_else(|| Unfit {
        reason: format!("the factory layout has no room in {}", Bytes(bytes)),
        source: SOURCE,
    })?;
    let tuning = vec![(
        format!("-R {}", layout.reserved),
        format!(
            "the data area begins at {}, a multiple of the boundary unit of {} that the \
             specification gives this capacity",
            Bytes(layout.data * SECTOR),
            Bytes(row.boundary_sectors * SECTOR)
        ),
    )];
    Ok(vfat::recipe(&layout, purpose, tuning))
}
