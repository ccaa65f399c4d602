//! A stream of writes so long that a cache of fast blocks comes to its end.
//!
//! Newer cards take writes into blocks with one bit a cell (pSLC) and are slower when these are
//! full (`flash.md` 2.3.10). So the first writing test is a stream, which goes on until all
//! requests are slower than those at its beginning or its share of the budget is used; where it
//! saw an end it fills up the rest of the cache. The tests behind it then see the card as it is
//! while it is written to without a rest. The same stream passes so many AUs that what closing
//! each of them costs is in its rate (family S, 2.2).

use crate::bench::{Bench, Halt};
use crate::evidence::Sustained;
use crate::places;
use crate::stats::{median, quantile, rank_score};
use whichfs_units::{KIB, MIB};

/// Size of a request.
const REQUEST: u64 = 2 * MIB;
/// Size of the requests of the second stream, and its bytes.
const SMALL: u64 = 64 * KIB;
const SMALL_BYTES: u64 = 16 * MIB;
/// The share of the bytes to write that the stream may take.
const BUDGET_SHARE: u64 = 7;
/// The share of the device that it may cover.
const DEVICE_SHARE: u64 = 8;
/// Requests on either side of a fall that tell it.
const SIDE: usize = 6;
/// Requests behind a fall whose mean is the rate from then on.
const BEHIND: usize = 16;
/// A quarter of the requests behind a fall may take this many times as long as those before it;
/// all others take longer. Noise and places differ by less, a cache by 1.2 times and more.
const SLOWER: f64 = 1.1;
/// Share of the requests that may be stalls.
const STALLS: f64 = 0.02;
/// A stall takes longer than this many medians.
const STALL: f64 = 3.0;

/// Writes the stream.
pub(crate) fn measure(bench: &mut Bench, au_bytes: Option<u64>) -> Result<Sustained, Halt> {
    let most = (bench.write_budget() / BUDGET_SHARE).min(bench.capacity / DEVICE_SHARE);
    let most = most / REQUEST * REQUEST;
    let base = places::stream_base(bench, 0, most + SMALL_BYTES + 2 * REQUEST, au_bytes);
    let Some(base) = base.filter(|_| most / REQUEST >= 2 * SIDE as u64) else {
        return Err(Halt::Stage(
            "the device or the budget is too small for this test".into(),
        ));
    };
    let mut result = Sustained {
        base,
        request_bytes: REQUEST,
        ..Sustained::default()
    };
    let mut at = base;
    while at < base + most {
        result.times_us.extend(bench.write_held(at, REQUEST)?);
        at += REQUEST;
        bench.tell((at - base) as f64 / most as f64);
        result.fast = fall(&result.times_us);
        let behind = |fast| result.times_us.len() - fast >= BEHIND;
        if result.fast.is_some_and(behind) {
            break;
        }
    }
    if result.times_us.len() < 2 * SIDE {
        return Err(Halt::Lost("too many writes failed".into()));
    }
    if result.fast.is_some() {
        at = fill_up(bench, at)?;
    }
    at = at.next_multiple_of(REQUEST);
    result.small = small(bench, &mut at, au_bytes)?;
    bench.keep_away(base..at);
    Ok(result)
}

/// Small requests still fit where large ones no longer did.
fn fill_up(bench: &mut Bench, mut at: u64) -> Result<u64, Halt> {
    for (size, most) in [(64 * KIB, REQUEST), (4 * KIB, 64 * KIB)] {
        for _ in 0..=most / size {
            bench.write_held(at, size)?;
            at += size;
        }
    }
    Ok(at)
}

/// A stream of small requests: size and mean time.
fn small(
    bench: &mut Bench,
    at: &mut u64,
    au_bytes: Option<u64>,
) -> Result<Option<(u64, f64)>, Halt> {
    let mut times = Vec::new();
    for _ in 0..SMALL_BYTES / SMALL {
        times.extend(bench.write_held(*at, SMALL)?);
        *at += SMALL;
    }
    let steady = || steady(&times, SMALL, au_bytes).unwrap_or_else(|| with_aus(&times));
    Ok((!times.is_empty()).then(|| (SMALL, steady())))
}

/// Mean of a stream of requests of `size` without what was slow too seldom to come with each AU;
/// `None` if it may come with them.
fn steady(times: &[f64], size: u64, au_bytes: Option<u64>) -> Option<f64> {
    let bound = STALL * median(times)?;
    let passed = (size * times.len() as u64) as f64 / au_bytes? as f64;
    let usual: Vec<f64> = times.iter().copied().filter(|us| *us <= bound).collect();
    let slow = times.len() - usual.len();
    let seldom = slow as f64 <= 0.5 * passed;
    seldom.then(|| usual.iter().sum::<f64>() / usual.len().max(1) as f64)
}

