//! systemd-repart: a definition for each partition, and the environment in which mkfs is tuned.
//!
//! repart has one variable of mkfs options for each *type* of filesystem, read since version
//! 253. Older ones (Debian 12 has 252) run mke2fs with the environment, so a `mke2fs.conf` tunes
//! ext there: its `options` are put before each `-E`, not replaced by it.

use super::{Output, mkfs_options};
use crate::plan::{DiskPlan, PlannedPartition};
use crate::table::Kind;
use std::collections::BTreeMap;
use whichfs_units::SECTOR;

/// Where the configuration of mke2fs is taken to be: the path must be absolute.
const CONFIGURATION: &str = "/etc/whichfs/mke2fs.conf";

/// The files, or the reason why there are none.
pub(super) fn files(plan: &DiskPlan, origin: &str) -> Vec<Output> {
    if plan.table == Kind::Mbr {
        let why = "systemd-repart writes GPTs only: --table gpt";
        return vec![Output::new("repart.env", format!("# {origin}\n# {why}\n"))];
    }
    let mut outputs = vec![
        Output::new("repart.sfdisk", table(plan, origin)),
        Output::new("repart.env", environment(plan, origin)),
    ];
    if let Some(text) = mke2fs_conf(plan, origin) {
        outputs.push(Output::new("mke2fs.conf", text));
    }
    for (index, one) in plan.partitions.iter().enumerate() {
        let next = plan.partitions.get(index + 1);
        let padding = next.map_or(0, |next| next.start - one.end());
        let path = format!("repart.d/{:02}-{}.conf", (index + 1) * 10, one.wanted.name);
        outputs.push(Output::new(path, definition(one, padding, origin)));
    }
    outputs
}

/// An empty table whose first usable sector is where the first partition begins: repart itself
/// would begin at 1 MiB.
fn table(plan: &DiskPlan, origin: &str) -> String {
    let first = plan.partitions.first().map_or(0, |one| one.start / SECTOR);
    format!(
        "# {origin}\n\
         # sfdisk DEVICE < repart.sfdisk, then: set -a; . ./repart.env; systemd-repart \
         --definitions=repart.d --dry-run=no DEVICE\n\
         label: gpt\nlabel-id: {}\nfirst-lba: {first}\n",
        plan.disk_id
    )
}

fn definition(one: &PlannedPartition, padding: u64, origin: &str) -> String {
    let (kind, name, bytes) = (one.gpt_type(), &one.wanted.name, one.bytes);
    let mut text = format!(
        "# {origin}\n[Partition]\nType={kind}\nLabel={name}\nUUID={}\nSizeMinBytes={bytes}\n\
         SizeMaxBytes={bytes}\n",
        one.partuuid
    );
    if padding > 0 {
        text += &format!("PaddingMinBytes={padding}\nPaddingMaxBytes={padding}\n");
    }
    match one.recipe.image {
        Some(_) => text += &format!("# CopyBlocks={}\n", super::image_name(one)),
        None => text += &format!("Format={}\n", made_as(one.recipe.kernel_fs)),
    }
    text
}

/// What follows `mkfs.` for a filesystem of the kernel, by which repart knows it.
fn made_as(kernel_fs: &str) -> &str {
    match kernel_fs {
        "ntfs3" => "ntfs",
        other => other,
    }
}

