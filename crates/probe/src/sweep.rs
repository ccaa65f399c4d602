//! A sweep of block sizes on the raw device: what dd measures with `bs=` from 512 B to 64 MiB, in
//! order and at random, reading and, where that is allowed, writing.
//!
//! A block above 4 MiB goes to the device in requests of 4 MiB, one after the other: kernels part
//! it further. A rate of writing counts the flush after the blocks of its size, as dd with
//! `conv=fsync` does. Sizes are measured from the smallest to the largest; each has a stream of its
//! own, so that none is measured where another wrote.

use crate::bench::{Bench, Halt, REQUEST_MAX};
use crate::evidence::ProbeEvidence;
use crate::options::{ProbeOptions, Progress, Writing};
use crate::rates::Direction;
use crate::stats::median;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use whichfs_curves::TimedDevice;
use whichfs_units::MIB;

/// Smallest and largest block.
const SMALLEST: u64 = 512;
const LARGEST: u64 = 64 * MIB;
/// Bytes that are read or written of each size, as far as the fewest and most blocks allow.
const BYTES: u64 = 4 * MIB;
const BLOCKS_LEAST: u64 = 2;
const BLOCKS_MOST: u64 = 256;
/// The same at random: each write may copy a whole allocation unit there.
const BLOCKS_MOST_RANDOM: u64 = 64;

/// Order of the blocks of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepOrder {
    /// Each after the last.
    Sequential,
    /// Anywhere, no place twice.
    Random,
}

/// What is done with the blocks of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepDirection {
    /// They are read.
    Read,
    /// They are written, then flushed.
    Write,
}

/// One block size in one order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepCell {
    /// Bytes that are read or written at a time, as dd counts them with `bs=`.
    pub block_bytes: u64,
    /// Order of the blocks.
    pub order: SweepOrder,
    /// Read or written.
    pub direction: SweepDirection,
    /// Blocks that succeeded.
    pub blocks: u64,
    /// MB/s (10⁶ bytes), of writes with the flush after them; none if no block succeeded.
    pub mb_s: Option<f64>,
    /// Median time of a block in microseconds, without the flush.
    pub median_us: Option<f64>,
    /// Longest time of a block in microseconds, without the flush.
    pub longest_us: Option<f64>,
}

/// A sweep of block sizes on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sweep {
    /// Name of the device, as it was given.
    pub target: String,
    /// What tells it from others.
    pub identity: String,
    /// Size that it claims, in bytes.
    pub capacity_bytes: u64,
    /// What was allowed to be written.
    pub writing: Writing,
    /// Seed of the places.
    pub seed: u64,
    /// All sizes, in each order and direction, in the order of measuring.
    pub cells: Vec<SweepCell>,
    /// Bytes read and written, those included that were put back.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time on the device in seconds.
    pub seconds: f64,
    /// What went wrong, and when.
    pub events: Vec<String>,
    /// Why it ended early; none if it did not.
    pub ended: Option<String>,
}

impl Sweep {
    /// The cell of so many bytes, if it was measured.
    pub fn cell(
        &self,
        block_bytes: u64,
        order: SweepOrder,
        direction: SweepDirection,
    ) -> Option<&SweepCell> {
        let key = (block_bytes, order, direction);
        let mut cells = self.cells.iter();
        cells.find(|cell| (cell.block_bytes, cell.order, cell.direction) == key)
    }
}

/// All block sizes of a sweep, smallest first.
pub fn sweep_sizes() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(SMALLEST), |size| {
        Some(size * 2).filter(|size| *size <= LARGEST)
    })
}

