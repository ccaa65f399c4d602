//! Yocto: a kickstart file for wic, and what the image recipe includes.
//!
//! Grammar: OpenEmbedded-Core, scripts/lib/wic/ksparser.py as of April 2026, the last version
//! before wic became a repository of its own. Two things decide the form. wic (and OE's own
//! `oe_mkext234fs`) appends `-E hash_seed=…` to the mkfs options in reproducible builds, and mke2fs
//! takes the last `-E` alone: so ext filesystems are made elsewhere and copied in. And wic makes
//! only some filesystems: others are copied in, too.

use super::{filesystem_bytes, image_name, is_ext, mkfs_options, raw_files};
use crate::file::Role;
use crate::plan::{DiskPlan, PlannedPartition};
use crate::table::Kind;
use whichfs_units::KIB;

/// Filesystems that wic makes so that their tuning stays.
const MADE_BY_WIC: [&str; 4] = ["btrfs", "squashfs", "vfat", "erofs"];

/// The kickstart file.
pub(super) fn wks(plan: &DiskPlan, origin: &str) -> String {
    let mut text = format!(
        "# short-description: partitions on allocation units of {} KiB\n\
         # long-description: {origin}\n\
         # Written for wic of OpenEmbedded-Core, April 2026. ext filesystems are copied in: wic\n\
         # appends -E hash_seed=… in reproducible builds, and mke2fs forgets stride and stripe.\n",
        plan.medium.unit.bytes / KIB
    );
    for area in raw_files(plan) {
        let (kib, file) = (area.start() / KIB, area.file.as_deref().unwrap_or_default());
        text += &format!(
            "part --source rawcopy --sourceparams=\"file={file}\" --no-table --align {kib}\n"
        );
    }
    for one in &plan.partitions {
        if !takes_label(one) {
            text += &format!(
                "# wic takes no label with a blank: {:?} is to be set afterwards.\n",
                one.label
            );
        }
        text += &part(plan, one);
        text.push('\n');
    }
    text += &bootloader(plan);
    text
}

fn bootloader(plan: &DiskPlan) -> String {
    match plan.table {
        Kind::Gpt => format!("bootloader --ptable gpt --diskid {}\n", plan.disk_id),
        Kind::Mbr => format!("bootloader --ptable msdos --diskid 0x{}\n", plan.disk_id),
    }
}

fn part(plan: &DiskPlan, one: &PlannedPartition) -> String {
    let made = MADE_BY_WIC.contains(&one.recipe.kernel_fs);
    let mut words = vec!["part".to_owned()];
    // wic writes the type of what it copied wrongly into fstab: without a mount point it does not.
    if !one.wanted.mount.is_empty() && (made || one.wanted.mount == "/") && !super::is_copy(one) {
        words.push(one.wanted.mount.clone());
    }
    words.extend(if made { own(one) } else { copied(one) });
    words.push(format!("--align {}", plan.medium.unit.bytes / KIB));
    words.push(format!("--offset {}K", one.start / KIB));
    words.push(format!("--fixed-size {}K", one.bytes / KIB));
    words.push(format!("--part-name {}", one.wanted.name));
    match plan.table {
        Kind::Gpt => {
            words.push(format!("--part-type {}", one.gpt_type()));
            words.push(format!("--uuid {} --use-uuid", one.partuuid));
        }
        Kind::Mbr => words.push(format!("--system-id 0x{}", one.mbr_type())),
    }
    if one.wanted.role == Role::Boot {
        words.push("--active".to_owned());
    }
    words.join(" ")
}

/// A filesystem that wic makes.
fn own(one: &PlannedPartition) -> Vec<String> {
    let mut words = Vec::new();
    match one.wanted.role {
        Role::Boot => words.push("--source bootimg-partition".to_owned()),
        Role::Root => words.push("--source rootfs".to_owned()),
        Role::Data => {}
    }
    words.push(format!("--fstype={}", one.recipe.kernel_fs));
    let options = match &one.recipe.image {
        Some(build) => image_options(&build.argv),
        None => mkfs_options(one),
    };
    if !options.is_empty() {
        words.push(format!("--mkfs-extraopts \"{}\"", options.join(" ")));
    }
    if !one.label.is_empty() && takes_label(one) {
        words.push(format!("--label {}", one.label));
    }
    words.push(format!("--fsoptions \"{}\"", one.fstab_options()));
    words
}

