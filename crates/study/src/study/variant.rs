//! Variants: the ways in which a study makes and mounts a candidate.

use super::Known;
use super::keys::{CARDS, names, opens, own_name};
use super::second_card::{SecondCard, SecondCardFile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Spanned;
use whichfs_decide::{FileError, Position};

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Partitions do not begin later than this: 1 GiB.
const LARGEST_OFFSET: u64 = 1 << 30;
/// What a partition for a journal may have: mke2fs wants 1024 blocks of 4 KiB, and takes at most
/// 10,240,000 of them.
pub(super) const JOURNAL_MIB: std::ops::RangeInclusive<u64> = 4..=40_000;
/// An allocation unit is not parted finer.
const MOST_PARTS: u64 = 1024;

/// A way to mount a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, Default)]
pub struct Variant {
    /// In a word.
    pub name: String,
    /// Options beside those of the catalogue, as in fstab.
    pub add: String,
    /// Options of the catalogue that are left out.
    pub without: Vec<String>,
    /// Arguments for mkfs beside those of the catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Values of mkfs's `key=value` options and of its flags (`-C`) in place of those of the
    /// catalogue.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Where the partition begins; where the lab lays it (the first allocation unit at or after
    /// 4 MiB) if that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
    /// What the filesystem is tuned to.
    #[serde(default, skip_serializing_if = "Tuning::is_this_card")]
    pub tuning: Tuning,
    /// The filesystem's process in user space runs, with these further arguments: its cleaner, or
    /// its driver in place of the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<Vec<String>>,
    /// Its journal is in a partition of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalPartition>,
    /// A second card beside the one under test, or RAM, and what it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_card: Option<SecondCard>,
    /// Version of the lab kernel (`6.1`), where the study names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Candidates that have it; empty for all.
    pub only: Vec<String>,
    /// Where it stands in its file, as `mine.toml:12`; empty if it is of no file.
    #[serde(skip)]
    pub at: String,
}

/// Gives the flag `key` of `command` another value, which follows it or is joined to it; whether
/// it is there.
fn set_flag(command: &mut [String], key: &str, value: &str) -> bool {
    if let Some(at) = command.iter().position(|word| word == key) {
        let follows = command.get_mut(at + 1).map(|word| value.clone_into(word));
        return follows.is_some();
    }
    let joined = command.iter_mut().find(|word| word.starts_with(key));
    joined.map(|word| *word = format!("{key}{value}")).is_some()
}

/// Gives `key=…` in lists with commas of `command` another value; whether it is there.
fn set_option(command: &mut [String], key: &str, value: &str) -> bool {
    let mut found = false;
    for word in command {
        let options = word.split(',').map(|option| match option.split_once('=') {
            Some((name, _)) if name == key => {
                found = true;
                format!("{key}={value}")
            }
            _ => option.to_owned(),
        });
        *word = options.collect::<Vec<String>>().join(",");
    }
    found
}

/// A partition for a journal alone, beside that of its filesystem on the same card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalPartition {
    /// MiB, at least; the partition takes whole allocation units.
    pub mib: u64,
    /// On which side of the filesystem.
    pub at: JournalAt,
}

/// Where the partition of a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalAt {
    /// Before the filesystem.
    Front,
    /// Behind the filesystem.
    End,
}

/// What a filesystem is tuned to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// The card that it is made on.
    #[default]
    ThisCard,
    /// Nothing: as mkfs and mount make it by themselves.
    Nothing,
    /// Another card, by name or profile file.
    Card(String),
}

impl Tuning {
    fn is_this_card(&self) -> bool {
        *self == Tuning::ThisCard
    }
}

/// The first byte of a partition on its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Offset {
    /// So many bytes.
    Bytes(u64),
    /// A part of an allocation unit.
    Au {
        /// So many …
        numerator: u64,
        /// … of so many parts.
        denominator: u64,
    },
}

impl Offset {
    /// Whether a study file may ask for it: whole sectors below 1 GiB, or a part of an allocation
    /// unit.
    fn is_legal(self) -> bool {
        match self {
            Offset::Bytes(bytes) => bytes.is_multiple_of(SECTOR) && bytes <= LARGEST_OFFSET,
            Offset::Au {
                numerator,
                denominator,
            } => numerator < denominator && denominator <= MOST_PARTS,
        }
    }

    /// In bytes, on a card with allocation units of `au` bytes; whole sectors.
    pub fn bytes(self, au: u64) -> u64 {
        match self {
            Offset::Bytes(bytes) => bytes,
            Offset::Au {
                numerator,
                denominator,
            } => au / SECTOR * numerator / denominator.max(1) * SECTOR,
        }
    }

