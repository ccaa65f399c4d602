//! The first AUs of the card, and writes that open none.
//!
//! On several cards the AUs in which FAT keeps its tables are mapped by page (`flash.md`
//! §2.5). With a limit of open AUs they stand out: they are written in turns with as many
//! others as can be open, and only they stay fast. Without one, they differ by their rate.
//! The same turns, with small requests, show a small-write area (2.3.8).

use crate::aus_with_data::fill;
use crate::bench::{Bench, Halt};
use crate::evidence::{FatRegion, OpenAuTest};
use crate::open_aus::BLOCK;
use crate::places;
use crate::stats::{Centre, median, rank_score};
use std::collections::BTreeMap;
use whichfs_units::KIB;

/// AUs that are tried at first and at most.
const FIRST: u64 = 4;
const MOST: u64 = 64;
/// AUs whose rates are compared where there is no limit of open AUs.
const COMPARED: u64 = 8;
/// Rates that differ by less are those of another place, not of another mapping: 15 % and
/// more on the cards that have such a region.
const DIFFERENT: f64 = 0.12;

/// Looks at the first AUs; `limit` is the number of AUs that can be open, if there is one.
pub(crate) fn fat_region(
    bench: &mut Bench,
    au: u64,
    linear: &OpenAuTest,
    limit: Option<u32>,
) -> Result<FatRegion, Halt> {
    match limit {
        Some(limit) => {
            let mut count = FIRST;
            loop {
                let region = by_copies(bench, au, linear, limit, count)?;
                let goes_on = region.different.last() == Some(&true);
                let next = count * 4;
                if !goes_on || next > MOST || next * au > bench.capacity / 4 {
                    return Ok(region);
                }
                count = next;
            }
        }
        None => by_rate(bench, au),
    }
}

/// Ends the stage where an AU has no times: it can be like the others or not.
fn all_timed(times: &[Vec<f64>]) -> Result<(), Halt> {
    match times.iter().position(Vec::is_empty) {
        Some(at) => Err(Halt::Lost(format!("all writes into AU {at} failed"))),
        None => Ok(()),
    }
}

/// Time in microseconds that tells a write into an open AU from one that copies.
fn middle(linear: &OpenAuTest) -> f64 {
    (linear.alone_us.median * linear.overflow_us).sqrt()
}

fn by_copies(
    bench: &mut Bench,
    au: u64,
    linear: &OpenAuTest,
    limit: u32,
    count: u64,
) -> Result<FatRegion, Halt> {
    const ROUNDS: u64 = 3;
    let others = others(bench, Some(au), linear);
    let others = &others[..others.len().min(limit as usize)];
    let first: Vec<u64> = (0..count).map(|at| at * au).collect();
    if !linear.filled.is_empty() {
        let bytes = (count + 1) * au;
        if !bench.affords(bytes) {
            return Err(Halt::Stage(format!(
                "the first AUs may never have been written, and writing them takes {}: raise \
                 --budget",
                whichfs_units::Bytes(bytes)
            )));
        }
        for base in &first {
            fill(bench, *base, au)?;
        }
    }
    let mut times = vec![Vec::new(); first.len()];
    let mut elsewhere = Vec::new();
    for base in first.iter().chain(others) {
        bench.hold(*base, ROUNDS * BLOCK)?;
    }
    for round in 0..ROUNDS {
        // All that can be open are others: a write into a usual AU closes one of them.
        for base in others {
            elsewhere.extend(bench.write_through(base + round * BLOCK, BLOCK)?);
        }
        let mut order: Vec<usize> = (0..first.len()).collect();
        bench.rng.shuffle(&mut order);
        for at in order {
            times[at].extend(bench.write_through(first[at] + round * BLOCK, BLOCK)?);
        }
        bench.tell(round as f64 / ROUNDS as f64);
    }
    bench.release();
    all_timed(&times)?;
    let bound = middle(linear);
    let fast = |times: &Vec<f64>| median(times).is_some_and(|us| us < bound);
    Ok(FatRegion {
        different: times.iter().map(fast).collect(),
        first_us: times.iter().map(|times| Centre::of(times)).collect(),
        other_us: Centre::of(&elsewhere),
        by_copies: true,
    })
}

