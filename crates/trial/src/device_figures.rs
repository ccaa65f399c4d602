//! What a device did in an interval: requests, bytes, work of its flash.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_units::Nanos;

/// What a device did in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct DeviceFigures {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Discard requests.
    pub discards: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Bytes read by the host.
    pub read_bytes: u64,
    /// Bytes written by the host.
    pub write_bytes: u64,
    /// Bytes discarded by the host.
    pub discard_bytes: u64,
    /// Time in which a request was in service.
    pub busy: Nanos,
    /// Bytes programmed into flash, copies included.
    pub programmed_bytes: u64,
    /// Blocks (AUs) erased.
    pub erases: u64,
    /// Whole-AU copies: merges of an evicted log block.
    pub au_copies: u64,
    /// Writes by size: bound in bytes (a power of two) → requests.
    pub write_sizes: BTreeMap<u64, u64>,
    /// Reads by size, the same; the lab counts none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read_sizes: BTreeMap<u64, u64>,
}

impl DeviceFigures {
    /// Flash bytes programmed for each byte the host wrote; `None` if it wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.write_bytes > 0).then(|| self.programmed_bytes as f64 / self.write_bytes as f64)
    }

    /// Adds what another device did.
    pub fn add(&mut self, other: &DeviceFigures) {
        self.combine(other, |a, b| a + b);
    }

    /// What happened since `earlier` figures of the same device.
    pub fn since(&self, earlier: &DeviceFigures) -> DeviceFigures {
        let mut difference = self.clone();
        difference.combine(earlier, u64::saturating_sub);
        difference.write_sizes.retain(|_, count| *count > 0);
        difference.read_sizes.retain(|_, count| *count > 0);
        difference
    }

    fn combine(&mut self, other: &DeviceFigures, with: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.discards, other.discards),
            (&mut self.flushes, other.flushes),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.write_bytes, other.write_bytes),
            (&mut self.discard_bytes, other.discard_bytes),
            (&mut self.busy.0, other.busy.0),
            (&mut self.programmed_bytes, other.programmed_bytes),
            (&mut self.erases, other.erases),
            (&mut self.au_copies, other.au_copies),
        ];
        for (mine, theirs) in pairs {
            *mine = with(*mine, theirs);
        }
        for (mine, theirs) in [
            (&mut self.write_sizes, &other.write_sizes),
            (&mut self.read_sizes, &other.read_sizes),
        ] {
            for (&size, &count) in theirs {
                let mine = mine.entry(size).or_insert(0);
                *mine = with(*mine, count);
            }
        }
    }
}
