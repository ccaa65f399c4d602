//! What the way from the block layer to the card and back takes on this machine.
//!
//! Loop driver and FUSE, or ublk, and two wake-ups cost tens of microseconds that no card has.
//! They are measured when a card is attached and taken off: a request counts as having arrived that
//! much earlier, so that a caller who waits for each request sees the card's own time.

use crate::clock::monotonic;
use crate::model::Model;
use crate::node::Node;
use crate::way::{Way, Ways};
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
