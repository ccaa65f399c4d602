//! F2FS: log-structured, made for flash. Sections are made of whole allocation units.

use crate::arguments::{LAB_TIME, join, lab_only, lcm, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, Purpose, Recipe, Unfit, WHY_NOATIME, YEAR_OF_64_BITS,
};
use whichfs_units::{Bytes, MIB, SECTOR};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 110,
    name: "f2fs",
    title: "F2FS",
    facts: Facts {
        min_bytes: 52 * MIB,
        max_file_bytes: 1_057_052_516 * 4096,
        y2038: YEAR_OF_64_BITS,
        unix_permissions: true,
        symlinks: true,
        hard_links: true,
        xattrs: true,
        case_sensitive: true,
        windows: false,
        macos: false,
        read_only: false,
        compression: true,
        snapshots: false,
        crash_class: CrashClass::Log,
        mounts_after_cut: true,
        in_current_linux: true,
        good_for: "flash with a slow card behind it: random writes become sequential",
        kernel_options: &[
            "CONFIG_F2FS_FS",
            "CONFIG_F2FS_FS_XATTR",
            "CONFIG_F2FS_FS_POSIX_ACL",
        ],
        packages: &["f2fs-tools"],
        sources: &[
            (
                "minimum size",
                "mkfs.f2fs 1.15 with our options on images of rising size",
            ),
            (
                "largest file",
                "Linux 6.12 fs/f2fs/super.c, max_file_blocks()",
            ),
            (
                "last year",
                "Linux 6.12 include/linux/f2fs_fs.h, struct f2fs_inode: 64-bit i_mtime",
            ),
            (
                "crash class log",
                "Linux 6.12 Documentation/filesystems/f2fs.rst, Checkpointing",
            ),
            (
                "compression",
                "Linux 6.12 Documentation/filesystems/f2fs.rst, Compression",
            ),
            (
                "permissions, links, xattrs",
                "Linux 6.12 fs/f2fs/Kconfig and f2fs.rst",
            ),
            (
                "U-Boot cannot read it",
                "U-Boot: no fs/f2fs; a kernel must come from elsewhere",
            ),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

/// A segment of F2FS in bytes; fixed by the format.
const SEGMENT: u64 = 2 * MIB;

/// Sections a partition should have. Measured with mkfs.f2fs 1.15: of 85 sections it keeps
/// half in reserve for cleaning, of 128 about a third, of 170 three tenths.
const LEAST_SECTIONS: u64 = 128;

/// Segments of a section: whole AUs, or, on a small partition, the largest part of that which
/// leaves enough sections.
fn segments_per_section(geometry: &Geometry) -> u64 {
    let whole = lcm(geometry.au_bytes, SEGMENT) / SEGMENT;
    let most = geometry.partition_bytes / (LEAST_SECTIONS * SEGMENT);
    (1..=most.min(whole))
        .rev()
        .find(|segments| whole.is_multiple_of(*segments))
        .unwrap_or(1)
}

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let segments = segments_per_section(geometry);
    let section = segments * SEGMENT;
    // mkfs.f2fs 1.15 counts segments behind the last whole section as free, and its own fsck
    // then finds the checkpoint wrong: the filesystem ends with a whole section.
    let sectors = geometry.partition_bytes / section * section / SECTOR;
    let mkfs = join([
        words("mkfs.f2fs -f -q"),
        words(&format!("-s {segments} -t {}", u8::from(geometry.discard))),
        lab_only(purpose, |rng| format!("-r -U {} -T {LAB_TIME}", uuid(rng))),
        words(&format!("{} {sectors}", Recipe::DEVICE)),
    ]);
    Ok(Recipe {
        mkfs: vec![mkfs],
        kernel_fs: "f2fs",
        mount_options: "noatime".to_owned(),
        fsck_check: words("fsck.f2fs --dry-run -f {device}"),
        fsck_repair: words("fsck.f2fs -f -y {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: "noatime".to_owned(),
        fstab_passno: 2,
        tools: vec!["mkfs.f2fs", "fsck.f2fs"],
        tuning: tuning(geometry, segments),
        chosen: &["-s *"],
        ..Recipe::default()
    })
}

fn tuning(geometry: &Geometry, segments: u64) -> Vec<(String, String)> {
    let section = Bytes(segments * SEGMENT);
    let unit = Bytes(geometry.au_bytes);
    let why = if (segments * SEGMENT).is_multiple_of(geometry.au_bytes) {
        format!("the unit of cleaning, {section}, is whole allocation units of {unit}")
    } else {
        format!(
            "sections of whole allocation units ({unit}) would leave fewer than \
             {LEAST_SECTIONS} of them and too much space in reserve; {section} is what fits"
        )
    };
    vec![
        (format!("-s {segments}"), why),
        (
            "size in sectors".to_owned(),
            "the filesystem ends with a whole section; what is behind it stays unused".to_owned(),
        ),
        ("noatime".to_owned(), WHY_NOATIME.to_owned()),
    ]
}
