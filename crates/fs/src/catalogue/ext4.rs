//! ext4: extents, delayed allocation and a journal of metadata (`data=ordered`).

use crate::ext::{Variant, recipe};
use crate::model::TIB;
use crate::model::{Candidate, CrashClass, Facts};
use whichfs_units::MIB;

const VARIANT: Variant = Variant {
    mke2fs_type: "ext4",
    features: "",
    kernel_fs: "ext4",
    mount_options: "noatime,errors=remount-ro",
};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 30,
    name: "ext4",
    title: "ext4",
    facts: FACTS,
    build: |geometry, purpose| recipe(&VARIANT, geometry, purpose),
}];

/// Facts of ext4, with its journal.
pub(crate) const FACTS: Facts = Facts {
    min_bytes: 8 * MIB,
    max_file_bytes: 16 * TIB - 4096,
    y2038: 2446,
    unix_permissions: true,
    symlinks: true,
    hard_links: true,
    xattrs: true,
    case_sensitive: true,
    windows: false,
    macos: false,
    read_only: false,
    compression: false,
    snapshots: false,
    crash_class: CrashClass::Journaled,
    mounts_after_cut: true,
    in_current_linux: true,
    good_for: "a root filesystem that is written, with the tools every system has",
    kernel_options: &["CONFIG_EXT4_FS", "CONFIG_EXT4_FS_POSIX_ACL"],
    packages: &["e2fsprogs"],
    sources: &[
        (
            "minimum size",
            "mke2fs 1.47.0 with our options: below it there is no journal",
        ),
        (
            "largest file",
            "Linux 6.12 Documentation/filesystems/ext4/blocks.rst, 4 KiB blocks",
        ),
        (
            "last year",
            "Linux 6.12 Documentation/filesystems/ext4/inodes.rst, Inode Timestamps",
        ),
        (
            "crash class journaled",
            "Linux 6.12 Documentation/filesystems/ext4/journal.rst",
        ),
        (
            "permissions and links",
            "Linux 6.12 Documentation/filesystems/ext4/inodes.rst",
        ),
        (
            "xattrs",
            "Linux 6.12 Documentation/filesystems/ext4/attributes.rst",
        ),
        ("Windows and macOS", crate::model::NOT_LISTED),
    ],
};
