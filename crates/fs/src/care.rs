//! What one does with a filesystem over its life: `data/care.toml`, each line with its source.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Something one does with a filesystem, or that must know it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    schemars::JsonSchema,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Repair the filesystem with its checker.
    Fsck,
    /// Make it larger.
    Grow,
    /// Make it smaller.
    Shrink,
    /// Put what belongs together beside each other.
    Defragment,
    /// Make it another filesystem, or another form of itself, in place.
    Convert,
    /// Change its features or options after it was made.
    Tune,
    /// Read and verify all of it while it is mounted.
    Scrub,
    /// Keep its state of now beside what is written later: snapshots, subvolumes, checkpoints.
    Snapshot,
    /// Hold it still for a copy of the device.
    Freeze,
    /// Tell the card what is free (fstrim).
    Trim,
    /// Keep its structure, without data, in a file.
    MetadataBackup,
    /// Make an image with files in it without root and without mounting.
    OfflineImage,
    /// Encrypt files or directories by itself.
    Encryption,
    /// U-Boot reads it.
    Uboot,
    /// GRUB reads it.
    Grub,
    /// RAUC knows it by name.
    Rauc,
    /// SWUpdate knows it by name.
    Swupdate,
    /// Under what it may be used.
    Licence,
    /// Somebody looks after it.
    Maintained,
    /// What is deleted or overwritten becomes free without a process in user space.
    Reclaims,
    /// Products and distributions ship it as their default, and since when.
    Products,
    /// Debian's installer makes it.
    Installer,
}

impl Matter {
    /// All of them, in the order in which they are told.
    pub const ALL: [Matter; 22] = [
        Matter::Fsck,
        Matter::Grow,
        Matter::Shrink,
        Matter::Defragment,
        Matter::Convert,
        Matter::Tune,
        Matter::Scrub,
        Matter::Snapshot,
        Matter::Freeze,
        Matter::Trim,
        Matter::MetadataBackup,
        Matter::OfflineImage,
        Matter::Encryption,
        Matter::Uboot,
        Matter::Grub,
        Matter::Rauc,
        Matter::Swupdate,
        Matter::Licence,
        Matter::Maintained,
        Matter::Reclaims,
        Matter::Products,
        Matter::Installer,
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Matter::Fsck => "repair",
            Matter::Grow => "grow",
            Matter::Shrink => "shrink",
            Matter::Defragment => "defragment",
            Matter::Convert => "convert",
            Matter::Tune => "change options",
            Matter::Scrub => "scrub",
            Matter::Snapshot => "snapshot",
            Matter::Freeze => "freeze",
            Matter::Trim => "trim",
            Matter::MetadataBackup => "backup of metadata",
            Matter::OfflineImage => "image without root",
            Matter::Encryption => "encryption of its own",
            Matter::Uboot => "U-Boot reads it",
            Matter::Grub => "GRUB reads it",
            Matter::Rauc => "RAUC knows it",
            Matter::Swupdate => "SWUpdate knows it",
            Matter::Licence => "licence",
            Matter::Maintained => "maintained",
            Matter::Reclaims => "frees space by itself",
            Matter::Products => "a default of products",
            Matter::Installer => "Debian's installer makes it",
        }
    }

    /// The name as in need files and after `--need`.
    pub const fn name(self) -> &'static str {
        match self {
            Matter::MetadataBackup => "metadata_backup",
            Matter::OfflineImage => "offline_image",
            Matter::Encryption => "encryption",
            Matter::Tune => "tune",
            Matter::Fsck => "fsck",
            Matter::Uboot => "uboot",
            Matter::Grub => "grub",
            Matter::Rauc => "rauc",
            Matter::Swupdate => "swupdate",
            Matter::Reclaims => "reclaims",
            Matter::Products => "products",
            Matter::Installer => "installer",
            // The others are a word.
            other => other.words(),
        }
    }

    /// What a filesystem is like with which it can be done, and with which it cannot: what
    /// follows its name in a sentence.
    pub const fn phrases(self) -> (&'static str, &'static str) {
        match self {
            Matter::Fsck => ("can be repaired", "cannot be repaired"),
            Matter::Grow => ("can grow", "cannot grow"),
            Matter::Shrink => ("can shrink", "cannot shrink"),
            Matter::Defragment => ("can be defragmented", "cannot be defragmented"),
            Matter::Convert => ("can be converted in place", "cannot be converted in place"),
            Matter::Tune => (
                "has options that can be changed later",
                "has no options that can be changed later",
            ),
            Matter::Scrub => ("can be scrubbed", "cannot be scrubbed"),
            Matter::Snapshot => ("has snapshots", "has no snapshots"),
            Matter::Freeze => ("can be frozen", "cannot be frozen"),
            Matter::Trim => (
                "tells the card what is free",
                "does not tell the card what is free",
            ),
            Matter::MetadataBackup => (
                "has a backup of its metadata",
                "has no backup of its metadata",
            ),
            Matter::OfflineImage => (
                "is built into an image without root",
                "is not built into an image without root",
            ),
            Matter::Encryption => ("encrypts by itself", "does not encrypt by itself"),
            Matter::Uboot => ("is read by U-Boot", "is not read by U-Boot"),
            Matter::Grub => ("is read by GRUB", "is not read by GRUB"),
            Matter::Rauc => ("is a slot type of RAUC", "is no slot type of RAUC"),
            Matter::Swupdate => (
                "is a filesystem of SWUpdate",
                "is no filesystem of SWUpdate",
            ),
            Matter::Licence => ("has a licence", "has no licence"),
            Matter::Maintained => ("is maintained", "is not maintained"),
            Matter::Products => (
                "is a default of shipped products",
                "is no default of shipped products",
            ),
            Matter::Installer => (
                "is made by Debian's installer",
                "is not made by Debian's installer",
            ),
            Matter::Reclaims => (
                "frees space by itself",
                "frees no space without a process in user space",
            ),
        }
    }
}

