//! Steps in the alignment test: where the time of a read across a boundary rises for good.
//!
//! The levels are ordered: a boundary of a greater power of two is also one of each smaller,
//! so a real step never goes down again. Between levels there are differences that no
//! repetition averages out (the noise is positional, `flash.md` §4), for which reason an
//! information criterion over-segments. Here a cut must stand out from the differences
//! between neighbouring levels, from the spread on either side of it, and from what is seen
//! where nothing can be; and the level behind it must stay above all before it.

use crate::stats::{median, quantile, sigma};
use serde::{Deserialize, Serialize};

/// A rise between two neighbouring levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Rise {
    /// The first level behind it, in bytes.
    pub bytes: u64,
    /// Its height in microseconds.
    pub height_us: f64,
    /// Height over its standard error.
    pub score: f64,
    /// Level before it, in microseconds.
    pub before_us: f64,
    /// Level behind it, in microseconds.
    pub behind_us: f64,
    /// The last three levels before it, in microseconds: lower where a trend leads down to it.
    pub near_us: f64,
    /// The first level behind it, in microseconds.
    pub at_us: f64,
}

/// How strict to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rules {
    /// Least score.
    pub score: f64,
    /// Least height in microseconds.
    pub height_us: f64,
    /// Least height over the level before it.
    pub relative: f64,
}

/// A level: size in bytes, microseconds, standard error.
pub(crate) type Point = (u64, f64, f64);

/// How many levels beside a cut are compared where a longer trend would hide it.
const NEAR: usize = 3;

/// Steps of `points`, which are ordered by size, finest first.
pub(crate) fn rises(points: &[Point], rules: Rules) -> Vec<Rise> {
    let mut cuts = Vec::new();
    let between = between_levels(points);
    split(points, 0, points.len(), between, rules, &mut cuts);
    cuts.sort_unstable();
    drop_weak(points, &mut cuts, between, rules);
    drop_transients(points, &mut cuts, rules);
    for at in 0..cuts.len() {
        settle(points, &mut cuts, at);
    }
    begin_early(points, &mut cuts, between, rules);
    let edges: Vec<usize> = std::iter::once(0)
        .chain(cuts.iter().copied())
        .chain([points.len()])
        .collect();
    let scores = cuts.iter().enumerate().map(|(at, &cut)| {
        let (low, high) = (edges[at], edges[at + 2]);
        let (height, score) = contrast(&points[low..cut], &points[cut..high], between);
        Rise {
            bytes: points[cut].0,
            height_us: height,
            score: score.min(1e6),
            before_us: middle(&points[low..cut]),
            behind_us: middle(&points[cut..high]),
            near_us: middle(&points[low.max(cut.saturating_sub(NEAR))..cut]),
            at_us: points[cut].1,
        }
    });
    scores.collect()
}

/// Spread of a level from causes that are no steps: differences of neighbours, of which
/// few are steps, and at least the error of the levels themselves.
fn between_levels(points: &[Point]) -> f64 {
    let differences: Vec<f64> = points
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1).abs())
        .collect();
    // Up to a fifth of the differences are steps: a quantile below the median of the rest.
    let typical = quantile(&differences, 0.4).unwrap_or(0.0);
    let errors: Vec<f64> = points.iter().map(|point| point.2).collect();
    // 0.74 is that quantile of the absolute difference of two normal variables.
    (typical / 0.74).max(median(&errors).unwrap_or(0.0))
}

fn values(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.1).collect()
}

fn middle(points: &[Point]) -> f64 {
    median(&values(points)).unwrap_or(0.0)
}

/// Height of the step between two runs of levels, and its score.
fn contrast(before: &[Point], behind: &[Point], between: f64) -> (f64, f64) {
    let residuals: Vec<f64> = [before, behind]
        .iter()
        .flat_map(|side| {
            let centre = middle(side);
            side.iter().map(move |point| point.1 - centre)
        })
        .collect();
    // A run of one level has no spread of its own; it does not make the other's smaller.
    let spread = between.max(sigma(&residuals)).max(1e-9);
    let height = middle(behind) - middle(before);
    let (n, m) = (before.len() as f64, behind.len() as f64);
    (height, height / (spread * (1.0 / n + 1.0 / m).sqrt()))
}

/// Finds the best cut of a run that is a step, and looks at both sides.
fn split(
    points: &[Point],
    low: usize,
    high: usize,
    between: f64,
    rules: Rules,
    cuts: &mut Vec<usize>,
) {
    let best = (low + 1..high)
        .filter_map(|cut| Some((score(points, low, cut, high, between, rules)?, cut)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, cut)) = best {
        cuts.push(cut);
        split(points, low, cut, between, rules, cuts);
        split(points, cut, high, between, rules, cuts);
    }
}

/// Score of a cut of `low..high`, or `None` where it is no step.
fn score(
    points: &[Point],
    low: usize,
    cut: usize,
    high: usize,
    between: f64,
    rules: Rules,
) -> Option<f64> {
    let (before, behind) = (&points[low..cut], &points[cut..high]);
    let near = &before[before.len().saturating_sub(NEAR)..];
    let next = &behind[..behind.len().min(NEAR)];
    let whole = contrast(before, behind, between);
    let local = contrast(near, next, between);
    let tall = |(height, score): &(f64, f64)| {
        *score >= rules.score
            && *height >= rules.height_us
            && *height >= rules.relative * middle(near).abs()
    };
    let best = [whole, local]
        .into_iter()
        .filter(tall)
        .map(|(_, score)| score)
        .max_by(f64::total_cmp)?;
    let highest = quantile(&values(before), 0.9)?;
    let lowest = values(next).into_iter().min_by(f64::total_cmp)?;
    let apart = lowest > quantile(&values(near), 0.75)?;
    // One level at the very end may be anything: few boundaries of that size fit a card.
    let lasting = middle(behind) > highest && (behind.len() > 1 || high < points.len());
    (apart && lasting).then_some(best)
}

