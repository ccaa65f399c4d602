//! The kickstart file for wic against wic's documented grammar.
//!
//! The grammar is written here from the OpenEmbedded Kickstart (.wks) Reference of the Yocto
//! Project manual and the options that `wic help kickstart` lists, as of OpenEmbedded-Core of April
//! 2026: names of options, whether and which value each takes, and what excludes what.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{board_plan, plan};
use std::collections::BTreeMap;
use whichfs_layout::{DiskPlan, Layout, Medium, TableKind, Unit};
use whichfs_units::MIB;

/// What an option takes.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Text,
    Whole,
    /// A number with S, K, M or G.
    Size,
    OneOf(&'static [&'static str]),
    Hex8,
}
use Takes::*;

const FSTYPES: &[&str] = &[
    "ext2", "ext3", "ext4", "btrfs", "squashfs", "vfat", "msdos", "erofs", "swap", "none",
];

const PART: [(&str, Takes); 33] = [
    ("--active", Nothing),
    ("--align", Whole),
    ("--offset", Size),
    ("--exclude-path", Text),
    ("--include-path", Text),
    ("--change-directory", Text),
    ("--extra-filesystem-space", Size),
    ("--extra-partition-space", Size),
    ("--fsoptions", Text),
    ("--fspassno", Text),
    ("--fstype", OneOf(FSTYPES)),
    ("--mkfs-extraopts", Text),
    ("--label", Text),
    ("--use-label", Nothing),
    ("--no-table", Nothing),
    ("--ondisk", Text),
    ("--overhead-factor", Text),
    ("--part-name", Text),
    ("--part-type", Text),
    ("--rootfs-dir", Text),
    ("--type", OneOf(&["primary", "logical"])),
    ("--hidden", Nothing),
    ("--size", Size),
    ("--fixed-size", Size),
    ("--source", Text),
    ("--sourceparams", Text),
    ("--system-id", Hex8),
    ("--use-uuid", Nothing),
    ("--uuid", Text),
    ("--fsuuid", Text),
    ("--no-fstab-update", Nothing),
    ("--mbr", Nothing),
    ("--ondrive", Text),
];

const BOOTLOADER: [(&str, Takes); 6] = [
    ("--append", Text),
    ("--configfile", Text),
    ("--ptable", OneOf(&["msdos", "gpt", "gpt-hybrid"])),
    ("--diskid", Text),
    ("--timeout", Whole),
    ("--source", Text),
];

/// The words of a line as a shell reads them.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut all, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, open) = (Some(c), true),
            (None, ' ' | '\t') => {
                if open || !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("an open quote: {line}"));
    }
    if open || !word.is_empty() {
        all.push(word);
    }
    Ok(all)
}

fn legal(takes: Takes, value: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match takes {
        Nothing => false,
        Text => !value.starts_with("--"),
        Whole => number(value),
        Size => number(value.trim_end_matches(['S', 's', 'K', 'k', 'M', 'G'])),
        OneOf(all) => all.contains(&value),
        Hex8 => u8::from_str_radix(value.trim_start_matches("0x"), 16).is_ok_and(|id| id > 0),
    }
}

/// The options of a command; what stands alone is under the empty name.
fn options(
    words: &[String],
    grammar: &[(&str, Takes)],
) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        if !name.starts_with('-') {
            if found.insert(String::new(), word.clone()).is_some() {
                return Err(format!("a second mount point: {word}"));
            }
            continue;
        }
        let takes = grammar.iter().find(|(known, _)| *known == name);
        let (_, takes) = takes.ok_or(format!("no such option: {name}"))?;
        let value = match takes {
            Nothing => String::new(),
            _ => joined
                .or_else(|| words.next().cloned())
                .ok_or(format!("{name} without value"))?,
        };
        if *takes != Nothing && !legal(*takes, &value) {
            return Err(format!("{name} {value}"));
        }
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}

fn part(words: &[String]) -> Result<BTreeMap<String, String>, String> {
    let found = options(words, &PART)?;
    let has = |name: &str| found.contains_key(name);
    let fstype = found.get("--fstype").map_or("vfat", String::as_str);
    if has("--size") && has("--fixed-size") {
        return Err("--size and --fixed-size".into());
    }
    if has("--fixed-size") && (has("--overhead-factor") || has("--extra-filesystem-space")) {
        return Err("--fixed-size and room beside it".into());
    }
    if matches!(fstype, "squashfs" | "erofs") && has("--label") {
        return Err(format!("{fstype} has no label"));
    }
    if found
        .get("--label")
        .is_some_and(|label| fstype == "vfat" && label.len() > 11)
    {
        return Err("a label of FAT has 11 characters".into());
    }
    if has("--use-label") && !has("--label") {
        return Err("--use-label without --label".into());
    }
    Ok(found)
}

