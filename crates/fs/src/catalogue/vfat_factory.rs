//! FAT as a card leaves the factory: laid out as the SD Association's formatter does.
//!
//! The boundary unit and the cluster follow from the capacity alone (SD Specifications Part 2,
//! File System, Annex C: Format Parameter Recommendations), whatever AU the card really has.
//! One departure: on FAT16 the specification pads before the partition; ours begins where the
//! geometry says, so the padding is in the reserved sectors, as the specification has it on
//! FAT32. Smaller cards would get FAT12 and are left out.

use super::vfat;
use crate::fat_layout::{SECTOR, Width, aligned};
use crate::model::{Candidate, Facts, Geometry, Purpose, Recipe, Unfit};
use whichfs_units::{Bytes, GIB, MIB};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 60,
    name: "vfat-factory",
    title: "FAT (as the SD Association's formatter)",
    facts: Facts {
        min_bytes: 64 * MIB,
        sources: &[
            ("minimum size", SOURCE),
            ("layout", SOURCE),
            (
                "largest file",
                "Linux 6.12 fs/fat/inode.c, s_maxbytes = 0xffffffff",
            ),
            (
                "last year",
                "Linux 6.12 fs/fat/inode.c, s_time_max from FAT_DATE_MAX (2107)",
            ),
            (
                "crash class none",
                "Microsoft FAT specification: two tables, no journal",
            ),
            (
                "permissions, links, xattrs absent",
                "Microsoft FAT specification, directory entry",
            ),
            ("case", "Linux 6.12 fs/fat/namei_vfat.c, vfat_ci_dentry_ops"),
            (
                "Windows",
                "Microsoft: file system functionality comparison, FAT32",
            ),
            (
                "macOS",
                "Apple: file system formats available in Disk Utility",
            ),
        ],
        good_for: "cards for cameras and other devices, as they come out of the packet",
        ..vfat::FACTS
    },
    build,
}];

/// Where the layout table comes from.
const SOURCE: &str = "SD Specifications Part 2 File System Specification, Annex C; the same \
                      table in profi200/sdFormatLinux source/format.cpp and its boundary units \
                      in greiman/SdFat FatFormatter.cpp";

/// A line of the specification's table: cards up to `capacity` bytes.
struct Row {
    capacity: u64,
    width: Width,
    cluster_sectors: u64,
    boundary_sectors: u64,
}

/// The specification's table for FAT16 and FAT32; larger cards get exFAT, smaller ones FAT12.
const TABLE: [Row; 4] = [
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
