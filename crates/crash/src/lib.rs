//! Power cuts: the content of a card at any instant, and what must hold on it. Pure.
//!
//! A workload runs once in the lab; its requests are kept with their data
//! ([`whichfs_blockdev::Logged`]) and its promises with their times. A [`Cut`] is an instant of
//! that run. A [`Timeline`] makes the content that the card has after it, from a clean state
//! forward, under a set of [`Faults`]. [`History`] knows what every file may hold at that instant;
//! a [`Judge`] compares that with what was found on the image, and [`verdict`] says what became of
//! the filesystem.

mod compared;
mod contract;
mod count;
mod cut;
mod fates;
mod fault;
mod faults;
mod floors;
mod found_tree;
mod history;
mod image;
mod judge;
mod live;
mod messages;
mod met;
mod minimise;
mod outcome;
mod own;
mod places;
mod result;
mod verdict;
mod window;

pub use contract::{Contract, contract, deciding_options, gives_up};
pub use count::Share;
pub use cut::{Cut, CutPlace, all_cuts, collection_cuts, cut_at, end_cut, random_cuts};
pub use fault::{
    Acts, CardFacts, Fate, Fault, FaultEvidence, FaultFacts, Faults, exclude_each_other,
    fails_writes, is_live, is_without_cut,
};
pub use faults::{live_faults, refusals};
pub use found_tree::FoundTree;
pub use history::{History, HistoryError};
pub use image::Timeline;
pub use judge::{Judge, PathFinding, in_flux};
pub use live::{LiveRun, LiveSeen, SystemOutcome};
pub use messages::{KernelMessage, classify, of_device};
pub use met::{Harm, Met, Seen, ShareBound};
pub use minimise::{Minimised, minimise};
pub use outcome::PathOutcome;
pub use own::is_own;
pub use result::{CutResult, MeasuredCut};
pub use verdict::{Checked, FilesystemCondition, verdict};
pub use window::{Promise, RunTimeline, Window};
