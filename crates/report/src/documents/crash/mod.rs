//! Power cuts: series of them, one with all that it has to tell, and rows of pages.

#[cfg(test)]
mod fixture;
pub mod judged;
mod live;
mod replay;
mod row;
mod series;
mod sums;
mod timeline;

pub use replay::{measured_replay_text, replay_text};
pub use row::{measured_row, promised, promises_of, row};
pub use series::{CutReport, bound_text, cut_line, cut_place, cuts_text, name_words};
pub use sums::CutSums;
pub use timeline::{CutLine, Extent, timeline};

use whichfs_crash::{CardFacts, Contract, Faults, RunTimeline, Timeline};
use whichfs_units::Nanos;

/// A recorded run, whose power is cut.
#[derive(Clone, Copy)]
pub struct CutRun<'a> {
    /// Candidate whose images were judged.
    pub fs: &'a str,
    /// Options it was mounted with.
    pub mount_options: &'a str,
    /// What it promises.
    pub contract: &'a Contract,
    /// Damage beyond the card's own.
    pub faults: &'a Faults,
    /// All requests from the first mount on.
    pub timeline: &'a Timeline,
    /// The first request of the workload itself.
    pub first: usize,
    /// Promises and phases.
    pub run: &'a RunTimeline,
    /// What of the card decides which data survive.
    pub card: &'a CardFacts,
    /// Virtual time of the run.
    pub time: Nanos,
    /// Bytes that the card programmed into its flash from the workload's first request on.
    pub programmed_bytes: u64,
    /// The call at which the run ended because the card had refused a write.
    pub ended: Option<&'a str>,
}
