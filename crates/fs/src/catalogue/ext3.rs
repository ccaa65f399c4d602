//! ext3 by ext4's kernel driver: block maps and a journal.

use crate::ext::{Variant, recipe};
use crate::model::{Candidate, CrashClass, Facts};
use whichfs_units::MIB;

const VARIANT: Variant = Variant {
    mke2fs_type: "ext3",
    features: "",
    kernel_fs: "ext3",
    mount_options: "noatime,errors=remount-ro",
};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 20,
    name: "ext3",
    title: "ext3 (by ext4's driver)",
    facts: Facts {
        min_bytes: 8 * MIB,
        max_file_bytes: 2_196_873_666_560,
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
        good_for: "systems that must be read by kernels before 2.6.28",
        // CONFIG_EXT3_FS only selects CONFIG_EXT4_FS, which registers ext3 (fs/ext4/super.c).
        kernel_options: &["CONFIG_EXT4_FS", "CONFIG_EXT4_FS_POSIX_ACL"],
        packages: &["e2fsprogs"],
        sources: &[
            (
                "minimum size",
                "mke2fs 1.47.0 with our options: below it there is no journal",
            ),
            (
                "largest file",
                "Linux 6.12 fs/ext4/super.c, ext4_max_bitmap_size()",
            ),
            (
                "last year",
                "Linux 6.12 fs/ext4/super.c: EXT4_EXTRA_TIMESTAMP_MAX, 256-byte inodes",
            ),
            (
                "crash class journaled",
                "Linux 6.12 Documentation/filesystems/ext3.rst",
            ),
            (
                "permissions and links",
                "Linux 6.12 Documentation/filesystems/ext2.rst",
            ),
            ("xattrs", "Linux 6.12 fs/ext4/xattr.c"),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build: |geometry, purpose| recipe(&VARIANT, geometry, purpose),
}];
