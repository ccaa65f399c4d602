//! Probability of being best and interval of the score, by bootstrap over seeds and stated
//! uncertainties.
//!
//! Each of [`DRAWS`] draws resamples the seeds with replacement, the same draw for all
//! candidates and metrics, and moves each candidate's level by the mean of its residuals
//! in that draw. With one seed there are no residuals, and with few they are too few to
//! trust; so perturbations are added in every draw:
//!
//! - the noise floor (10 %) on each candidate's score, log-normal: standard deviation
//!   ln(floor)/√2, so that the difference of two candidates has the floor as its standard
//!   deviation. More seeds do not shrink it: nobody notices such a difference;
//! - the card's stated uncertainty u on each candidate's level of each metric: standard deviation
//!   ln(1+u)/2, divided by the root of the number of seeds, because each seed draws the
//!   card's parameters anew. The half is an assumption: an error of the card shifts all
//!   candidates alike, only the difference of their responses matters;
//! - of figures of the lab, an error as `discrepancy.rs` has them on each candidate's level of each
//!   metric, divided by √2, for they are errors of ratios of two. It is not the same error in all
//!   metrics: over the published sets those of one filesystem on one card correlate by 0.1. More
//!   seeds do not shrink it.
//!
//! One seed and a lead below the floor thus never claim more than about 84 %, and no verdict
//! claims 100 % by having measured once. Whether more seeds could change the order is asked without
//! the last, which they cannot change.

use crate::discrepancy::Discrepancy;
use crate::fit::{Levels, mean};
use crate::judge::Share;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::FRAC_1_SQRT_2;
use whichfs_units::Rng;

/// Draws: enough for a standard error of about one percentage point.
pub(crate) const DRAWS: u32 = 2000;

/// Seed of the resampling itself; fixed, so that the same rows give the same verdict.
const SEED: u64 = 0x7768_6963_6866_7321;

/// What is uncertain beside the seeds.
pub(crate) struct Doubt<'d> {
    /// Standard deviation of a candidate's log score.
    pub score: f64,
    /// Standard deviation of a candidate's log level in a metric, with one seed.
    pub metric: f64,
    /// How far the lab's ratios are from published ones.
    pub discrepancy: Option<&'d Discrepancy>,
}

/// Share of the draws that lie within an interval.
pub(crate) const WITHIN: f64 = 0.9;

/// What the draws say of a candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    /// Share of draws in which it has the lowest weighted log ratio.
    pub p_best: f64,
    /// Weighted log ratios to the reference between which [`WITHIN`] of its draws lie.
    pub loss: [f64; 2],
}

/// Draws the weighted log ratios of `candidates`.
pub(crate) fn draw(
    candidates: &[String],
    fits: &BTreeMap<String, Levels>,
    shares: &[Share],
    doubt: &Doubt<'_>,
) -> BTreeMap<String, Drawn> {
    let seeds: BTreeSet<u64> = fits
        .values()
        .flat_map(|fit| fit.residual.values().flat_map(|row| row.keys().copied()))
        .collect();
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let mut seed_stream = Rng::named(SEED, "seeds");
    // A stream for each candidate: adding one does not change the draws of the others.
    let mut streams: Vec<Rng> = candidates
        .iter()
        .map(|name| Rng::named(SEED, &format!("candidate/{name}")))
        .collect();
    let mut wins = vec![0_u32; candidates.len()];
    let mut all = vec![Vec::with_capacity(DRAWS as usize); candidates.len()];
    for _ in 0..DRAWS {
        let drawn: Vec<u64> = seeds
            .iter()
            .map(|_| seeds[seed_stream.below(seeds.len() as u64) as usize])
            .collect();
        let losses = draw_losses(candidates, fits, shares, doubt, &drawn, &mut streams);
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        if let Some(best) = best {
            wins[best] += 1;
        }
        for (own, loss) in all.iter_mut().zip(losses) {
            own.push(loss);
        }
    }
    let drawn = wins.into_iter().zip(&mut all).map(|(wins, own)| {
        own.sort_unstable_by(f64::total_cmp);
        let outside = ((1.0 - WITHIN) / 2.0 * f64::from(DRAWS)) as usize;
        Drawn {
            p_best: f64::from(wins) / f64::from(DRAWS),
            loss: [own[outside], own[own.len() - 1 - outside]],
        }
    });
    candidates.iter().cloned().zip(drawn).collect()
}

fn draw_losses(
    candidates: &[String],
    fits: &BTreeMap<String, Levels>,
    shares: &[Share],
    doubt: &Doubt<'_>,
    drawn: &[u64],
    streams: &mut [Rng],
) -> Vec<f64> {
    let mut loss: Vec<(f64, f64)> = vec![(0.0, 0.0); candidates.len()];
    for share in shares {
        let Some(fit) = fits.get(&share.metric) else {
            continue;
        };
        let moved: Vec<Option<f64>> = candidates
            .iter()
            .zip(streams.iter_mut())
            .map(|(name, rng)| {
                let level = fit.level.get(name)?;
                let residual = &fit.residual[name];
                let resampled = mean(drawn.iter().filter_map(|seed| residual.get(seed)).copied());
                let card = doubt.metric / (residual.len().max(1) as f64).sqrt();
                let model = doubt.discrepancy.map_or(0.0, |errors| errors.draw(rng));
                let model = model * FRAC_1_SQRT_2;
                Some(level + resampled + card * normal(rng) + model)
            })
            .collect();
        for (total, moved) in loss.iter_mut().zip(moved) {
            if let Some(moved) = moved {
                total.0 += share.share * (moved - fit.reference);
                total.1 += share.share;
            }
        }
    }
    let scores = loss.into_iter().zip(streams.iter_mut());
    scores
        .map(|((sum, weight), rng)| {
            if weight > 0.0 {
                sum / weight + doubt.score * normal(rng)
            } else {
                f64::INFINITY
            }
        })
        .collect()
}

/// A standard normal number as twelve uniforms less six: plain arithmetic, the same
/// bits on every machine, and its tails beyond 3 do not matter to a probability of best.
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0
}
