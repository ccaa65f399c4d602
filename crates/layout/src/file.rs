//! Layouts as data: which partitions, of which filesystem, how large.

use crate::boot::BootBoard;
use crate::error::LayoutError;
use crate::label::QUOTES;
use crate::table::Kind;
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::Spanned;
use whichfs_units::{GIB, KIB, MIB, unknown_key};

/// The layouts that ship with the program, by name.
pub const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// Longest name of a GPT partition.
const NAME_LONGEST: usize = 36;
/// Most slots of one partition: a and b, and room to grow.
const MOST_SLOTS: u64 = 4;
const HOW: &str = "see docs/format.md for the form of a layout";

/// What a partition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the boot loader reads.
    Boot,
    /// The root filesystem.
    Root,
    /// Anything else.
    Data,
}

/// How large a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes, rounded up to whole allocation units.
    Bytes(u64),
    /// A part of the disk in percent, rounded down.
    Percent(u64),
    /// All that the others leave.
    Rest,
}

/// Where the boot loader finds the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum KernelFrom {
    /// In the partition of role `boot` if there is one, else in the root.
    #[default]
    Card,
    /// Not on this card (network, NOR flash, eMMC boot partition).
    Elsewhere,
}

/// A partition as it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name in the table.
    pub name: String,
    /// Boot, root or data.
    pub role: Role,
    /// Its filesystem, as the catalogue calls it; the one that the user names if `None`.
    pub fs: Option<String>,
    /// Bytes, a share of the disk, or all that the others leave.
    pub size: Size,
    /// Where it is to begin, in bytes; behind the one before if `None`.
    pub start: Option<u64>,
    /// Label of the filesystem; what fits of the name if `None`.
    pub label: Option<String>,
    /// Where it is mounted; empty for nowhere.
    pub mount: String,
    /// Slot of an A/B pair: `a`, `b`.
    pub slot: Option<char>,
}

/// Partitions and their table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// GPT or MBR.
    pub table: Kind,
    /// Whether the layout says so; else a board may have another.
    pub table_is_said: bool,
    /// Where the kernel is.
    pub kernel: KernelFrom,
    /// In the order in which they lie.
    pub partitions: Vec<Partition>,
    /// The board that boots from it, if one is named.
    pub board: Option<BootBoard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    table: Option<Kind>,
    #[serde(default)]
    kernel: KernelFrom,
    #[serde(default)]
    partition: Vec<Spanned<PartitionFile>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionFile {
    name: String,
    role: Role,
    fs: Option<String>,
    size: String,
    start: Option<String>,
    label: Option<String>,
    #[serde(default)]
    mount: String,
    slots: Option<u64>,
}

/// Bytes of `text`: a number, or one with K, M, G or T (powers of 1024).
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" => KIB,
        "M" | "MiB" => MIB,
        "G" | "GiB" => GIB,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

impl Size {
    fn parse(text: &str) -> Option<Size> {
        if text == "rest" {
            return Some(Size::Rest);
        }
        if let Some(number) = text.strip_suffix('%') {
            let percent = number.trim().parse().ok()?;
            return (1..=100)
                .contains(&percent)
                .then_some(Size::Percent(percent));
        }
        parse_bytes(text)
            .filter(|bytes| *bytes > 0)
            .map(Size::Bytes)
    }
}

impl Layout {
    /// One partition that takes the whole disk, mounted at `mount`.
    pub fn single(table: Kind, name: &str, label: Option<String>, mount: &str) -> Layout {
        Layout {
            table,
            table_is_said: false,
            kernel: KernelFrom::Elsewhere,
            partitions: vec![Partition {
                name: name.to_owned(),
                role: if mount == "/" { Role::Root } else { Role::Data },
                fs: None,
                size: Size::Rest,
                start: None,
                label,
                mount: mount.to_owned(),
                slot: None,
            }],
            board: None,
        }
    }

    /// Reads a layout; `file` is only for messages.
    ///
    /// # Errors
    /// With the line, what was found, and what is legal.
    pub fn parse(file: &str, text: &str) -> Result<Layout, LayoutError> {
        let at = |offset: usize, what: String, remedy: &str| LayoutError::File {
            file: file.to_owned(),
            line: 1 + text
                .bytes()
                .take(offset)
                .filter(|&byte| byte == b'\n')
                .count(),
            what,
            remedy: remedy.to_owned(),
        };
        let read: File = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            match unknown_key(error.message()) {
                Some((found, hint)) => at(offset, found, &hint),
                None => at(offset, error.message().replace('\n', " "), HOW),
            }
        })?;
        let mut partitions = Vec::new();
        for given in &read.partition {
            let offset = given.span().start;
            let found =
                slots(given.get_ref()).map_err(|(what, remedy)| at(offset, what, remedy))?;
            partitions.extend(found);
        }
        let layout = Layout {
            table: read.table.unwrap_or_default(),
            table_is_said: read.table.is_some(),
            kernel: read.kernel,
            partitions,
            board: None,
        };
        layout
            .check()
            .map_err(|(what, remedy)| at(0, what, remedy))?;
        Ok(layout)
    }

    fn check(&self) -> Result<(), Wrong> {
        if self.partitions.is_empty() {
            return Err(("it has no [[partition]]".into(), HOW));
        }
        let mut names = BTreeSet::new();
        let mut mounts = BTreeSet::new();
        for partition in &self.partitions {
            if !names.insert(&partition.name) {
                let what = format!("two partitions are called {:?}", partition.name);
                return Err((what, "give each a name of its own"));
            }
            let mounted = !partition.mount.is_empty() && partition.slot.is_none_or(|s| s == 'a');
            if mounted && !mounts.insert(&partition.mount) {
                let what = format!("two partitions are mounted at {}", partition.mount);
                return Err((what, "mount each at a place of its own"));
            }
        }
        Ok(())
    }
}

