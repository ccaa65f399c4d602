//! Labels, and what mkfs needs where its device is a file: each program has its own way.

use crate::error::LayoutError;
use whichfs_fs::{Candidate, Recipe};

/// A program that makes filesystems: its flag for the label, the longest label, and what it needs
/// to write into a file.
struct Tool {
    program: &'static str,
    flag: &'static str,
    longest: usize,
    for_file: &'static str,
}

const fn tool(
    program: &'static str,
    flag: &'static str,
    longest: usize,
    for_file: &'static str,
) -> Tool {
    Tool {
        program,
        flag,
        longest,
        for_file,
    }
}

/// Limits: mke2fs(8), mkfs.fat(8), mkfs.exfat(8), mkntfs(8), mkfs.xfs(8), mkfs.btrfs(8),
/// mkfs.f2fs(8), mkfs.nilfs2(8), mkreiserfs(8), mkfs.jfs(8).
const TOOLS: [Tool; 10] = [
    tool("mke2fs", "-L", 16, "-F"),
    tool("mkfs.vfat", "-n", 11, ""),
    tool("mkfs.exfat", "-L", 11, ""),
    tool("mkfs.ntfs", "-L", 32, "-F"),
    tool("mkfs.xfs", "-L", 12, ""),
    tool("mkfs.btrfs", "-L", 255, ""),
    tool("mkfs.f2fs", "-l", 512, ""),
    tool("mkfs.nilfs2", "-L", 80, ""),
    tool("mkreiserfs", "-l", 16, "-f"),
    tool("mkfs.jfs", "-L", 16, ""),
];

/// Characters that FAT labels may not have (Microsoft FAT specification, directory entry names).
const NOT_IN_FAT: &str = "\"*+,./:;<=>?[\\]|";

/// Characters that shells, genimage's and wic's files read as something else.
pub(crate) const QUOTES: &str = "\"'`$\\";

fn tool_of(recipe: &Recipe) -> Option<&'static Tool> {
    let program = recipe.mkfs.first()?.first()?;
    TOOLS.iter().find(|tool| tool.program == program)
}

/// The mkfs command `argv` with what its program needs to write into a regular file, which needs
/// no root.
pub fn in_file(mut argv: Vec<String>) -> Vec<String> {
    let program = argv.first().cloned().unwrap_or_default();
    if let Some(tool) = TOOLS.iter().find(|tool| tool.program == program) {
        let flag = Some(tool.for_file).filter(|flag| !flag.is_empty());
        argv.splice(1..1, flag.map(str::to_owned));
    }
    argv
}

/// The label that a partition called `name` gets if none is said: what fits.
pub(crate) fn of_name(recipe: &Recipe, name: &str) -> String {
    let Some(tool) = tool_of(recipe) else {
        return String::new();
    };
    let label: String = name.chars().take(tool.longest).collect();
    match tool.program {
        "mkfs.vfat" => label
            .to_uppercase()
            .replace(|c| NOT_IN_FAT.contains(c), "-"),
        _ => label,
    }
}

/// `recipe` with `label`, if that is not empty.
///
/// # Errors
/// If `candidate` has no such label.
pub fn labelled(
    mut recipe: Recipe,
    candidate: &Candidate,
    label: &str,
) -> Result<Recipe, LayoutError> {
    let Some(tool) = tool_of(&recipe) else {
        return match label {
            "" => Ok(recipe),
            _ => Err(LayoutError::plan(
                format!("label {label:?}: {} has no labels", candidate.name),
                "leave the label out",
            )),
        };
    };
    check(tool, candidate, label)?;
    if let Some(argv) = recipe.mkfs.first_mut().filter(|_| !label.is_empty()) {
        argv.splice(1..1, [tool.flag.to_owned(), label.to_owned()]);
    }
    Ok(recipe)
}

fn check(tool: &Tool, candidate: &Candidate, label: &str) -> Result<(), LayoutError> {
    let name = candidate.name;
    if label.chars().count() > tool.longest || !label.is_ascii() {
        return Err(LayoutError::plan(
            format!(
                "label {label:?}: {name} has at most {} ASCII characters",
                tool.longest
            ),
            "shorten it",
        ));
    }
    if label.contains(|c: char| QUOTES.contains(c)) {
        return Err(LayoutError::plan(
            format!(
                "label {label:?}: image builders and shells read its quotes, $ or \\ otherwise"
            ),
            "use letters, digits, blanks, - and _",
        ));
    }
    let fat = tool.program == "mkfs.vfat";
    let wrong = |c: char| c.is_ascii_control() || fat && NOT_IN_FAT.contains(c);
    if label.contains(wrong) || fat && label != label.to_uppercase() {
        return Err(LayoutError::plan(
            format!("label {label:?} is none that {name} may have"),
            "use capital letters, digits, blanks, - and _",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::medium::{Medium, Unit};
    use whichfs_fs::{Purpose, candidates, find};
    use whichfs_units::GIB;

    fn recipe(name: &str) -> Recipe {
        let medium = Medium::of_unit(GIB, Unit::safe(GIB), true);
        find(name)
            .unwrap()
            .recipe(&medium.geometry(GIB), Purpose::User)
            .unwrap()
    }

    #[test]
    fn every_filesystem_that_mkfs_makes_takes_a_label() {
        for candidate in candidates() {
            let made = recipe(candidate.name);
            if made.image.is_some() {
                assert!(labelled(made, candidate, "X").is_err());
                continue;
            }
            let label = of_name(&made, "data");
            let argv = labelled(made, candidate, &label).unwrap().mkfs;
            assert_eq!(argv[0][2].to_lowercase(), "data", "{}", candidate.name);
        }
    }

    #[test]
    fn a_name_makes_a_label_that_the_filesystem_may_have() {
        assert_eq!(of_name(&recipe("vfat"), "my.boot"), "MY-BOOT");
        assert_eq!(of_name(&recipe("ext4"), "my.boot"), "my.boot");
    }

    #[test]
    fn labels_that_cannot_be_are_told_with_the_limit() {
        let of = |name: &str, label: &str| {
            let made = labelled(recipe(name), find(name).unwrap(), label);
            made.unwrap_err().to_string()
        };
        assert!(of("xfs", "thirteen-long").contains("at most 12"));
        assert!(of("vfat", "boot").contains("capital letters"));
        assert!(of("vfat", "A/B").contains("capital letters"));
        assert!(of("ext4", "für").contains("ASCII"));
        for label in ["a\"b", "a'b", "a`b", "a$b", "a\\b"] {
            assert!(of("ext4", label).contains("use letters"), "{label}");
        }
    }

    #[test]
    fn in_a_file_programs_are_told_that_it_is_one() {
        let of = |name: &str| in_file(recipe(name).mkfs[0].clone())[1].clone();
        assert_eq!(of("xfs"), "-f", "as on a device");
        assert_eq!(of("ntfs3"), "-F");
        assert_eq!(of("ext4"), "-F");
    }
}
