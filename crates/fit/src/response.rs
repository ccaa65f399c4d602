//! What a shape does with flashbench: the modelled card itself, run once for each figure.
//!
//! Time is linear in the times of steps and in the reciprocals of rates, since no decision
//! of a translation layer depends on them. So a run with all figures at a reference and one
//! more for each figure doubled give the time of every point for any figures.

use crate::points::{Order, Point, time_at};
use crate::shape::{Free, Shape, TRIAL_CAPACITY, Unit};
use crate::solve::Row;
use whichfs_curves::Curves;
use whichfs_curves::flashbench::{OPEN_AUS_MOST, OpenAuTests, write_curves_of};

/// Rows for the `points`; `None` where the shape is no card.
pub(crate) fn rows(
    shape: &Shape,
    free: &[Free],
    reference: &[f64],
    points: &[Point],
    seed: u64,
) -> Option<Vec<Row>> {
    let factor = free.last().is_some_and(|last| last.unit == Unit::Percent);
    let linear = free.len() - usize::from(factor);
    let mut at = rounded(free, reference);
    let plain =
        |at: &[f64]| run(shape, free, at, points, seed).map(|curves| times(&curves, points));
    if factor {
        at[linear] = 1.0;
    }
    let base = plain(&at)?;
    let all: Vec<usize> = (0..linear).collect();
    let slopes = slopes(&at, &all, &base, &plain)?;
    let extra = if factor {
        at[linear] = 2.0;
        let doubled = plain(&at)?;
        // The factor multiplies programming and what comes before it, nothing else.
        let of_writing = |j: &usize| free[*j].path.starts_with("write.");
        let affected: Vec<usize> = (0..linear).filter(of_writing).collect();
        let mut extra = vec![vec![0.0; points.len()]; linear];
        let steeper = self::slopes(&at, &affected, &doubled, &plain)?;
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
    at: &[f64],
    figures: &[usize],
    base: &[f64],
    plain: &impl Fn(&[f64]) -> Option<Vec<f64>>,
) -> Option<Vec<Vec<f64>>> {
    figures
        .iter()
        .map(|&j| {
            let mut more = at.to_vec();
            more[j] *= 2.0;
            let reached = plain(&more)?;
            let slope = reached
                .iter()
                .zip(base)
                .map(|(more, less)| (more - less) / at[j]);
            Some(slope.collect())
        })
        .collect()
}

/// References as the integers of a profile have them, doubled without rounding.
fn rounded(free: &[Free], reference: &[f64]) -> Vec<f64> {
    free.iter()
        .zip(reference)
        .map(|(free, theta)| {
            let integer = match free.unit {
                Unit::Rate => free.unit.integer(*theta) / 2 * 2,
                _ => free.unit.integer(*theta).max(20),
            };
            free.unit.theta(integer)
        })
        .collect()
}

/// The shape with these figures under flashbench.
fn run(shape: &Shape, free: &[Free], theta: &[f64], points: &[Point], seed: u64) -> Option<Curves> {
    let profile = shape.sheet(free, theta, TRIAL_CAPACITY).profile().ok()?;
    let most = Order::ALL.map(|order| {
        let of_order = points.iter().filter(|point| point.place.order == order);
        let most = of_order.map(|point| point.place.aus).max();
        most.unwrap_or(0).min(OPEN_AUS_MOST)
    });
    let tests = OpenAuTests {
        most,
        ..OpenAuTests::PUBLISHED
    };
    write_curves_of(&profile, seed, &tests).ok()
}

fn times(curves: &Curves, points: &[Point]) -> Vec<f64> {
    points
        .iter()
        .map(|point| time_at(curves, point.place).unwrap_or(0.0))
        .collect()
}
