//! What a card does to data beyond what its profile says: when power goes, without that, and
//! while it is read again; and what a program fails to do.
//!
//! Each group has its model in prose at the top of its file: `cut`, `damage`, `device`, `program`,
//! `writes`.
//! Faults of all groups go together, but for [`exclude_each_other`].

pub(crate) mod cut;
pub(crate) mod damage;
mod device;
mod program;
mod writes;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr;
use whichfs_units::KIB;

pub(crate) use device::defects;
pub use writes::{fails_writes, refusals};

/// Bytes of a filesystem's block.
pub(crate) const BLOCK: u64 = 4 * KIB;

/// A way in which data are lost or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // `facts` says what each is.
pub enum Fault {
    Reorder,
    FlushLies,
    #[serde(rename = "torn-512")]
    Torn512,
    #[serde(rename = "torn-4k")]
    Torn4k,
    TornPage,
    TornReported,
    AuRollback,
    SmallLost,
    Neighbour,
    ZeroedAfter,
    ZeroedAlternately,
    Dropped,
    BitRot,
    Misdirected,
    StuckReadOnly,
    Dead,
    ReadsCorrupted,
    IoErrors,
    IoErrorsPassing,
    SyncIgnored,
    WriteErrors,
    WriteErrorsPassing,
}

/// What is known of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub meaning: &'static str,
    /// When it does that.
    pub acts: Acts,
    /// What stands behind it.
    pub evidence: Evidence,
    /// Where that is written, and of what; of a hypothesis, why it is one.
    pub source: &'static str,
}

/// When a fault acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acts {
    /// When the power goes.
    AtCut,
    /// During the run, without a cut: such a run is judged at its end.
    WithoutCut,
    /// While the image is mounted, read and repaired.
    WhileRead,
    /// While the workload runs, in the program that runs it or in the card.
    WhileRun,
}

/// What stands behind a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Somebody saw it on flash cards, on SSDs or on bare flash, and published it.
    Published,
    /// It may be so.
    Hypothesis,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 22] = [
        Fault::Reorder,
        Fault::FlushLies,
        Fault::Torn512,
        Fault::Torn4k,
        Fault::TornPage,
        Fault::TornReported,
        Fault::AuRollback,
        Fault::SmallLost,
        Fault::Neighbour,
        Fault::ZeroedAfter,
        Fault::ZeroedAlternately,
        Fault::Dropped,
        Fault::BitRot,
        Fault::Misdirected,
        Fault::StuckReadOnly,
        Fault::Dead,
        Fault::ReadsCorrupted,
        Fault::IoErrors,
        Fault::IoErrorsPassing,
        Fault::SyncIgnored,
        Fault::WriteErrors,
        Fault::WriteErrorsPassing,
    ];

    /// What is known of it.
    pub const fn facts(self) -> &'static Facts {
        match self {
            Fault::Reorder => &cut::REORDER,
            Fault::FlushLies => &cut::FLUSH_LIES,
            Fault::Torn512 => &cut::TORN_512,
            Fault::Torn4k => &cut::TORN_4K,
            Fault::TornPage => &cut::TORN_PAGE,
            Fault::TornReported => &cut::TORN_REPORTED,
            Fault::AuRollback => &cut::AU_ROLLBACK,
            Fault::SmallLost => &cut::SMALL_LOST,
            Fault::Neighbour => &cut::NEIGHBOUR,
            Fault::ZeroedAfter => &damage::ZEROED_AFTER,
            Fault::ZeroedAlternately => &damage::ZEROED_ALTERNATELY,
            Fault::Dropped => &damage::DROPPED,
            Fault::BitRot => &damage::BIT_ROT,
            Fault::Misdirected => &damage::MISDIRECTED,
            Fault::StuckReadOnly => &device::STUCK_READ_ONLY,
            Fault::Dead => &device::DEAD,
            Fault::ReadsCorrupted => &device::READS_CORRUPTED,
            Fault::IoErrors => &device::IO_ERRORS,
            Fault::IoErrorsPassing => &device::IO_ERRORS_PASSING,
            Fault::SyncIgnored => &program::SYNC_IGNORED,
            Fault::WriteErrors => &writes::WRITE_ERRORS,
            Fault::WriteErrorsPassing => &writes::WRITE_ERRORS_PASSING,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether it damages data without a cut: such a run is judged at its end.
    pub const fn is_without_cut(self) -> bool {
        matches!(self.facts().acts, Acts::WithoutCut)
    }
}

/// There is no fault of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no fault is called {name:?}; there are: {all} (whichfs crash faults)")]
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

/// Whether `faults` damage what was written when the run has ended, and none needs a cut.
pub fn is_without_cut(faults: &Faults) -> bool {
    let at_cut = |fault: &Fault| fault.facts().acts == Acts::AtCut;
    faults.iter().any(|fault| fault.is_without_cut()) && !faults.iter().any(at_cut)
}

/// Two faults of `faults` that say different things of the same bytes, if there are such.
pub fn exclude_each_other(faults: &Faults) -> Option<[Fault; 2]> {
    const PAIRS: [[Fault; 2]; 2] = [
        [Fault::ZeroedAfter, Fault::ZeroedAlternately],
        [Fault::Torn512, Fault::Torn4k],
    ];
    let both = |pair: &[Fault; 2]| pair.iter().all(|fault| faults.contains(fault));
    PAIRS.into_iter().find(both)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name_and_says_what_it_is() {
        for fault in Fault::ALL {
            let facts = fault.facts();
            assert_eq!(fault.name().parse(), Ok(fault));
            assert!(!facts.meaning.is_empty() && !facts.source.is_empty());
            let said = serde_json::to_value(fault).unwrap();
            assert_eq!(said, facts.name, "the same name in JSON");
        }
        let names: BTreeSet<&str> = Fault::ALL.into_iter().map(Fault::name).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        let torn = Faults::from([Fault::Torn512, Fault::Torn4k, Fault::Dead]);
        assert_eq!(
            exclude_each_other(&torn),
            Some([Fault::Torn512, Fault::Torn4k])
        );
        assert_eq!(exclude_each_other(&[Fault::Torn512].into()), None);
        let error = "torn".parse::<Fault>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|text| text.contains("torn-512")));
    }
}
