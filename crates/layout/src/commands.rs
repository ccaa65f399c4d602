//! A plan as commands: the partition table, the filesystems, and their lines in fstab.

use crate::file::Role;
use crate::plan::{DiskPlan, PlannedPartition};
use crate::table::Kind;
use std::path::Path;
use whichfs_fs::Recipe;

/// Types of GPT partitions: the Discoverable Partitions Specification's extended boot loader
/// partition, Linux data, Microsoft's basic data.
const XBOOTLDR: &str = "bc13c2ff-59e6-4262-a352-b275fd6f7172";
const LINUX: &str = "0fc63daf-8483-4772-8e79-3d69d8477de4";
const BASIC_DATA: &str = "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7";

/// The type in an MBR, in hexadecimal digits, of a partition that `recipe` formats.
pub fn mbr_type(recipe: &Recipe) -> &'static str {
    let is_fat32 = |argv: &Vec<String>| argv.windows(2).any(|w| w == ["-F", "32"]);
    match recipe.kernel_fs {
        "vfat" if recipe.mkfs.iter().any(is_fat32) => "0c",
        "vfat" => "0e",
        "exfat" | "ntfs3" => "07",
        _ => "83",
    }
}

impl PlannedPartition {
    /// Its options in fstab.
    pub fn fstab_options(&self) -> String {
        options(&self.recipe.fstab_options, &self.wanted.mount)
    }

    /// Its type in a GPT.
    pub fn gpt_type(&self) -> &str {
        if let Some(wanted) = &self.board_type {
            return wanted;
        }
        match (self.wanted.role, self.recipe.kernel_fs) {
            (Role::Boot, _) => XBOOTLDR,
            (_, "vfat" | "exfat" | "ntfs3") => BASIC_DATA,
            _ => LINUX,
        }
    }

    /// Its type in an MBR, in hexadecimal digits.
    pub fn mbr_type(&self) -> &str {
        let wanted = self.board_type.as_deref();
        wanted.unwrap_or_else(|| mbr_type(&self.recipe))
    }

    /// The command that makes its filesystem on `device`, word by word; of a read-only
    /// filesystem none.
    pub fn mkfs_on(&self, device: &str) -> Vec<Vec<String>> {
        mkfs(&self.recipe, device)
    }
}

/// The mkfs commands of `recipe` with `device` in its place.
pub fn mkfs(recipe: &Recipe, device: &str) -> Vec<Vec<String>> {
    let all = recipe.mkfs.iter();
    all.map(|argv| Recipe::on_device(argv, device)).collect()
}

/// What `sfdisk` reads to write the table of `plan`, with exact sectors.
pub fn sfdisk_script(plan: &DiskPlan) -> String {
    let (label, id) = match plan.table {
        Kind::Gpt => ("gpt", plan.disk_id.clone()),
        Kind::Mbr => ("dos", format!("0x{}", plan.disk_id)),
    };
    let mut text = format!("label: {label}\nlabel-id: {id}\nunit: sectors\n\n");
    for one in &plan.partitions {
        let sector = plan.medium.sector_bytes;
        let (start, size) = (one.start / sector, one.bytes / sector);
        text += &format!("start={start}, size={size}, ");
        let is_boot = one.wanted.role == Role::Boot;
        text += &match plan.table {
            Kind::Gpt => {
                let boot = if is_boot {
                    ", attrs=\"LegacyBIOSBootable\""
                } else {
                    ""
                };
                let (kind, name) = (one.gpt_type(), &one.wanted.name);
                format!("type={kind}, uuid={}, name=\"{name}\"{boot}", one.partuuid)
            }
            Kind::Mbr => {
                let boot = if is_boot { ", bootable" } else { "" };
                format!("type={}{boot}", one.mbr_type())
            }
        };
        text.push('\n');
    }
    text
}

/// The line of fstab that mounts `one`; `None` if it is mounted nowhere, or in the slot that is
/// not the first.
pub fn fstab_line(one: &PlannedPartition) -> Option<String> {
    let target = &one.wanted.mount;
    if target.is_empty() || one.wanted.slot.is_some_and(|slot| slot != 'a') {
        return None;
    }
    // The root is checked before the others, if it is checked at all.
    let pass = match (one.recipe.fstab_passno, target.as_str()) {
        (0, _) => 0,
        (_, "/") => 1,
        (pass, _) => pass,
    };
    Some(format!(
        "PARTUUID={}\t{target}\t{}\t{}\t0\t{pass}",
        one.partuuid,
        one.recipe.kernel_fs,
        one.fstab_options()
    ))
}

/// The options of a filesystem at `target`: files that boot the machine are root's, not the first
/// user's, where a filesystem knows one owner only.
fn options(all: &str, target: &str) -> String {
    let boots = Path::new(target).starts_with("/boot") || Path::new(target).starts_with("/efi");
    let owner = |option: &&str| option.starts_with("uid=") || option.starts_with("gid=");
    let kept = all.split(',').filter(|option| !(boots && owner(option)));
    kept.collect::<Vec<_>>().join(",")
}

/// The fstab of `plan`; `origin` says in a comment where it is from.
pub fn fstab(plan: &DiskPlan, origin: &str) -> String {
    let lines = plan.partitions.iter().filter_map(fstab_line);
    let mut text = format!("# {origin}\n");
    if plan.partitions.iter().any(|one| one.wanted.slot.is_some()) {
        text += "# Of partitions with slots the first is named;\n\
                 # the updater or the boot loader names the other.\n";
    }
    for line in lines {
        text += &format!("{line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::emit::testing::plan;

    #[test]
    fn the_script_has_exact_sectors_types_and_identifiers() {
        let gpt = plan("ab", Kind::Gpt, "ext4");
        let script = sfdisk_script(&gpt);
        assert!(script.starts_with("label: gpt\nlabel-id: "), "{script}");
        for one in &gpt.partitions {
            let line = format!("start={}, size={}, ", one.start / 512, one.bytes / 512);
            assert!(
                script.contains(&line) && script.contains(&one.partuuid),
                "{script}"
            );
        }
        assert_eq!(script.matches("LegacyBIOSBootable").count(), 1);
        let mbr = sfdisk_script(&plan("boot-root-data", Kind::Mbr, "ext4"));
        assert!(mbr.contains("label: dos\nlabel-id: 0x") && mbr.contains("type=0e, bootable"));
    }

    #[test]
    fn what_boots_the_machine_is_roots() {
        let vfat = "noatime,uid=1000,gid=1000,umask=022,utf8";
        for target in ["/boot", "/boot/firmware", "/efi"] {
            assert_eq!(options(vfat, target), "noatime,umask=022,utf8");
        }
        for target in ["/data", "/bootlogs"] {
            assert_eq!(options(vfat, target), vfat);
        }
    }

    #[test]
    fn fstab_names_partitions_and_the_root_is_checked_first() {
        let text = fstab(&plan("ab", Kind::Gpt, "ext4"), "made by a test");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("PARTUUID="))
            .collect();
        assert_eq!(lines.len(), 3, "one slot of two: {text}");
        assert!(
            lines[1].contains("\t/\text4\tnoatime,errors=remount-ro\t0\t1"),
            "{text}"
        );
        assert!(lines[2].contains("\t/data\t") && lines[2].ends_with("\t0\t2"));
    }
}
