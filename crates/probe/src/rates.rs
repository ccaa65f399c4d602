//! Rates of reading and writing in order by request size; what a flush costs.
//!
//! Sizes are mixed within one stream through a region of the card, in random order, so that
//! a card that slows down meanwhile slows all sizes alike, and a stream stays in order as a
//! file copied by dd does. Two regions are measured: zones may differ.

use crate::bench::{Bench, Halt, REQUEST_MAX};
use crate::evidence::{FlushTest, Streams};
use crate::places;
use crate::stats::{Centre, median};
use std::collections::BTreeMap;
use whichfs_units::{KIB, MIB};

/// Times longer than this many medians are lost samples where they are rare.
pub(crate) const OUTLIER: f64 = 3.0;
/// Share of the time of a group that its flush must take to count.
const CACHED_SHARE: f64 = 0.02;
/// What takes longer than this many times a fast request of a stream did something else besides:
/// it closed an AU that was open before.
const ALIKE: f64 = 1.3;
/// Bytes of each size where there is a cache: some times as much as it may hold.
const CACHED: u64 = 6 * MIB;
/// From this size on writes may be mixed.
const LARGE: u64 = 64 * KIB;
/// Bytes of the write that wakes up a place before a stream is timed.
const LEAD: u64 = 64 * KIB;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Rates of streams in two regions; writes are flushed where that means something.
pub(crate) fn streams(
    bench: &mut Bench,
    direction: Direction,
    au_bytes: Option<u64>,
    flush: Option<&FlushTest>,
) -> Result<Streams, Halt> {
    let mut result = Streams::default();
    let buffered = direction == Direction::Write && flush.is_some_and(FlushTest::matters);
    for region in 0..2 {
        let groups = groups(bench, direction, buffered.then_some(CACHED));
        let length: u64 = groups.iter().map(|(size, count)| size * count).sum();
        let base = places::stream_base(bench, region, length + LEAD * 3, au_bytes);
        let Some(base) = base else {
            return Err(Halt::Stage("the device is too small for this test".into()));
        };
        let mut at = base;
        if direction == Direction::Write {
            bench.hold(base, length + LEAD * 3)?;
            for _ in 0..3 {
                bench.write(at, LEAD)?;
                at += LEAD;
            }
        }
        let total = groups.len() as f64;
        let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (done, (size, count)) in groups.into_iter().enumerate() {
            bench.tell((f64::from(region) + done as f64 / total) / 2.0);
            let each = group(bench, direction, at, size, count, flush)?;
            // The first goes on behind a request of another size, which no stream of one size does.
            let skipped = usize::from(size < LARGE && each.len() > 2);
            times.entry(size).or_default().extend(&each[skipped..]);
            at += size * count;
        }
        bench.release();
        for (size, times) in times.into_iter().filter(|(_, times)| !times.is_empty()) {
            let rate = size as f64 / usual(&times) * 1e6;
            result.rates.entry(size).or_default().push(rate);
        }
    }
    Ok(result)
}

/// Requests of each size, in random order: enough of them to average, few bytes, but
/// `at_least` so many that a cache does not decide.
fn groups(bench: &mut Bench, direction: Direction, at_least: Option<u64>) -> Vec<(u64, u64)> {
    let mut groups = Vec::new();
    let mut size = 4 * KIB;
    while size <= REQUEST_MAX {
        if let Some(bytes) = at_least {
            groups.push((size, (bytes / size).max(2)));
            size *= 2;
            continue;
        }
        // Writes differ more.
        let requests = match (direction, size / KIB) {
            (Direction::Read, ..=64) => 1,
            (Direction::Read, ..=1024) => 3,
            (Direction::Read, _) => 2,
            (Direction::Write, ..=64) => 10,
            (Direction::Write, ..=256) => 6,
            (Direction::Write, ..=1024) => 4,
            (Direction::Write, _) => 3,
        };
        let bytes = (192 * KIB).max(requests * size);
        // Two halves of it at different times.
        let count = bytes / size;
        groups.push((size, count.div_ceil(2)));
        groups.push((size, count - count.div_ceil(2)));
        size *= 2;
    }
    groups.retain(|(_, count)| *count > 0);
    bench.rng.shuffle(&mut groups);
    if direction == Direction::Write {
        // Cards with a small-write area take small writes out of the stream, which leaves
        // gaps for the others: they come last, the smallest at the end.
        groups.sort_by_key(|(size, _)| std::cmp::Reverse((*size).min(LARGE)));
    }
    groups
}

