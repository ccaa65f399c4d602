//! Family A+s: log blocks (family A) beside an area for small writes.
//!
//! **Mechanism.** Writes below `log_block.small_write_bytes` go to an area of their own, whatever
//! their place, and touch none of the few places for open AUs: on such cards 4 KiB writes do not
//! suffer from one AU too many, where 16 KiB writes become some hundred times slower (`flash.md`
//! 2.3.8). What collecting the area takes is in the measured `log_block.small_write_us`, so a small
//! write has one price; its erases are counted as its bytes fill a block, in whole pages.
//!
//! **Order.** With `log_block.small_write_jumps` only small writes that do not continue the last
//! write go there (WB21 does so, WB15 does not). Small writes that the reader joins to the one
//! before (`write.coalesce`, `flash.md` 2.3.2) are no small writes to the card.
//!
//! **Rest.** Cards with such an area close the logs of family A while idle
//! (`log_block.idle_close_us`), as told there.

use super::LogBlockFigures;
use crate::figures::CardFigures;
use crate::flash::{Fill, Order, Pool, Violation};
use crate::stats::Stats;

/// The area; with a bound of zero bytes nothing is written to it (family A).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SmallWrites {
    /// Writes of fewer bytes are small.
    below_bytes: u64,
    /// Only those that do not continue the last write.
    jumps_only: bool,
    /// What one takes, collection included.
    write_ns: u64,
    page_bytes: u64,
    fill: Fill,
    /// Physical block that stands for the area.
    block: u32,
}

impl SmallWrites {
    /// The area of a card, in a block of `pool`.
    pub fn new(card: &CardFigures, own: &LogBlockFigures, pool: &mut Pool) -> SmallWrites {
        SmallWrites {
            below_bytes: own.small_write_bytes.value,
            jumps_only: own.small_write_jumps.is_on(),
            write_ns: own.small_write_us.nanos(),
            page_bytes: card.page_bytes(),
            fill: Fill::new(card.au_bytes()),
            block: pool.take(),
        }
    }

    /// Whether a write of `bytes` goes to the area.
    #[inline]
    pub fn takes(&self, bytes: u64, order: Order) -> bool {
        bytes < self.below_bytes && !(order.joined || order.follows && self.jumps_only)
    }

    /// Writes `bytes` into the area; returns the nanoseconds that it takes.
    pub fn write(&mut self, bytes: u64, pool: &mut Pool, stats: &mut Stats) -> u64 {
        let programmed = bytes.next_multiple_of(self.page_bytes);
        let erased = self.fill.program(programmed, stats);
        pool.wear(self.block, erased);
        self.write_ns
    }

    /// The physical block that stands for the area.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Checks that it holds no more than it can between two erases.
    ///
    /// # Errors
    /// What is wrong.
    pub fn verify(&self) -> Result<(), Violation> {
        match self.fill.fits() {
            true => Ok(()),
            false => Err(Violation(format!(
                "the small-write area has {:?}",
                self.fill
            ))),
        }
    }

    /// Plants more than it can hold.
    #[cfg(test)]
    pub fn overfill(&mut self) {
        self.fill.overfill();
    }
}