    /// `0 B`, `63 sectors`, `1/2 AU`.
    fn parse(text: &str) -> Option<Offset> {
        let (number, unit) = text.split_once(' ')?;
        let offset = match unit {
            "B" => Offset::Bytes(number.parse().ok()?),
            "sectors" => Offset::Bytes(number.parse::<u64>().ok()?.checked_mul(SECTOR)?),
            "AU" => {
                let (numerator, denominator) = number.split_once('/')?;
                Offset::Au {
                    numerator: numerator.parse().ok()?,
                    denominator: denominator.parse().ok()?,
                }
            }
            _ => return None,
        };
        offset.is_legal().then_some(offset)
    }
}

impl Variant {
    /// Checks the numbers of a variant that comes from no study file.
    ///
    /// # Errors
    /// Which of them is out of its range.
    pub fn validate(&self) -> Result<(), String> {
        if let Some(offset) = self.offset.filter(|offset| !offset.is_legal()) {
            return Err(format!("variant.offset: {offset:?} is no offset"));
        }
        if let Some(second) = &self.second_card {
            second
                .validate(self.journal)
                .map_err(|(what, legal)| format!("variant.second_card: {what}; {legal}"))?;
        }
        match self.journal {
            Some(journal) if !JOURNAL_MIB.contains(&journal.mib) => {
                Err(format!("variant.journal: {} MiB is no size", journal.mib))
            }
            _ => Ok(()),
        }
    }

    /// What a trial calls the candidate `name`: `ext4+journal`, if its journal is on a second card.
    pub fn candidate(&self, name: &str) -> String {
        let second = self.second_card.as_ref();
        second.map_or(name.to_owned(), |second| second.candidate(name))
    }

    /// The mount options, where the catalogue has `recipe`.
    pub fn options(&self, recipe: &str) -> String {
        let kept = recipe
            .split(',')
            .filter(|option| !self.without.iter().any(|without| without == option));
        let all: Vec<&str> = kept.chain([self.add.as_str()]).collect();
        let all: Vec<&str> = all
            .into_iter()
            .filter(|option| !option.is_empty())
            .collect();
        all.join(",")
    }

