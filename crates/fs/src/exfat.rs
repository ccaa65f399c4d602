//! exFAT: FAT's successor for large cards and large files.

use crate::arguments::{lab_only, power_of_two_in, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, LARGEST_LOFF, Purpose, Recipe, Unfit, WHY_NOATIME,
};
use whichfs_units::{Bytes, GIB, KIB, MIB};

/// exFAT.
pub(crate) const EXFAT: Candidate = Candidate {
    name: "exfat",
    title: "exFAT",
    facts: Facts {
        min_bytes: 8 * MIB,
        max_file_bytes: LARGEST_LOFF,
        y2038: 2107,
        unix_permissions: false,
        symlinks: false,
        hard_links: false,
        xattrs: false,
        case_sensitive: false,
        windows: true,
        macos: true,
        read_only: false,
        compression: false,
        snapshots: false,
        crash_class: CrashClass::None,
        good_for: "exchange of large files with Windows, macOS and cameras",
        kernel_options: &["CONFIG_EXFAT_FS", "CONFIG_NLS_UTF8"],
        packages: &["exfatprogs"],
        sources: &[
            (
                "minimum size",
                "exFAT specification: a volume has at least 1 MiB",
            ),
            ("largest file", "exFAT specification, DataLength: 64 bits"),
            (
                "last year",
                "Linux 6.12 fs/exfat/exfat_raw.h, EXFAT_MAX_TIMESTAMP_SECS",
            ),
            (
                "crash class none",
                "exFAT specification: VolumeDirty, no journal",
            ),
            (
                "permissions, links, xattrs absent",
                "exFAT specification, File directory entry",
            ),
            ("case", "exFAT specification, Up-case Table"),
            ("Windows", "Microsoft: exFAT file system specification"),
            (
                "macOS",
                "Apple: file system formats available in Disk Utility",
            ),
        ],
    },
    build,
};

fn cluster_bytes(geometry: &Geometry) -> u64 {
    match geometry.partition_bytes {
        0..=0x1000_0000 => 4 * KIB,
        bytes if bytes <= 32 * GIB => 32 * KIB,
        _ => 128 * KIB,
    }
}

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let cluster = cluster_bytes(geometry);
    let boundary = power_of_two_in(geometry.au_bytes);
    let mkfs = words(&format!(
        "mkfs.exfat -c {cluster} -b {boundary} {}",
        Recipe::DEVICE
    ));
    let identify = lab_only(purpose, |rng| {
        format!(
            "tune.exfat -I 0x{:08x} {}",
            rng.next_u64() as u32,
            Recipe::DEVICE
        )
    });
    let mut tools = vec!["mkfs.exfat", "fsck.exfat"];
    let mut commands = vec![mkfs];
    if !identify.is_empty() {
        commands.push(identify);
        tools.push("tune.exfat");
    }
    Ok(Recipe {
        mkfs: commands,
        kernel_fs: "exfat",
        mount_options: "noatime,uid=0,gid=0,umask=022".to_owned(),
        fsck_check: words("fsck.exfat -n {device}"),
        fsck_repair: words("fsck.exfat -y {device}"),
        fstab_options: "noatime,uid=1000,gid=1000,umask=022".to_owned(),
        fstab_passno: 2,
        tools,
        tuning: vec![
            (
                format!("-b {boundary}"),
                format!("table and data begin on boundaries of {}", Bytes(boundary)),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        ..Recipe::default()
    })
}