/// Whether something can be done, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    /// While it is mounted.
    Online,
    /// Only while it is not mounted.
    Offline,
    /// Yes, where mounting is no question.
    Yes,
    /// It cannot be done.
    No,
}

impl Can {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Can::Online => "mounted",
            Can::Offline => "unmounted",
            Can::Yes => "yes",
            Can::No => "no",
        }
    }
}

/// One line of care.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Care {
    /// Whether it can be done.
    pub can: Can,
    /// The command, or why not; `$DEV` is the device, `/mnt` where it is mounted.
    pub how: String,
    /// Where that is written.
    pub source: String,
}

/// A table of the file.
#[derive(Deserialize)]
struct Entry {
    like: Option<String>,
    #[serde(flatten)]
    own: BTreeMap<Matter, Care>,
}

static TEXT: &str = include_str!("../data/care.toml");

/// All that is known of each candidate, by name.
static CARE: LazyLock<BTreeMap<String, BTreeMap<Matter, Care>>> = LazyLock::new(|| {
    let entries: BTreeMap<String, Entry> = toml::from_str(TEXT)
        .unwrap_or_else(|error| unreachable!("care.toml is part of the program: {error}"));
    let names = entries.keys();
    names
        .map(|name| (name.clone(), whole(&entries, name)))
        .collect()
});

/// An entry with what it takes from others.
fn whole(entries: &BTreeMap<String, Entry>, name: &str) -> BTreeMap<Matter, Care> {
    let Some(entry) = entries.get(name) else {
        return BTreeMap::new();
    };
    let mut all = match &entry.like {
        Some(other) => whole(entries, other),
        None => BTreeMap::new(),
    };
    all.extend(entry.own.clone());
    all
}

/// What can be done with the candidate called `name`, and how; nothing of unknown ones.
pub fn care(name: &str) -> &'static BTreeMap<Matter, Care> {
    static NOTHING: BTreeMap<Matter, Care> = BTreeMap::new();
    CARE.get(name).unwrap_or(&NOTHING)
}

/// Why the candidate called `name` does not free space unless its process in user space runs; none
/// if it does.
pub fn never_reclaims(name: &str) -> Option<&'static Care> {
    let line = care(name).get(&Matter::Reclaims);
    line.filter(|care| care.can == Can::No)
}

/// Something that speaks against a candidate and that no rule of a need looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Reservation {
    /// What it is, as the end of a sentence about the filesystem.
    pub what: String,
    /// Where that is written.
    pub source: String,
}

