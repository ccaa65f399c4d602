//! RAUC: slot sections of its system.conf.

use super::mkfs_options;
use crate::file::Role;
use crate::plan::{Plan, Planned};

/// The slots of `plan`, for pasting into system.conf.
pub(super) fn slots(plan: &Plan, origin: &str) -> String {
    let mut text = format!("# {origin}\n# Slots for RAUC's system.conf.\n");
    let mut roots = 0;
    for one in &plan.partitions {
        let class = match one.wanted.role {
            Role::Root => "rootfs".to_owned(),
            // The class is without the letter of the slot.
            _ => one.wanted.name.trim_end_matches(&suffix(one)).to_owned(),
        };
        let number = match one.wanted.slot {
            Some(slot) => u32::from(slot) - u32::from('a'),
            None => 0,
        };
        text += &format!("\n[slot.{class}.{number}]\n");
        text += &format!("device=/dev/disk/by-partuuid/{}\n", one.partuuid);
        text += &kind(one);
        if one.is_root() {
            text += &format!("bootname={}\n", ['A', 'B', 'C', 'D'][roots % 4]);
            roots += 1;
        }
    }
    text
}

fn suffix(one: &Planned) -> String {
    one.wanted
        .slot
        .map_or(String::new(), |slot| format!("-{slot}"))
}

/// The type of a slot, and how RAUC makes and mounts it.
fn kind(one: &Planned) -> String {
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
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

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