/// Mean of small requests: what an AU costs is paid by one of many, and takes longer than a stall.
fn with_aus(times: &[f64]) -> f64 {
    /// A stall seldom takes more medians; an AU takes less only if it is so small that it is no
    /// rare event.
    const LONG: f64 = 12.0;
    const RARE: f64 = 0.028;
    let usual = median(times).unwrap_or(0.0);
    let is_stall = |us: &f64| *us > STALL * usual && *us <= LONG * usual;
    let stalls = times.iter().filter(|us| is_stall(us)).count();
    let rare = stalls as f64 <= RARE * times.len() as f64;
    let kept: Vec<f64> = times
        .iter()
        .copied()
        .filter(|us| !rare || !is_stall(us))
        .collect();
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// Requests before all that follow are slower.
fn fall(times: &[f64]) -> Option<usize> {
    let last = times.len().checked_sub(SIDE)?;
    if last < SIDE || median(&times[last..])? < SLOWER * median(times)?.min(median(&times[..SIDE])?)
    {
        return None;
    }
    let apart = |side: &[f64]| -> f64 {
        let middle = median(side).unwrap_or(1.0).max(1e-9);
        let off = |us: &f64| (us.max(1e-9) / middle).ln().abs();
        side.iter().map(off).sum()
    };
    let of = |end: usize| apart(&times[..end]) + apart(&times[end..]);
    let best =
        |ends: &mut dyn Iterator<Item = usize>| ends.min_by(|a, b| of(*a).total_cmp(&of(*b)));
    let step = times.len().div_ceil(ENDS);
    let coarse = best(&mut (SIDE..=last).step_by(step))?;
    let near = SIDE.max(coarse.saturating_sub(step))..=last.min(coarse + step);
    let end = best(&mut near.into_iter())?;
    let (before, behind) = times.split_at(end);
    let slower = quantile(behind, 0.25)? >= SLOWER * quantile(before, 0.75)?;
    (slower && rank_score(behind, before) >= SURE).then_some(end)
}

/// Ends that are tried at first.
const ENDS: usize = 128;
/// Standard errors that tell a fall.
const SURE: f64 = 2.8;

impl Sustained {
    /// Microseconds that a request takes from the one numbered `from` on, on a card with AUs of
    /// `au_bytes`.
    pub(crate) fn request_us(&self, from: usize, au_bytes: Option<u64>) -> Option<f64> {
        let rest = self.times_us.get(from..).filter(|rest| !rest.is_empty())?;
        let steady = steady(rest, self.request_bytes, au_bytes);
        Some(steady.unwrap_or_else(|| without_stalls(rest)))
    }

    /// Microseconds of a request before the fall.
    pub(crate) fn fast_us(&self) -> Option<f64> {
        Some(without_stalls(&self.times_us[..self.fast?]))
    }

    /// Bytes of the stream.
    pub(crate) fn bytes(&self) -> u64 {
        self.request_bytes * self.times_us.len() as u64
    }
}

/// Mean without the few that stalled.
fn without_stalls(times: &[f64]) -> f64 {
    let bound = STALL * median(times).unwrap_or(0.0);
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = (STALLS * times.len() as f64).ceil() as usize;
    let stalls = sorted.iter().filter(|us| **us > bound).count().min(most);
    let kept = &sorted[..sorted.len() - stalls];
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_seldom_to_come_with_each_au_is_no_part_of_a_stream() {
        const AU: Option<u64> = Some(4 << 20);
        let mut times = vec![10.0; 45];
        (times[3], times[20], times[40]) = (130.0, 57.0, 90.0);
        assert_eq!(steady(&times, REQUEST, AU), Some(10.0));
        (0..45).step_by(3).for_each(|at| times[at] = 40.0);
        assert_eq!(steady(&times, REQUEST, AU), None);
        assert_eq!(steady(&times, REQUEST, None), None);
    }

    #[test]
    fn stalls_are_no_part_of_what_aus_cost() {
        let mut times = vec![10.0; 256];
        (times[20], times[90], times[200]) = (70.0, 35.0, 110.0);
        assert!((with_aus(&times) - 10.0).abs() < 0.1);
        // Every 64th closes an AU.
        (63..256).step_by(64).for_each(|at| times[at] = 400.0);
        assert!((with_aus(&times) - (10.0 + 4.0 * 390.0 / 253.0)).abs() < 0.2);
        // A small AU, copied fast, is no stall.
        (15..256).step_by(16).for_each(|at| times[at] = 80.0);
        assert!(with_aus(&times) > 14.0);
    }

    #[test]
    fn a_stream_that_slows_down_for_good_has_a_fall_and_one_that_stalls_has_none() {
        let mut times = vec![10.0; 20];
        assert_eq!(fall(&times), None);
        times[7] = 90.0;
        assert_eq!(fall(&times), None);
        times.extend([13.0; 9]);
        assert_eq!(fall(&times), Some(20));
        // Every second request closes an AU: no cache ended.
        let folds: Vec<f64> = (0..40)
            .map(|at| if at > 10 && at % 2 == 0 { 30.0 } else { 10.0 })
            .collect();
        assert_eq!(fall(&folds), None);
        let stream = Sustained {
            times_us: folds,
            request_bytes: REQUEST,
            ..Sustained::default()
        };
        assert!((stream.request_us(12, None).unwrap_or(0.0) - 20.0).abs() < 1.0);
        assert_eq!(stream.request_us(40, None), None);
    }
}
