//! Updaters that write the slot that does not run: RAUC, SWUpdate, Mender.
//!
//! Written for RAUC 1.8 and newer (docs/reference.rst), SWUpdate 2022.12 (doc/source
//! /sw-description.rst) and the Mender client 3 and newer (its documentation, "Configuration file",
//! and the variables of meta-mender's mender-setup.bbclass). All slots are named by PARTUUID, which
//! stays the same where the kernel counts disks otherwise.

use super::{Output, image_name, mkfs_options};
use crate::file::Role;
use crate::plan::{DiskPlan, PlannedPartition};
use whichfs_units::MIB;

/// Where Mender keeps what outlives an update: its documentation fixes the path.
const MENDER_DATA: &str = "/data";

/// The files of all updaters that can update `plan`.
pub(super) fn files(plan: &DiskPlan, origin: &str) -> Vec<Output> {
    let roots: Vec<&PlannedPartition> = plan.partitions.iter().filter(|p| p.is_root()).collect();
    let mut outputs = vec![Output::new("rauc-system.conf", rauc(plan, &roots, origin))];
    if roots.len() < 2 {
        return outputs;
    }
    let manifest = Output::new("rauc-manifest.raucm", manifest(plan, roots[0], origin));
    outputs.push(manifest);
    outputs.push(Output::new(
        "sw-description",
        swupdate(plan, &roots, origin),
    ));
    if let ([a, b], Some(data)) = (&roots[..], mounted_at(plan, MENDER_DATA)) {
        outputs.push(Output::new("mender.conf", mender_conf(a, b)));
        outputs.push(Output::new(
            "mender.inc",
            mender_inc(plan, a, b, data, origin),
        ));
    }
    outputs
}

fn mounted_at<'a>(plan: &'a DiskPlan, target: &str) -> Option<&'a PlannedPartition> {
    plan.partitions
        .iter()
        .find(|one| one.wanted.mount == target)
}

fn device(one: &PlannedPartition) -> String {
    format!("/dev/disk/by-partuuid/{}", one.partuuid)
}

/// What updates are made for: the board, or a name to replace.
fn compatible(plan: &DiskPlan) -> &str {
    plan.board
        .as_ref()
        .map_or("my-product", |board| &board.name)
}

/// RAUC's system.conf.
fn rauc(plan: &DiskPlan, roots: &[&PlannedPartition], origin: &str) -> String {
    let mut text = format!(
        "# {origin}\n# RAUC: /etc/rauc/system.conf\n\n[system]\ncompatible={}\n\
         # U-Boot's script goes by BOOT_ORDER and BOOT_A_LEFT (RAUC, contrib/uboot.sh).\n\
         bootloader=uboot\nbundle-formats=-plain\n",
        compatible(plan)
    );
    let mut data = plan.partitions.iter();
    if let Some(data) = data.find(|one| one.wanted.role == Role::Data && is_kept(one)) {
        text += &format!("statusfile={}/rauc.status\n", data.wanted.mount);
    }
    text += "\n# Your certificate authority (RAUC, docs/advanced.rst, Security).\n[keyring]\n\
             path=/etc/rauc/keyring.pem\n";
    if roots.len() < 2 {
        text += "\n# A slot cannot be written while it runs: RAUC needs a second root, which\n\
                 # slots = 2 in the layout makes (the layout ab has it).\n";
    }
    for (number, (one, name)) in roots.iter().zip('A'..='Z').enumerate() {
        text += &format!(
            "\n[slot.rootfs.{number}]\ndevice={}\n{}bootname={name}\n",
            device(one),
            rauc_type(one)
        );
    }
    text
}

/// Whether files on `one` outlive an update and the mount is a plain path.
fn is_kept(one: &PlannedPartition) -> bool {
    one.wanted.slot.is_none() && one.wanted.mount.len() > 1
}