/// Whether wic can give `one` its label: it hands it to a shell without quotes. What is copied in
/// has it already.
fn takes_label(one: &PlannedPartition) -> bool {
    !one.label.contains(' ') || !MADE_BY_WIC.contains(&one.recipe.kernel_fs)
}

/// The options of the command that builds an image from a tree: without program, tree and image.
fn image_options(argv: &[String]) -> Vec<String> {
    let place = |word: &&String| !word.starts_with('{');
    argv.iter().skip(1).filter(place).cloned().collect()
}

/// A filesystem that is made before and copied.
fn copied(one: &PlannedPartition) -> Vec<String> {
    let file = match (one.wanted.role, is_ext(one)) {
        (Role::Root, true) => format!("${{IMAGE_LINK_NAME}}.{}", one.recipe.kernel_fs),
        _ if super::is_copy(one) => image_name(one).replacen("-b.", "-a.", 1),
        _ => image_name(one),
    };
    vec![format!("--source rawcopy --sourceparams=\"file={file}\"")]
}

/// What the image recipe includes so that its ext filesystem is the root partition; `None` if
/// the root is no ext filesystem.
pub(super) fn include(plan: &DiskPlan, origin: &str) -> Option<String> {
    let root = plan
        .partitions
        .iter()
        .find(|one| one.is_root() && is_ext(one))?;
    let (fs, options) = (root.recipe.kernel_fs, mkfs_options(root).join(" "));
    let kib = filesystem_bytes(root) / KIB;
    let tune = root.recipe.mkfs.first().and_then(|argv| {
        let list = argv.iter().find(|word| word.contains("stripe_width="))?;
        let wanted = |item: &&str| item.starts_with("stride=") || item.starts_with("stripe_width=");
        Some(list.split(',').filter(wanted).collect::<Vec<_>>().join(","))
    })?;
    Some(format!(
        "# {origin}\n\
         # For the image recipe: include whichfs.inc\n\
         IMAGE_FSTYPES += \"{fs} wic\"\n\
         WKS_FILE = \"whichfs.wks.in\"\n\
         do_image_wic[depends] += \"${{PN}}:do_image_{fs}\"\n\
         # The filesystem fills its partition.\n\
         IMAGE_ROOTFS_SIZE = \"{kib}\"\n\
         IMAGE_OVERHEAD_FACTOR = \"1.0\"\n\
         IMAGE_ROOTFS_EXTRA_SPACE = \"0\"\n\
         EXTRA_IMAGECMD:{fs} = \"{options}\"\n\
         # OE appends -E hash_seed=…, and mke2fs takes the last -E alone: set again.\n\
         IMAGE_CMD:{fs}:append = \"; tune2fs -E {tune} \
         ${{IMGDEPLOYDIR}}/${{IMAGE_NAME}}${{IMAGE_NAME_SUFFIX}}.{fs}\"\n"
    ))
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

    #[test]
    fn ext_and_what_wic_cannot_make_is_copied_in() {
        let of = |fs: &str| text(&plan("boot-root-data", Kind::Gpt, fs), "whichfs.wks.in");
        let ext4 = of("ext4");
        assert!(ext4.contains("file=${IMAGE_LINK_NAME}.ext4"), "{ext4}");
        assert!(ext4.contains("file=data.ext4"), "{ext4}");
        assert!(of("f2fs").contains("file=root.f2fs"));
        let btrfs = of("btrfs");
        assert!(
            btrfs.contains("--source rootfs --fstype=btrfs --mkfs-extraopts"),
            "{btrfs}"
        );
        assert!(btrfs.contains("part /boot --source bootimg-partition --fstype=vfat"));
    }

    #[test]
    fn the_recipe_sets_again_what_the_hash_seed_makes_mke2fs_forget() {
        let plan = plan("boot-root-data", Kind::Gpt, "ext4");
        let include = text(&plan, "whichfs.inc");
        assert!(
            include.contains("tune2fs -E stride=16,stripe_width=1024 "),
            "{include}"
        );
        assert!(include.contains("-b 4096"), "{include}");
        let kib = plan.partitions[1].bytes / 1024;
        assert!(
            include.contains(&format!("IMAGE_ROOTFS_SIZE = \"{kib}\"")),
            "{include}"
        );
    }
}
