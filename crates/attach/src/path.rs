//! What the way from the block layer to the card and back takes on this machine.
//!
//! Loop driver and FUSE, or ublk, and two wake-ups cost tens of microseconds that no card has.
//! They are measured when a card is attached and taken off: a request counts as having arrived that
//! much earlier, so that a caller who waits for each request sees the card's own time.

use crate::clock::monotonic;
use crate::model::Model;
use crate::node::Node;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{pread, pwrite};
use std::io;

/// Time that an answer takes in the trial: long enough for the processor to go to sleep, as
/// it does while a card works.
const DELAY_NS: u64 = 500_000;
/// Requests of each size.
const TRIALS: usize = 32;
/// Where a machine is busy the way is longer; that is its own affair and not taken off. So a
/// low quantile counts, not the mean.
const QUANTILE: usize = TRIALS / 8;
/// A way longer than this is a machine in trouble, not a way.
const MOST_NS: u64 = 1_000_000;
const SMALL: usize = 4096;
const LARGE: usize = 512 << 10;

/// Time of the way, growing with the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    fixed_ns: u64,
    ns_per_mib: u64,
}

impl Way {
    /// From the time of a way for each of two sizes.
    pub fn through(small: (usize, u64), large: (usize, u64)) -> Way {
        let more = large.1.saturating_sub(small.1);
        // A host that sends no larger requests than the small one: a point, not a line.
        let bytes = large.0.saturating_sub(small.0) as u64;
        let ns_per_mib = (more << 20).checked_div(bytes).unwrap_or(0);
        let own = (ns_per_mib * small.0 as u64) >> 20;
        Way {
            fixed_ns: small.1.saturating_sub(own),
            ns_per_mib,
        }
    }

    /// The way of a request of `bytes`.
    pub fn ns(&self, bytes: u64) -> u64 {
        self.fixed_ns + ((self.ns_per_mib * bytes) >> 20)
    }
}

/// The ways of the directions, which copy at different ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub read: Way,
    /// Also of what carries no data.
    pub write: Way,
}

/// Measures the ways to `model` by reading from `device` and writing zeros to it; it is new
/// and empty, so they change nothing. Requests have at most `largest_kib`.
pub(crate) fn measure(device: Node, model: &Model, largest_kib: u64) -> io::Result<Ways> {
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = open(device.path(), flags, Mode::empty())?;
    let large = LARGE.min((largest_kib << 10) as usize).max(SMALL);
    let mut buffer = vec![0; large + SMALL];
    let start = buffer.as_ptr().align_offset(SMALL);
    model.try_out(Some(DELAY_NS));
    let mut read = |bytes: usize| Ok(pread(&file, &mut buffer[start..start + bytes], 0)?);
    let read = way(large, &mut read);
    let mut write = |bytes: usize| Ok(pwrite(&file, &buffer[start..start + bytes], 0)?);
    let write = way(large, &mut write);
    model.try_out(None);
    Ok(Ways {
        read: read?,
        write: write?,
    })
}

/// The way of what `transfer` does with a number of bytes.
fn way(large: usize, transfer: &mut dyn FnMut(usize) -> io::Result<usize>) -> io::Result<Way> {
    let mut took = |bytes: usize| -> io::Result<(usize, u64)> {
        let mut all = Vec::with_capacity(TRIALS);
        for _ in 0..TRIALS {
            let begun = monotonic();
            transfer(bytes)?;
            let whole = monotonic() - begun;
            all.push(whole.saturating_sub(DELAY_NS).min(MOST_NS));
        }
        all.sort_unstable();
        Ok((bytes, all[QUANTILE]))
    };
    Ok(Way::through(took(SMALL)?, took(large)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_a_line_through_both_sizes() {
        let way = Way::through((4096, 40_000), (262_144, 100_000));
        for (bytes, ns) in [(4096, 40_000_u64), (262_144, 100_000)] {
            assert!(
                way.ns(bytes).abs_diff(ns) <= 2,
                "{bytes}: {}",
                way.ns(bytes)
            );
        }
        assert!(way.ns(0) < 40_000);
    }

    #[test]
    fn a_larger_request_never_has_a_shorter_way() {
        let odd = Way::through((4096, 90_000), (262_144, 50_000));
        assert_eq!((odd.ns(0), odd.ns(1 << 20)), (90_000, 90_000));
        assert_eq!(Way::default().ns(1 << 20), 0);
        let point = Way::through((4096, 40_000), (4096, 41_000));
        assert_eq!(point.ns(1 << 20), 40_000);
    }
}