/// The type of a slot, and how RAUC makes and mounts it.
fn rauc_type(one: &PlannedPartition) -> String {
    let options = mkfs_options(one).join(" ");
    let mount = &one.recipe.mount_options;
    match one.recipe.kernel_fs {
        fs @ ("ext4" | "vfat") => {
            // RAUC 1.8 refuses the whole file for a key that it does not know.
            format!(
                "type={fs}\n# For bundles with archives, which newer RAUCs than 1.8 make tuned:\n\
                 # extra-mkfs-opts={options}\nextra-mount-opts={mount}\n"
            )
        }
        fs => format!(
            "# RAUC makes no {fs}: the bundle carries an image made by whichfs image, and \
             the\n# filesystem has the image's size.\ntype=raw\n"
        ),
    }
}

/// The manifest of a RAUC bundle with the image of the root: `manifest.raucm` in its directory.
fn manifest(plan: &DiskPlan, root: &PlannedPartition, origin: &str) -> String {
    format!(
        "# {origin}\n# RAUC: as manifest.raucm beside {0}: rauc bundle --cert … --key … DIR \
         x.raucb\n\n[update]\ncompatible={1}\nversion=0.1.0\n\n[bundle]\nformat=verity\n\n\
         [image.rootfs]\nfilename={0}\n",
        rauc_image(root),
        compatible(plan)
    )
}

/// RAUC chooses the way to write an image by the end of its name: `.img` is copied as it is.
fn rauc_image(root: &PlannedPartition) -> String {
    match root.recipe.kernel_fs {
        "ext4" | "vfat" | "squashfs" => image_name(root),
        _ => format!("{}.img", image_name(root)),
    }
}

/// SWUpdate's description of an update, with one copy for each slot. Whoever starts SWUpdate names
/// the copy of the slot that does not run (`swupdate -e stable,copy2`).
fn swupdate(plan: &DiskPlan, roots: &[&PlannedPartition], origin: &str) -> String {
    let image = image_name(roots[0]);
    let mut text = format!(
        "# {origin}\n# SWUpdate: first file of the archive; the second is {image}.\n\
         # (printf '%s\\n' sw-description {image} | cpio -o -H crc > update.swu)\n\
         # A SWUpdate that takes signed archives alone wants sw-description.sig, too, and sha256.\n\
         software =\n{{\n\tversion = \"0.1.0\";\n\tdescription = \"root filesystem of {}\";\n\
         \thardware-compatibility: [ \"1.0\" ];\n\tstable = {{\n",
        compatible(plan)
    );
    for (number, one) in roots.iter().enumerate() {
        text += &format!(
            "\t\tcopy{} : {{\n\t\t\timages: ({{\n\t\t\t\tfilename = \"{image}\";\n\
             \t\t\t\tdevice = \"{}\";\n\t\t\t\ttype = \"raw\";\n\
             \t\t\t\tinstalled-directly = true;\n\t\t\t\t# sha256 = \"…\";\n\
             \t\t\t}});\n\t\t\tbootenv: ({{\n\
             \t\t\t\tname = \"root_partuuid\";\n\t\t\t\tvalue = \"{}\";\n\t\t\t}});\n\t\t}};\n",
            number + 1,
            device(one),
            one.partuuid
        );
    }
    text + "\t};\n}\n"
}

/// Mender's /etc/mender/mender.conf: JSON, which has no place for a comment.
fn mender_conf(a: &PlannedPartition, b: &PlannedPartition) -> String {
    format!(
        "{{\n  \"RootfsPartA\": \"{}\",\n  \"RootfsPartB\": \"{}\"\n}}\n",
        device(a),
        device(b)
    )
}

