//! Kernel options: built in where they are needed before modules can be loaded.

use crate::plan::DiskPlan;
use crate::table::Kind;
use std::collections::BTreeMap;

/// A fragment for scripts/kconfig/merge_config.sh.
pub(super) fn fragment(plan: &DiskPlan, origin: &str) -> String {
    let table = match plan.table {
        Kind::Gpt => "CONFIG_EFI_PARTITION",
        Kind::Mbr => "CONFIG_MSDOS_PARTITION",
    };
    // Whether each is needed for the root.
    let mut options: BTreeMap<&str, bool> = BTreeMap::new();
    for option in [
        "CONFIG_PARTITION_ADVANCED",
        "CONFIG_MMC",
        "CONFIG_MMC_BLOCK",
        table,
    ] {
        options.insert(option, true);
    }
    for one in &plan.partitions {
        for option in one.candidate.facts().kernel_options {
            *options.entry(option).or_default() |= one.is_root() || is_boolean(option);
        }
    }
    let mut text = format!(
        "# {origin}\n# Built in (y) is what the root needs; CONFIG_MMC is for SD and eMMC,\n\
         # a USB stick needs CONFIG_USB_STORAGE.\n"
    );
    for (option, is_root) in options {
        text += &format!("{option}={}\n", if is_root { "y" } else { "m" });
    }
    if plan
        .partitions
        .iter()
        .any(|one| one.recipe.kernel_fs == "vfat")
    {
        text += IOCHARSET;
    }
    text
}

/// What FAT's names are read with: the kernel's own default is another one, and a FAT whose
/// character set is missing is not mounted (`fs/fat/Kconfig`, `fat_fill_super`).
const IOCHARSET: &str = "# The default is iso8859-1: without CONFIG_NLS_ISO8859_1 no FAT would \
                         be mounted.\n\
                         CONFIG_FAT_DEFAULT_IOCHARSET=\"ascii\"\n";

/// Options that are no modules: parts of a filesystem.
fn is_boolean(option: &str) -> bool {
    const PARTS: [&str; 6] = ["_ACL", "_XATTR", "_ZIP", "_LZO", "_XZ", "_ZSTD"];
    PARTS.iter().any(|part| option.ends_with(part))
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

    #[test]
    fn what_holds_the_root_is_built_in() {
        let f2fs = text(&plan("boot-root-data", Kind::Gpt, "f2fs"), "whichfs.cfg");
        let has = |line: &str| f2fs.lines().any(|found| found == line);
        assert!(has("CONFIG_F2FS_FS=y") && has("CONFIG_VFAT_FS=m"), "{f2fs}");
        assert!(has("CONFIG_EFI_PARTITION=y"), "{f2fs}");
        // The character set that FAT is mounted with is among the options.
        assert!(has("CONFIG_NLS_ASCII=m") && has("CONFIG_FAT_DEFAULT_IOCHARSET=\"ascii\""));
        let alone = text(&plan("boot-root-data", Kind::Gpt, "ext4"), "whichfs.cfg");
        assert!(alone.contains("IOCHARSET"), "its /boot is FAT: {alone}");
        let mbr = text(&plan("boot-root-data", Kind::Mbr, "ext4"), "whichfs.cfg");
        assert!(mbr.contains("CONFIG_MSDOS_PARTITION=y"), "{mbr}");
        assert!(mbr.contains("CONFIG_EXT4_FS=y"), "{mbr}");
    }
}