    /// The command that makes the filesystem, where the catalogue has `argv`; `place` is the
    /// argument before which further ones go, the device or image.
    ///
    /// # Errors
    /// If an option that is to have another value is not there.
    pub fn command(&self, argv: &[String], place: &str) -> Result<Vec<String>, String> {
        let mut command = argv.to_vec();
        for (key, value) in &self.set {
            let found = match key.starts_with('-') {
                true => set_flag(&mut command, key, value),
                false => set_option(&mut command, key, value),
            };
            if !found {
                return Err(format!("{} has no option {key}", argv.join(" ")));
            }
        }
        let at = command.iter().position(|word| word == place);
        let at = at.unwrap_or(command.len());
        command.splice(at..at, self.mkfs.iter().cloned());
        Ok(command)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantFile {
    name: Spanned<String>,
    #[serde(default)]
    add: String,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    mkfs: Vec<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    helper: Option<Vec<String>>,
    journal: Option<Spanned<JournalPartition>>,
    second_card: Option<Spanned<SecondCardFile>>,
    offset: Option<Spanned<String>>,
    tuned_for: Option<Spanned<String>>,
    #[serde(default)]
    only: Vec<Spanned<String>>,
}

/// The variants; one without a change if the file has none.
pub(super) fn variants(
    at: &Position,
    given: &[VariantFile],
    candidates: &[String],
    known: &Known,
) -> Result<Vec<Variant>, FileError> {
    let mut variants: Vec<Variant> = Vec::new();
    for variant in given {
        let others: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        variants.push(Variant {
            name: own_name(at, "variants.name", &variant.name, &others)?,
            add: variant.add.clone(),
            without: variant.without.clone(),
            mkfs: variant.mkfs.clone(),
            set: variant.set.clone(),
            offset: variant
                .offset
                .as_ref()
                .map(|text| offset(at, text))
                .transpose()?,
            tuning: match &variant.tuned_for {
                None => Tuning::ThisCard,
                Some(card) => tuned(at, card, known)?,
            },
            helper: variant.helper.clone(),
            journal: variant
                .journal
                .as_ref()
                .map(|given| journal(at, given))
                .transpose()?,
            second_card: variant
                .second_card
                .as_ref()
                .map(|given| second_card(at, given, variant, known))
                .transpose()?,
            kernel: None,
            only: names(at, "variants.only", &variant.only, candidates)?,
            at: at.of(&variant.name),
        });
    }
    if variants.is_empty() {
        variants.push(Variant::default());
    }
    Ok(variants)
}

fn offset(at: &Position, text: &Spanned<String>) -> Result<Offset, FileError> {
    Offset::parse(text.get_ref()).ok_or_else(|| {
        let legal = "whole sectors below 1 GiB (\"0 B\", \"63 sectors\") or a part of an \
                     allocation unit (\"1/2 AU\")";
        at.error(
            text,
            "variants.offset",
            format!("'{}'", text.get_ref()),
            legal,
        )
    })
}

fn journal(
    at: &Position,
    given: &Spanned<JournalPartition>,
) -> Result<JournalPartition, FileError> {
    let journal = *given.get_ref();
    match JOURNAL_MIB.contains(&journal.mib) {
        true => Ok(journal),
        false => {
            let what = format!("{} MiB", journal.mib);
            let legal = format!("{} to {} MiB", JOURNAL_MIB.start(), JOURNAL_MIB.end());
            Err(at.error(given, "variants.journal", what, &legal))
        }
    }
}

/// The second card that `given` of `variant` names.
fn second_card(
    at: &Position,
    given: &Spanned<SecondCardFile>,
    variant: &VariantFile,
    known: &Known,
) -> Result<SecondCard, FileError> {
    let key = "variants.second_card";
    let file = given.get_ref();
    let second = SecondCard {
        card: at.filled(key, &file.card)?,
        holds: file.holds,
        mib: file.mib.unwrap_or(SecondCard::JOURNAL_MIB),
    };
    if !second.is_ram() {
        opens(at, key, &file.card, known.card, CARDS)?;
    }
    let journal = variant.journal.as_ref().map(|journal| *journal.get_ref());
    match second.validate(journal) {
        Ok(()) => Ok(second),
        Err((what, legal)) => Err(at.error(given, key, what, &legal)),
    }
}

/// What `card` is to be tuned to.
fn tuned(at: &Position, card: &Spanned<String>, known: &Known) -> Result<Tuning, FileError> {
    let key = "variants.tuned_for";
    match at.filled(key, card)?.as_str() {
        "nothing" => Ok(Tuning::Nothing),
        name => {
            opens(at, key, card, known.card, CARDS)?;
            Ok(Tuning::Card(name.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_variant_changes_how_the_filesystem_is_made() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let variant = Variant {
            mkfs: words("-O bigalloc"),
            set: BTreeMap::from([("stride".to_owned(), "8".to_owned())]),
            ..Variant::default()
        };
        let argv = words("mke2fs -E stride=16,stripe_width=64 {device}");
        let made = variant.command(&argv, "{device}").unwrap();
        assert_eq!(
            made.join(" "),
            "mke2fs -E stride=8,stripe_width=64 -O bigalloc {device}"
        );
        let error = variant
            .command(&words("mkfs.vfat {device}"), "{device}")
            .unwrap_err();
        assert!(error.contains("no option stride"), "{error}");
        assert_eq!(Variant::default().command(&argv, "{device}").unwrap(), argv);
    }

    #[test]
    fn flags_get_other_values_joined_or_apart() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let set = |pairs: &[(&str, &str)], argv: &str| {
            let pairs = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let variant = Variant {
                set: pairs.collect(),
                ..Variant::default()
            };
            variant.command(&words(argv), "").map(|argv| argv.join(" "))
        };
        let erofs = set(
            &[("-z", "lz4hc"), ("-C", "65536")],
            "mkfs.erofs -zlz4hc,12 -C16384 x",
        );
        assert_eq!(erofs.unwrap(), "mkfs.erofs -zlz4hc -C65536 x");
        let squashfs = set(&[("-comp", "lz4")], "mksquashfs t i -comp lzo");
        assert_eq!(squashfs.unwrap(), "mksquashfs t i -comp lz4");
        assert!(set(&[("-C", "1")], "mkfs.vfat x").is_err());
    }

    #[test]
    fn offsets_are_sectors_or_parts_of_an_allocation_unit() {
        let bytes = |text| Offset::parse(text).map(|offset| offset.bytes(3 << 20));
        assert_eq!(bytes("0 B"), Some(0));
        assert_eq!(bytes("512 B"), Some(512));
        assert_eq!(bytes("63 sectors"), Some(63 * 512));
        assert_eq!(bytes("1/2 AU"), Some(3 << 19));
        assert_eq!(bytes("1/7 AU"), Some((6144 / 7) * 512), "whole sectors");
        for wrong in [
            "0",
            "100 B",
            "1/0 AU",
            "2/2 AU",
            "-1 sectors",
            "1 MiB",
            "2 GiB",
        ] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
