//! NTFS by the kernel's own driver, ntfs3.

use crate::arguments::{join, lab_only, words};
use crate::model::{
    Candidate, CrashClass, Facts, Geometry, Helper, Purpose, Recipe, TIB, Unfit, WHY_NOATIME,
};
use whichfs_units::{Bytes, KIB, MIB};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate {
    rank: 80,
    name: "ntfs3",
    title: "NTFS (kernel driver ntfs3)",
    facts: Facts {
        min_bytes: 8 * MIB,
        max_file_bytes: 16 * TIB - 4 * KIB,
        y2038: 30_828,
        unix_permissions: true,
        symlinks: true,
        hard_links: true,
        xattrs: true,
        case_sensitive: true,
        windows: true,
        macos: true,
        read_only: false,
        compression: true,
        snapshots: false,
        crash_class: CrashClass::Journaled,
        mounts_after_cut: false,
        in_current_linux: true,
        good_for: "cards that are really used with Windows and only visited by Linux",
        kernel_options: &["CONFIG_NTFS3_FS", "CONFIG_NLS_UTF8"],
        packages: &["ntfs-3g"],
        sources: &[
            (
                "after a power cut",
                "Linux 6.12 fs/ntfs3/super.c: a dirty volume is refused without the option force",
            ),
            (
                "minimum size",
                "mkntfs 2022.10.3 with our options on images of rising size",
            ),
            (
                "largest file",
                "Linux 6.12 fs/ntfs3/super.c, s_maxbytes with 4 KiB clusters",
            ),
            (
                "last year",
                "Microsoft: FILETIME, 63 bits of 100 ns since 1601",
            ),
            (
                "crash class journaled",
                "Linux 6.12 Documentation/filesystems/ntfs3.rst: replay",
            ),
            (
                "permissions, links, xattrs",
                "Linux 6.12 Documentation/filesystems/ntfs3.rst",
            ),
            (
                "compression",
                "Linux 6.12 Documentation/filesystems/ntfs3.rst",
            ),
            ("Windows", "Microsoft: NTFS overview"),
            (
                "macOS reads only",
                "Apple: file system formats available in Disk Utility",
            ),
        ],
    },
    build,
}];

fn build(geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
    let cluster = geometry
        .page_bytes
        .next_power_of_two()
        .clamp(4 * KIB, 64 * KIB);
    let mkfs = join([
        words("mkfs.ntfs"),
        // Whole disks need -F, but it would also format a mounted one: only for the lab.
        lab_only(purpose, |_| "-F -T".to_owned()),
        words(&format!("-Q -q -s 512 -c {cluster} {}", Recipe::DEVICE)),
    ]);
    let identify = lab_only(purpose, |rng| {
        format!(
            "ntfslabel --new-serial={:016x} {}",
            rng.next_u64(),
            Recipe::DEVICE
        )
    });
    let mut tools = vec!["mkfs.ntfs", "ntfsfix"];
    let mut commands = vec![mkfs];
    if !identify.is_empty() {
        commands.push(identify);
        tools.push("ntfslabel");
    }
    Ok(Recipe {
        mkfs: commands,
        kernel_fs: "ntfs3",
        mount_options: "noatime".to_owned(),
        fsck_check: words("ntfsfix -n {device}"),
        fsck_repair: words("ntfsfix -d {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: "noatime".to_owned(),
        fstab_passno: 0,
        tools,
        tuning: vec![
            (
                format!("-c {cluster}"),
                format!("a cluster is a flash page: {}", Bytes(cluster)),
            ),
            ("noatime".to_owned(), WHY_NOATIME.to_owned()),
        ],
        helper: Some(Helper {
            argv: words("ntfs-3g {device} {mount} -o {options}"),
            tool: "ntfs-3g",
            mounts: true,
            ready: &[],
            stop: &[],
            runs: false,
        }),
        chosen: &["-c *"],
        ..Recipe::default()
    })
}
