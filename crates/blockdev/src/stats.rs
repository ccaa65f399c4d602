//! A device with figures: what it does over time, and in all.

use crate::device::BlockDevice;
use whichfs_card::{Completion, Request, RequestKind};
use whichfs_trial::{DeviceFigures, Series, Slot};
use whichfs_units::Nanos;

/// A device that keeps what the card does over time.
pub struct Metered<D> {
    /// The device below.
    pub below: D,
    /// What the card did over time.
    pub series: Series,
}

impl<D> Metered<D> {
    /// An empty series.
    pub fn new(below: D) -> Metered<D> {
        let series = Series::default();
        Metered { below, series }
    }
}

impl<D: BlockDevice> BlockDevice for Metered<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.below
    }

    fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        let stats = self.below.stats();
        let (copies, programmed) = (stats.au_copies, stats.programmed_bytes);
        let done = self.below.submit(now, request);
        let (stats, open) = (self.below.stats(), self.below.open_aus());
        let written = request.op == RequestKind::Write;
        self.series.open_limit = open.map(|open| open.limit);
        let slot = Slot {
            open_aus: open.map_or(0, |open| open.now),
            writes: u64::from(written),
            write_bytes: if written { request.bytes } else { 0 },
            programmed_bytes: stats.programmed_bytes - programmed,
            au_copies: stats.au_copies - copies,
        };
        self.series.record(now, slot);
        done
    }
}

/// What the card of `device` has done since it was made.
pub fn figures(device: &impl BlockDevice) -> DeviceFigures {
    let s = device.stats();
    DeviceFigures {
        reads: s.reads,
        writes: s.writes,
        discards: s.discards,
        flushes: s.flushes,
        read_bytes: s.read_bytes,
        write_bytes: s.write_bytes,
        discard_bytes: s.discard_bytes,
        busy: s.busy,
        programmed_bytes: s.programmed_bytes,
        erases: s.erases,
        au_copies: s.au_copies,
        write_sizes: s.write_size_buckets().collect(),
        read_sizes: std::collections::BTreeMap::new(),
    }
}
