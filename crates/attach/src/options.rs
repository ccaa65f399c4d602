//! What to attach and how.

use crate::clock::Speed;
use crate::queue::HostQueue;
use std::path::PathBuf;
use whichfs_card::{Card, Profile};
use whichfs_units::Nanos;

/// State in which the card begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginState {
    /// Never written.
    Fresh,
    /// All of it written once, then 5 % random overwrites, as in the lab. The seed decides
    /// where. The bytes are zeros all the same: only the mapping knows of the use.
    Used(u64),
}

/// How requests come from the kernel to the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// By ublk where the kernel has it, else by FUSE.
    #[default]
    Auto,
    /// By a ublk device: one layer, and writes with forced unit access (FUA) reach a card that
    /// has a cache. Linux 6.5 or newer, with its module `ublk_drv`.
    Ublk,
    /// By a loop device in direct I/O on a FUSE file. Linux 5.8 or newer.
    Fuse,
}

/// A card to attach.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The card's name, for people and in [`crate::Statistics`].
    pub name: String,
    /// The card; cut down beforehand by [`Profile::with_capacity`] where it is to be smaller,
    /// drawn beforehand by [`Profile::draw`] where its uncertainty is to count.
    pub profile: Profile,
    /// State in which it begins.
    pub state: BeginState,
    /// How fast its time runs.
    pub speed: Speed,
    /// The way that its requests take.
    pub transport: Transport,
    /// The queue that the kernel sees.
    pub queue: HostQueue,
    /// Time that the host's controller and driver add to each request, as the board file
    /// states it (`request_cost_ns`). This machine's own way to the card is measured and
    /// taken off.
    pub request_cost: Nanos,
    /// Bytes of its contents that stay in memory; the rest goes to a file in `directory`.
    pub memory_bytes: u64,
    /// Directory of the file for contents that do not fit in memory. It must not be on the
    /// attached card itself.
    pub directory: PathBuf,
}

impl AttachOptions {
    pub(crate) fn card(&self) -> Card {
        match self.state {
            BeginState::Fresh => Card::fresh(&self.profile),
            BeginState::Used(seed) => Card::used(&self.profile, seed),
        }
    }
}
