//! Levels of the candidates in each metric, paired by seed.
//!
//! Log costs are fitted as candidate + seed effects by least squares, so that a seed that
//! only the leaders ran (a harder tree, a slower draw of the card) does not count against
//! them. With every candidate on every seed this is the plain mean of logs.

use std::collections::{BTreeMap, BTreeSet};

/// Log costs of one metric: candidate → seed → ln(cost).
pub(crate) type Costs = BTreeMap<String, BTreeMap<u64, f64>>;

/// The fit of one metric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// Candidate → level in log units; only differences between candidates mean anything.
    pub level: BTreeMap<String, f64>,
    /// Candidate → seed → what the fit leaves over.
    pub residual: Costs,
    /// Mean effect of the seeds that all candidates ran; of all seeds, if there is none such.
    /// Level plus this is the log cost of a candidate on those seeds: for one that ran no other
    /// seeds its plain mean.
    pub common: f64,
}

/// Sweeps after which the seed effects of any plausible study have converged.
const MAX_SWEEPS: usize = 10_000;

/// Change per sweep, in log units, below which the fit is done.
const CONVERGED: f64 = 1e-13;

/// Fits `costs` by alternating means, which converges to the least-squares solution.
pub(crate) fn fit(costs: &Costs) -> Levels {
    let seeds: BTreeSet<u64> = costs.values().flat_map(|row| row.keys().copied()).collect();
    let mut effect: BTreeMap<u64, f64> = seeds.iter().map(|&seed| (seed, 0.0)).collect();
    let mut level = candidate_means(costs, &effect);
    for _ in 0..MAX_SWEEPS {
        let mut moved = 0.0_f64;
        for (seed, effect) in &mut effect {
            let left = costs
                .iter()
                .filter_map(|(name, row)| Some(row.get(seed)? - level[name]));
            let next = mean(left);
            moved = moved.max((next - *effect).abs());
            *effect = next;
        }
        level = candidate_means(costs, &effect);
        if moved < CONVERGED {
            break;
        }
    }
    let residual = costs
        .iter()
        .map(|(name, row)| {
            let left = row
                .iter()
                .map(|(seed, x)| (*seed, x - level[name] - effect[seed]));
            (name.clone(), left.collect())
        })
        .collect();
    let shared = |seed: &u64| costs.values().all(|row| row.contains_key(seed));
    let of_all: Vec<f64> = (effect.iter())
        .filter(|(seed, _)| shared(seed))
        .map(|(_, effect)| *effect)
        .collect();
    let common = match of_all.is_empty() {
        true => mean(effect.values().copied()),
        false => mean(of_all.into_iter()),
    };
    Levels {
        level,
        residual,
        common,
    }
}

fn candidate_means(costs: &Costs, effect: &BTreeMap<u64, f64>) -> BTreeMap<String, f64> {
    costs
        .iter()
        .map(|(name, row)| {
            (
                name.clone(),
                mean(row.iter().map(|(seed, x)| x - effect[seed])),
            )
        })
        .collect()
}

/// The mean; 0 of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, n), x| (sum + x, n + 1));
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}
