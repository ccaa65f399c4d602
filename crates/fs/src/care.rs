//! What one does with a filesystem over its life: `data/care.toml`, each line with its source.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Something one does with a filesystem, or that must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Make it larger.
    Grow,
    /// Make it smaller.
    Shrink,
    /// Put what belongs together beside each other.
    Defragment,
    /// Make it another filesystem, or another form of itself, in place.
    Convert,
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
}

impl Matter {
    /// All of them, in the order in which they are told.
    pub const ALL: [Matter; 15] = [
        Matter::Grow,
        Matter::Shrink,
        Matter::Defragment,
        Matter::Convert,
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
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Matter::Grow => "grow",
            Matter::Shrink => "shrink",
            Matter::Defragment => "defragment",
            Matter::Convert => "convert",
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
        }
    }
}

/// Whether something can be done, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    /// While it is mounted.
    Online,
    /// Only while it is not mounted.
    Offline,
    /// Yes, where mounting is no question.
    Yes,
    /// No.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
            if !facts.in_current_linux {
                assert_eq!(care[&Matter::Maintained].can, Can::No, "{}", candidate.name);
            }
        }
    }
}
