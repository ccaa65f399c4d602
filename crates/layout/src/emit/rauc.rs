//! RAUC: slot sections of its system.conf.

use super::mkfs_options;
use crate::file::Role;
use crate::plan::{DiskPlan, PlannedPartition};
use std::collections::BTreeMap;

/// The slots of `plan`, for pasting into system.conf.
pub(super) fn slots(plan: &DiskPlan, origin: &str) -> String {
    let mut text = format!("# {origin}\n# Slots for RAUC's system.conf.\n");
    let mut boot_names = 'A'..='Z';
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for one in &plan.partitions {
        let class = class(one);
        let number = numbers.entry(class.clone()).or_default();
        text += &format!("\n[slot.{class}.{number}]\n");
        *number += 1;
        text += &format!("device=/dev/disk/by-partuuid/{}\n", one.partuuid);
        text += &kind(one);
        let name = match one.is_root() {
            true => boot_names.next(),
            false => None,
        };
        text.extend(name.map(|name| format!("bootname={name}\n")));
    }
    text
}

/// The class of a slot: its name without the letter of the slot. Periods part class and number.
fn class(one: &PlannedPartition) -> String {
    let name = &one.wanted.name;
    let suffix = one.wanted.slot.map(|slot| format!("-{slot}"));
    let name = suffix.and_then(|suffix| name.strip_suffix(&suffix));
    match one.wanted.role {
        Role::Root => "rootfs".to_owned(),
        _ => name.unwrap_or(&one.wanted.name).replace('.', "-"),
    }
}

/// The type of a slot, and how RAUC makes and mounts it.
fn kind(one: &PlannedPartition) -> String {
    let options = mkfs_options(one).join(" ");
    let mount = &one.recipe.mount_options;
    match one.recipe.kernel_fs {
        fs @ ("ext4" | "vfat") => {
            format!("type={fs}\nextra-mkfs-opts={options}\nextra-mount-opts={mount}\n")
        }
        fs => format!(
            "# RAUC makes no {fs}: the bundle carries an image made by whichfs image, and \
             the\n# filesystem has the image's size.\ntype=raw\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{of_layout, plan, text};
    use crate::table::Kind;

    #[test]
    fn each_section_is_there_once() {
        let text_of = |name: &str, role: &str| {
            format!(
                "[[partition]]\nname = \"{name}\"\nrole = \"{role}\"\nfs = \"ext4\"\n\
                 size = \"100M\"\n"
            )
        };
        let root = text_of("first", "root") + "slots = 2\n";
        let all = root + &text_of("second", "root") + &text_of("my.data", "data");
        let plan = of_layout(&all, Kind::Gpt, None);
        let slots = text(&plan, "rauc-system.conf");
        let sections: Vec<&str> = slots.lines().filter(|line| line.starts_with('[')).collect();
        let expected = [
            "[slot.rootfs.0]",
            "[slot.rootfs.1]",
            "[slot.rootfs.2]",
            "[slot.my-data.0]",
        ];
        assert_eq!(sections, expected);
        assert!(slots.contains("bootname=C"), "{slots}");
    }

    #[test]
    fn slots_have_boot_names_and_f2fs_is_raw() {
        let ext4 = text(&plan("ab", Kind::Gpt, "ext4"), "rauc-system.conf");
        for line in [
            "[slot.rootfs.0]",
            "[slot.rootfs.1]",
            "bootname=A",
            "bootname=B",
            "type=ext4",
        ] {
            assert!(ext4.lines().any(|found| found == line), "{line}: {ext4}");
        }
        let f2fs = text(&plan("ab", Kind::Gpt, "f2fs"), "rauc-system.conf");
        assert_eq!(f2fs.matches("type=raw").count(), 3, "{f2fs}");
        assert!(!f2fs.contains("extra-mkfs-opts=-f"), "{f2fs}");
    }
}
