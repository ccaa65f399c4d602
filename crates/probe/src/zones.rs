//! Zones of the map that are a good part of the card.
//!
//! Few of their boundaries fit a card, so no place is drawn anew for each sample: all multiples of
//! a fine grid are read across, each with reads of several sizes and at several distances, whose
//! differences average out. A zone is the multiple of the grid at whose multiples reads take
//! longer than elsewhere.

use crate::bench::{Bench, Halt};
use crate::evidence::{ZonePlaces, ZoneTest};
use crate::stats::{median, sigma};
use whichfs_units::{KIB, SECTOR};

/// Places of the grid at most.
const PLACES: u64 = 96;
/// Reads of each place in a round, and rounds at most.
const READS: u64 = 6;
const ROUNDS: usize = 4;
/// Multiples of the grid that zones may be, but for powers of two: as AUs have it.
const ODD: [u64; 3] = [1, 3, 5];
/// Standard errors by which a step must stand out.
const SURE: f64 = 6.0;
/// Spreads of places by which one must that few boundaries show.
const SPREADS: f64 = 5.0;
/// Boundaries that are few.
const FEW: usize = 2;
/// Share of the boundaries that may look like other places, and of these that may look like one.
const ODD_BOUNDARIES: f64 = 0.2;
const ODD_PLACES: f64 = 0.1;

/// Reads across the multiples of a grid of `unit` times a power of two, and looks for a zone of
/// more than `above` bytes.
pub(crate) fn measure(bench: &mut Bench, unit: u64, above: u64) -> Result<ZoneTest, Halt> {
    let mut grid = unit;
    while bench.capacity / grid > PLACES {
        grid *= 2;
    }
    let mut test = ZoneTest {
        grid_bytes: grid,
        ..ZoneTest::default()
    };
    let count = bench.capacity.div_ceil(grid);
    let mut order: Vec<u64> = (0..count.saturating_sub(1) * READS)
        .map(|at| at / READS + 1)
        .collect();
    let mut extra = vec![Vec::new(); count as usize];
    for round in 0..ROUNDS {
        bench.rng.shuffle(&mut order);
        for place in &order {
            extra[*place as usize].extend(across(bench, place * grid)?);
        }
        test.extra_us = extra.iter().map(|extra| median(extra)).collect();
        let wanted = |multiple| multiple * grid > above;
        test.found = find(&test.extra_us, wanted, SURE);
        let hopes = find(&test.extra_us, wanted, SURE / 2.0);
        if test.found.is_some_and(|found| found.score >= 2.0 * SURE)
            || (round > 0 && hopes.is_none())
        {
            break;
        }
    }
    Ok(test)
}

/// How much longer a read of random size across `place` takes than those at either side.
fn across(bench: &mut Bench, place: u64) -> Result<Option<f64>, Halt> {
    let size = (1 + bench.rng.below(4)) * KIB;
    let shift = (1 + bench.rng.below(2 * size / KIB - 1)) * SECTOR;
    // Places differ by themselves: no read is at the same one each time.
    let [before, behind] = [0, 1].map(|_| bench.rng.below(5) * KIB);
    if place < size + before || place + behind + size > bench.capacity {
        return Ok(None);
    }
    let mut offsets = [
        (0, place - size - before),
        (1, place - shift),
        (2, place + behind),
    ];
    bench.rng.shuffle(&mut offsets);
    let mut times = [None; 3];
    for (which, offset) in offsets {
        times[which] = bench.read(offset, size)?;
    }
    let [Some(before), Some(on), Some(behind)] = times else {
        return Ok(None);
    };
    Ok(Some(on - (before + behind) / 2.0))
}

/// The multiple, of those that are `wanted`, at whose multiples reads differ most from others,
/// by `sure` standard errors at least.
fn find(extra_us: &[Option<f64>], wanted: impl Fn(u64) -> bool, sure: f64) -> Option<ZonePlaces> {
    let count = extra_us.len() as u64;
    let multiples = ODD
        .into_iter()
        .flat_map(|odd| (0..u64::BITS - 3).map(move |power| odd << power))
        .filter(|multiple| *multiple < count && wanted(*multiple));
    let found = multiples.filter_map(|multiple| stands_out(extra_us, multiple, sure));
    found.max_by(|a, b| a.score.total_cmp(&b.score))
}

fn stands_out(extra_us: &[Option<f64>], multiple: u64, sure: f64) -> Option<ZonePlaces> {
    let part = |at: bool| -> Vec<f64> {
        let places = (0..).zip(extra_us).skip(1);
        let of = places.filter(|(place, _): &(u64, _)| place.is_multiple_of(multiple) == at);
        of.filter_map(|(_, us)| *us).collect()
    };
    let (on, off) = (part(true), part(false));
    let (there, elsewhere) = (median(&on)?, median(&off)?);
    let (height, spread) = (there - elsewhere, sigma(&off).max(1e-3));
    let middle = elsewhere + height / 2.0;
    let share = |places: &[f64], above: bool| {
        places.iter().filter(|us| (**us > middle) == above).count() as f64 / places.len() as f64
    };
    let score = height / (spread * (1.0 / on.len() as f64 + 1.0 / off.len() as f64).sqrt());
    let clear = match on.len() <= FEW {
        true => sure < SURE || height >= SPREADS * spread && share(&off, true) == 0.0,
        false => share(&off, true) <= ODD_PLACES,
    };
    let whole = share(&on, false) <= ODD_BOUNDARIES;
    (clear && whole && score >= sure).then_some(ZonePlaces {
        multiple,
        boundaries: on.len(),
        height_us: height,
        spread_us: spread,
        score: score.min(1e6),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_zone_is_the_smallest_multiple_whose_places_all_stand_out() {
        let of = |zone: usize| -> Vec<Option<f64>> {
            let level = |at: usize| if at.is_multiple_of(zone) { 90.0 } else { 30.0 };
            (0..64)
                .map(|at| Some(level(at) + (at * 7 % 5) as f64))
                .collect()
        };
        for zone in [2, 6, 8, 16, 24, 32] {
            let found = find(&of(zone), |_| true, SURE).unwrap();
            assert_eq!(found.multiple, zone as u64);
        }
        assert_eq!(find(&of(1), |_| true, SURE), None);
    }
}