/// Drops cuts that no longer are steps between their final neighbours, weakest first: the
/// first cut of a run with two steps may fall beside one of them.
fn drop_weak(points: &[Point], cuts: &mut Vec<usize>, between: f64, rules: Rules) {
    loop {
        let weakest = (0..cuts.len())
            .map(|at| {
                let low = at.checked_sub(1).map_or(0, |previous| cuts[previous]);
                let high = cuts.get(at + 1).copied().unwrap_or(points.len());
                let score = score(points, low, cuts[at], high, between, rules);
                (score.unwrap_or(0.0), at)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((score, at)) if score <= 0.0 => {
                cuts.remove(at);
            }
            _ => return,
        }
    }
}

/// Drops cuts whose rise does not last: what follows falls back to the level before.
fn drop_transients(points: &[Point], cuts: &mut Vec<usize>, rules: Rules) {
    let mut at = 0;
    while at < cuts.len() {
        let low = if at == 0 { 0 } else { cuts[at - 1] };
        let all_behind = middle(&points[cuts[at]..]);
        let height = all_behind - middle(&points[low..cuts[at]]);
        if height < rules.height_us {
            cuts.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Moves a cut to where the levels around it lie closest to those on their side.
fn settle(points: &[Point], cuts: &mut [usize], at: usize) {
    let low = at.checked_sub(1).map_or(0, |previous| cuts[previous]);
    let high = cuts.get(at + 1).copied().unwrap_or(points.len());
    let (from, to) = (
        low.max(cuts[at].saturating_sub(NEAR + 1)),
        high.min(cuts[at] + NEAR),
    );
    let apart = |cut: usize| -> f64 {
        let sides = [&points[from..cut], &points[cut..to]];
        let distances = sides.iter().map(|side| {
            let centre = middle(side);
            side.iter()
                .map(|point| (point.1 - centre).abs())
                .sum::<f64>()
        });
        distances.sum()
    };
    let best = (from + 1..to).min_by(|a, b| apart(*a).total_cmp(&apart(*b)));
    cuts[at] = best
        .filter(|cut| apart(*cut) < apart(cuts[at]))
        .unwrap_or(cuts[at]);
}

/// A rise that takes two levels begins at the first of them.
fn begin_early(points: &[Point], cuts: &mut [usize], between: f64, rules: Rules) {
    const SHARE: f64 = 0.25;
    const SCORE: f64 = 3.0;
    for at in 0..cuts.len() {
        let low = at.checked_sub(1).map_or(0, |previous| cuts[previous]);
        let (first, cut) = (cuts[at] - 1, cuts[at]);
        if first <= low {
            continue;
        }
        let before = &points[low..first];
        let (height, score) = contrast(before, &points[first..cut], between);
        let highest = values(before).into_iter().fold(f64::MIN, f64::max);
        let whole = points[cut].1 - middle(before);
        if score >= SCORE
            && height >= rules.height_us
            && height >= SHARE * whole
            && points[first].1 > highest
        {
            cuts[at] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        score: 4.5,
        height_us: 10.0,
        relative: 0.1,
    };

    fn steps_of(values: &[f64]) -> Vec<u64> {
        let points: Vec<Point> = values
            .iter()
            .enumerate()
            .map(|(at, value)| (2048 << at, *value, 3.0))
            .collect();
        rises(&points, RULES).iter().map(|r| r.bytes).collect()
    }

    #[test]
    fn two_steps_in_small_noise_are_found_where_they_are() {
        let values = [
            2., -3., 1., 174., 170., 176., 172., 171., 175., 173., 174., 300., 297., 303., 299.,
        ];
        assert_eq!(steps_of(&values), [16 << 10, 4 << 20]);
    }

    #[test]
    fn flat_data_have_no_step_at_any_noise() {
        let mut rng = whichfs_units::Rng::named(1, "flat");
        let mut found = 0;
        for _ in 0..500 {
            let values: Vec<f64> = (0..20).map(|_| 100.0 * rng.unit_f64()).collect();
            found += usize::from(!steps_of(&values).is_empty());
        }
        assert!(found <= 15, "{found} of 500 flat tables have a step");
    }

    #[test]
    fn a_bump_that_goes_down_again_is_no_step() {
        let values = [
            1., 3., 0., 130., 128., 131., 129., 133., 135., 131., 130., 156., 154., 126., 125.,
            124., 123., 124., 122.,
        ];
        assert_eq!(steps_of(&values), [16 << 10]);
    }

    #[test]
    fn one_high_level_at_the_end_is_no_step() {
        let values = [1., 2., 0., 3., 1., 2., 0., 2., 1., 90.];
        assert_eq!(steps_of(&values), [0_u64; 0]);
    }
}

#[cfg(test)]
mod regression {
    use super::*;

    #[test]
    fn a_low_step_in_fine_levels_is_found() {
        let values = [
            0.11, 0.66, -1.48, 8.27, 10.89, 9.55, 11.86, 6.88, 7.39, 6.86, 10.25, 7.52, 7.36, 7.66,
            10.42, 7.2, 9.78,
        ];
        let points: Vec<Point> = (0..)
            .zip(values)
            .map(|(at, v)| (2048 << at, v, 0.8))
            .collect();
        let rules = Rules {
            score: 4.0,
            height_us: 1.3,
            relative: 0.0,
        };
        let found = rises(&points, rules);
        assert_eq!(
            found.iter().map(|r| r.bytes).collect::<Vec<_>>(),
            [16384],
            "{found:?}"
        );
    }
}