/// The reservations about the candidate called `name`: time stamps that end soon, a driver that
/// nobody maintains, a process in user space without which space is not freed.
pub fn reservations(name: &str) -> Vec<Reservation> {
    /// The year in which seconds of 32 bits with a sign end.
    const END_OF_32_BITS: u64 = 2038;
    let Ok(candidate) = crate::find(name) else {
        return Vec::new();
    };
    let facts = candidate.facts();
    let mut all = Vec::new();
    if facts.y2038 <= END_OF_32_BITS {
        let source = facts
            .sources
            .iter()
            .find(|(claim, _)| *claim == "last year");
        all.push(Reservation {
            what: format!(
                "stamps its files with times that end in {}: seconds since 1970 in 32 bits",
                facts.y2038
            ),
            source: source.map_or(String::new(), |(_, source)| (*source).to_owned()),
        });
    }
    let unmaintained = care(name).get(&Matter::Maintained);
    if let Some(care) = unmaintained.filter(|care| care.can == Can::No) {
        all.push(Reservation {
            what: format!(
                "has a driver that is not maintained as others are: {}",
                care.how
            ),
            source: care.source.clone(),
        });
    }
    if let Some(care) = never_reclaims(name) {
        all.push(Reservation {
            what: format!("does not free space by itself: {}", care.how),
            source: care.source.clone(),
        });
    }
    all
}

/// SPDX identifiers of the licences of driver and tools of the candidate called `name`, each once,
/// in order.
pub fn licences(name: &str) -> Vec<&'static str> {
    let text = care(name).get(&Matter::Licence);
    let words = text
        .map_or("", |care| care.how.as_str())
        .split([' ', ';', ',']);
    // A name, a hyphen and a version: no tool has such a name.
    let is_licence = |word: &&str| {
        word.split_once('-')
            .is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut found: Vec<&str> = words.filter(is_licence).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::catalogue::candidates;

    #[test]
    fn every_candidate_has_every_matter_with_its_source() {
        for candidate in candidates() {
            let care = care(candidate.name);
            for matter in Matter::ALL {
                let line = &care[&matter];
                let what = format!("{} {}", candidate.name, matter.words());
                assert!(!line.how.is_empty() && !line.source.is_empty(), "{what}");
            }
        }
        let known: Vec<&str> = candidates().iter().map(|c| c.name).collect();
        assert!(CARE.keys().all(|name| known.contains(&name.as_str())));
    }

    #[test]
    fn names_are_those_of_the_file() {
        for matter in Matter::ALL {
            let name = toml::Value::try_from(matter).unwrap();
            assert_eq!(name.as_str(), Some(matter.name()));
        }
    }

    #[test]
    fn every_candidate_has_its_licences() {
        for candidate in candidates() {
            let found = licences(candidate.name);
            assert!(found.contains(&"GPL-2.0"), "{}: {found:?}", candidate.name);
        }
        assert_eq!(licences("vfat"), ["GPL-2.0", "GPL-3.0"]);
        assert_eq!(licences("erofs"), ["Apache-2.0", "GPL-2.0"]);
        assert!(licences("nothing").is_empty());
    }

    #[test]
    fn one_takes_from_another_what_it_does_not_say_itself() {
        let ext2 = care("ext2");
        assert_eq!(ext2[&Matter::Shrink], care("ext4")[&Matter::Shrink]);
        assert_eq!(ext2[&Matter::Grow].can, Can::Offline);
        assert_eq!(care("f2fs")[&Matter::Shrink].can, Can::No);
    }

    #[test]
    fn what_care_says_agrees_with_the_facts() {
        for candidate in candidates() {
            let care = care(candidate.name);
            let facts = candidate.facts();
            if facts.read_only {
                assert_eq!(
                    care[&Matter::OfflineImage].can,
                    Can::Yes,
                    "{}",
                    candidate.name
                );
                assert_eq!(care[&Matter::Grow].can, Can::No, "{}", candidate.name);
            }
            let snapshot = care[&Matter::Snapshot].can != Can::No;
            assert_eq!(snapshot, facts.snapshots, "{}", candidate.name);
            if !facts.in_current_linux {
                assert_eq!(care[&Matter::Maintained].can, Can::No, "{}", candidate.name);
            }
        }
    }
}
