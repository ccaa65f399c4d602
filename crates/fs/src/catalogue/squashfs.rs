//! squashfs: a compressed image that is built once and only read.

use crate::arguments::{LAB_TIME, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, ImageBuild, LARGEST_LOFF, Purpose, Recipe, Unfit,
};
use std::collections::BTreeMap;
use whichfs_units::KIB;

pub(super) const CANDIDATES: &[Candidate] = &[LZO, XZ, ZSTD];

const fn candidate(
    rank: u16,
    name: &'static str,
    title: &'static str,
    kernel_options: &'static [&'static str],
    good_for: &'static str,
    build: fn(&Geometry, Purpose) -> Result<Recipe, Unfit>,
) -> Candidate {
    Candidate {
        rank,
        name,
        title,
        facts: Facts {
            kernel_options,
            good_for,
            ..FACTS
        },
        build,
    }
}

/// squashfs compressed with lzo.
const LZO: Candidate = candidate(
    150,
    "squashfs-lzo",
    "squashfs, lzo",
    &[
        "CONFIG_SQUASHFS",
        "CONFIG_SQUASHFS_XATTR",
        "CONFIG_SQUASHFS_LZO",
    ],
    "read-only systems on slow processors",
    |_, purpose| build("lzo", purpose),
);
/// squashfs compressed with xz.
const XZ: Candidate = candidate(
    160,
    "squashfs-xz",
    "squashfs, xz",
    &[
        "CONFIG_SQUASHFS",
        "CONFIG_SQUASHFS_XATTR",
        "CONFIG_SQUASHFS_XZ",
    ],
    "the smallest read-only image, where the processor is fast and the card is not",
    |_, purpose| build("xz", purpose),
);
/// squashfs compressed with zstd.
const ZSTD: Candidate = candidate(
    170,
    "squashfs-zstd",
    "squashfs, zstd",
    &[
        "CONFIG_SQUASHFS",
        "CONFIG_SQUASHFS_XATTR",
        "CONFIG_SQUASHFS_ZSTD",
    ],
    "read-only systems: nearly as small as xz, far cheaper to read",
    |_, purpose| build("zstd", purpose),
);

const FACTS: Facts = Facts {
    min_bytes: 64 * KIB,
    max_file_bytes: LARGEST_LOFF,
    y2038: 2106,
    unix_permissions: true,
    symlinks: true,
    hard_links: true,
    xattrs: true,
    case_sensitive: true,
    windows: false,
    macos: false,
    read_only: true,
    compression: true,
    snapshots: false,
    // Never written, so a power cut finds nothing half done: the image is always old or new.
    crash_class: CrashClass::Cow,
    mounts_after_cut: true,
    in_current_linux: true,
    good_for: "",
    kernel_options: &[],
    packages: &["squashfs-tools"],
    sources: &[
        (
            "minimum size",
            "mksquashfs 4.5.1: an image is padded to 4 KiB",
        ),
        (
            "largest file",
            "Linux 6.12 fs/squashfs/super.c, s_maxbytes = MAX_LFS_FILESIZE",
        ),
        (
            "last year",
            "Linux 6.12 fs/squashfs/squashfs_fs.h: mtime has 32 bits without sign",
        ),
        (
            "crash class",
            "Linux 6.12 Documentation/filesystems/squashfs.rst: read-only",
        ),
        (
            "permissions, links, xattrs",
            "Linux 6.12 Documentation/filesystems/squashfs.rst",
        ),
        ("read-only", "Linux 6.12 fs/squashfs/super.c: SB_RDONLY"),
        ("compression", "Linux 6.12 fs/squashfs/Kconfig"),
        ("Windows and macOS", crate::model::NOT_LISTED),
    ],
};

/// Block in bytes: mksquashfs' default.
const BLOCK: u64 = 128 * KIB;

fn build(compressor: &str, purpose: Purpose) -> Result<Recipe, Unfit> {
    // A user's files keep their owners and times; those of a trial are the same in each.
    let (owners, times) = match purpose {
        Purpose::User => ("", String::new()),
        Purpose::Lab { .. } => (
            "-all-root ",
            format!(" -mkfs-time {LAB_TIME} -all-time {LAB_TIME} -processors 1"),
        ),
    };
    let argv = format!(
        "mksquashfs {} {} -noappend -no-progress -quiet -comp {compressor} -b {BLOCK} \
         {owners}-no-exports{times}",
        ImageBuild::TREE,
        ImageBuild::IMAGE
    );
    Ok(Recipe {
        kernel_fs: "squashfs",
        mount_options: "ro".to_owned(),
        fsck_check: words("unsquashfs -stat {device}"),
        fsck_repair: Vec::new(),
        fsck_rescue: Vec::new(),
        fstab_options: "ro".to_owned(),
        fstab_passno: 0,
        tools: vec!["mksquashfs", "unsquashfs"],
        tuning: vec![(
            format!("-b {BLOCK}"),
            "one block is read and unpacked for any byte in it".to_owned(),
        )],
        image: Some(ImageBuild {
            argv: words(&argv),
            env: BTreeMap::new(),
        }),
        chosen: &["-b *"],
        ..Recipe::default()
    })
}