fn bootloader(words: &[String]) -> Result<(), String> {
    let found = options(words, &BOOTLOADER)?;
    let gpt = found.get("--ptable").is_some_and(|table| table == "gpt");
    let id = found.get("--diskid").map_or("", String::as_str);
    let is_uuid = id.len() == 36 && id.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let is_number = id
        .strip_prefix("0x")
        .is_some_and(|hex| u32::from_str_radix(hex, 16).is_ok());
    match id.is_empty() || gpt && is_uuid || !gpt && is_number {
        true => Ok(()),
        false => Err(format!("--diskid {id}")),
    }
}

/// Checks a kickstart file; the options of its partitions.
fn check(text: &str) -> Result<Vec<BTreeMap<String, String>>, String> {
    let mut parts = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words = words(line)?;
        match words[0].as_str() {
            "part" | "partition" => parts.push(part(&words[1..])?),
            "bootloader" => bootloader(&words[1..])?,
            other => return Err(format!("no such command: {other}")),
        }
    }
    Ok(parts)
}

#[test]
fn every_kickstart_file_keeps_to_the_grammar_and_the_plan() {
    for fs in [
        "ext4",
        "ext4-nojournal",
        "f2fs",
        "btrfs",
        "xfs",
        "vfat",
        "squashfs-zstd",
        "erofs-lz4hc",
    ] {
        for (layout, kind) in [
            ("boot-root-data", TableKind::Gpt),
            ("boot-root", TableKind::Mbr),
            ("ab", TableKind::Gpt),
        ] {
            if fs == "vfat" && layout == "ab" {
                continue;
            }
            let plan = plan(layout, kind, fs, 4096, 12);
            let all = whichfs_layout::emit::all(&plan, "made by a test");
            let text = &all
                .iter()
                .find(|one| one.path == "whichfs.wks.in")
                .unwrap()
                .text;
            let parts = check(text).unwrap_or_else(|error| panic!("{fs}: {error}\n{text}"));
            assert_eq!(parts.len(), plan.partitions.len());
            for (part, one) in parts.iter().zip(&plan.partitions) {
                assert_eq!(part["--align"], "12288", "KiB");
                assert_eq!(part["--offset"], format!("{}K", one.start / 1024));
                assert_eq!(part["--fixed-size"], format!("{}K", one.bytes / 1024));
            }
        }
    }
}

#[test]
fn raw_boot_loaders_are_copied_before_the_partitions() {
    for (board, raw) in [("imx6", 2), ("imx8m", 1), ("raspberry-pi-3", 0)] {
        let plan = board_plan("ab", board);
        let all = whichfs_layout::emit::all(&plan, "made by a test");
        let kickstart = all.iter().find(|one| one.path == "whichfs.wks.in").unwrap();
        let parts = check(&kickstart.text).unwrap_or_else(|error| panic!("{board}: {error}"));
        assert_eq!(parts.len(), plan.partitions.len() + raw, "{board}");
        for (part, area) in parts.iter().zip(&plan.board.as_ref().unwrap().rules.raw) {
            if let Some(file) = &area.file {
                assert_eq!(part["--sourceparams"], format!("file={file}"));
                assert_eq!(part["--align"], (area.start() / 1024).to_string());
                assert!(part.contains_key("--no-table"));
            }
        }
    }
}

#[test]
fn a_label_with_a_blank_is_no_word_of_its_own() {
    for fs in ["vfat", "btrfs", "ext4"] {
        let text = format!(
            "[[partition]]\nname = \"data\"\nrole = \"data\"\nfs = \"{fs}\"\nsize = \"rest\"\n\
             mount = \"/data\"\nlabel = \"MY DATA\"\n"
        );
        let layout = Layout::parse("a test", &text).unwrap();
        let medium = Medium::of_unit(512 * MIB, Unit::new(4 * MIB, "given").unwrap(), true);
        let plan = DiskPlan::new(&layout, &medium, None, 7).unwrap();
        let all = whichfs_layout::emit::all(&plan, "made by a test");
        let kickstart = all.iter().find(|one| one.path == "whichfs.wks.in").unwrap();
        let parts = check(&kickstart.text).unwrap_or_else(|error| panic!("{fs}: {error}"));
        assert!(!parts[0].contains_key("--label"), "{}", kickstart.text);
        let told = kickstart.text.contains("# wic takes no label with a blank");
        assert_eq!(told, fs != "ext4", "{}", kickstart.text);
    }
}

#[test]
fn what_is_against_the_grammar_is_found() {
    for wrong in [
        "part / --fstype=f2fs",
        "part / --align 4M",
        "part / --size 1 --fixed-size 2",
        "part / --fixed-size 2 --overhead-factor 1.3",
        "part / --fstype=squashfs --label x",
        "part / --mkfs-opts x",
        "part / /boot",
        "part / --label",
        "part / --mkfs-extraopts \"open",
        "part / --system-id 0x100",
        "part / --use-label",
        "bootloader --ptable mbr",
        "bootloader --ptable gpt --diskid 0x1234",
        "bootloader --ptable msdos --diskid 0x123456789",
        "disk x",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    let right =
        "part / --source rootfs --fstype=ext4 --mkfs-extraopts \"-b 4096 -E x=1\" --size 1G";
    assert_eq!(
        check(right).unwrap()[0]["--mkfs-extraopts"],
        "-b 4096 -E x=1"
    );
}
