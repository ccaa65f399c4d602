//! Open AUs of a card that does not copy an AU for one too many: some AUs keep their place, and
//! the others are written without one, slowly each time (family S, `flash.md` §2.2).
//!
//! Then no number of AUs is too many all at once: a few more than have a place make a few
//! writes slow. But it is always the same AUs that are slow, so one turn with more AUs than any
//! such card can have open tells the limit: it is the number of those that stay fast.

use crate::bench::{Bench, Halt};
use crate::open_aus::BLOCK;
use crate::stats::median;
use whichfs_units::KIB;

/// AUs in turns: more than cards have open.
const AUS: usize = 16;
/// Most of them that may be fast: cards have at most ten open, so the rest is not one odd AU.
const FAST_MOST: usize = 12;
/// Rounds of small writes in which AUs of earlier tests lose their places.
const SETTLING: u64 = 5;
/// Rounds that are timed, of writes of two blocks: what is longer than a card gathers is slow
/// each time.
const TIMED: u64 = 5;
/// Bytes of an AU that are written.
pub(crate) const BYTES: u64 = (SETTLING + 2 * TIMED) * BLOCK;
/// Most rounds in which an AU may be unlike itself: any write may stall.
const UNLIKE: usize = 1;
/// A slow AU takes this many times as long as a fast one.
const SLOW: f64 = 2.5;

/// What a turn tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept {
    /// AUs that stayed fast.
    pub aus: u32,
    /// Median times of writes into AUs with and without a place, in microseconds.
    pub fast_us: f64,
    pub slow_us: f64,
}

/// Writes AUs of `bases` in turns; `None` if they are too few, or not of two kinds.
pub(crate) fn measure(bench: &mut Bench, bases: &[u64]) -> Result<Option<Kept>, Halt> {
    // Those at the end have not been in use.
    let bases: Vec<u64> = bases.iter().rev().take(AUS).copied().collect();
    if bases.len() < AUS || !bench.affords(2 * AUS as u64 * BYTES) {
        return Ok(None);
    }
    for base in &bases {
        bench.hold(*base, BYTES)?;
    }
    let mut times = vec![Vec::new(); AUS];
    for round in 0..SETTLING {
        for base in &bases {
            bench.write_through(base + round * BLOCK, BLOCK)?;
        }
    }
    for round in 0..TIMED {
        let offset = (SETTLING + 2 * round) * BLOCK;
        for (base, times) in bases.iter().zip(&mut times) {
            times.extend(bench.write_through(base + offset, 2 * BLOCK)?);
        }
    }
    bench.release();
    Ok(two_kinds(&times))
}

/// Writes the AU at `base` in small steps, until all other AUs may be replaced.
pub(crate) fn settle(bench: &mut Bench, base: u64) -> Result<(), Halt> {
    const WRITES: u64 = SETTLING * AUS as u64;
    const STEP: u64 = 4 * KIB;
    bench.hold(base, WRITES * STEP)?;
    for at in 0..WRITES {
        bench.write_through(base + at * STEP, STEP)?;
    }
    bench.release();
    Ok(())
}

/// Which AUs are fast, if each is of one kind nearly always and there are both.
fn two_kinds(times: &[Vec<f64>]) -> Option<Kept> {
    let usual: Option<Vec<f64>> = times.iter().map(|times| median(times)).collect();
    let mut usual = usual?;
    usual.sort_by(f64::total_cmp);
    let fastest = *usual.first()?;
    let is_slow = |us: f64| us > SLOW * fastest;
    let (fast, slow): (Vec<f64>, Vec<f64>) = usual.iter().partition(|us| !is_slow(**us));
    let alike = times.iter().all(|times| {
        let slow = times.iter().filter(|us| is_slow(**us)).count();
        slow.min(times.len() - slow) <= UNLIKE
    });
    let told = alike && fast.len() <= FAST_MOST && !slow.is_empty();
    told.then(|| Kept {
        aus: fast.len() as u32,
        fast_us: median(&fast).unwrap_or(0.0),
        slow_us: median(&slow).unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn aus_of_two_kinds_are_counted_and_others_tell_nothing() {
        let of = |us: f64| vec![us, 1.1 * us, us, 0.9 * us, us];
        let mut times: Vec<Vec<f64>> = (0..4).map(|_| of(10.0)).collect();
        assert_eq!(two_kinds(&times), None);
        // One odd AU is none without a place.
        let mut odd = vec![of(10.0); 15];
        odd.push(of(90.0));
        assert_eq!(two_kinds(&odd), None);
        times.extend((0..12).map(|_| of(90.0)));
        // A stall.
        times[1][2] = 500.0;
        let found = two_kinds(&times).unwrap();
        assert_eq!((found.aus, found.fast_us, found.slow_us), (4, 10.0, 90.0));
        // Now fast and now slow is no place of its own.
        times[5] = vec![10.0, 90.0, 10.0, 90.0, 10.0];
        assert_eq!(two_kinds(&times), None);
        times[5].clear();
        assert_eq!(two_kinds(&times), None);
    }
}