/// Times of `count` requests in order, in microseconds, each with its share of the flush
/// that makes them durable.
fn group(
    bench: &mut Bench,
    direction: Direction,
    base: u64,
    size: u64,
    count: u64,
    flush: Option<&FlushTest>,
) -> Result<Vec<f64>, Halt> {
    let cached = flush.filter(|test| direction == Direction::Write && test.matters());
    if cached.is_some() {
        bench.flush()?;
    }
    let mut times = Vec::new();
    for at in 0..count {
        let offset = base + at * size;
        times.extend(match direction {
            Direction::Read => bench.read(offset, size)?,
            Direction::Write => bench.write(offset, size)?,
        });
    }
    if let Some(test) = cached.filter(|_| !times.is_empty()) {
        let us = bench.flush()?.unwrap_or(0.0);
        // Of those that succeeded.
        let count = times.len() as f64;
        let share = (us - test.idle_us.median).max(0.0) / count;
        let mean = times.iter().sum::<f64>() / count + share;
        // What a cache takes in at once says nothing by itself: only the sum does.
        if share > CACHED_SHARE * mean {
            times.fill(mean);
        }
    }
    Ok(times)
}

/// Time of one request of a stream: the mean of many, and of those of few that are like the
/// faster ones: what goes wrong takes longer.
fn usual(times: &[f64]) -> f64 {
    const FEW: usize = 12;
    if times.len() > FEW {
        return without_outliers(times);
    }
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let bound = ALIKE * sorted[(sorted.len() - 1) / 4];
    let alike = sorted.partition_point(|us| *us <= bound);
    sorted[..alike].iter().sum::<f64>() / alike as f64
}

/// Mean without values far above the median, where these are rare.
fn without_outliers(times: &[f64]) -> f64 {
    let bound = OUTLIER * median(times).unwrap_or(0.0);
    let kept: Vec<f64> = times.iter().copied().filter(|us| *us <= bound).collect();
    let lost = times.len() - kept.len();
    let used = if lost * 10 <= times.len() {
        &kept
    } else {
        times
    };
    used.iter().sum::<f64>() / used.len().max(1) as f64
}

/// What a flush costs, with nothing to do and after a small write.
pub(crate) fn flush(bench: &mut Bench) -> Result<FlushTest, Halt> {
    const COUNT: u64 = 10;
    const BYTES: u64 = 4 * KIB;
    let Some(base) = places::stream_base(bench, 1, 2 * COUNT * BYTES, None) else {
        return Err(Halt::Stage("the device is too small for this test".into()));
    };
    bench.hold(base, 2 * COUNT * BYTES)?;
    let (mut idle, mut after, mut write) = (Vec::new(), Vec::new(), Vec::new());
    // The first write opens the place.
    bench.write(base, BYTES)?;
    let supported = bench.flush()?.is_some();
    for at in 1..=COUNT {
        write.extend(bench.write(base + at * BYTES, BYTES)?);
        after.extend(bench.flush()?);
        idle.extend(bench.flush()?);
    }
    bench.release();
    if write.len() < 4 {
        return Err(Halt::Lost("too many writes failed".into()));
    }
    Ok(FlushTest {
        supported,
        idle_us: Centre::of(&idle),
        after_write_us: Centre::of(&after),
        write_us: Centre::of(&write),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_among_few_requests_is_no_part_of_their_time() {
        let times = [10.0, 10.5, 9.5, 80.0, 10.0, 10.2, 9.8, 10.0];
        assert!((usual(&times) - 10.0).abs() < 0.1);
        assert!((usual(&[9.0, 11.0, 30.0]) - 10.0).abs() < 0.1);
    }
}
