//! Where mkfs.fat puts things: the arithmetic of FAT, so that data can begin on a boundary.

/// Bytes of a sector, the only size cards have.
pub(crate) const SECTOR: u64 = 512;
/// Copies of the table.
const TABLES: u64 = 2;
/// Root directory of FAT16 in sectors: 512 entries of 32 bytes.
const ROOT_SECTORS: u64 = 32;
/// Largest value of the boot sector's 16-bit count of reserved sectors.
const MOST_RESERVED: u64 = 0xffff;
/// Fewest clusters by which readers know FAT32, and most of FAT16 (Microsoft, FAT specification).
const FAT16_CLUSTERS: std::ops::Range<u64> = 4085..65525;
/// Reserved sectors mkfs.fat and Windows use on FAT32: the backup boot sector is number 6.
const FAT32_RESERVED: u64 = 32;

/// Width of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 16 bits, root directory of fixed size.
    Fat16,
    /// 32 bits, root directory in a cluster.
    Fat32,
}

impl Width {
    /// Number for `mkfs.vfat -F`.
    pub(crate) const fn bits(self) -> u64 {
        match self {
            Width::Fat16 => 16,
            Width::Fat32 => 32,
        }
    }

    const fn root_sectors(self) -> u64 {
        match self {
            Width::Fat16 => ROOT_SECTORS,
            Width::Fat32 => 0,
        }
    }

    const fn least_reserved(self) -> u64 {
        match self {
            Width::Fat16 => 1,
            Width::Fat32 => FAT32_RESERVED,
        }
    }

    fn allows(self, clusters: u64) -> bool {
        match self {
            Width::Fat16 => FAT16_CLUSTERS.contains(&clusters),
            Width::Fat32 => (FAT16_CLUSTERS.end..0x0fff_fff5).contains(&clusters),
        }
    }
}

/// A FAT filesystem laid out; all in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Width of an entry.
    pub width: Width,
    /// Sectors of a cluster.
    pub cluster: u64,
    /// Sectors before the first table.
    pub reserved: u64,
    /// Sectors of one table.
    pub table: u64,
    /// First sector of cluster 2.
    pub data: u64,
}

/// Sectors of one table, as mkfs.fat 4.2 computes them with `-a` (no alignment of its own).
fn table_sectors(width: Width, sectors: u64, cluster: u64, reserved: u64) -> u64 {
    let data = sectors.saturating_sub(reserved + width.root_sectors());
    let entry = width.bits() / 8;
    let clusters = (data * SECTOR + TABLES * 2 * entry) / (cluster * SECTOR + TABLES * entry);
    ((clusters + 2) * entry).div_ceil(SECTOR)
}

/// Lays out a partition of `sectors` so that data begin on a multiple of `boundary` sectors.
///
/// `None` if there is no such layout with this width and cluster.
pub(crate) fn aligned(width: Width, sectors: u64, cluster: u64, boundary: u64) -> Option<Layout> {
    let least = width.least_reserved();
    let root = width.root_sectors();
    let smallest = least + root + TABLES * table_sectors(width, sectors, cluster, least);
    let mut data = smallest.next_multiple_of(boundary);
    while data < sectors {
        // A larger reserve leaves fewer clusters and so a shorter table: look for the length
        // that agrees with the reserve it leaves.
        let longest = table_sectors(width, sectors, cluster, least);
        let shortest = table_sectors(width, sectors, cluster, data);
        for table in shortest..=longest {
            let Some(reserved) = data.checked_sub(root + TABLES * table) else {
                continue;
            };
            let agrees = table_sectors(width, sectors, cluster, reserved) == table;
            if agrees && (least..=MOST_RESERVED).contains(&reserved) {
                let clusters = (sectors - data) / cluster;
                let layout = Layout {
                    width,
                    cluster,
                    reserved,
                    table,
                    data,
                };
                return width.allows(clusters).then_some(layout);
            }
        }
        data += boundary;
        if data > smallest + MOST_RESERVED + boundary {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn data_begin_on_the_boundary_for_every_unit() {
        for mib in [32, 64, 100, 256, 511, 512, 1000, 4096, 32_000, 131_072_u64] {
            for au_kib in [
                512, 1536, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576_u64,
            ] {
                let sectors = mib * 2048;
                let (width, cluster) = match mib {
                    ..=256 => (Width::Fat16, 8),
                    257..512 => (Width::Fat16, 16),
                    _ => (Width::Fat32, 8),
                };
                let Some(layout) = aligned(width, sectors, cluster, au_kib * 2) else {
                    assert!(
                        mib * 1024 < 3 * au_kib,
                        "{mib} MiB with {au_kib} KiB has a layout"
                    );
                    continue;
                };
                assert_eq!(layout.data % (au_kib * 2), 0);
                let root = width.root_sectors();
                assert_eq!(layout.reserved + 2 * layout.table + root, layout.data);
                // Every cluster has its entry.
                let clusters = (sectors - layout.data) / cluster;
                assert!(layout.table * SECTOR >= (clusters + 2) * width.bits() / 8);
            }
        }
    }

    #[test]
    fn a_partition_without_room_for_data_has_no_layout() {
        assert_eq!(aligned(Width::Fat16, 16 * 2048, 16, 24 * 2048), None);
        assert_eq!(
            aligned(Width::Fat32, 64 * 2048, 64, 8192),
            None,
            "too few clusters"
        );
    }
}
