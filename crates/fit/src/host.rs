//! Rates of dd, hdparm, iozone and fio as points, and the modelled card under such requests.
//!
//! A rate counts as the card's if it cannot be the host's memory: with O_DIRECT, or in order,
//! where no such rate was measured with O_DIRECT. Below the page cache requests have the
//! kernel's sizes, not the program's. The card answers one request after the other, so the
//! queue's depth does not matter.

use crate::points::{CurvePlace, Point, PointOrder};
use crate::solve::median;
use std::collections::BTreeMap;
use whichfs_curves::{DeviceError, Modelled, TimedDevice};
use whichfs_logs::{BUS_RATE_MAX, Operation, Order as Access, Rate};
use whichfs_units::{Rng, SECTOR};

/// Size of buffered reads: the kernel's read-ahead (`read_ahead_kb`), in bytes.
const READ_AHEAD_BYTES: u64 = 128 << 10;
/// Size of buffered writes: the largest request of mmc_block, in bytes.
const WRITE_BACK_BYTES: u64 = 512 << 10;
/// Buffered reads that are so many times faster than others of the log are of the host's memory.
const MEMORY_FACTOR: f64 = 2.0;
/// Largest request that is replayed, in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Where the requests of a replay begin, in bytes: behind the FAT.
const START: u64 = 64 << 20;
/// Size of the file over which random requests go, in bytes.
pub(crate) const FILE_BYTES: u64 = 256 << 20;
/// Bytes that a replay writes in order.
pub(crate) const IN_ORDER_BYTES: u64 = 16 << 20;
/// Requests of a replay: first those that bring the card into its steady state. Of large ones fewer
/// do, for each costs time in proportion to its bytes.
const SETTLING: u64 = 64;
const RANDOM_REQUESTS: u64 = 512;
const RANDOM_REQUESTS_LEAST: u64 = 8;
/// Bytes of the requests that are counted, while they are more than the least.
const RANDOM_BYTES: u64 = 256 << 20;

/// The points that `rates` tell, and for each rate that is left out the reason.
pub(crate) fn points(rates: &[Rate]) -> (Vec<Point>, Vec<String>) {
    let mut found: BTreeMap<CurvePlace, Vec<f64>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for rate in rates {
        match place(rate, rates) {
            Ok(place) => {
                let ns = place.bytes as f64 / rate.bytes_per_s * 1e9;
                found.entry(place).or_default().push(ns);
            }
            Err(why) => left_out.push(format!("{} at line {}: {why}", rate.label, rate.line)),
        }
    }
    let median_of = |(place, ns)| {
        Some(Point {
            place,
            ns: median(ns)?,
        })
    };
    (found.into_iter().filter_map(median_of).collect(), left_out)
}

/// The points that no card is slower at which has `rates`, which something beside it made slower.
pub(crate) fn lower_bounds(rates: &[Rate]) -> Vec<Point> {
    let mut fastest: BTreeMap<CurvePlace, f64> = BTreeMap::new();
    for rate in rates
        .iter()
        .filter(|rate| rate.caveat.is_some_and(|caveat| caveat.at_least))
    {
        let plain = Rate {
            caveat: None,
            ..rate.clone()
        };
        for point in points(&[plain]).0 {
            let ns = fastest.entry(point.place).or_insert(point.ns);
            *ns = ns.min(point.ns);
        }
    }
    let point = |(place, ns)| Point { place, ns };
    fastest.into_iter().map(point).collect()
}

/// Which point a rate is, or why it is none.
fn place(rate: &Rate, all: &[Rate]) -> Result<CurvePlace, &'static str> {
    let same = |other: &&Rate| (other.operation, other.order) == (rate.operation, rate.order);
    if let Some(caveat) = rate.caveat {
        return Err(caveat.why);
    }
    if rate.operation == Operation::Discard {
        return Err("a fit does not look at discards");
    }
    if !(rate.bytes_per_s > 0.0 && rate.bytes_per_s <= BUS_RATE_MAX) {
        return Err("faster than any card's bus: the host's memory");
    }
    if !rate.direct && rate.order == Access::Random {
        return Err("at random through the page cache: its requests are not known");
    }
    if !rate.direct && all.iter().filter(same).any(|other| other.direct) {
        return Err("through the page cache, and there are rates with O_DIRECT");
    }
    let in_order = rate.order == Access::Sequential;
    let slowest = |least: f64, other: &Rate| least.min(other.bytes_per_s);
    let buffered = all
        .iter()
        .filter(same)
        .filter(|other| other.caveat.is_none());
    if rate.operation == Operation::Read
        && !rate.direct
        && rate.bytes_per_s > MEMORY_FACTOR * buffered.fold(f64::INFINITY, slowest)
    {
        return Err(
            "through the page cache, which may have answered: others are slower by more than half",
        );
    }
    let joined = rate
        .block_bytes
        .is_some_and(|bytes| bytes < WRITE_BACK_BYTES);
    if rate.direct && in_order && rate.queue_depth > 1 && joined {
        return Err("in order from a queue: the kernel joins its requests");
    }
    let bytes = match (rate.direct, rate.operation) {
        // Larger requests are parted by the kernel anyway.
        (true, _) if in_order && rate.block_bytes > Some(BYTES_MAX) => BYTES_MAX,
        (true, _) => rate.block_bytes.ok_or("its block size is not known")?,
        (false, Operation::Read) => READ_AHEAD_BYTES,
        (false, _) => WRITE_BACK_BYTES,
    };
    if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > BYTES_MAX {
        return Err("its block size is not one of 512 bytes to 16 MiB in whole sectors");
    }
    Ok(CurvePlace {
        order: PointOrder::Host(rate.operation, rate.order),
        aus: 1,
        bytes,
    })
}

/// How many requests of `bytes` a replay has before those that are counted, and how many of those.
pub(crate) fn requests(access: Access, bytes: u64) -> (u64, u64) {
    match access {
        Access::Sequential => (0, (IN_ORDER_BYTES / bytes).max(4)),
        Access::Random => {
            let counted = (RANDOM_BYTES / bytes).clamp(RANDOM_REQUESTS_LEAST, RANDOM_REQUESTS);
            (SETTLING.min(counted), counted)
        }
    }
}

/// Mean time in nanoseconds of a request of `bytes` of that kind on a copy of `device`.
///
/// # Errors
/// The card refuses a request: it is too small.
pub(crate) fn replay(
    device: &Modelled,
    operation: Operation,
    access: Access,
    bytes: u64,
    seed: u64,
) -> Result<f64, DeviceError> {
    let mut device = device.clone();
    let mut rng = Rng::named(seed, "fit.host");
    let slots = (FILE_BYTES / bytes).max(1);
    let (settling, counted) = requests(access, bytes);
    let mut buffer = vec![0; bytes as usize];
    let mut spent = 0;
    for request in 0..settling + counted {
        let slot = match access {
            Access::Sequential => request,
            Access::Random => rng.below(slots),
        };
        let at = START + slot * bytes;
        let took = match operation {
            Operation::Read => device.read(at, &mut buffer)?,
            Operation::Write => device.write(at, &buffer)?,
            Operation::Discard => device.discard(at, bytes)?,
        };
        spent += if request < settling { 0 } else { took.0 };
    }
    Ok(spent as f64 / counted as f64)
}
