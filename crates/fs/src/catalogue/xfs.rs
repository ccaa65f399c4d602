//! XFS: extents, B-trees and a journal of metadata.

use crate::arguments::{gcd, join, lab_only, uuid, words};
use crate::model::{Candidate, CrashClass, Facts, Geometry, LARGEST_LOFF, Purpose, Recipe, Unfit};
use whichfs_units::{Bytes, GIB, MIB};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 90,
    name: "xfs",
    title: "XFS",
    facts: Facts {
        min_bytes: 304 * MIB,
        max_file_bytes: LARGEST_LOFF,
        y2038: 2486,
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
        good_for: "large files and large partitions; it cannot be shrunk",
        kernel_options: &["CONFIG_XFS_FS", "CONFIG_XFS_POSIX_ACL"],
        packages: &["xfsprogs"],
        sources: &[
            (
                "minimum size",
                "mkfs.xfs 6.1: larger than 300 MB, and whole stripes in two groups",
            ),
            (
                "largest file",
                "Linux 6.12 fs/xfs/xfs_super.c, xfs_fs_fill_super(): s_maxbytes",
            ),
            (
                "last year",
                "Linux 6.12 fs/xfs/libxfs/xfs_format.h, XFS_BIGTIME_TIME_MAX",
            ),
            (
                "crash class journaled",
                "Linux 6.12 Documentation/filesystems/xfs",
            ),
            ("permissions and links", "xfs(5)"),
            ("xattrs", "xfs(5), attr"),
            (
                "snapshots absent, reflinks there",
                "mkfs.xfs(8), -m reflink",
            ),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

/// Largest stripe unit of the log, in bytes (mkfs.xfs(8), `-l su`).
const LARGEST_LOG_UNIT: u64 = 256 << 10;

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let blocks = |bytes: u64| (bytes / 4096).max(1);
    let unit = gcd(blocks(geometry.write_unit_bytes), blocks(geometry.au_bytes)) * 4096;
    let units = (geometry.au_bytes / unit).max(1);
    let stripe = unit * units;
    let groups = if geometry.partition_bytes < GIB { 2 } else { 4 };
    let group = (geometry.partition_bytes / groups).next_multiple_of(stripe);
    let log_unit = geometry
        .page_bytes
        .next_multiple_of(4096)
        .min(LARGEST_LOG_UNIT);
    let keep = if geometry.discard { "" } else { "-K" };
    let mkfs = join([
        words(&format!("mkfs.xfs -f -q {keep} -b size=4096")),
        words("-m bigtime=1,crc=1"),
        lab_only(purpose, |rng| format!("-m uuid={}", uuid(rng))),
        words(&format!(
            "-d su={unit},sw={units},agsize={group} -l su={log_unit}"
        )),
        words(Recipe::DEVICE),
    ]);
    Ok(Recipe {
        mkfs: vec![mkfs],
        kernel_fs: "xfs",
        mount_options: "noatime".to_owned(),
        fsck_check: words("xfs_repair -n {device}"),
        fsck_repair: words("xfs_repair {device}"),
        fsck_rescue: words("xfs_repair -L {device}"),
        fstab_options: "noatime".to_owned(),
        // fsck.xfs does nothing at boot: the kernel replays the journal.
        fstab_passno: 0,
        tools: vec!["mkfs.xfs", "xfs_repair"],
        tuning: vec![
            (
                format!("su={unit},sw={units}"),
                format!(
                    "files and inode chunks are placed by write units of {} in allocation \
                     units of {}",
                    Bytes(unit),
                    Bytes(geometry.au_bytes)
                ),
            ),
            (
                format!("agsize={group}"),
                format!(
                    "{groups} allocation groups as on any single disk (a stripe width alone \
                     would make 16, each with files of its own being written), each beginning \
                     on an allocation unit"
                ),
            ),
            (
                format!("log su={log_unit}"),
                "journal writes are padded to whole flash pages".to_owned(),
            ),
            ("noatime".to_owned(), crate::model::WHY_NOATIME.to_owned()),
        ],
        chosen: &["-b *", "-m bigtime=1,crc=1", "-d *", "-l *"],
        ..Recipe::default()
    })
}