/// Measures all block sizes on `device`, which is called `target` and told from others by
/// `identity`. A sweep that fails or is interrupted returns what it has measured until then.
pub fn sweep(
    device: &mut dyn TimedDevice,
    (target, identity): (&str, &str),
    options: &ProbeOptions,
    progress: &mut dyn Progress,
) -> Sweep {
    let evidence = ProbeEvidence::begin(identity, *options);
    let mut bench = Bench::new(device, progress, &evidence);
    let mut found = Sweep {
        target: target.to_owned(),
        identity: identity.to_owned(),
        capacity_bytes: bench.capacity,
        writing: options.writing,
        seed: options.seed,
        cells: Vec::new(),
        read_bytes: 0,
        write_bytes: 0,
        seconds: 0.0,
        events: Vec::new(),
        ended: None,
    };
    let cells = planned(options.writing);
    let all = cells.len() as f64;
    for (at, (size, order, direction)) in cells.into_iter().enumerate() {
        let (name, doing) = match direction {
            SweepDirection::Read => (format!("sweep read {size} {order:?}"), "reading blocks"),
            SweepDirection::Write => (format!("sweep write {size} {order:?}"), "writing blocks"),
        };
        bench.begin(&name, doing, (at as f64 / all, (at + 1) as f64 / all));
        let measured = cell(&mut bench, size, order, direction);
        bench.release();
        match measured {
            Ok(cell) => found.cells.extend(cell),
            Err(Halt::Stage(why) | Halt::Lost(why)) => {
                found.events.push(format!("{name}: {why}"));
            }
            Err(Halt::Probe(why)) => {
                found.ended = Some(why);
                break;
            }
        }
    }
    if found.ended.is_none() {
        bench.tell(1.0);
    }
    found.read_bytes = bench.spent.read_bytes;
    found.write_bytes = bench.spent.write_bytes;
    found.seconds = bench.spent.device.as_secs_f64();
    found.events.extend(bench.events.iter().cloned());
    found
}

/// Reads first: they change nothing, and a budget that ends the sweep ends it in the writes.
fn planned(writing: Writing) -> Vec<(u64, SweepOrder, SweepDirection)> {
    let directions = [SweepDirection::Read, SweepDirection::Write];
    let allowed = directions
        .into_iter()
        .filter(|direction| *direction == SweepDirection::Read || writing != Writing::Never);
    let orders = [SweepOrder::Sequential, SweepOrder::Random];
    allowed
        .flat_map(|direction| orders.map(|order| (order, direction)))
        .flat_map(|(order, direction)| sweep_sizes().map(move |size| (size, order, direction)))
        .collect()
}

/// Measures the blocks of one size; none on a device that has no room for them.
fn cell(
    bench: &mut Bench,
    size: u64,
    order: SweepOrder,
    direction: SweepDirection,
) -> Result<Option<SweepCell>, Halt> {
    let room = bench.capacity / size;
    let most = match order {
        SweepOrder::Sequential => BLOCKS_MOST,
        SweepOrder::Random => BLOCKS_MOST_RANDOM,
    };
    let count = (BYTES / size).clamp(BLOCKS_LEAST, most);
    if room < count {
        return Ok(None);
    }
    let places = match order {
        SweepOrder::Sequential => {
            let first = bench.rng.below(room - count + 1);
            (first..first + count).collect()
        }
        SweepOrder::Random => random(bench, room, count),
    };
    let of = match direction {
        SweepDirection::Read => Direction::Read,
        SweepDirection::Write => Direction::Write,
    };
    if of == Direction::Write {
        for place in &places {
            bench.hold(place * size, size)?;
        }
    }
    let (mut times, mut done) = (Vec::new(), 0.0);
    for place in &places {
        times.extend(block(bench, place * size, size, of)?);
        done += 1.0;
        bench.tell(done / places.len() as f64);
    }
    let flush = match of {
        Direction::Write => bench.flush()?.unwrap_or(0.0),
        Direction::Read => 0.0,
    };
    let us = times.iter().sum::<f64>() + flush;
    let bytes = times.len() as f64 * size as f64;
    Ok(Some(SweepCell {
        block_bytes: size,
        order,
        direction,
        blocks: times.len() as u64,
        mb_s: (bytes > 0.0 && us > 0.0).then(|| bytes / us),
        median_us: median(&times),
        longest_us: times.iter().copied().reduce(f64::max),
    }))
}

