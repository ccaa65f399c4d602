//! Physical blocks: which are free, in the order they were erased, and how worn each is.
//!
//! Freed blocks go to the end of the queue and are taken from its front, which spreads wear
//! over the spare area as dynamic wear levelling does. Static data are not moved for wear:
//! no source says that cards of this class do.

use crate::cow::CowArray;
use crate::stats::Stats;
use std::collections::VecDeque;

/// How far a block is programmed that takes data in turns with others of its kind, or alone,
/// and is erased whenever it is full.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fill {
    block_bytes: u64,
    /// Bytes programmed since the last erase, less than a block.
    bytes: u64,
}

impl Fill {
    /// An erased block of `block_bytes`.
    pub fn new(block_bytes: u64) -> Fill {
        Fill {
            block_bytes,
            bytes: 0,
        }
    }

    /// Programs `bytes` and returns how many blocks were full and erased.
    #[inline]
    pub fn program(&mut self, bytes: u64, stats: &mut Stats) -> u64 {
        stats.programmed_bytes += bytes;
        self.bytes += bytes;
        let mut full = 0;
        while self.bytes >= self.block_bytes {
            self.bytes -= self.block_bytes;
            full += 1;
        }
        stats.erases += full;
        full
    }

    /// Whether it holds less than a block.
    pub fn fits(&self) -> bool {
        self.bytes < self.block_bytes
    }

    /// Plants more than it can hold.
    #[cfg(test)]
    pub fn overfill(&mut self) {
        self.bytes = self.block_bytes;
    }
}

/// Free blocks and erase counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    /// Blocks below this were handed out at least once; beyond it all are free and erased.
    untouched: u32,
    total: u32,
    freed: VecDeque<u32>,
    erases: CowArray,
}

impl Pool {
    /// `total` free blocks.
    pub fn new(total: u32) -> Pool {
        let freed = VecDeque::with_capacity(1024);
        Pool {
            untouched: 0,
            total,
            freed,
            erases: CowArray::new(total as usize, 0),
        }
    }

    /// Number of free blocks.
    #[inline]
    pub fn free(&self) -> usize {
        (self.total - self.untouched) as usize + self.freed.len()
    }

    /// Number of all blocks.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// An erased block: one never used while there are any, else the longest free.
    ///
    /// # Panics
    /// If none is free: the family promises to collect in time.
    #[inline]
    pub fn take(&mut self) -> u32 {
        if self.untouched < self.total {
            self.untouched += 1;
            return self.untouched - 1;
        }
        self.freed
            .pop_front()
            .unwrap_or_else(|| panic!("no free block of {}", self.total))
    }

    /// Erases `block` and frees it.
    #[inline]
    pub fn erase(&mut self, block: u32) {
        self.erases.increment(block as usize);
        self.freed.push_back(block);
    }

    /// Counts `times` erases of a block that stays in use.
    #[inline]
    pub fn wear(&mut self, block: u32, times: u64) {
        for _ in 0..times {
            self.erases.increment(block as usize);
        }
    }

    /// Erase count of every block.
    pub fn erase_counts(&self) -> Vec<u32> {
        self.erases.to_vec()
    }

    /// The free blocks, for checkers.
    pub fn free_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.freed.iter().copied().chain(self.untouched..self.total)
    }
}
