//! A shell script with the commands that make the card, or an image for each partition.

use super::{filesystem_bytes, image_name, is_copy, raw_files};
use crate::commands::{mkfs, sfdisk_script};
use crate::label::in_file;
use crate::plan::{DiskPlan, PlannedPartition};
use whichfs_fs::ImageBuild;
use whichfs_units::Bytes;
use whichfs_units::shell_word;

const HEAD: &str = r#"set -eu
usage() {
	echo "usage: $0 DEVICE          write partitions and filesystems (root; its data are lost)" >&2
	echo "       $0 --images DIR    make an image of each filesystem in DIR (no root)" >&2
	exit 2
}
"#;

/// `mkfs.sh`, which writes to a device or makes images without root.
pub(super) fn script(plan: &DiskPlan, origin: &str) -> String {
    let unit = &plan.medium.unit;
    let mut text = format!(
        "#!/bin/sh\n# {origin}\n# Allocation unit of {}: {}\n{HEAD}",
        Bytes(unit.bytes),
        unit.why
    );
    text += "images() {\n\tcd \"$1\"\n";
    for one in plan.partitions.iter().filter(|one| !is_copy(one)) {
        text += &image(one);
    }
    text += "}\n\ndevice() {\n\tDEV=$1\n";
    text += "\t# Partitions of mmcblk0 and loop0 are called mmcblk0p1, those of sda sda1.\n";
    text += "\tcase $DEV in *[0-9]) P=${DEV}p ;; *) P=$DEV ;; esac\n";
    text += &format!(
        "\tsfdisk --wipe always --wipe-partitions always \"$DEV\" <<'TABLE'\n{}TABLE\n",
        sfdisk_script(plan)
    );
    text += "\tif command -v udevadm >/dev/null; then udevadm settle; fi\n";
    for one in &plan.partitions {
        text += &on_device(one);
    }
    for dd in raw_files(plan).filter_map(|area| area.dd("\"$DEV\"")) {
        text += &format!("\t# {dd}\n");
    }
    text + "}\n\ncase ${1:-} in\n--images) [ $# = 2 ] || usage; images \"$2\" ;;\n\
            /*) [ $# = 1 ] || usage; device \"$1\" ;;\n*) usage ;;\nesac\n"
}

fn line(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}

fn image(one: &PlannedPartition) -> String {
    let name = image_name(one);
    if one.recipe.image.is_some() {
        return format!("\t# {name}: {}\n", built(one, &name));
    }
    let mut text = format!(
        "\trm -f {name}\n\ttruncate -s {} {name}\n",
        filesystem_bytes(one)
    );
    for argv in mkfs(&one.recipe, &name) {
        text += &format!("\t{}\n", line(&in_file(argv)));
    }
    text
}

/// The command that builds a read-only filesystem from a tree.
fn built(one: &PlannedPartition, name: &str) -> String {
    let argv = one.recipe.image.iter().flat_map(|build| &build.argv);
    let argv: Vec<String> = argv
        .map(|word| {
            word.replace(ImageBuild::TREE, "TREE")
                .replace(ImageBuild::IMAGE, name)
        })
        .collect();
    line(&argv)
}

fn on_device(one: &PlannedPartition) -> String {
    let number = one.number;
    if one.recipe.image.is_some() {
        let name = image_name(one);
        return format!(
            "\t# {}\n\t# dd if={name} of=\"${{P}}{number}\" bs=1M oflag=direct conv=fsync\n",
            built(one, &name)
        );
    }
    let mut text = String::new();
    for argv in mkfs(&one.recipe, "@PARTITION@") {
        let command = line(&argv).replace("@PARTITION@", &format!("\"${{P}}{number}\""));
        text += &format!("\t{command}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

    #[test]
    fn commands_name_partitions_as_the_kernel_does() {
        let script = text(&plan("ab", Kind::Gpt, "f2fs"), "mkfs.sh");
        assert!(script.contains("\"${P}4\" "), "the size follows: {script}");
        assert!(script.contains("truncate -s") && script.contains("sfdisk --wipe always"));
        assert!(script.contains("usage"), "{script}");
    }
}
