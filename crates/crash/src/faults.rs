//! What a card does to data when power goes, and what a bad card does without that.
//!
//! Without any fault a card keeps every request that it reported done, up to what its
//! profile says of a volatile cache: there, what was written since the last flush
//! may be lost, newest first (JESD84 on the eMMC cache: "data may be lost", the order of an
//! internal flush is not defined). Of the request under way a prefix of whole flash pages is
//! kept: a card programs pages elsewhere and switches its map over. That is an assumption;
//! `torn-512` drops it.
//! A fault takes more. `flash.md` §2.9 says which of them are published, and of what.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr;

/// A way in which data are lost or damaged, beyond what the card's profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Writes since the last flush are kept or lost one by one, in any order. Published for SSDs
    /// (FAST'13, "unserializable writes"); of an eMMC's cache the standard allows it.
    Reorder,
    /// A flush does nothing: what it should have made durable is still in the cache. Published
    /// for single models (an A2 card's flush bug; SSDs in FAST'13).
    FlushLies,
    /// Of the request under way any sectors of 512 B are kept, not a prefix. Published for SSDs
    /// ("shorn writes").
    Torn512,
    /// Of the request under way any blocks of 4 KiB are kept. Published for SSDs.
    Torn4k,
    /// The flash page under way reads as noise: neither old nor new. Published for NAND: an
    /// interrupted program leaves cells in between (DAC'11).
    TornPage,
    /// The AU being written falls back to its state some writes before. Hypothesis: a card that
    /// writes its map from time to time.
    AuRollback,
    /// Small writes not yet merged into their place are lost. Hypothesis, for cards with an
    /// area of their own for these.
    SmallLost,
    /// A durable page shortly before the one under way is damaged. Published for MLC NAND: a page
    /// shares its cells with an earlier one (DAC'11).
    Neighbour,
    /// The first byte of each 4 KiB block is zero in all that is written in the second half of the
    /// run (ELC 2015, with dm-flakey).
    ZeroedAfter,
    /// The same in every other second of the run (ELC 2015).
    ZeroedAlternately,
    /// All that is written in the second half of the run is dropped (dm-flakey's drop_writes).
    Dropped,
    /// Eight bits of what was written flip.
    BitRot,
    /// One write lands one AU away from its place.
    Misdirected,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 13] = [
        Fault::Reorder,
        Fault::FlushLies,
        Fault::Torn512,
        Fault::Torn4k,
        Fault::TornPage,
        Fault::AuRollback,
        Fault::SmallLost,
        Fault::Neighbour,
        Fault::ZeroedAfter,
        Fault::ZeroedAlternately,
        Fault::Dropped,
        Fault::BitRot,
        Fault::Misdirected,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Reorder => "reorder",
            Fault::FlushLies => "flush-lies",
            Fault::Torn512 => "torn-512",
            Fault::Torn4k => "torn-4k",
            Fault::TornPage => "torn-page",
            Fault::AuRollback => "au-rollback",
            Fault::SmallLost => "small-lost",
            Fault::Neighbour => "neighbour",
            Fault::ZeroedAfter => "zeroed-after",
            Fault::ZeroedAlternately => "zeroed-alternately",
            Fault::Dropped => "dropped",
            Fault::BitRot => "bit-rot",
            Fault::Misdirected => "misdirected",
        }
    }

    /// What it does, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Fault::Reorder => "unflushed writes are kept or lost in any order",
            Fault::FlushLies => "a flush does nothing",
            Fault::Torn512 => "any sectors of the write under way are kept",
            Fault::Torn4k => "any 4 KiB blocks of the write under way are kept",
            Fault::TornPage => "the flash page under way reads as noise",
            Fault::AuRollback => "the AU being written falls back some writes",
            Fault::SmallLost => "small writes not yet merged are lost",
            Fault::Neighbour => "a durable page near the one under way is damaged",
            Fault::ZeroedAfter => "first byte of each block zeroed, second half of the run",
            Fault::ZeroedAlternately => "first byte of each block zeroed, every other second",
            Fault::Dropped => "writes of the second half of the run are dropped",
            Fault::BitRot => "eight written bits flip",
            Fault::Misdirected => "one write lands an AU away",
        }
    }

    /// Whether it damages data without a cut: such a run is judged at its end.
    pub const fn is_without_cut(self) -> bool {
        matches!(
            self,
            Fault::ZeroedAfter
                | Fault::ZeroedAlternately
                | Fault::Dropped
                | Fault::BitRot
                | Fault::Misdirected
        )
    }

    /// Whether it is published of cards or of the flash in them, or a hypothesis.
    pub const fn published(self) -> bool {
        !matches!(self, Fault::AuRollback | Fault::SmallLost)
    }
}

/// There is no fault of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no fault is called {name:?}; there are: {all}")]
pub struct UnknownFault {
    /// What was given.
    pub name: String,
    /// All names.
    pub all: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Fault, UnknownFault> {
        let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
        found.ok_or_else(|| UnknownFault {
            name: name.to_owned(),
            all: Fault::ALL.map(Fault::name).join(", "),
        })
    }
}

/// A set of faults.
pub type Faults = BTreeSet<Fault>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
            assert!(!fault.meaning().is_empty());
        }
        let error = "torn".parse::<Fault>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|text| text.contains("torn-512")));
    }
}
