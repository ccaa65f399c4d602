//! What a host did to a card, with the data: from it the content at any instant can be made again.

use crate::request::Op;
use whichfs_units::Nanos;

/// One request that changes what is on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Write, discard or flush.
    pub op: Op,
    /// First byte on the card.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When it reached the card.
    pub arrived: Nanos,
    /// When the card reported it done.
    pub done: Nanos,
    /// The card copied live data of an AU for it: it merged a log block or collected.
    pub collected: bool,
    /// What was written; empty for others than writes.
    pub data: Box<[u8]>,
}