fn environment(plan: &DiskPlan, origin: &str) -> String {
    let mut text = format!("# {origin}\n# Options of mkfs are read by systemd 253 and newer.\n");
    let mut by_type: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
    for one in plan
        .partitions
        .iter()
        .filter(|one| one.recipe.image.is_none())
    {
        let options = mkfs_options(one).join(" ");
        let known = by_type.entry(one.recipe.kernel_fs).or_default();
        if !known.iter().any(|(other, _)| *other == options) {
            known.push((options, &one.wanted.name));
        }
    }
    for (fs, options) in &by_type {
        for (number, (options, name)) in options.iter().enumerate() {
            if number > 0 {
                text += &format!(
                    "# One value serves all partitions of a type. {name} would have, made by \
                     mkfs.sh instead:\n# "
                );
            }
            text += &format!(
                "SYSTEMD_REPART_MKFS_OPTIONS_{}=\"{options}\"\n",
                made_as(fs).to_uppercase()
            );
        }
    }
    if plan.partitions.iter().any(super::is_ext) {
        text += &format!(
            "# Tunes ext with older versions, too; put mke2fs.conf there, or say where it is.\n\
             MKE2FS_CONFIG=\"{CONFIGURATION}\"\n"
        );
    }
    text
}

/// A configuration of mke2fs with the tuning of the ext filesystems of `plan`.
fn mke2fs_conf(plan: &DiskPlan, origin: &str) -> Option<String> {
    let ext = plan.partitions.iter().find(|one| super::is_ext(one))?;
    let argv = ext.recipe.mkfs.first()?;
    let list = argv.iter().find(|word| word.contains("stripe_width="))?;
    // Types as in the configuration that e2fsprogs 1.47 installs.
    Some(format!(
        "# {origin}\n\
         [defaults]\n\
         \tbase_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr\n\
         \tdefault_mntopts = acl,user_xattr\n\
         \tenable_periodic_fsck = 0\n\
         \tblocksize = 4096\n\
         \tinode_size = 256\n\
         \tinode_ratio = 16384\n\n\
         [fs_types]\n\
         \tsmall = {{\n\t\tinode_ratio = 4096\n\t}}\n\
         \text2 = {{\n\t\toptions = {list}\n\t}}\n\
         \text3 = {{\n\t\tfeatures = has_journal\n\t\toptions = {list}\n\t}}\n\
         \text4 = {{\n\t\toptions = {list}\n\t\tfeatures = has_journal,extent,huge_file,\
         flex_bg,metadata_csum,64bit,dir_nlink,extra_isize\n\t}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

    #[test]
    fn definitions_have_exact_sizes_and_the_table_begins_on_a_unit() {
        let plan = plan("boot-root-data", Kind::Gpt, "ext4");
        let root = text(&plan, "repart.d/20-root.conf");
        let bytes = plan.partitions[1].bytes;
        for line in [
            "Label=root".to_owned(),
            format!("SizeMinBytes={bytes}"),
            format!("SizeMaxBytes={bytes}"),
            format!("UUID={}", plan.partitions[1].partuuid),
            "Format=ext4".to_owned(),
        ] {
            assert!(root.lines().any(|found| found == line), "{line}: {root}");
        }
        assert!(text(&plan, "repart.sfdisk").contains("first-lba: 8192\n"));
    }

    #[test]
    fn options_are_one_value_for_each_type() {
        let env = text(&plan("boot-root-data", Kind::Gpt, "ext4"), "repart.env");
        let set = |name: &str| env.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(set("SYSTEMD_REPART_MKFS_OPTIONS_EXT4="), 1, "{env}");
        assert_eq!(set("SYSTEMD_REPART_MKFS_OPTIONS_VFAT="), 1, "{env}");
        let fat = text(&plan("boot-root-data", Kind::Gpt, "vfat"), "repart.env");
        assert!(fat.contains("made by mkfs.sh instead"), "{fat}");
        let ntfs = plan("boot-root-data", Kind::Gpt, "ntfs3");
        assert!(text(&ntfs, "repart.env").contains("\nSYSTEMD_REPART_MKFS_OPTIONS_NTFS=\""));
        assert!(text(&ntfs, "repart.d/20-root.conf").contains("\nFormat=ntfs\n"));
        let mbr = text(&plan("boot-root-data", Kind::Mbr, "ext4"), "repart.env");
        assert!(mbr.contains("--table gpt"), "{mbr}");
    }
}
