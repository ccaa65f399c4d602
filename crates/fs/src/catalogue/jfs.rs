//! JFS: extents, B+ trees and a journal of metadata, cheap on the CPU.

use crate::arguments::{lab_only, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, Purpose, Recipe, TIB, Unfit, WHY_NOATIME,
};
use whichfs_units::MIB;

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 140,
    name: "jfs",
    title: "JFS",
    facts: Facts {
        min_bytes: 16 * MIB,
        max_file_bytes: 4096 * TIB,
        y2038: 2106,
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
        mounts_after_cut: false,
        in_current_linux: true,
        good_for: "slow processors, on kernels that keep it",
        kernel_options: &["CONFIG_JFS_FS", "CONFIG_JFS_POSIX_ACL"],
        packages: &["jfsutils"],
        sources: &[
            (
                "minimum size",
                "mkfs.jfs 1.1.15: \"Partition must be at least 16 megabytes\"",
            ),
            (
                "largest file",
                "Linux 6.12 fs/jfs/super.c, s_maxbytes = s_blocksize << 40",
            ),
            (
                "last year",
                "Linux 6.12 fs/jfs/super.c, s_time_max = U32_MAX",
            ),
            ("crash class journaled", "Linux 6.12 fs/jfs/jfs_logmgr.c"),
            (
                "after a power cut",
                "Linux 6.12 fs/jfs/jfs_mount.c: \"Mount Failure: File System Dirty.\" unless \
                 read-only, until jfs_fsck has replayed the log",
            ),
            ("permissions and links", "Linux 6.12 fs/jfs/jfs_dinode.h"),
            ("xattrs", "Linux 6.12 fs/jfs/xattr.c"),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

fn build(_: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let mut commands = vec![words("mkfs.jfs -q {device}")];
    let identify = lab_only(purpose, |rng| {
        format!("jfs_tune -U {} {{device}}", uuid(rng))
    });
    let mut tools = vec!["mkfs.jfs", "jfs_fsck"];
    if !identify.is_empty() {
        commands.push(identify);
        tools.push("jfs_tune");
    }
    Ok(Recipe {
        mkfs: commands,
        kernel_fs: "jfs",
        mount_options: "noatime".to_owned(),
        fsck_check: words("jfs_fsck -f -n {device}"),
        fsck_repair: words("jfs_fsck -f -a {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: "noatime".to_owned(),
        fstab_passno: 2,
        tools,
        tuning: vec![
            (
                "no alignment option".to_owned(),
                "mkfs.jfs knows no units of the device".to_owned(),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        ..Recipe::default()
    })
}
