//! A cache that takes in more than can be programmed meanwhile; and what a discard brings.

use crate::bench::{Bench, Halt};
use crate::evidence::{CacheTest, DiscardTest, OpenAuTest};
use crate::open_aus::BLOCK;
use crate::places;
use crate::stats::{Centre, median, rank_score};
use whichfs_units::{KIB, MIB, Nanos};

/// Time in which a card may program what its cache holds: two requests, already flushed.
/// Longer rests would be most of a probe's time on fast cards.
const REST: Nanos = Nanos::from_millis(50);
/// Sizes of the requests of a burst, and how many of them.
const BURSTS: [(u64, usize); 3] = [(8 * KIB, 48), (64 * KIB, 64), (512 * KIB, 48)];
/// Requests that may open a place, at the beginning of a burst.
const LEAD: usize = 2;
/// Requests behind the end of the cache take at least this many times longer.
const SLOWER: f64 = 1.5;

/// Writes bursts after a rest until one sees the end of the cache, then a finer one.
/// `rests`: whether the card may rest before a burst; a pSLC cache would empty itself meanwhile.
pub(crate) fn cache(bench: &mut Bench, rests: bool) -> Result<CacheTest, Halt> {
    let mut test = CacheTest::default();
    for (region, (size, count)) in [0, 1, 0].into_iter().zip(BURSTS) {
        if !bench.affords(size * count as u64) {
            break;
        }
        let times = burst(bench, size, count, region, rests)?;
        let end = end_of_cache(&times);
        test.bursts.push((size, times));
        if let Some(end) = end {
            test.sizes.push(end as u64 * size);
            // Again with requests of about a fortieth of it.
            let fine = (end as u64 * size / 40 / (4 * KIB)).max(1) * 4 * KIB;
            let count = 60 * (end as u64 * size).div_ceil(40 * fine) as usize;
            for region in 0..2 {
                let times = burst(bench, fine, count.min(120), region, rests)?;
                let end = end_of_cache(&times);
                test.bursts.push((fine, times));
                test.sizes.extend(end.map(|end| end as u64 * fine));
            }
            return Ok(test);
        }
        test.none_up_to = size * count as u64;
    }
    Ok(test)
}

fn burst(
    bench: &mut Bench,
    size: u64,
    count: usize,
    region: u32,
    rests: bool,
) -> Result<Vec<f64>, Halt> {
    let Some(base) = places::stream_base(bench, region, size * (count + LEAD) as u64, None) else {
        return Err(Halt::Stage("the device is too small for this test".into()));
    };
    bench.hold(base, size * (count + LEAD) as u64)?;
    for at in 0..LEAD as u64 {
        bench.write(base + at * size, size)?;
    }
    bench.flush()?;
    if rests {
        bench.rest(REST)?;
    }
    let mut times = Vec::new();
    for at in LEAD..LEAD + count {
        times.extend(bench.write(base + at as u64 * size, size)?);
    }
    bench.flush()?;
    bench.release();
    Ok(times)
}

/// Number of requests that were fast before all others were slow.
fn end_of_cache(times: &[f64]) -> Option<usize> {
    let split = |end: usize| -> Option<(f64, f64)> {
        let (fast, slow) = times.split_at(end);
        let ratio = median(slow)? / median(fast)?.max(1e-9);
        Some((ratio, rank_score(slow, fast)))
    };
    // Where all lie closest to the middle of their side, in their logarithms.
    let apart = |side: &[f64]| -> f64 {
        let middle = median(side).unwrap_or(1.0).max(1e-9);
        side.iter()
            .map(|us| (us.max(1e-9) / middle).ln().abs())
            .sum()
    };
    let end = (4..times.len().saturating_sub(6)).min_by(|a, b| {
        let of = |end: usize| apart(&times[..end]) + apart(&times[end..]);
        of(*a).total_cmp(&of(*b))
    })?;
    let (ratio, score) = split(end)?;
    (ratio >= SLOWER && score >= 3.2).then_some(end)
}

/// Writes into AUs with data and into discarded ones, as many as can be open before those that
/// count: each of these closes an AU of its own kind.
pub(crate) fn discard(
    bench: &mut Bench,
    au: Option<u64>,
    linear: Option<&OpenAuTest>,
) -> Result<DiscardTest, Halt> {
    const COUNTED: usize = 6;
    let bytes = au.unwrap_or(4 * MIB);
    let lead = crate::infer::limit_of(linear).unwrap_or(2) as usize;
    let fresh = linear.is_some_and(|linear| linear.copies && !linear.filled.is_empty());
    let bases = match fresh {
        true => bench.streamed(bytes, 2 * (lead + COUNTED)),
        false => {
            let stride = places::stride(bench.capacity, au);
            let mut bases = places::bases(bench, stride, 1);
            bases.extend(places::bases(bench, stride, 0));
            bases
        }
    };
    if bases.is_empty() {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    let mut test = DiscardTest {
        bytes,
        ..DiscardTest::default()
    };
    let count = (lead + COUNTED).min(bases.len() / 2);
    let (with, without) = match linear.filter(|_| count <= lead) {
        None => (bases[..count].to_vec(), &bases[count..2 * count]),
        // Too few have data. What closing them costs is known, and the others are as if discarded.
        Some(linear) => {
            test.before_us.push(linear.overflow_us);
            let stride = places::stride(bench.capacity, au);
            let others = places::bases(bench, stride, 1).into_iter();
            let with = bases.iter().copied().chain(others);
            (with.take(lead + COUNTED).collect(), &bases[..0])
        }
    };
    for (at, base) in without.iter().enumerate() {
        let us = bench.write_through(*base, BLOCK)?;
        test.before_us.extend(us.filter(|_| at >= lead));
    }
    let mut times = Vec::new();
    for base in &with {
        let us = bench.discard(*base, bytes)?;
        times.extend(us.filter(|_| bases.contains(base)));
    }
    for (at, base) in with.iter().enumerate() {
        let us = bench.write_through(*base, BLOCK)?;
        test.after_us.extend(us.filter(|_| at >= lead));
    }
    test.supported = !times.is_empty();
    test.discard_us = Centre::of(&times);
    Ok(test)
}
