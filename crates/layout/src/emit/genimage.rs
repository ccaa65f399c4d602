//! Buildroot and PTXdist: a configuration of genimage (written for version 16).
//!
//! genimage passes `-E root_owner=…,lazy_itable_init=0,lazy_journal_init=0` before `extraargs`, and
//! mke2fs takes the last `-E` alone: ours has everything in it.

use super::{filesystem_bytes, image_name, is_copy, mkfs_options, raw_files};
use crate::file::Role;
use crate::plan::{DiskPlan, PlannedPartition};
use crate::table::Kind;

/// What genimage gives the root directory of an ext filesystem by itself.
const ROOT_OWNER: &str = "root_owner=0:0,";

/// `genimage.cfg`, with an image for each filesystem and one for the card.
pub(super) fn config(plan: &DiskPlan, origin: &str) -> String {
    let mut text = format!("# {origin}\n# Written for genimage 16.\n");
    for one in plan.partitions.iter().filter(|one| !is_copy(one)) {
        text += &image(one).unwrap_or_else(|| {
            let how = match one.recipe.image {
                Some(_) => "the command in mkfs.sh, with your tree,",
                None => "mkfs.sh --images DIR",
            };
            format!(
                "\n# genimage 16 makes no {}: {how} makes {}; put it into the input path.\n",
                one.recipe.kernel_fs,
                image_name(one)
            )
        });
    }
    text + &disk(plan)
}

/// The section that makes a filesystem; `None` if genimage has none for it.
fn image(one: &PlannedPartition) -> Option<String> {
    let section = match one.recipe.kernel_fs {
        "ext2" | "ext3" | "ext4" => {
            let options = mkfs_options(one).join(" ");
            let mut options = options.replacen("-E ", &format!("-E {ROOT_OWNER}"), 1);
            if is_apart(one) {
                options += &format!(" -L '{}'", one.label);
            }
            let keys = [
                ("use-mke2fs", "true".to_owned()),
                ("extraargs", quoted(&options)),
            ];
            section(one.recipe.kernel_fs, one, &keys)
        }
        "f2fs" => section(
            "f2fs",
            one,
            &[("extraargs", quoted(&mkfs_options(one).join(" ")))],
        ),
        "vfat" => section(
            "vfat",
            one,
            &[("extraargs", quoted(&mkfs_options(one).join(" ")))],
        ),
        "squashfs" => squashfs(one)?,
        _ => return None,
    };
    let size = match one.recipe.image {
        Some(_) => String::new(),
        None => format!("\tsize = {}\n", filesystem_bytes(one)),
    };
    let content = match one.wanted.mount.as_str() {
        "" => "\tempty = true\n".to_owned(),
        // mcopy is given an empty directory's `*` as it stands, and fails.
        mount if one.recipe.kernel_fs == "vfat" && one.wanted.role != Role::Boot => format!(
            "\tempty = true\n\t# If the tree has files there, in place of that line: \
             mountpoint = {}\n",
            quoted(mount)
        ),
        mount => format!("\tmountpoint = {}\n", quoted(mount)),
    };
    let name = image_name(one);
    Some(format!("\nimage {name} {{\n{section}{size}{content}}}\n"))
}

/// Whether mke2fs is to be told the label of `one` by us: genimage gives it without quotes.
fn is_apart(one: &PlannedPartition) -> bool {
    super::is_ext(one) && one.label.contains(' ')
}

fn section(name: &str, one: &PlannedPartition, keys: &[(&str, String)]) -> String {
    let mut text = format!("\t{name} {{\n");
    for (key, value) in keys {
        text += &format!("\t\t{key} = {value}\n");
    }
    if !one.label.is_empty() && !is_apart(one) {
        text += &format!("\t\tlabel = {}\n", quoted(&one.label));
    }
    text + "\t}\n"
}

fn squashfs(one: &PlannedPartition) -> Option<String> {
    let argv = &one.recipe.image.as_ref()?.argv;
    let after = |flag: &str| {
        let at = argv.iter().position(|word| word == flag)?;
        argv.get(at + 1).cloned()
    };
    let keys = [
        ("compression", quoted(&after("-comp")?)),
        ("block-size", after("-b")?),
    ];
    Some(section("squashfs", one, &keys))
}

fn disk(plan: &DiskPlan) -> String {
    let unit = plan.medium.unit.bytes;
    let head = match plan.table {
        Kind::Gpt => format!(
            "\t\tpartition-table-type = \"gpt\"\n\t\tdisk-uuid = {}\n",
            quoted(&plan.disk_id)
        ),
        Kind::Mbr => format!(
            "\t\tpartition-table-type = \"mbr\"\n\t\tdisk-signature = 0x{}\n",
            plan.disk_id
        ),
    };
    let mut text = format!("\nimage card.img {{\n\thdimage {{\n{head}\t\talign = {unit}\n\t}}\n");
    for (number, area) in raw_files(plan).enumerate() {
        text += &format!(
            "\n\t# {}\n\tpartition raw-{number} {{\n\t\tin-partition-table = false\n\
             \t\timage = {}\n\t\toffset = {}\n\t}}\n",
            area.what,
            quoted(area.file.as_deref().unwrap_or_default()),
            area.start()
        );
    }
    for one in &plan.partitions {
        text += &partition(plan.table, one);
    }
    text + "}\n"
}

fn partition(table: Kind, one: &PlannedPartition) -> String {
    let image = match is_copy(one) {
        true => image_name(one).replacen("-b.", "-a.", 1),
        false => image_name(one),
    };
    let kind = match table {
        Kind::Gpt => format!(
            "\t\tpartition-type-uuid = {}\n\t\tpartition-uuid = {}\n",
            quoted(one.gpt_type()),
            quoted(&one.partuuid)
        ),
        Kind::Mbr => format!("\t\tpartition-type = 0x{}\n", one.mbr_type()),
    };
    let boot = match one.wanted.role {
        Role::Boot => "\t\tbootable = true\n",
        _ => "",
    };
    format!(
        "\n\tpartition {} {{\n\t\timage = {}\n\t\toffset = {}\n\t\tsize = {}\n{kind}{boot}\t}}\n",
        one.wanted.name,
        quoted(&image),
        one.start,
        one.bytes
    )
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{extended_options, plan, text};
    use crate::table::Kind;

    #[test]
    fn one_extended_list_holds_what_genimage_would_have_lost() {
        let config = text(&plan("ab", Kind::Gpt, "ext4"), "genimage.cfg");
        let lists = extended_options(&config);
        assert_eq!(lists.len(), 2, "root and data: {config}");
        for list in lists {
            assert!(list.starts_with("root_owner=0:0,stride="), "{list}");
            assert!(list.contains("lazy_journal_init=0"), "{list}");
        }
        assert!(config.contains("image = \"root-a.ext4\""), "{config}");
        assert!(
            !config.contains("image root-b.ext4"),
            "both slots have one image"
        );
    }

    #[test]
    fn what_it_cannot_make_is_named() {
        let config = text(&plan("boot-root-data", Kind::Gpt, "xfs"), "genimage.cfg");
        assert!(config.contains("genimage 16 makes no xfs"), "{config}");
        assert!(config.contains("image = \"root.xfs\""), "{config}");
        let erofs = plan("boot-root", Kind::Gpt, "erofs-lz4hc");
        let config = text(&erofs, "genimage.cfg");
        assert!(config.contains("makes no erofs: the command in mkfs.sh, with your tree"));
        assert!(text(&erofs, "mkfs.sh").contains("mkfs.erofs"), "{config}");
    }
}
