//! btrfs: copy on write, checksums, snapshots; one copy of everything.

use crate::arguments::{join, lab_only, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, LARGEST_LOFF, Purpose, Recipe, Unfit, WHY_NOATIME,
    YEAR_OF_64_BITS,
};
use whichfs_units::MIB;

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 100,
    name: "btrfs",
    title: "btrfs (single copy)",
    facts: Facts {
        min_bytes: 47 * MIB,
        max_file_bytes: LARGEST_LOFF,
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
        snapshots: true,
        crash_class: CrashClass::Cow,
        mounts_after_cut: true,
        in_current_linux: true,
        good_for: "checksummed data, snapshots, and compression of what is written",
        kernel_options: &["CONFIG_BTRFS_FS", "CONFIG_BTRFS_FS_POSIX_ACL"],
        packages: &["btrfs-progs"],
        sources: &[
            (
                "minimum size",
                "mkfs.btrfs 6.2 with our options on images of rising size",
            ),
            (
                "largest file",
                "Linux 6.12 fs/btrfs/super.c, s_maxbytes = MAX_LFS_FILESIZE",
            ),
            (
                "last year",
                "btrfs on-disk format: struct btrfs_timespec, 64-bit seconds",
            ),
            (
                "crash class cow",
                "Linux 6.12 Documentation/filesystems/btrfs.rst",
            ),
            ("compression, snapshots, xattrs", "btrfs(5)"),
            ("permissions and links", "btrfs(5)"),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let keep = if geometry.discard { "" } else { "-K" };
    let mkfs = join([
        words(&format!("mkfs.btrfs -f -q {keep} -m single -d single")),
        lab_only(purpose, |rng| format!("-U {}", uuid(rng))),
        words(Recipe::DEVICE),
    ]);
    // Asynchronous discard is on by itself since 6.2 where the device has discard.
    let mount_options = "noatime";
    Ok(Recipe {
        mkfs: vec![mkfs],
        kernel_fs: "btrfs",
        mount_options: mount_options.to_owned(),
        fsck_check: words("btrfs check --readonly {device}"),
        fsck_repair: words("btrfs check --force --repair {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: mount_options.to_owned(),
        // fsck.btrfs does nothing at boot: each mount is consistent.
        fstab_passno: 0,
        tools: vec!["mkfs.btrfs", "btrfs"],
        tuning: vec![
            (
                "-m single".to_owned(),
                "a second copy of the metadata on the same card doubles its writes and shares \
                 its failures"
                    .to_owned(),
            ),
            (
                "no alignment option".to_owned(),
                "chunks begin on multiples of 1 MiB; the allocator packs by clusters of 2 MiB \
                 on devices that are not rotational"
                    .to_owned(),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        chosen: &["-m *", "-d *"],
        ..Recipe::default()
    })
}
