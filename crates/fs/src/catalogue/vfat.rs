//! FAT with long names, laid out so that the data area begins on an allocation unit.

use crate::arguments::{join, lab_env, lab_only, words};
use crate::fat_layout::{Layout, SECTOR, Width, aligned};
use crate::model::{Candidate, CrashClass, Facts, Geometry, Purpose, Recipe, Unfit, WHY_NOATIME};
use whichfs_units::{Bytes, GIB, KIB, MIB};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 50,
    name: "vfat",
    title: "FAT (data area aligned to the card)",
    facts: FACTS,
    build,
}];

/// Facts of FAT, however it is laid out.
pub(crate) const FACTS: Facts = Facts {
    min_bytes: 8 * MIB,
    max_file_bytes: 4 * GIB - 1,
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
    mounts_after_cut: true,
    in_current_linux: true,
    good_for: "exchange with anything: cameras, Windows, boot loaders; files below 4 GiB",
    kernel_options: &[
        "CONFIG_VFAT_FS",
        "CONFIG_NLS_CODEPAGE_437",
        "CONFIG_NLS_ASCII",
    ],
    packages: &["dosfstools"],
    sources: &[
        (
            "minimum size",
            "Microsoft FAT specification: FAT16 has at least 4085 clusters",
        ),
        (
            "largest file",
            "Linux 6.12 fs/fat/inode.c, s_maxbytes = 0xffffffff",
        ),
        (
            "last year",
            "Linux 6.12 fs/fat/inode.c, s_time_max from FAT_DATE_MAX (2107)",
        ),
        (
            "crash class none",
            "Microsoft FAT specification: two tables, no journal",
        ),
        (
            "permissions, links, xattrs absent",
            "Microsoft FAT specification, directory entry",
        ),
        ("case", "Linux 6.12 fs/fat/namei_vfat.c, vfat_ci_dentry_ops"),
        (
            "Windows",
            "Microsoft: file system functionality comparison, FAT32",
        ),
        (
            "macOS",
            "Apple: file system formats available in Disk Utility",
        ),
    ],
};

/// Options of every FAT mount: it stores no owner, so the mount says whose the files are.
pub(crate) const MOUNT: &str = "noatime,uid=0,gid=0,umask=022,utf8";
/// The same for a person's fstab: the first user of a Debian system.
pub(crate) const FSTAB: &str = "noatime,uid=1000,gid=1000,umask=022,utf8";

/// Partitions of this size and more get FAT32 (mkfs.fat(8), `-F`).
const FAT32_FROM: u64 = 512 * MIB;
/// Windows formats no larger cluster by itself.
const LARGEST_CLUSTER: u64 = 32 * KIB;

/// Cluster in bytes: Windows' table, and no less than a flash page.
fn cluster_bytes(geometry: &Geometry) -> u64 {
    let by_size = match geometry.partition_bytes {
        0..0x1000_0000 => 4 * KIB,
        0x1000_0000..FAT32_FROM => 8 * KIB,
        FAT32_FROM..0x2_0000_0000 => 4 * KIB,
        0x2_0000_0000..0x4_0000_0000 => 8 * KIB,
        0x4_0000_0000..0x8_0000_0000 => 16 * KIB,
        _ => LARGEST_CLUSTER,
    };
    by_size
        .max(geometry.page_bytes.next_power_of_two())
        .min(LARGEST_CLUSTER)
}

/// The best layout there is: the wanted boundary, or the largest part of it that fits.
fn layout(geometry: &Geometry) -> Option<(Layout, u64)> {
    let sectors = geometry.partition_bytes / SECTOR;
    let width = if geometry.partition_bytes >= FAT32_FROM {
        Width::Fat32
    } else {
        Width::Fat16
    };
    let mut boundary = geometry.au_bytes / SECTOR;
    loop {
        let mut cluster = cluster_bytes(geometry) / SECTOR;
        while cluster > 0 {
            if let Some(layout) = aligned(width, sectors, cluster, boundary) {
                return Some((layout, boundary * SECTOR));
            }
            cluster /= 2;
        }
        if !boundary.is_multiple_of(2) {
            return None;
        }
        boundary /= 2;
    }
}

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let (layout, boundary) = layout(geometry).ok_or_else(|| Unfit {
        reason: format!("no FAT layout fits {}", Bytes(geometry.partition_bytes)),
        source: "Microsoft FAT specification: cluster counts of FAT16 and FAT32",
    })?;
    let mut tuning = vec![(
        format!("-R {}", layout.reserved),
        format!(
            "the data area begins at {}, on a boundary of {}: no file shares an allocation \
             unit with the tables",
            Bytes(layout.data * SECTOR),
            Bytes(boundary)
        ),
    )];
    if boundary != geometry.au_bytes {
        tuning.push((
            "boundary reduced".to_owned(),
            format!(
                "allocation units of {} do not fit",
                Bytes(geometry.au_bytes)
            ),
        ));
    }
    Ok(recipe(&layout, purpose, tuning))
}

/// The commands for a layout.
pub(crate) fn recipe(
    layout: &Layout,
    purpose: Purpose,
    mut tuning: Vec<(String, String)>,
) -> Recipe {
    let mkfs = join([
        // The lab formats whole disks, which mkfs.vfat refuses without -I.
        lab_only(purpose, |_| "mkfs.vfat --invariant -I".to_owned()),
        match purpose {
            Purpose::Lab { .. } => Vec::new(),
            Purpose::User => words("mkfs.vfat"),
        },
        words(&format!(
            "-a --mbr=n -S {SECTOR} -f 2 -F {} -s {} -R {}",
            layout.width.bits(),
            layout.cluster,
            layout.reserved
        )),
        match layout.width {
            Width::Fat16 => words("-r 512"),
            Width::Fat32 => Vec::new(),
        },
        lab_only(purpose, |rng| format!("-i {:08x}", rng.next_u64() as u32)),
        words(Recipe::DEVICE),
    ]);
    tuning.push((
        format!("clusters of {}", Bytes(layout.cluster * SECTOR)),
        "no smaller than a flash page, no larger than Windows makes".to_owned(),
    ));
    tuning.push(("noatime".to_owned(), WHY_NOATIME.to_owned()));
    Recipe {
        mkfs: vec![mkfs],
        mkfs_env: lab_env(purpose, &["SOURCE_DATE_EPOCH"]),
        kernel_fs: "vfat",
        mount_options: MOUNT.to_owned(),
        fsck_check: words("fsck.fat -n {device}"),
        fsck_repair: words("fsck.fat -a -w {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: FSTAB.to_owned(),
        fstab_passno: 2,
        tools: vec!["mkfs.vfat", "fsck.fat"],
        tuning,
        chosen: &["-a", "-f *", "-F *", "-s *", "-R *", "-r *"],
        ..Recipe::default()
    }
}
