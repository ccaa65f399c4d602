//! A second card beside the one under test: what it is, and what of the filesystem it holds.

use super::JournalPartition;
use super::variant::JOURNAL_MIB;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use whichfs_fs::Candidate;

/// A second card of a trial. It is drawn with the seed of the trial, and begins used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SecondCard {
    /// Name or profile file of the card; [`SecondCard::RAM`] for the board's memory.
    pub card: String,
    /// What it holds.
    pub holds: SecondCardUse,
    /// MiB of the journal, at least; its partition takes whole allocation units.
    pub mib: u64,
}

/// What of a filesystem is on a second card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecondCardUse {
    /// The journal: ext3's and ext4's external journal, xfs' external log.
    Journal,
    /// The upper layer of overlayfs: what is written after the filesystem was filled.
    Upper,
}

impl SecondCardUse {
    /// `journal` or `upper`.
    pub fn word(self) -> &'static str {
        match self {
            SecondCardUse::Journal => "journal",
            SecondCardUse::Upper => "upper",
        }
    }
}

/// A second card as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecondCardFile {
    pub card: Spanned<String>,
    pub holds: SecondCardUse,
    pub mib: Option<u64>,
}

impl SecondCard {
    /// The card that is none: tmpfs in the memory of the board.
    pub const RAM: &'static str = "ram";
    /// MiB of a journal where nobody says how many: the least that mkfs.xfs takes as a log.
    pub const JOURNAL_MIB: u64 = 64;

    /// Whether it is the board's memory.
    pub fn is_ram(&self) -> bool {
        self.card == SecondCard::RAM
    }

    /// What a trial calls the candidate `name` with this card: `ext4+journal`.
    pub fn candidate(&self, name: &str) -> String {
        format!("{name}{}{}", Candidate::SECOND_CARD, self.holds.word())
    }

    /// In words: `its journal is on a second card, emmc-8gb`.
    pub fn told(&self) -> String {
        let what = match self.holds {
            SecondCardUse::Journal => "its journal",
            SecondCardUse::Upper => "what is written over it (overlayfs)",
        };
        match self.is_ram() {
            true => format!("{what} is in RAM"),
            false => format!("{what} is on a second card, {}", self.card),
        }
    }

    /// Checks it beside a `journal` on the first card.
    ///
    /// # Errors
    /// What is wrong, and what is legal.
    pub(super) fn validate(
        &self,
        journal: Option<JournalPartition>,
    ) -> Result<(), (String, String)> {
        let is_journal = self.holds == SecondCardUse::Journal;
        if is_journal && self.is_ram() {
            let legal = "a card: a journal in RAM is lost with the power";
            return Err(("a journal in ram".to_owned(), legal.to_owned()));
        }
        if is_journal && journal.is_some() {
            let what = "a journal beside `journal`, which puts it on the first card";
            return Err((what.to_owned(), "one of them".to_owned()));
        }
        match JOURNAL_MIB.contains(&self.mib) {
            true => Ok(()),
            false => {
                let legal = format!("{} to {} MiB", JOURNAL_MIB.start(), JOURNAL_MIB.end());
                Err((format!("{} MiB", self.mib), legal))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{JournalAt, Variant};
    use super::*;

    fn second(card: &str, holds: SecondCardUse, mib: u64) -> SecondCard {
        SecondCard {
            card: card.to_owned(),
            holds,
            mib,
        }
    }

    #[test]
    fn a_candidate_says_what_of_it_is_elsewhere() {
        let journal = second("emmc-8gb", SecondCardUse::Journal, 64);
        assert_eq!(journal.candidate("ext4"), "ext4+journal");
        assert_eq!(
            whichfs_fs::find_of_trial("ext4+journal").unwrap().name,
            "ext4"
        );
        assert_eq!(journal.told(), "its journal is on a second card, emmc-8gb");
        let upper = second(SecondCard::RAM, SecondCardUse::Upper, 64);
        assert!(upper.told().ends_with("is in RAM"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |second: SecondCard, journal| {
            let variant = Variant {
                second_card: Some(second),
                journal,
                ..Variant::default()
            };
            variant.validate().err().unwrap_or_default()
        };
        let on = |holds, mib| second("emmc-8gb", holds, mib);
        let at = Some(JournalPartition {
            mib: 64,
            at: JournalAt::End,
        });
        assert_eq!(refused(on(SecondCardUse::Journal, 64), None), "");
        assert_eq!(refused(on(SecondCardUse::Upper, 64), at), "");
        assert!(refused(on(SecondCardUse::Journal, 64), at).contains("one of them"));
        assert!(refused(on(SecondCardUse::Journal, 1), None).contains("4 to 40000 MiB"));
        let ram = second(SecondCard::RAM, SecondCardUse::Journal, 64);
        assert!(refused(ram, None).contains("lost with the power"));
    }
}
