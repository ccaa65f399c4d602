//! Levels of the candidates in each metric, paired by seed.
//!
//! Every candidate is compared with one, the anchor, on the seeds that both ran: a seed that only
//! the leaders ran (a harder tree, a slower draw of the card) does not count against them. The
//! anchor is the need's baseline, so the level of a candidate depends on its own trials and the
//! baseline's alone, never on which others ran.

use std::collections::BTreeMap;

/// Log costs of one metric: candidate → seed → ln(cost).
pub(crate) type Costs = BTreeMap<String, BTreeMap<u64, f64>>;

/// The levels of one metric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// Candidate → mean log ratio of its cost to the anchor's.
    pub level: BTreeMap<String, f64>,
    /// Candidate → seed → how far that seed is off its level.
    pub residual: Costs,
    /// Log cost of the anchor on its first seed. Level plus this is the log cost of a candidate
    /// there: for one that ran no other seed, what it took.
    pub common: f64,
    /// The level that scores are beside: the baseline's, or the best where the baseline has none.
    pub reference: f64,
}

/// The levels of `costs` beside those of `baseline`; where that has none, beside the candidate
/// with the most seeds.
pub(crate) fn fit(costs: &Costs, baseline: Option<&str>) -> Levels {
    let own = baseline.and_then(|name| costs.get_key_value(name));
    let most = || {
        let all = costs.iter().rev();
        all.max_by_key(|(_, row)| row.len())
    };
    let Some((_, anchor)) = own.or_else(most) else {
        return Levels::default();
    };
    let mut levels = Levels {
        common: anchor.values().next().copied().unwrap_or_default(),
        ..Levels::default()
    };
    for (name, row) in costs {
        let both = row
            .iter()
            .filter_map(|(seed, x)| Some((*seed, x - anchor.get(seed)?)));
        let mut paired: BTreeMap<u64, f64> = both.collect();
        if paired.is_empty() {
            // No seed in common: beside the anchor's mean.
            let middle = mean(anchor.values().copied());
            paired = row.iter().map(|(seed, x)| (*seed, x - middle)).collect();
        }
        let level = mean(paired.values().copied());
        paired.values_mut().for_each(|x| *x -= level);
        levels.level.insert(name.clone(), level);
        levels.residual.insert(name.clone(), paired);
    }
    let best = levels.level.values().copied().fold(f64::INFINITY, f64::min);
    levels.reference = if own.is_some() { 0.0 } else { best };
    levels
}

/// The mean; 0 of nothing.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, n), x| (sum + x, n + 1));
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}
