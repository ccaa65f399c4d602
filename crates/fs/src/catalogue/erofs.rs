//! EROFS: a read-only image made for random reads; plain or compressed in small clusters.

use crate::arguments::{LAB_TIME, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, ImageBuild, LARGEST_LOFF, Purpose, Recipe, Unfit, YEAR_OF_64_BITS,
};
use std::collections::BTreeMap;
use whichfs_units::{KIB, Rng};

pub(super) const CANDIDATES: &[Candidate] = &[PLAIN, LZ4HC];

/// EROFS without compression.
const PLAIN: Candidate = Candidate {
    rank: 180,
    name: "erofs",
    title: "EROFS, uncompressed",
    facts: Facts {
        compression: false,
        good_for: "read-only systems whose card is large enough: no unpacking at all",
        kernel_options: &["CONFIG_EROFS_FS", "CONFIG_EROFS_FS_XATTR"],
        ..FACTS
    },
    build: |_, purpose| {
        let why = "data are read from the card as they are: one read, no unpacking";
        build("", ("no compression".to_owned(), why.to_owned()), purpose)
    },
};
/// EROFS compressed with lz4hc.
const LZ4HC: Candidate = Candidate {
    rank: 190,
    name: "erofs-lz4hc",
    title: "EROFS, lz4hc",
    facts: Facts {
        compression: true,
        good_for: "read-only systems that read at random: cheap to unpack, small clusters",
        kernel_options: &[
            "CONFIG_EROFS_FS",
            "CONFIG_EROFS_FS_XATTR",
            "CONFIG_EROFS_FS_ZIP",
        ],
        ..FACTS
    },
    build: |geometry, purpose| {
        let cluster = geometry
            .page_bytes
            .next_power_of_two()
            .clamp(4 * KIB, 64 * KIB);
        let why = "the unit of compression is a flash page: less costs the card the same";
        let flags = format!("-zlz4hc,12 -C{cluster}");
        build(&flags, (format!("-C{cluster}"), why.to_owned()), purpose)
    },
};

const FACTS: Facts = Facts {
    min_bytes: 64 * KIB,
    max_file_bytes: LARGEST_LOFF,
    y2038: YEAR_OF_64_BITS,
    unix_permissions: true,
    symlinks: true,
    hard_links: true,
    xattrs: true,
    case_sensitive: true,
    windows: false,
    macos: false,
    read_only: true,
    compression: false,
    snapshots: false,
    // Never written, so a power cut finds nothing half done: the image is always old or new.
    crash_class: CrashClass::Cow,
    mounts_after_cut: true,
    in_current_linux: true,
    good_for: "",
    kernel_options: &[],
    packages: &["erofs-utils"],
    sources: &[
        (
            "minimum size",
            "mkfs.erofs 1.5: an image is whole blocks of 4 KiB",
        ),
        (
            "largest file",
            "Linux 6.12 fs/erofs/super.c, s_maxbytes = MAX_LFS_FILESIZE",
        ),
        ("read-only", "Linux 6.12 fs/erofs/super.c: SB_RDONLY"),
        ("last year", "Linux 6.12 fs/erofs/erofs_fs.h: 64-bit times"),
        (
            "crash class",
            "Linux 6.12 Documentation/filesystems/erofs.rst: read-only",
        ),
        (
            "permissions, links, xattrs",
            "Linux 6.12 Documentation/filesystems/erofs.rst",
        ),
        (
            "compression",
            "Linux 6.12 Documentation/filesystems/erofs.rst",
        ),
        ("Windows and macOS", crate::model::NOT_LISTED),
    ],
};

fn build(compression: &str, why: (String, String), purpose: Purpose) -> Result<Recipe, Unfit> {
    // The identifier is always fixed. A user's files keep their owners and times; those of a
    // trial are the same in each.
    let (seed, times, owners) = match purpose {
        Purpose::Lab { seed } => (seed, format!(" -T{LAB_TIME}"), " --all-root"),
        Purpose::User => (0, String::new(), ""),
    };
    let id = uuid(&mut Rng::named(seed, "filesystem identifiers"));
    let argv = format!(
        "mkfs.erofs {compression} --quiet{times} -U{id}{owners} {} {}",
        ImageBuild::IMAGE,
        ImageBuild::TREE
    );
    Ok(Recipe {
        kernel_fs: "erofs",
        mount_options: "ro".to_owned(),
        fsck_check: words("fsck.erofs {device}"),
        fsck_repair: Vec::new(),
        fsck_rescue: Vec::new(),
        fstab_options: "ro".to_owned(),
        fstab_passno: 0,
        tools: vec!["mkfs.erofs", "fsck.erofs"],
        tuning: vec![why],
        image: Some(ImageBuild {
            argv: words(&argv),
            env: BTreeMap::new(),
        }),
        chosen: &["-C*"],
        ..Recipe::default()
    })
}
