//! exFAT: FAT's successor for large cards and large files.

use crate::arguments::{lab_only, power_of_two_in, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, LARGEST_LOFF, Purpose, Recipe, Unfit, WHY_NOATIME,
};
use whichfs_units::{Bytes, GIB, KIB, MIB, SECTOR};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 70,
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
        mounts_after_cut: true,
        in_current_linux: true,
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
}];

fn cluster_bytes(geometry: &Geometry) -> u64 {
    match geometry.partition_bytes {
        0..=0x1000_0000 => 4 * KIB,
        bytes if bytes <= 32 * GIB => 32 * KIB,
        _ => 128 * KIB,
    }
}

/// Where mkfs.exfat 1.2 puts the cluster heap, in bytes from the start of the partition: boot
/// regions of 24 sectors, then the table, each from a boundary on.
fn heap_offset(bytes: u64, cluster: u64, boundary: u64) -> u64 {
    let table_offset = (24 * SECTOR).next_multiple_of(boundary);
    let table = (bytes / cluster * 4).next_multiple_of(cluster);
    (table_offset + table).next_multiple_of(boundary)
}

/// The boundary for `-b`, a power of two, and whether the heap then begins on an AU.
///
/// mkfs.exfat takes powers of two only, so for an AU of three times a power of two the boundary
/// is the largest with which table and heap happen to end on a whole AU.
fn boundary_bytes(geometry: &Geometry, cluster: u64) -> (u64, bool) {
    let mut largest = power_of_two_in(geometry.au_bytes);
    while largest > geometry.partition_bytes / LEAST_BOUNDARIES {
        largest /= 2;
    }
    let mut boundary = largest;
    while boundary >= cluster.max(SMALLEST_BOUNDARY) {
        let heap = heap_offset(geometry.partition_bytes, cluster, boundary);
        if heap.is_multiple_of(geometry.au_bytes) {
            return (boundary, true);
        }
        boundary /= 2;
    }
    (largest, false)
}

/// Two boundaries go to the tables: of fewer than this in the partition, too much is lost.
const LEAST_BOUNDARIES: u64 = 8;
/// Boundaries below this serve no card: a table that ends inside a write unit is rewritten.
const SMALLEST_BOUNDARY: u64 = 64 * KIB;

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let cluster = cluster_bytes(geometry);
    let (boundary, aligned) = boundary_bytes(geometry, cluster);
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
        fsck_rescue: Vec::new(),
        fstab_options: "noatime,uid=1000,gid=1000,umask=022".to_owned(),
        fstab_passno: 2,
        tools,
        tuning: vec![
            (
                format!("-b {boundary}"),
                boundary_reason(geometry, boundary, aligned),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        chosen: &["-c *", "-b *"],
        ..Recipe::default()
    })
}

fn boundary_reason(geometry: &Geometry, boundary: u64, aligned: bool) -> String {
    let unit = Bytes(geometry.au_bytes);
    if aligned {
        return format!("the data area begins on an allocation unit of {unit}");
    }
    format!(
        "the data area begins on a boundary of {}: mkfs.exfat takes powers of two only, and \
         none of them that leaves room for data ends the table on an allocation unit of {unit}",
        Bytes(boundary)
    )
}
