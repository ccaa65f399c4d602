//! What is programmed together, by writes: where reads show no step for it.
//!
//! Several planes program a *unit* together, and a write takes as long as the units that it covers
//! wholly and in part (`flash.md` 2.3.3, WB21: 16 KiB takes what 4 KiB does, 32 KiB twice as much
//! less the overhead). So writes of many sizes go on one behind the other, and that unit is sought
//! whose count explains their times best: better than any other one and than a time that grows
//! evenly with the size. A read between the writes keeps cards from joining them (2.3.2).

use crate::bench::{Bench, Halt};
use crate::evidence::UnitTest;
use crate::places;
use crate::stats::median;
use whichfs_units::KIB;

/// Sizes are multiples of this.
const STEP: u64 = 4 * KIB;
/// Least and greatest size: above what cards take out of a stream (small-write areas, 2.3.8), and
/// less than what hosts and readers cut requests into.
const SIZES: (u64, u64) = (16 * KIB, 60 * KIB);
/// Number of writes in the stream.
const WRITES: u64 = 200;
/// Units that are tried: with up to four planes of up to 48 KiB.
const UNITS_KIB: [u64; 11] = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];
/// Times that are more than this many spreads off decide no fit.
const OUTLIER: f64 = 4.0;
/// Fits, each without the outliers of the one before.
const ROUNDS: usize = 3;
/// A stall takes longer than this many medians: more units than a write may touch.
const STALL: f64 = 3.0;

/// A write: its place within the stream, its size, and its time in microseconds.
type Timed = (u64, u64, f64);

/// Writes in order with sizes in random order, and the unit that explains the times.
pub(crate) fn measure(bench: &mut Bench, au_bytes: Option<u64>) -> Result<UnitTest, Halt> {
    let length = WRITES * SIZES.1;
    let Some(base) = places::stream_base(bench, 1, length, au_bytes) else {
        return Err(Halt::Stage("the device is too small for this test".into()));
    };
    let mut writes: Vec<Timed> = Vec::new();
    let mut at = 0;
    bench.hold(base, length)?;
    for done in 0..WRITES {
        let size = SIZES.0 + bench.rng.below((SIZES.1 - SIZES.0) / STEP + 1) * STEP;
        let elsewhere = bench.rng.below(bench.capacity / KIB) * KIB;
        bench.read(elsewhere, KIB)?;
        if let Some(us) = bench.write_through(base + at, size)? {
            writes.push((at, size, us));
        }
        at += size;
        bench.tell(done as f64 / WRITES as f64);
    }
    bench.release();
    if writes.len() < WRITES as usize / 2 {
        return Err(Halt::Lost("too many writes failed".into()));
    }
    Ok(explain(&writes))
}

/// The unit that explains the times best.
fn explain(writes: &[Timed]) -> UnitTest {
    let even = spread(writes, |(_, size, _)| vec![1.0, *size as f64]);
    let mut units: Vec<(f64, u64)> = UNITS_KIB
        .map(|unit| unit * KIB)
        .into_iter()
        .map(|unit| (spread(writes, |write| covered(write, unit)), unit))
        .collect();
    units.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (best, unit_bytes) = units[0];
    // Of errors with long tails (Laplace's); each unit has two figures more than a time that grows
    // evenly.
    let margin = |other: f64| 2.0 * writes.len() as f64 * (other / best.max(1e-9)).ln();
    UnitTest {
        unit_bytes,
        margins: [margin(units[1].0), margin(even)],
        writes: writes.len(),
    }
}

/// One, units covered wholly, units covered in part, and KiB in these.
fn covered((at, size, _): &Timed, unit: u64) -> Vec<f64> {
    let end = at + size;
    let (first, last) = (at.div_ceil(unit), end / unit);
    if first > last {
        return vec![1.0, 0.0, 1.0, (*size / KIB) as f64];
    }
    let (head, tail) = (first * unit - at, end - last * unit);
    let parts = f64::from(u8::from(head > 0) + u8::from(tail > 0));
    vec![
        1.0,
        (last - first) as f64,
        parts,
        ((head + tail) / KIB) as f64,
    ]
}

