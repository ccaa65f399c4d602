//! ReiserFS 3.6: small files packed into one B-tree, with a journal.

use crate::arguments::{join, lab_only, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, Purpose, Recipe, TIB, Unfit, WHY_NOATIME,
};
use whichfs_units::MIB;

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 130,
    name: "reiserfs",
    title: "ReiserFS 3.6",
    facts: Facts {
        min_bytes: 34 * MIB,
        max_file_bytes: 2 * TIB - 4096,
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
        mounts_after_cut: true,
        in_current_linux: false,
        good_for: "very many tiny files on kernels that still have it (removed in 6.13)",
        kernel_options: &["CONFIG_REISERFS_FS", "CONFIG_REISERFS_FS_XATTR"],
        packages: &["reiserfsprogs"],
        sources: &[
            (
                "minimum size",
                "mkreiserfs 3.6.27 with our options on images of rising size",
            ),
            (
                "largest file",
                "Linux 6.12 fs/reiserfs/super.c, s_maxbytes = (512 << 32) - 4096",
            ),
            (
                "last year",
                "Linux 6.12 fs/reiserfs/super.c, s_time_max = U32_MAX",
            ),
            ("crash class journaled", "Linux 6.12 fs/reiserfs/journal.c"),
            (
                "permissions and links",
                "Linux 6.12 fs/reiserfs/reiserfs.h, struct stat_data",
            ),
            (
                "xattrs",
                "Linux 6.12 fs/reiserfs/Kconfig, REISERFS_FS_XATTR",
            ),
            (
                "current Linux",
                "removed in Linux 6.13, commit fb6f20ecb121 \"reiserfs: The last commit\"",
            ),
            (
                "deprecated",
                "Linux 6.12 fs/reiserfs/Kconfig: to be removed in 2025",
            ),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

fn build(_: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let mkfs = join([
        words("mkreiserfs"),
        // Whole disks need -f, but it would also format a mounted one: only for the lab.
        lab_only(purpose, |_| "-f -f".to_owned()),
        words("-q -b 4096 --format 3.6 -h r5"),
        lab_only(purpose, |rng| format!("-u {}", uuid(rng))),
        words(Recipe::DEVICE),
    ]);
    Ok(Recipe {
        mkfs: vec![mkfs],
        kernel_fs: "reiserfs",
        mount_options: "noatime".to_owned(),
        // It replays the journal first: there is no check that writes nothing on a dirty one.
        fsck_check: words("reiserfsck --check -y {device}"),
        fsck_repair: words("reiserfsck --fix-fixable -y {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: "noatime".to_owned(),
        fstab_passno: 2,
        tools: vec!["mkreiserfs", "reiserfsck"],
        tuning: vec![
            (
                "no alignment option".to_owned(),
                "mkreiserfs knows no units of the device".to_owned(),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        chosen: &["-b *", "--format *", "-h *"],
        ..Recipe::default()
    })
}
