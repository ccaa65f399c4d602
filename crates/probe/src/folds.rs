//! How many AUs a page map writes in turns at no cost: AUs beyond it share a block that is
//! *folded*, copied out as soon as it is full (family P, streams; `flash.md` §1: cards that slow
//! down gradually).
//!
//! No write of such a card is slow but for those that fill the block, one in some seventy. Each is
//! of an AU without a place of its own, and from one to the next exactly an AU of such writes was
//! made. So of 16 AUs in turns the distance between them tells how many have a place.

use crate::bench::{Bench, Halt};
use crate::open_aus::BLOCK;
use crate::stats::median;

/// AUs in turns: more than cards have places for.
const AUS: u64 = 16;
/// Most places that are looked for.
const PLACES_MOST: u64 = 8;
/// Rounds in which AUs of earlier tests lose their places.
const SETTLING: u64 = 5;
/// Folds that are waited for, of AUs of so many blocks and more; of smaller ones more, as they come
/// often; and fewest that tell.
const FOLDS: (u64, usize) = (4, 3);
const FOLDED_BLOCKS: u64 = 64;
/// A fold takes this many times a usual write at least.
const SLOW: f64 = 6.0;
/// Distances between folds that differ by this share, and by more than the AUs with places between
/// two without, are of something else.
const UNEVEN: f64 = 0.12;
/// The count of places is a whole number but for this.
const WHOLE: f64 = 0.3;

/// What the turns tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Folds {
    /// So many AUs have places.
    Places(u32),
    /// No block was folded: there is no limit.
    Never,
    /// Writes were slow, but not as folds are; or it was too much to write.
    Untold,
}

/// Writes AUs of `bases` in turns; a fold copies AUs of `au` bytes, which takes `fold_us` at least.
pub(crate) fn measure(
    bench: &mut Bench,
    bases: &[u64],
    au: u64,
    fold_us: f64,
) -> Result<Folds, Halt> {
    let bases: Vec<u64> = bases.iter().rev().take(AUS as usize).copied().collect();
    let in_au = au / BLOCK;
    // Twice the longest distance, in rounds.
    let rounds = SETTLING + 2 * in_au.div_ceil(AUS - PLACES_MOST);
    let wanted = FOLDS.0 * (FOLDED_BLOCKS / in_au).max(1);
    let longest = rounds * wanted / 2;
    if bases.len() < AUS as usize || !bench.affords(longest * AUS * BLOCK) {
        return Ok(Folds::Untold);
    }
    let mut times = Vec::new();
    for round in 0..longest {
        for base in &bases {
            bench.hold(base + round % in_au * BLOCK, BLOCK)?;
        }
        for base in &bases {
            let us = bench.write_through(base + round % in_au * BLOCK, BLOCK)?;
            times.push(us.unwrap_or(0.0));
        }
        bench.release();
        let folds = folds(&times, fold_us);
        if folds.len() as u64 >= wanted || (folds.is_empty() && round >= rounds) {
            break;
        }
    }
    Ok(judge(&folds(&times, fold_us), in_au))
}

/// Which writes folded a block.
fn folds(times: &[f64], fold_us: f64) -> Vec<usize> {
    let slow = (SLOW * median(times).unwrap_or(0.0)).max(fold_us);
    let settled = (SETTLING * AUS) as usize;
    let slow = (settled..times.len()).filter(|at| times[*at] > slow);
    slow.collect()
}

fn judge(folds: &[usize], in_au: u64) -> Folds {
    if folds.is_empty() {
        return Folds::Never;
    }
    let distances: Vec<f64> = folds
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    if folds.len() < FOLDS.1 {
        return Folds::Untold;
    }
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let uneven = (UNEVEN * mean).max(PLACES_MOST as f64);
    let even = distances
        .iter()
        .all(|distance| (distance - mean).abs() <= uneven);
    let places = AUS as f64 * (1.0 - in_au as f64 / mean);
    match even && (places - places.round()).abs() <= WHOLE && places.round() >= 1.0 {
        true => Folds::Places(places.round() as u32),
        false => Folds::Untold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_folds_tells_the_places() {
        for places in 1..=8_u64 {
            // Each AU behind the places adds a block of 64 to the shared one.
            let mut shared = 0;
            let mut times = Vec::new();
            for write in 0..600_u64 {
                let apart = write % AUS >= places;
                shared += u64::from(apart);
                let full = apart && shared.is_multiple_of(64);
                times.push(if full { 400.0 } else { 10.0 });
            }
            assert_eq!(
                judge(&folds(&times, 100.0), 64),
                Folds::Places(places as u32)
            );
        }
        // A block for every 64 writes is what any page map takes, and collects for.
        let collected: Vec<usize> = (1..6).map(|at| at * 64).collect();
        assert_eq!(judge(&collected, 64), Folds::Untold);
        assert_eq!(judge(&[], 64), Folds::Never);
    }
}
