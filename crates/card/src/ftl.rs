//! Translation layers: one file per family behind one enum.
//!
//! A family answers what a write, a discard or an idle spell costs and moves its mapping;
//! bus, read timing, volatile cache and counters of the host's side are not its business.
//! To add a family: its file, a variant here, its name in `profile::Family`, its figures in
//! `figures::SPECS`.

mod log_block;
mod page_map;
mod pool;

use crate::profile::{Family, Profile};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};

pub(crate) use log_block::{LogBlock, MAX_LOGS};
pub(crate) use page_map::PageMap;

/// An invariant of the mapping that does not hold: a bug of the model, or a corrupt snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the card's map is inconsistent: {0}")]
pub struct Violation(pub String);

/// The translation layer of a card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Ftl {
    LogBlock(LogBlock),
    PageMap(PageMap),
}

impl Ftl {
    pub fn new(profile: &Profile) -> Ftl {
        match profile.family() {
            Family::LogBlock => Ftl::LogBlock(LogBlock::new(profile)),
            Family::PageMap => Ftl::PageMap(PageMap::new(profile)),
        }
    }

    /// Writes and returns the time in nanoseconds that programming, copying and erasing take.
    /// `follows` tells that the write begins where the previous one ended.
    #[inline]
    pub fn write(&mut self, offset: u64, bytes: u64, follows: bool, stats: &mut Stats) -> u64 {
        match self {
            Ftl::LogBlock(ftl) => ftl.write(offset, bytes, follows, stats),
            Ftl::PageMap(ftl) => ftl.write(offset, bytes, follows, stats),
        }
    }

    /// Forgets what it wholly holds of the range; returns the time in nanoseconds.
    pub fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        match self {
            Ftl::LogBlock(ftl) => ftl.discard(offset, bytes, stats),
            Ftl::PageMap(ftl) => ftl.discard(offset, bytes, stats),
        }
    }

    /// Erase count of every physical block.
    pub fn erase_counts(&self) -> Vec<u32> {
        match self {
            Ftl::LogBlock(ftl) => ftl.erase_counts(),
            Ftl::PageMap(ftl) => ftl.erase_counts(),
        }
    }

    /// Checks every invariant of the mapping; linear in the size of the card.
    pub fn verify(&self) -> Result<(), Violation> {
        match self {
            Ftl::LogBlock(ftl) => ftl.verify(),
            Ftl::PageMap(ftl) => ftl.verify(),
        }
    }
}