/// Mean relative distance of the times from the best sum of `features`, without stalls. What does
/// not fit counts, or a unit twice as large would explain all but a few.
fn spread(writes: &[Timed], features: impl Fn(&Timed) -> Vec<f64>) -> f64 {
    let times: Vec<f64> = writes.iter().map(|write| write.2).collect();
    let bound = STALL * median(&times).unwrap_or(0.0);
    let rows: Vec<(Vec<f64>, f64)> = writes
        .iter()
        .filter(|write| write.2 <= bound)
        .map(|write| (features(write), write.2))
        .collect();
    let mut kept: Vec<&(Vec<f64>, f64)> = rows.iter().collect();
    let mut found = f64::MAX;
    for _ in 0..ROUNDS {
        let Some(solved) = solve(&kept) else {
            return f64::MAX;
        };
        let off = |row: &(Vec<f64>, f64)| {
            let said: f64 = row.0.iter().zip(&solved).map(|(a, b)| a * b).sum();
            (said / row.1 - 1.0).abs()
        };
        let offs: Vec<f64> = rows.iter().map(&off).collect();
        found = found.min(offs.iter().sum::<f64>() / offs.len().max(1) as f64);
        let typical = 1.4826 * median(&offs).unwrap_or(0.0);
        kept = rows
            .iter()
            .filter(|row| off(row) <= OUTLIER * typical.max(1e-6))
            .collect();
    }
    found
}

/// Least squares of relative errors; figures that nothing tells are zero.
fn solve(rows: &[&(Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let count = rows.first()?.0.len();
    let mut matrix = vec![vec![0.0; count + 1]; count];
    for (features, us) in rows {
        for row in 0..count {
            for column in 0..count {
                matrix[row][column] += features[row] * features[column] / (us * us);
            }
            matrix[row][count] += features[row] / us;
        }
    }
    let mut pivots = vec![false; count];
    for column in 0..count {
        let scale = matrix[column][column].abs();
        let most = rows
            .iter()
            .map(|row| (row.0[column] / row.1).powi(2))
            .sum::<f64>();
        if scale <= 1e-9 * most || most == 0.0 {
            continue;
        }
        pivots[column] = true;
        let lead = matrix[column].clone();
        for (at, row) in matrix
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| *at != column)
        {
            let factor = row[column] / lead[column];
            debug_assert!(at != column);
            for (value, of) in row.iter_mut().zip(&lead) {
                *value -= factor * of;
            }
        }
    }
    let value = |at: usize| {
        if pivots[at] {
            matrix[at][count] / matrix[at][at]
        } else {
            0.0
        }
    };
    Some((0..count).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_units::Rng;

    /// Times of a card that programs `unit` bytes together, or evenly, with 3 % noise.
    fn times(unit: Option<u64>) -> Vec<Timed> {
        let mut rng = Rng::named(3, "units");
        let mut at = 0;
        (0..WRITES)
            .map(|_| {
                let size = SIZES.0 + rng.below(12) * STEP;
                let units = unit.map_or(size as f64 / 16384.0, |unit| {
                    ((at + size).div_ceil(unit) - at / unit) as f64
                });
                let us = (1500.0 + 900.0 * units) * (0.97 + 0.06 * rng.unit_f64());
                at += size;
                (at - size, size, us)
            })
            .collect()
    }

    #[test]
    fn the_unit_that_made_the_times_explains_them_best() {
        for unit in [8, 16, 32, 48, 64, 128] {
            let found = explain(&times(Some(unit * KIB)));
            assert_eq!(found.unit_bytes, unit * KIB, "{found:?}");
            assert!(found.margins[0] > 10.0, "{found:?}");
        }
        assert!(explain(&times(None)).margins[1] < 15.0);
    }
}