/// Places in AUs that copy when they are closed.
fn others(bench: &mut Bench, au: Option<u64>, linear: &OpenAuTest) -> Vec<u64> {
    if linear.filled.is_empty() {
        places::bases(bench, places::stride(bench.capacity, au), 1)
    } else {
        linear.filled.clone()
    }
}

fn by_rate(bench: &mut Bench, au: u64) -> Result<FatRegion, Halt> {
    const WRITES: u64 = 8;
    let others = places::bases(bench, places::stride(bench.capacity, Some(au)), 1);
    let others = &others[..others.len().min(COMPARED as usize)];
    let first = (0..COMPARED).map(|at| at * au);
    let places: Vec<u64> = first.chain(others.iter().copied()).collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); places.len()];
    for place in &places {
        bench.hold(*place, (WRITES + 1) * BLOCK)?;
    }
    // One by one and in order: no more than one AU is in use at a time.
    for pass in 0..2 {
        let mut order: Vec<usize> = (0..places.len()).collect();
        bench.rng.shuffle(&mut order);
        for at in order {
            for write in 0..=WRITES / 2 {
                let offset = (pass * (WRITES / 2) + write) * BLOCK;
                let us = bench.write_through(places[at] + offset, BLOCK)?;
                // The first one opens the place.
                if write > 0 {
                    times[at].extend(us);
                }
            }
        }
        bench.tell(pass as f64 / 2.0);
    }
    bench.release();
    let (near, far) = times.split_at(COMPARED as usize);
    all_timed(near)?;
    let elsewhere: Vec<f64> = far.iter().flatten().copied().collect();
    let usual = median(&elsewhere).unwrap_or(0.0);
    let differs = |times: &Vec<f64>| {
        let ratio = median(times).unwrap_or(usual) / usual.max(1e-9);
        (ratio - 1.0).abs() > DIFFERENT && rank_score(times, &elsewhere).abs() > 3.0
    };
    Ok(FatRegion {
        different: near.iter().map(differs).collect(),
        first_us: near.iter().map(|times| Centre::of(times)).collect(),
        other_us: Centre::of(&elsewhere),
        by_copies: false,
    })
}

/// Sizes of small writes that are tried.
const SMALL: [u64; 4] = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB];

/// For each small size: writes into one AU more than can be open, how many were slow, and
/// the median of the others in microseconds.
pub(crate) fn small_writes(
    bench: &mut Bench,
    au: Option<u64>,
    linear: &OpenAuTest,
    limit: u32,
) -> Result<BTreeMap<u64, (u32, u32, f64)>, Halt> {
    const WRITES: usize = 3;
    /// Share of the usual copy that a write takes which copies.
    const COPY: f64 = 0.6;
    let all = others(bench, au, linear);
    let bases = &all[..all.len().min(limit as usize + 1)];
    if bases.len() <= limit as usize {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    // Fresh AUs where there are enough of them. Else the first is closed for the last, and the
    // only one that is not open: a write that opens it closes the next.
    let spare = linear.filled.is_empty() && all.len() >= bases.len() + SMALL.len() * WRITES;
    let mut next: Vec<u64> = all.clone();
    for place in next.iter_mut().take(bases.len()) {
        bench.hold(*place, (1 + WRITES as u64) * BLOCK)?;
        bench.write_through(*place, BLOCK)?;
        *place += BLOCK;
    }
    let bound = middle(linear).max(COPY * linear.overflow_us);
    let (mut fresh, mut closed) = (bases.len(), 0);
    let mut result = BTreeMap::new();
    for size in SMALL {
        let mut fast = Vec::new();
        let mut slow = 0;
        for _ in 0..WRITES {
            let target = if spare { fresh } else { closed };
            match bench.write_through(next[target], size)? {
                Some(us) if us < bound => fast.push(us),
                Some(_) => {
                    // It is in order: the next write there goes on behind it.
                    next[target] += size;
                    slow += 1;
                    closed = (closed + 1) % bases.len();
                }
                None => {}
            }
            fresh += 1;
        }
        let usual = median(&fast).unwrap_or(0.0);
        result.insert(size, (slow + fast.len() as u32, slow, usual));
    }
    bench.release();
    Ok(result)
}
