//! Superblocks, one function a format. Offsets are from the headers of Linux 6.12 (fs/ext4/ext4.h,
//! include/linux/f2fs_fs.h, fs/xfs/libxfs/xfs_format.h, include/uapi/linux/msdos_fs.h,
//! fs/exfat/exfat_raw.h, fs/ntfs3/ntfs.h, include/uapi/linux/btrfs_tree.h,
//! include/uapi/linux/nilfs2_ondisk.h, fs/reiserfs/reiserfs.h, fs/jfs/jfs_superblock.h,
//! fs/squashfs/squashfs_fs.h, fs/erofs/erofs_fs.h).

use super::{Superblock, SuperblockFigure};
use crate::table::{le16, le32, le64, utf16};

type Format = fn(&[u8]) -> Option<Superblock>;

/// All formats; those with a long signature first.
pub(super) const ALL: [Format; 12] = [
    btrfs, xfs, squashfs, erofs, f2fs, exfat, ntfs, jfs, reiserfs, ext, nilfs2, fat,
];

fn be32(bytes: &[u8], at: usize) -> u64 {
    let at = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    u64::from(at.map_or(0, u32::from_be_bytes))
}

fn be64(bytes: &[u8], at: usize) -> u64 {
    be32(bytes, at) << 32 | be32(bytes, at + 4)
}

/// Two to the power of `log`, if that is a size a filesystem may have.
fn power(log: u64) -> Option<u64> {
    (log <= 32).then(|| 1 << log)
}

fn ext(head: &[u8]) -> Option<Superblock> {
    let sb = &head[1024..2048];
    if le16(sb, 56) != 0xef53 {
        return None;
    }
    let (journal, extents) = (le32(sb, 92) & 4 != 0, le32(sb, 96) & 0x40 != 0);
    let candidate = match (journal, extents) {
        (true, true) => "ext4",
        (false, true) => "ext4-nojournal",
        (true, false) => "ext3",
        (false, false) => "ext2",
    };
    let block = power(le32(sb, 24).checked_add(10)?)?;
    Some(Superblock::new(
        candidate,
        &sb[120..136],
        [
            (SuperblockFigure::BlockBytes, block),
            (SuperblockFigure::Stride, le16(sb, 356)),
            (SuperblockFigure::StripeWidth, le32(sb, 368)),
            (SuperblockFigure::Bytes, le32(sb, 4).saturating_mul(block)),
        ],
    ))
}

fn f2fs(head: &[u8]) -> Option<Superblock> {
    let sb = &head[1024..4096];
    if le32(sb, 0) != 0xf2f5_2010 {
        return None;
    }
    let block = power(le32(sb, 16))?;
    Some(Superblock::new(
        "f2fs",
        utf16(&sb[124..1148]).as_bytes(),
        [
            (SuperblockFigure::BlockBytes, block),
            (SuperblockFigure::SegmentsPerSection, le32(sb, 24)),
            (
                SuperblockFigure::DataOffset,
                le32(sb, 92).saturating_mul(block),
            ),
            (SuperblockFigure::Bytes, le64(sb, 36).saturating_mul(block)),
        ],
    ))
}

fn xfs(head: &[u8]) -> Option<Superblock> {
    if &head[..4] != b"XFSB" {
        return None;
    }
    let block = be32(head, 4);
    Some(Superblock::new(
        "xfs",
        &head[108..120],
        [
            (SuperblockFigure::BlockBytes, block),
            (
                SuperblockFigure::StripeUnitBytes,
                be32(head, 184).saturating_mul(block),
            ),
            (
                SuperblockFigure::StripeBytes,
                be32(head, 188).saturating_mul(block),
            ),
            (
                SuperblockFigure::GroupBytes,
                be32(head, 84).saturating_mul(block),
            ),
            (SuperblockFigure::Bytes, be64(head, 8).saturating_mul(block)),
        ],
    ))
}

fn fat(head: &[u8]) -> Option<Superblock> {
    let (sector, cluster, reserved) = (le16(head, 11), u64::from(head[13]), le16(head, 14));
    let tables = u64::from(head[16]);
    let legal = [512, 1024, 2048, 4096].contains(&sector) && cluster.is_power_of_two();
    if head[510..512] != [0x55, 0xaa] || !legal || reserved == 0 || !(1..=2).contains(&tables) {
        return None;
    }
    let pick = |short: u64, long: u64| if short == 0 { long } else { short };
    let table = pick(le16(head, 22), le32(head, 36));
    let total = pick(le16(head, 19), le32(head, 32));
    let root = (le16(head, 17) * 32).div_ceil(sector);
    let data = reserved + tables * table + root;
    let clusters = total.checked_sub(data)? / cluster;
    // By this number alone readers tell the widths apart (Microsoft FAT specification).
    let (bits, label) = match clusters {
        0..4085 => (12, 43),
        4085..65525 => (16, 43),
        _ => (32, 71),
    };
    let label = match &head[label..label + 11] {
        b"NO NAME    " => &[],
        label => label,
    };
    Some(Superblock::new(
        "vfat",
        label,
        [
            (SuperblockFigure::ReservedSectors, reserved),
            (SuperblockFigure::ClusterBytes, cluster * sector),
            (SuperblockFigure::FatBits, bits),
            (SuperblockFigure::DataOffset, data * sector),
            (SuperblockFigure::Bytes, total * sector),
        ],
    ))
}

