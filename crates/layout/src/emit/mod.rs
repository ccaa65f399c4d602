//! A plan in the forms that image builders, updaters and kernels take.

mod genimage;
mod kernel;
mod repart;
mod script;
mod uboot;
mod updater;
mod wic;

use crate::boot::RawArea;
use crate::commands::fstab;
use crate::plan::{DiskPlan, PlannedPartition};

/// A file for a builder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its path below the directory of all.
    pub path: String,
    /// Whole content of the file.
    pub text: String,
}

impl Output {
    fn new(path: impl Into<String>, text: String) -> Output {
        Output {
            path: path.into(),
            text,
        }
    }
}

/// All files for `plan`. `origin` says in a comment of each where it is from: a line.
pub fn all(plan: &DiskPlan, origin: &str) -> Vec<Output> {
    let mut outputs = vec![
        Output::new("fstab", fstab(plan, origin)),
        Output::new("whichfs.wks.in", wic::wks(plan, origin)),
        Output::new("genimage.cfg", genimage::config(plan, origin)),
        Output::new("mkfs.sh", script::script(plan, origin)),
        Output::new("whichfs.cfg", kernel::fragment(plan, origin)),
        Output::new("u-boot.txt", uboot::note(plan, origin)),
    ];
    outputs.extend(updater::files(plan, origin));
    outputs.extend(wic::include(plan, origin).map(|text| Output::new("whichfs.inc", text)));
    outputs.extend(repart::files(plan, origin));
    outputs
}

/// Name of the file that holds the filesystem of `one`.
fn image_name(one: &PlannedPartition) -> String {
    format!("{}.{}", one.wanted.name, one.recipe.kernel_fs)
}

/// The places outside of partitions into which the board's boot loaders are to be written.
fn raw_files(plan: &DiskPlan) -> impl Iterator<Item = &RawArea> {
    let areas = plan.board.iter().flat_map(|board| &board.rules.raw);
    areas.filter(|area| area.file.is_some())
}

/// Whether `one` is a further slot of what another partition holds.
fn is_copy(one: &PlannedPartition) -> bool {
    one.wanted.slot.is_some_and(|slot| slot != 'a')
}

/// The options of the mkfs command of `one`, without its program, type, label and device: what
/// builders that give these themselves add.
fn mkfs_options(one: &PlannedPartition) -> Vec<String> {
    let Some(argv) = one.recipe.mkfs.first() else {
        return Vec::new();
    };
    let mut options = Vec::new();
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-t" if argv[0] == "mke2fs" => {
                let _ = words.next();
            }
            "-L" | "-n" | "-l" if !one.label.is_empty() && is_label(argv, word, &one.label) => {
                let _ = words.next();
            }
            // Behind the device only F2FS has something, the size, which the image's size says.
            whichfs_fs::Recipe::DEVICE => break,
            _ => options.push(word.clone()),
        }
    }
    options
}

/// Whether `flag` is the one that gives `label`: `mkfs.xfs -l` is another.
fn is_label(argv: &[String], flag: &str, label: &str) -> bool {
    argv.get(1).is_some_and(|first| first == flag) && argv.get(2).is_some_and(|next| next == label)
}

/// Bytes that the filesystem of `one` covers: F2FS ends with a whole section.
fn filesystem_bytes(one: &PlannedPartition) -> u64 {
    let last = one.recipe.mkfs.first().and_then(|argv| argv.last());
    let sectors = last.and_then(|word| word.parse::<u64>().ok());
    match one.recipe.kernel_fs {
        "f2fs" => sectors.map_or(one.bytes, |sectors| sectors * whichfs_units::SECTOR),
        _ => one.bytes,
    }
}

/// Whether `one` is an ext filesystem.
fn is_ext(one: &PlannedPartition) -> bool {
    one.recipe.kernel_fs.starts_with("ext")
}

#[cfg(test)]
pub(crate) mod testing {
    #![allow(clippy::unwrap_used)]
    use crate::file::{BUILTIN, Layout};
    use crate::medium::{Medium, Unit};
    use crate::plan::DiskPlan;
    use crate::table::Kind;
    use whichfs_units::{GIB, MIB};

    /// The shipped layout `name` on a disk of 2 GiB with units of 4 MiB.
    pub fn plan(name: &str, table: Kind, fs: &str) -> DiskPlan {
        let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name).unwrap();
        of_layout(text, table, Some(fs))
    }

    /// The layout of a file on such a disk.
    pub fn of_layout(text: &str, table: Kind, fs: Option<&str>) -> DiskPlan {
        let layout = Layout {
            table,
            ..Layout::parse("a test", text).unwrap()
        };
        let medium = Medium::of_unit(2 * GIB, Unit::new(4 * MIB, "given").unwrap(), true);
        DiskPlan::new(&layout, &medium, fs, 1).unwrap()
    }

    /// The text of the file `path` for a plan.
    pub fn text(plan: &DiskPlan, path: &str) -> String {
        let all = super::all(plan, "made by a test");
        all.into_iter().find(|one| one.path == path).unwrap().text
    }

    /// The words behind each `-E` of a text.
    pub fn extended_options(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut words = text.split([' ', '"', '\'', '\n']);
        while let Some(word) = words.next() {
            if word == "-E" {
                found.push(words.next().unwrap_or_default().to_owned());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::testing::{extended_options, plan};
    use super::*;
    use crate::table::Kind;

    #[test]
    fn every_command_has_one_extended_option_list_with_everything_in_it() {
        for output in all(&plan("ab", Kind::Gpt, "ext4"), "test") {
            for line in output
                .text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'))
            {
                let lists = extended_options(line);
                assert!(lists.len() <= 1, "{}: {line}", output.path);
                for list in lists.iter().filter(|_| !line.contains("tune2fs")) {
                    for item in ["stride=16", "stripe_width=1024", "lazy_itable_init=0"] {
                        assert!(list.contains(item), "{}: {list}", output.path);
                    }
                }
            }
        }
    }

    #[test]
    fn every_command_for_ext_names_its_block_size() {
        for output in all(&plan("ab", Kind::Gpt, "ext4"), "test") {
            let commands = output
                .text
                .lines()
                .filter(|line| line.contains("stripe_width"));
            for line in commands.filter(|line| line.contains(" -E ") && !line.contains("tune2fs")) {
                assert!(line.contains("-b 4096"), "{}: {line}", output.path);
            }
        }
    }

    #[test]
    fn options_leave_out_what_builders_give_themselves() {
        for name in ["ext4", "vfat", "xfs", "f2fs", "btrfs"] {
            let plan = plan("boot-root-data", Kind::Gpt, name);
            let options = mkfs_options(&plan.partitions[2]).join(" ");
            assert!(
                !options.contains("data") && !options.contains("{device}"),
                "{options}"
            );
            assert!(!options.contains("-t ext4"), "{options}");
            if name == "xfs" {
                assert!(options.contains("-l su="), "{options}");
            }
        }
    }

    #[test]
    fn each_file_says_where_it_is_from() {
        for fs in ["ext4", "f2fs", "btrfs", "squashfs-zstd", "xfs"] {
            for output in all(&plan("ab", Kind::Gpt, fs), "made by a test") {
                let is_json = output.path.ends_with(".conf") && output.text.starts_with('{');
                let told = output.text.contains("made by a test");
                assert!(told || is_json, "{}", output.path);
                assert!(output.text.ends_with('\n'), "{}", output.path);
            }
        }
    }
}
