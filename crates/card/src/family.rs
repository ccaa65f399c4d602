//! The families of translation layers.

use serde::{Deserialize, Serialize};

/// The family of translation layer (`flash.md` §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// A log block for each open AU, with a hard limit of open AUs (A, and A+s with a
    /// small-write area).
    LogBlock,
    /// A few update blocks, each for one AU: switched, consolidated or chaotic (S).
    UpdateBlock,
    /// Page mapped with greedy collection (P).
    PageMap,
}

impl Family {
    /// All families with their names in profiles.
    pub const NAMES: [(&'static str, Family); 3] = [
        ("log-block", Family::LogBlock),
        ("update-block", Family::UpdateBlock),
        ("page-map", Family::PageMap),
    ];

    /// What profiles call it.
    pub fn name(self) -> &'static str {
        let known = Family::NAMES.iter().find(|(_, value)| *value == self);
        known.map_or("", |(name, _)| name)
    }
}
