//! NILFS2: a log of continuous snapshots, cleaned by a process in user space.

use crate::arguments::{join, lab_only, power_of_two_in, uuid, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, Helper, LARGEST_LOFF, Purpose, Recipe, Unfit,
    WHY_NOATIME, YEAR_OF_64_BITS,
};
use whichfs_units::{Bytes, MIB};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 120,
    name: "nilfs2",
    title: "NILFS2",
    facts: Facts {
        min_bytes: 17 * MIB,
        max_file_bytes: LARGEST_LOFF,
        y2038: YEAR_OF_64_BITS,
        unix_permissions: true,
        symlinks: true,
        hard_links: true,
        xattrs: false,
        case_sensitive: true,
        windows: false,
        macos: false,
        read_only: false,
        compression: false,
        snapshots: true,
        crash_class: CrashClass::Log,
        mounts_after_cut: true,
        in_current_linux: true,
        good_for: "cards that only like sequential writes, and going back in time",
        kernel_options: &["CONFIG_NILFS2_FS"],
        packages: &["nilfs-tools"],
        sources: &[
            ("minimum size", "mkfs.nilfs2 2.2.9: 16 segments and a block"),
            (
                "largest file",
                "Linux 6.12 fs/nilfs2/the_nilfs.c, nilfs_max_size()",
            ),
            (
                "last year",
                "Linux 6.12 include/uapi/linux/nilfs2_ondisk.h, struct nilfs_inode",
            ),
            (
                "crash class log",
                "Linux 6.12 Documentation/filesystems/nilfs2.rst",
            ),
            (
                "xattrs absent",
                "Linux 6.12 Documentation/filesystems/nilfs2.rst, Caveats",
            ),
            (
                "permissions and links",
                "Linux 6.12 Documentation/filesystems/nilfs2.rst",
            ),
            (
                "snapshots",
                "Linux 6.12 Documentation/filesystems/nilfs2.rst",
            ),
            ("Windows and macOS", crate::model::NOT_LISTED),
        ],
    },
    build,
}];

/// Block size in bytes.
const BLOCK: u64 = 4096;

/// Segments of which the eight that mkfs.nilfs2 reserves at least are its usual 5 %.
const LEAST_SEGMENTS: u64 = 160;
/// Segments are not made smaller than this for having more of them.
const SMALLEST_SEGMENT: u64 = MIB;

/// A segment: mkfs.nilfs2 takes powers of two only, so it is the largest that divides the AU,
/// halved while the partition would have too few.
fn segment_bytes(geometry: &Geometry) -> u64 {
    let mut segment = power_of_two_in(geometry.au_bytes).max(16 * BLOCK);
    while segment > SMALLEST_SEGMENT && geometry.partition_bytes / segment < LEAST_SEGMENTS {
        segment /= 2;
    }
    segment
}

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let segment = segment_bytes(geometry);
    let keep = if geometry.discard { "" } else { "-K" };
    let mkfs = join([
        words(&format!(
            "mkfs.nilfs2 -f -q {keep} -b {BLOCK} -B {}",
            segment / BLOCK
        )),
        words(Recipe::DEVICE),
    ]);
    let identify = lab_only(purpose, |rng| {
        format!("nilfs-tune -U {} {}", uuid(rng), Recipe::DEVICE)
    });
    let mut commands = vec![mkfs];
    let mut tools = vec!["mkfs.nilfs2"];
    if !identify.is_empty() {
        commands.push(identify);
        tools.push("nilfs-tune");
    }
    Ok(Recipe {
        mkfs: commands,
        kernel_fs: "nilfs2",
        mount_options: "noatime".to_owned(),
        // nilfs-utils 2.2.9 has no checker: recovery at mount is all there is.
        fsck_check: Vec::new(),
        fsck_repair: Vec::new(),
        fsck_rescue: Vec::new(),
        fstab_options: "noatime".to_owned(),
        fstab_passno: 0,
        tools,
        tuning: vec![
            (
                format!("-B {}", segment / BLOCK),
                format!(
                    "segments of {}: the largest power of two in an allocation unit of {} \
                     that leaves segments enough",
                    Bytes(segment),
                    Bytes(geometry.au_bytes)
                ),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        helper: Some(Helper {
            argv: words("nilfs_cleanerd {device} {mount}"),
            tool: "nilfs_cleanerd",
            mounts: false,
            ready: &["nilfs-clean", "--status", Recipe::DEVICE],
            stop: &["nilfs-clean", "--quit", Recipe::DEVICE],
            runs: false,
        }),
        chosen: &["-b *", "-B *"],
        ..Recipe::default()
    })
}
