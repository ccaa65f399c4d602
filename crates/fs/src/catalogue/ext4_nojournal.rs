//! ext4 without its journal: fewer writes, and nothing to recover from.

use crate::ext::{Variant, recipe};
use crate::model::{Candidate, CrashClass, Facts};
use whichfs_units::MIB;

const VARIANT: Variant = Variant {
    mke2fs_type: "ext4",
    features: "^has_journal",
    kernel_fs: "ext4",
    mount_options: "noatime,errors=remount-ro",
};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 40,
    name: "ext4-nojournal",
    title: "ext4 without journal",
    facts: Facts {
        min_bytes: MIB,
        crash_class: CrashClass::None,
        mounts_after_cut: true,
        in_current_linux: true,
        good_for: "data that can be made again, on cards that must be written little",
        sources: &[
            (
                "minimum size",
                "mke2fs 1.47.0 with our options on a 1 MiB image",
            ),
            (
                "largest file",
                "Linux 6.12 Documentation/filesystems/ext4/blocks.rst, 4 KiB blocks",
            ),
            (
                "last year",
                "Linux 6.12 Documentation/filesystems/ext4/inodes.rst, timestamps",
            ),
            (
                "crash class none",
                "ext4(5), has_journal: without it fsck must follow a crash",
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
        ..super::ext4::FACTS
    },
    build: |geometry, purpose| recipe(&VARIANT, geometry, purpose),
}];