/// Variables of meta-mender for local.conf.
fn mender_inc(
    plan: &DiskPlan,
    a: &PlannedPartition,
    b: &PlannedPartition,
    data: &PlannedPartition,
    origin: &str,
) -> String {
    let mib = |bytes: u64| bytes / MIB;
    let mut text = format!(
        "# {origin}\n# Mender: for local.conf; the root gets what the other partitions leave.\n\
         MENDER_FEATURES_ENABLE:append = \" mender-partuuid\"\nMENDER_STORAGE_DEVICE = \"\"\n\
         MENDER_STORAGE_TOTAL_SIZE_MB = \"{}\"\nMENDER_PARTITION_ALIGNMENT = \"{}\"\n",
        mib(data.end().max(b.end())),
        plan.medium.unit.bytes
    );
    match plan.boot() {
        Some(boot) => {
            text += &format!(
                "MENDER_BOOT_PART = \"{}\"\nMENDER_BOOT_PART_SIZE_MB = \"{}\"\n",
                device(boot),
                mib(boot.bytes)
            );
        }
        None => text += "MENDER_BOOT_PART_SIZE_MB = \"0\"\n",
    }
    text + &format!(
        "MENDER_ROOTFS_PART_A = \"{}\"\nMENDER_ROOTFS_PART_B = \"{}\"\nMENDER_DATA_PART = \"{}\"\n\
         MENDER_DATA_PART_SIZE_MB = \"{}\"\nMENDER_DATA_PART_FSTYPE = \"{}\"\n",
        device(a),
        device(b),
        device(data),
        mib(data.bytes),
        data.recipe.kernel_fs
    )
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{of_layout, plan, text};
    use crate::table::Kind;

    #[test]
    fn slots_are_the_roots_alone_each_section_once() {
        let part = |name: &str, role: &str| {
            format!(
                "[[partition]]\nname = \"{name}\"\nrole = \"{role}\"\nfs = \"ext4\"\n\
                 size = \"100M\"\n"
            )
        };
        let root = part("first", "root") + "slots = 2\n";
        let all = root + &part("second", "root") + &part("my.data", "data");
        let conf = text(&of_layout(&all, Kind::Gpt, None), "rauc-system.conf");
        let sections: Vec<&str> = conf.lines().filter(|line| line.starts_with('[')).collect();
        let slots = ["[slot.rootfs.0]", "[slot.rootfs.1]", "[slot.rootfs.2]"];
        assert_eq!(
            sections,
            [&["[system]", "[keyring]"][..], &slots[..]].concat()
        );
        assert!(conf.contains("bootname=C"), "{conf}");
    }

    #[test]
    fn slots_have_boot_names_and_f2fs_is_raw() {
        let ext4 = text(&plan("ab", Kind::Gpt, "ext4"), "rauc-system.conf");
        for line in [
            "bootname=A",
            "bootname=B",
            "type=ext4",
            "statusfile=/data/rauc.status",
            "path=/etc/rauc/keyring.pem",
        ] {
            assert!(ext4.lines().any(|found| found == line), "{line}: {ext4}");
        }
        let f2fs = plan("ab", Kind::Gpt, "f2fs");
        let conf = text(&f2fs, "rauc-system.conf");
        assert_eq!(conf.matches("type=raw").count(), 2, "{conf}");
        assert!(!conf.contains("extra-mkfs-opts=-f"), "{conf}");
        assert!(text(&f2fs, "rauc-manifest.raucm").contains("filename=root-a.f2fs.img\n"));
    }

    #[test]
    fn one_root_cannot_be_updated_and_the_file_says_so() {
        let plan = plan("boot-root-data", Kind::Gpt, "ext4");
        assert!(text(&plan, "rauc-system.conf").contains("# slots = 2 in the layout"));
        let all = crate::emit::all(&plan, "test");
        for none in ["sw-description", "mender.conf", "rauc-manifest.raucm"] {
            assert!(all.iter().all(|one| one.path != none), "{none}");
        }
    }

    #[test]
    fn updaters_name_the_partitions_of_the_plan() {
        for kind in [Kind::Gpt, Kind::Mbr] {
            let plan = plan("ab", kind, "ext4");
            for file in [
                "rauc-system.conf",
                "sw-description",
                "mender.conf",
                "mender.inc",
            ] {
                let text = text(&plan, file);
                for slot in [&plan.partitions[1], &plan.partitions[2]] {
                    let name = format!("/dev/disk/by-partuuid/{}", slot.partuuid);
                    assert!(text.contains(&name), "{file}: {text}");
                }
            }
        }
    }
}