fn exfat(head: &[u8]) -> Option<Superblock> {
    if &head[3..11] != b"EXFAT   " {
        return None;
    }
    let sector = power(u64::from(head[108]))?;
    let cluster = power(u64::from(head[108]) + u64::from(head[109]))?;
    Some(Superblock::new(
        "exfat",
        &[],
        [
            (SuperblockFigure::ClusterBytes, cluster),
            (
                SuperblockFigure::DataOffset,
                le32(head, 88).saturating_mul(sector),
            ),
            (
                SuperblockFigure::Bytes,
                le64(head, 72).saturating_mul(sector),
            ),
        ],
    ))
}

fn ntfs(head: &[u8]) -> Option<Superblock> {
    if &head[3..11] != b"NTFS    " {
        return None;
    }
    let sectors = match u64::from(head[13]) {
        log @ 0x81.. => power(256 - log)?,
        sectors => sectors,
    };
    let sector = le16(head, 11);
    Some(Superblock::new(
        "ntfs3",
        &[],
        [
            (SuperblockFigure::ClusterBytes, sectors * sector),
            (
                SuperblockFigure::Bytes,
                le64(head, 40).saturating_mul(sector),
            ),
        ],
    ))
}

fn btrfs(head: &[u8]) -> Option<Superblock> {
    let sb = &head[65536..65536 + 4096];
    (&sb[64..72] == b"_BHRfS_M").then(|| {
        Superblock::new(
            "btrfs",
            &sb[0x12b..0x22b],
            [
                (SuperblockFigure::BlockBytes, le32(sb, 0x90)),
                (SuperblockFigure::Bytes, le64(sb, 0x70)),
            ],
        )
    })
}

fn nilfs2(head: &[u8]) -> Option<Superblock> {
    let sb = &head[1024..2048];
    if le16(sb, 6) != 0x3434 {
        return None;
    }
    let block = power(le32(sb, 20).checked_add(10)?)?;
    Some(Superblock::new(
        "nilfs2",
        &sb[168..248],
        [
            (SuperblockFigure::BlockBytes, block),
            (SuperblockFigure::BlocksPerSegment, le32(sb, 48)),
            (SuperblockFigure::Bytes, le64(sb, 32)),
        ],
    ))
}

fn reiserfs(head: &[u8]) -> Option<Superblock> {
    let sb = &head[65536..65536 + 204];
    let block = le16(sb, 44);
    (&sb[52..61] == b"ReIsEr2Fs").then(|| {
        Superblock::new(
            "reiserfs",
            &sb[100..116],
            [
                (SuperblockFigure::BlockBytes, block),
                (SuperblockFigure::Bytes, le32(sb, 0).saturating_mul(block)),
            ],
        )
    })
}

fn jfs(head: &[u8]) -> Option<Superblock> {
    let sb = &head[32768..32768 + 184];
    (&sb[..4] == b"JFS1").then(|| {
        Superblock::new(
            "jfs",
            &sb[152..168],
            [(SuperblockFigure::BlockBytes, le32(sb, 16))],
        )
    })
}

fn squashfs(head: &[u8]) -> Option<Superblock> {
    if &head[..4] != b"hsqs" {
        return None;
    }
    let candidate = match le16(head, 20) {
        3 => "squashfs-lzo",
        4 => "squashfs-xz",
        _ => "squashfs-zstd",
    };
    let figures = [
        (SuperblockFigure::BlockBytes, le32(head, 12)),
        (SuperblockFigure::Bytes, le64(head, 40)),
    ];
    Some(Superblock::new(candidate, &[], figures))
}

fn erofs(head: &[u8]) -> Option<Superblock> {
    let sb = &head[1024..1152];
    if le32(sb, 0) != 0xe0f5_e1e2 {
        return None;
    }
    let candidate = if le32(sb, 80) & 1 == 1 {
        "erofs-lz4hc"
    } else {
        "erofs"
    };
    let block = power(u64::from(sb[12]))?;
    let figures = [
        (SuperblockFigure::BlockBytes, block),
        (SuperblockFigure::Bytes, le32(sb, 36).saturating_mul(block)),
    ];
    Some(Superblock::new(candidate, &sb[64..80], figures))
}