/// What is wrong, and the remedy.
type Wrong = (String, &'static str);

/// The partitions of an entry: one, or one for each slot.
fn slots(given: &PartitionFile) -> Result<Vec<Partition>, Wrong> {
    let one = partition(given)?;
    match given.slots {
        None => Ok(vec![one]),
        Some(count @ 2..=MOST_SLOTS) => {
            let letters = ('a'..='z').take(count as usize);
            Ok(letters.map(|slot| in_slot(&one, slot)).collect())
        }
        Some(other) => Err((
            format!("{} has slots = {other}", given.name),
            "write slots = 2 for A/B, or leave it out",
        )),
    }
}

fn in_slot(one: &Partition, slot: char) -> Partition {
    Partition {
        name: format!("{}-{slot}", one.name),
        slot: Some(slot),
        ..one.clone()
    }
}

/// Whether `mount` is a path that a filesystem can be mounted at and that fstab and the files for
/// builders can hold as it is. Of the ways to write a path the shortest is meant: two that lead to
/// the same place are then the same text.
pub fn is_mount(mount: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '#' || QUOTES.contains(c);
    let Some(below) = mount.strip_prefix('/') else {
        return false;
    };
    let plain = |part: &str| !["", ".", ".."].contains(&part);
    (below.is_empty() || below.split('/').all(plain)) && !mount.contains(odd)
}

fn partition(given: &PartitionFile) -> Result<Partition, Wrong> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = &given.name;
    // Files are called by it: one that begins with a dash is an option of all programs.
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() + 2 > NAME_LONGEST || !name.chars().all(legal) {
        return Err((
            format!("the name {name:?}"),
            "use up to 34 letters, digits, -, _ and ., a letter or digit first",
        ));
    }
    let size = Size::parse(&given.size).ok_or((
        format!("{name} has size = {:?}", given.size),
        "write bytes such as \"64M\", a part such as \"25%\", or \"rest\"",
    ))?;
    let start = given.start.as_deref().map(|text| {
        parse_bytes(text).ok_or((
            format!("{name} has start = {text:?}"),
            "write bytes such as \"8M\", or leave it out",
        ))
    });
    let mount = &given.mount;
    if !(mount.is_empty() || is_mount(mount)) {
        return Err((
            format!("{name} has mount = {mount:?}"),
            "write an absolute path without blanks, quotes, #, $, \\, // and .., or leave it out",
        ));
    }
    Ok(Partition {
        name: name.clone(),
        role: given.role,
        fs: given.fs.clone(),
        size,
        start: start.transpose()?,
        label: given.label.clone(),
        mount: mount.clone(),
        slot: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shipped_layouts_are_whole() {
        for (name, text) in BUILTIN {
            let layout = Layout::parse(name, text).unwrap();
            assert!(
                layout.partitions.iter().any(|p| p.role == Role::Root),
                "{name}"
            );
        }
        let ab = Layout::parse("ab", BUILTIN[0].1).unwrap();
        let names: Vec<&str> = ab.partitions.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["boot", "root-a", "root-b", "data"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_the_remedy() {
        let one = "[[partition]]\nname = \"x\"\nrole = \"data\"\nsize = \"1G\"\n";
        for (text, line, word) in [
            ("".to_owned(), 1, "no [[partition]]"),
            ("table = \"bsd\"".to_owned(), 1, "bsd"),
            (format!("\n{one}").replace("1G", "1Q"), 2, "25%"),
            (one.replace("1G", "0"), 1, "rest"),
            (one.replace("1G", "101%"), 1, "rest"),
            (one.replace("\"x\"", "\"a b\""), 1, "up to 34"),
            (one.replace("\"x\"", "\"-x\""), 1, "letter or digit first"),
            (one.replace("\"x\"", "\"..\""), 1, "letter or digit first"),
            (format!("{one}slots = 1\n"), 1, "slots = 2"),
            (format!("{one}start = \"here\"\n"), 1, "8M"),
            (format!("{one}mount = \"data\"\n"), 1, "absolute path"),
            (format!("{one}mount = '/a\"b'\n"), 1, "without blanks"),
            (format!("{one}mount = '/a#b'\n"), 1, "without blanks"),
            (format!("{one}mount = '/data/'\n"), 1, "absolute path"),
            (format!("{one}mount = '/data/../etc'\n"), 1, "absolute path"),
            (format!("{one}colour = 1\n"), 5, "colour"),
            (format!("{one}{one}"), 1, "two partitions are called"),
            (one.replace("data", "swap"), 3, "swap"),
        ] {
            let error = Layout::parse("l.toml", &text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("l.toml:{line}: ")),
                "{text}: {error}"
            );
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
