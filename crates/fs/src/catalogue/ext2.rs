//! ext2 by its own kernel driver: no journal, no extents.

use crate::ext::{Variant, recipe};
use crate::model::{Candidate, CrashClass, Facts};
use whichfs_units::MIB;

const VARIANT: Variant = Variant {
    mke2fs_type: "ext2",
    features: "",
    kernel_fs: "ext2",
    mount_options: "noatime,errors=remount-ro",
};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 10,
    name: "ext2",
    title: "ext2 (its own driver)",
    facts: Facts {
        min_bytes: MIB,
        max_file_bytes: 2_196_873_666_560,
        y2038: 2038,
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
        crash_class: CrashClass::None,
        mounts_after_cut: true,
        in_current_linux: true,
        good_for: "small partitions that are rarely written and always unmounted",
        kernel_options: &[
            "CONFIG_EXT2_FS",
            "CONFIG_EXT2_FS_XATTR",
            "CONFIG_EXT2_FS_POSIX_ACL",
        ],
        packages: &["e2fsprogs"],
        sources: &[
            (
                "minimum size",
                "mke2fs 1.47.0 with our options on a 1 MiB image",
            ),
            (
                "largest file",
                "Linux 6.12 fs/ext2/super.c, ext2_max_size()",
            ),
            (
                "last year",
                "Linux 6.12 fs/ext2/super.c, s_time_max = S32_MAX",
            ),
            (
                "crash class none",
                "Linux 6.12 Documentation/filesystems/ext2.rst, Journaling",
            ),
            (
                "permissions and links",
                "Linux 6.12 Documentation/filesystems/ext2.rst",
            ),
            ("xattrs", "Linux 6.12 fs/ext2/Kconfig, EXT2_FS_XATTR"),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build: |geometry, purpose| recipe(&VARIANT, geometry, purpose),
}];
