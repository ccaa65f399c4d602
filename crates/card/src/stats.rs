//! What a card has done since the state it started from.

use serde::{Deserialize, Serialize};
use whichfs_units::Nanos;

/// Buckets of [`Stats::write_sizes`]: up to 2^39 bytes.
const SIZE_BUCKETS: usize = 40;

/// Counters of a card, from its creation on (the writes that made a card *used* are not in).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Stats {
    /// Read requests served.
    pub reads: u64,
    /// Write requests served.
    pub writes: u64,
    /// Discard requests served.
    pub discards: u64,
    /// Flush requests served.
    pub flushes: u64,
    /// Requests that ended with a device error; they count nowhere else.
    pub errors: u64,
    /// Bytes read by the host.
    pub read_bytes: u64,
    /// Bytes written by the host.
    pub write_bytes: u64,
    /// Bytes discarded by the host.
    pub discard_bytes: u64,
    /// Time in which a request was in service.
    pub busy: Nanos,
    /// Bytes programmed into flash: host data, what is left empty of pages and units that they
    /// cover in part, and copies. Beside what goes through a pSLC cache, no block takes more
    /// than its size between two erases.
    pub programmed_bytes: u64,
    /// Blocks (AUs) erased.
    pub erases: u64,
    /// AUs whose live data were copied: merges of log blocks, collections of the page map.
    pub au_copies: u64,
    /// `write_sizes[i]` counts write requests of more than 2^(i-1) and at most 2^i bytes.
    pub write_sizes: Vec<u64>,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            reads: 0,
            writes: 0,
            discards: 0,
            flushes: 0,
            errors: 0,
            read_bytes: 0,
            write_bytes: 0,
            discard_bytes: 0,
            busy: Nanos::ZERO,
            programmed_bytes: 0,
            erases: 0,
            au_copies: 0,
            write_sizes: vec![0; SIZE_BUCKETS],
        }
    }
}

impl Stats {
    /// Flash bytes programmed for each byte the host wrote; `None` if it wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.write_bytes > 0).then(|| self.programmed_bytes as f64 / self.write_bytes as f64)
    }

    /// The non-empty buckets of the histogram of write sizes: (bound in bytes, requests).
    pub fn write_size_buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self
            .write_sizes
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        filled.map(|(power, count)| (1 << power, *count))
    }

    pub(crate) fn count_write(&mut self, bytes: u64) {
        self.writes += 1;
        self.write_bytes += bytes;
        let power = bytes.next_power_of_two().trailing_zeros() as usize;
        self.write_sizes[power.min(SIZE_BUCKETS - 1)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_sizes_are_bounded_from_above() {
        let mut stats = Stats::default();
        for bytes in [512, 4096, 4097, 8192, 8192] {
            stats.count_write(bytes);
        }
        let buckets: Vec<_> = stats.write_size_buckets().collect();
        assert_eq!(buckets, [(512, 1), (4096, 1), (8192, 3)]);
    }
}
