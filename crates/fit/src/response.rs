//! What a shape does with flashbench: the modelled card itself, run once for each figure.
//!
//! Time is linear in the times of steps and in the reciprocals of rates, since no decision
//! of a translation layer depends on them. So a run with all figures at a reference and one
//! more for each figure doubled give the time of every point for any figures.

use crate::Jobs;
use crate::points::Point;
use crate::replay::Replay;
use crate::shape::{Free, Shape, Unit};
use crate::solve::Row;
use std::sync::OnceLock;
use whichfs_card::limits::{MICROS_MAX, RATE};

/// Rows for the `points`; `None` where the shape is no card.
pub(crate) fn rows(
    shape: &Shape,
    free: &[Free],
    reference: &[f64],
    points: &[Point],
    replay: &Replay,
    jobs: Jobs,
) -> Option<Vec<Row>> {
    let factor = free.last().is_some_and(|last| last.unit == Unit::Percent);
    let linear = free.len() - usize::from(factor);
    let mut at = rounded(free, reference);
    let plain = |at: &[f64]| {
        let sheet = shape.sheet(free, at, replay.trial_capacity());
        replay.times(&sheet.profile().ok()?, points).ok()
    };
    if factor {
        at[linear] = 1.0;
    }
    let base = plain(&at)?;
    let all: Vec<usize> = (0..linear).collect();
    let slopes = slopes(free, &at, &all, &base, &plain, jobs)?;
    let extra = if factor {
        at[linear] = 2.0;
        let doubled = plain(&at)?;
        // The factor multiplies programming and what comes before it, nothing else.
        let of_writing = |j: &usize| free[*j].path.starts_with("write.");
        let affected: Vec<usize> = (0..linear).filter(of_writing).collect();
        let mut extra = vec![vec![0.0; points.len()]; linear];
        let steeper = self::slopes(free, &at, &affected, &doubled, &plain, jobs)?;
        for (j, steep) in affected.into_iter().zip(steeper) {
            extra[j] = steep.iter().zip(&slopes[j]).map(|(e, c)| e - c).collect();
        }
        Some(extra)
    } else {
        None
    };
    let row = |i: usize| {
        let of_points: Vec<f64> = slopes.iter().map(|slope| slope[i]).collect();
        let explained: f64 = of_points.iter().zip(&at).map(|(c, t)| c * t).sum();
        Row {
            constant: base[i] - explained,
            factored: extra.as_ref().map_or_else(Vec::new, |extra| {
                extra.iter().map(|of_figure| of_figure[i]).collect()
            }),
            linear: of_points,
            measured_ns: points[i].ns,
        }
    };
    Some((0..points.len()).map(row).collect())
}

/// How much the time of each point grows with each of `figures`.
fn slopes(
    free: &[Free],
    at: &[f64],
    figures: &[usize],
    base: &[f64],
    plain: &(impl Fn(&[f64]) -> Option<Vec<f64>> + Sync),
    jobs: Jobs,
) -> Option<Vec<Vec<f64>>> {
    let slope = |j: usize| {
        let mut more = at.to_vec();
        more[j] *= 2.0;
        assert!(
            is_doubled(free[j].unit, at[j], more[j]),
            "{} cannot be doubled from {}",
            free[j].path,
            at[j]
        );
        let reached = plain(&more)?;
        let pairs = reached.iter().zip(base);
        Some(pairs.map(|(more, less)| (more - less) / at[j]).collect())
    };
    let found: Vec<OnceLock<Option<Vec<f64>>>> = figures.iter().map(|_| OnceLock::new()).collect();
    jobs.run(figures.len(), &|at| {
        found[at].get_or_init(|| slope(figures[at]));
    });
    found.into_iter().map(|slope| slope.into_inner()?).collect()
}

/// Whether the profile's integers of the figures are double each other, as the figures are.
fn is_doubled(unit: Unit, less: f64, more: f64) -> bool {
    let (less, more) = (unit.integer(less), unit.integer(more));
    match unit {
        Unit::Rate => less == 2 * more,
        _ => more == 2 * less,
    }
}

/// References as the integers of a profile have them, such that they can be doubled without
/// rounding and without coming to the figure's bound.
fn rounded(free: &[Free], reference: &[f64]) -> Vec<f64> {
    free.iter()
        .zip(reference)
        .map(|(free, theta)| {
            let integer = free.unit.integer(*theta);
            free.unit.theta(match free.unit {
                Unit::Rate => integer.max(2 * RATE.start()) / 2 * 2,
                Unit::Micros => integer.clamp(20, MICROS_MAX / 2),
                Unit::Percent => integer,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::shape::start;
    use whichfs_card::Family;

    #[test]
    fn references_at_their_bounds_can_be_doubled() {
        let free = start(Family::UpdateBlock)
            .with("geometry.open_aus_linear", 4)
            .free();
        // 398 kB/s: the double of a whole AU's copy is beyond 10 s; and slower than any card.
        for per_byte in [0.01, 1e9 / 398e3, 1e9 / 9e3] {
            let reference: Vec<f64> = free
                .iter()
                .map(|free| match free.prior.relative {
                    true => per_byte * free.prior.centre.exp(),
                    false => per_byte,
                })
                .collect();
            for (free, at) in free.iter().zip(rounded(&free, &reference)) {
                assert!(is_doubled(free.unit, at, 2.0 * at), "{} {at}", free.path);
            }
        }
    }
}