/// `count` of `room` places, each once.
fn random(bench: &mut Bench, room: u64, count: u64) -> Vec<u64> {
    let mut taken = BTreeSet::new();
    let mut places = Vec::new();
    while (places.len() as u64) < count {
        let place = bench.rng.below(room);
        if taken.insert(place) {
            places.push(place);
        }
    }
    places
}

/// Time of the block of `size` bytes at `offset` in microseconds; none if a request of it failed.
fn block(
    bench: &mut Bench,
    offset: u64,
    size: u64,
    direction: Direction,
) -> Result<Option<f64>, Halt> {
    let (mut us, mut whole) = (0.0, true);
    let mut at = 0;
    while at < size {
        let bytes = (size - at).min(REQUEST_MAX);
        let time = match direction {
            Direction::Read => bench.read(offset + at, bytes)?,
            Direction::Write => bench.write(offset + at, bytes)?,
        };
        match time {
            Some(time) => us += time,
            None => whole = false,
        }
        at += bytes;
    }
    Ok(whole.then_some(us))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options::{ProbeBudget, Silent};
    use whichfs_card::{Card, Contents, Profile, builtin};
    use whichfs_curves::Modelled;
    use whichfs_units::KIB;

    fn card(name: &str) -> Modelled {
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        let profile = Profile::parse(name, text).unwrap();
        let capacity = profile.capacity_bytes();
        let contents = Contents::new(capacity).laid_out(profile.layout());
        Modelled::new(Card::used(&profile, 1), capacity).keeping(contents)
    }

    fn swept(device: &mut dyn TimedDevice, writing: Writing, write_bytes: u64) -> Sweep {
        let options = ProbeOptions {
            seed: 1,
            writing,
            budget: ProbeBudget {
                write_bytes,
                ..ProbeBudget::default()
            },
        };
        sweep(device, ("card", "identity"), &options, &mut Silent)
    }

    #[test]
    fn every_size_is_read_and_rates_rise_with_the_block() {
        assert_eq!(sweep_sizes().count(), 18);
        let found = swept(&mut card("class4-4gb"), Writing::Never, 0);
        assert_eq!((found.cells.len(), found.write_bytes), (36, 0));
        assert_eq!(found.ended, None);
        let rate = |size, order| found.cell(size, order, SweepDirection::Read).unwrap().mb_s;
        for order in [SweepOrder::Sequential, SweepOrder::Random] {
            let [small, page, large] = [512, 64 * KIB, LARGEST].map(|size| rate(size, order));
            assert!(
                small < page && page <= large,
                "{small:?} {page:?} {large:?}"
            );
        }
        assert_eq!(
            found,
            swept(&mut card("class4-4gb"), Writing::Never, 0),
            "repeatable"
        );
    }

    #[test]
    fn writes_put_back_what_was_there_and_random_ones_are_slower() {
        let mut device = card("class4-4gb");
        let mark = [7; 512];
        for place in 0..2048 {
            device.write(place * MIB, &mark).unwrap();
        }
        let found = swept(&mut device, Writing::Preserve, 2048 * MIB);
        assert_eq!((found.cells.len(), found.ended.clone()), (72, None));
        let rate = |order| {
            let cell = found.cell(4 * KIB, order, SweepDirection::Write).unwrap();
            cell.mb_s.unwrap()
        };
        assert!(rate(SweepOrder::Sequential) > 2.0 * rate(SweepOrder::Random));
        let mut read = [0; 512];
        for place in 0..2048 {
            device.read(place * MIB, &mut read).unwrap();
            assert_eq!(read, mark, "at {place} MiB");
        }
    }

    #[test]
    fn a_budget_ends_it_with_what_was_measured() {
        let found = swept(&mut card("class4-4gb"), Writing::Destroy, 20 * MIB);
        assert!(found.ended.unwrap().contains("to write is used up"));
        assert!(found.write_bytes <= 20 * MIB && found.cells.len() > 36);
    }
}
