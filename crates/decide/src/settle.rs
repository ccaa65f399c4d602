//! Whether a measurement of the card would settle a verdict, and how often.
//!
//! A preposterior analysis (Raiffa and Schlaifer 1961): each card that this one may be is taken for
//! the true one in turn. What a measurement of it would show is drawn with its noise, and all
//! others are weighed by how well they agree with that. The candidate that is then expected to be
//! best is compared with the best on the true card. The true card itself has no weight, or every
//! measurement would know it again.
//!
//! Where candidates tie, the answer is the one that the verdict advises, before and after.
//!
//! Trials ran on a few of the cards only. Every other card is taken for the nearest of those, by
//! kind and then by its features. How little a few cards say is counted by Laplace's rule of
//! succession: the answer that is right on all of 3 cards is right on 4 of 5.

use crate::bootstrap::normal;
use crate::judge::NOISE_FLOOR;
use crate::verdict::{MetricInfo, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use whichfs_units::Rng;

/// Seed of what measurements are drawn to show.
const SEED: u64 = 0x7365_7474_6c65_7331;
/// What a measurement of one card shows is drawn this often.
const DRAWS: usize = 16;
/// Degrees of freedom of an error of a measurement, as in the inference of cards
/// (`whichfs_posterior`).
const DEGREES: f64 = 1.5;
/// Share of the cards on which an answer is to be right to count as settled.
pub const SETTLED: f64 = 0.9;
/// A measurement that is right on fewer cards more than this does not help.
pub const HELPS: f64 = 0.05;

/// A card that this one may be.
#[derive(Clone, Debug, PartialEq)]
pub struct PossibleCard {
    /// What kind of card it is.
    pub kind: String,
    /// Logarithms of what tells it from others: what requests cost, how many AUs can be open.
    pub log_features: Vec<f64>,
    /// How likely it is beside the others; 1 for all before anything was measured.
    pub weight: f64,
}

/// What may be measured of the card.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Which of the features it tells.
    pub tells: Vec<usize>,
    /// Standard deviation of an error of the logarithm of a feature.
    pub noise: f64,
    /// What it takes.
    pub price: MeasurementPrice,
}

/// What a measurement takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct MeasurementPrice {
    /// Time on the card, in seconds.
    pub seconds: f64,
    /// Bytes written to the card.
    pub written_bytes: u64,
}

/// The cards that this one may be, by the seed of their trials, and what may be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PossibleCards {
    /// Seed → card.
    pub cards: BTreeMap<u64, PossibleCard>,
    /// What may be measured, the cheapest first.
    pub measurements: Vec<Measurement>,
}

/// How often the answer is right: no more than the noise floor from the best on the card.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settling {
    /// Cards that this one may be.
    pub cards: u64,
    /// Those of them on which trials ran.
    pub tried: u64,
    /// The answer as it stands: what is advised, or after a measurement what is best by it.
    pub answer: String,
    /// Share of the cards on which the answer is right as it stands.
    pub now: f64,
    /// What each measurement would make of it, the cheapest first.
    pub measurements: Vec<Settled>,
}

/// What a measurement would make of the answer.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settled {
    /// Share of the cards on which the answer would be right.
    pub right: f64,
    /// What the measurement takes.
    #[serde(flatten)]
    pub price: MeasurementPrice,
}

impl Settling {
    /// The cheapest measurement after which the answer is settled; if there is none, the one that
    /// helps most; none if none helps, or if the answer is settled without.
    pub fn advised(&self) -> Option<&Settled> {
        if self.now >= SETTLED {
            return None;
        }
        let mut settling = self.measurements.iter();
        let most = self.measurements.iter().rev();
        let most = most.max_by(|a, b| a.right.total_cmp(&b.right));
        settling
            .find(|one| one.right >= SETTLED)
            .or(most.filter(|one| one.right >= self.now + HELPS))
    }
}

/// What measurements would make of `verdict`; none where fewer than two candidates have trials on
/// the same two cards.
pub fn settling(verdict: &Verdict, possible: &PossibleCards) -> Option<Settling> {
    let advised = verdict.advised()?.candidate.as_str();
    if verdict
        .advice
        .as_ref()
        .is_some_and(|advice| advice.among.is_empty())
    {
        // A standard says so, whatever the card.
        return None;
    }
    let tried = tried(verdict, possible);
    let names: BTreeSet<&str> = tried.values().flat_map(|of| of.keys().copied()).collect();
    if tried.len() < 2 || names.len() < 2 || !names.contains(advised) {
        return None;
    }
    // Each card's losses are those of the nearest that was tried.
    let cards: Vec<(&PossibleCard, &Losses<'_>)> = (possible.cards.values())
        .filter_map(|card| Some((card, nearest(card, &tried, possible)?)))
        .collect();
    let is_right = |losses: &Losses<'_>, chosen: &str| {
        let best = losses.values().copied().fold(f64::INFINITY, f64::min);
        losses[chosen] - best < NOISE_FLOOR.ln()
    };
    let total: f64 = cards.iter().map(|(card, _)| card.weight).sum();
    // A few cards that agree do not make a rule: Laplace's rule of succession for those tried.
    let share = |weight: f64| {
        let tried = tried.len() as f64;
        let share = (weight / total * tried + 1.0) / (tried + 2.0);
        (share * 1000.0).round() / 1000.0
    };
    // As in the verdict, what is advised stays the answer where it ties with the best.
    let best_by = |weights: &[f64]| {
        let all: f64 = weights.iter().sum();
        let expected = |name: &str| -> f64 {
            let each = weights.iter().zip(&cards);
            each.map(|(weight, (_, losses))| weight / all * losses[name])
                .sum()
        };
        let (mut best, mut least) = (advised, expected(advised) - NOISE_FLOOR.ln());
        for name in &names {
            let loss = expected(name);
            if loss < least {
                (best, least) = (name, loss);
            }
        }
        best
    };
    let prior: Vec<f64> = cards.iter().map(|(card, _)| card.weight).collect();
    let answer = match prior.iter().all(|weight| *weight == 1.0) {
        true => advised,
        false => best_by(&prior),
    };
    let right = cards.iter().filter(|(_, losses)| is_right(losses, answer));
    let now = right.map(|(card, _)| card.weight).sum();
    let after = |measurement: &Measurement| {
        let mut rng = Rng::named(SEED, "measured");
        let mut right = 0.0;
        for (truth, (card, losses)) in cards.iter().enumerate() {
            for _ in 0..DRAWS {
                let shown =
                    |at: &usize| card.log_features[*at] + measurement.noise * normal(&mut rng);
                let shown: Vec<f64> = measurement.tells.iter().map(shown).collect();
                let chosen = best_by(&weights(&cards, truth, measurement, &shown));
                if is_right(losses, chosen) {
                    right += card.weight / DRAWS as f64;
                }
            }
        }
        Settled {
            right: share(right),
            price: measurement.price,
        }
    };
    Some(Settling {
        cards: cards.len() as u64,
        tried: tried.len() as u64,
        answer: answer.to_owned(),
        now: share(now),
        measurements: possible.measurements.iter().map(after).collect(),
    })
}

/// Candidate → its weighted logarithm of costs on one card; lower is better.
type Losses<'v> = BTreeMap<&'v str, f64>;

/// Seed → losses of the candidates that have trials on all the cards that the leader has.
fn tried<'v>(verdict: &'v Verdict, possible: &PossibleCards) -> BTreeMap<u64, Losses<'v>> {
    let counted: Vec<_> = (verdict.metrics.iter())
        .filter(|metric| metric.share > 0.0)
        .collect();
    // Logarithm of a cost; what is measured once, such as with the first seed only, counts for all.
    let cost = |at: usize, metric: &MetricInfo, seed: u64| {
        let figure = verdict.ranking[at].figures.get(&metric.metric)?;
        let own = figure.samples.iter().find(|sample| sample.seed == seed);
        let value = own.map_or(figure.value, |sample| sample.value);
        Some(match (metric.enough, metric.lower_is_better) {
            (Some(enough), true) => value.max(enough).ln(),
            (Some(enough), false) => -value.min(enough).ln(),
            (None, true) => value.ln(),
            (None, false) => -value.ln(),
        })
    };
    // As in the verdict: beside the baseline, or the best where that has no figure; what a
    // candidate has no figure of does not count for it.
    let baseline = verdict
        .baseline
        .as_ref()
        .filter(|baseline| baseline.is_scale);
    let baseline = baseline.and_then(|baseline| {
        let mut all = verdict.ranking.iter();
        all.position(|one| one.candidate == baseline.candidate)
    });
    let reference = |metric: &MetricInfo, seed: u64| {
        let best = || {
            let all = (0..verdict.ranking.len()).filter_map(|at| cost(at, metric, seed));
            all.fold(f64::INFINITY, f64::min)
        };
        (baseline.and_then(|at| cost(at, metric, seed))).unwrap_or_else(best)
    };
    let loss = |at: usize, seed: u64| {
        let own = counted.iter().filter_map(|metric| {
            let beside = cost(at, metric, seed)? - reference(metric, seed);
            Some((metric.share, beside))
        });
        let (sum, weight) = own.fold((0.0, 0.0), |(sum, weight), (share, beside)| {
            (sum + share * beside, weight + share)
        });
        (weight > 0.0).then(|| sum / weight)
    };
    let seeds = |at: usize| -> BTreeSet<u64> {
        let figures = verdict.ranking[at].figures.iter();
        let own = figures.filter(|(name, _)| counted.iter().any(|one| one.metric == **name));
        let seeds = own.flat_map(|(_, figure)| figure.samples.iter().map(|sample| sample.seed));
        seeds
            .filter(|seed| possible.cards.contains_key(seed))
            .collect()
    };
    let all = seeds(0);
    let mut tried: BTreeMap<u64, Losses<'v>> = BTreeMap::new();
    for (at, ranked) in verdict.ranking.iter().enumerate() {
        let losses: Option<Vec<f64>> = all.iter().map(|seed| loss(at, *seed)).collect();
        let Some(losses) = losses.filter(|_| seeds(at).is_superset(&all)) else {
            continue;
        };
        for (seed, loss) in all.iter().zip(losses) {
            let of_seed = tried.entry(*seed).or_default();
            of_seed.insert(&ranked.candidate, loss);
        }
    }
    tried
}

/// The losses on the card of `tried` that `card` is most like.
fn nearest<'t, 'v>(
    card: &PossibleCard,
    tried: &'t BTreeMap<u64, Losses<'v>>,
    possible: &PossibleCards,
) -> Option<&'t Losses<'v>> {
    let apart = |seed: &u64| {
        let other = &possible.cards[seed];
        let features = card.log_features.iter().zip(&other.log_features);
        let squares: f64 = features.map(|(a, b)| (a - b) * (a - b)).sum();
        (other.kind != card.kind, squares)
    };
    let near = tried.keys().min_by(|a, b| {
        let (a, b) = (apart(a), apart(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    near.map(|seed| &tried[seed])
}

/// How likely each of `cards` but `truth` is after `measurement` has `shown` these costs; all add
/// up to 1.
fn weights(
    cards: &[(&PossibleCard, &Losses<'_>)],
    truth: usize,
    measurement: &Measurement,
    shown: &[f64],
) -> Vec<f64> {
    let logs = cards.iter().map(|(card, _)| {
        let costs = measurement.tells.iter().map(|at| card.log_features[*at]);
        let error = costs
            .zip(shown)
            .map(|(cost, shown)| (cost - shown) / measurement.noise);
        error
            .map(|error| -(DEGREES + 1.0) / 2.0 * (1.0 + error * error / DEGREES).ln())
            .sum::<f64>()
            + card.weight.ln()
    });
    let mut logs: Vec<f64> = logs.collect();
    logs[truth] = f64::NEG_INFINITY;
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        // No other card is left.
        return (0..cards.len())
            .map(|at| f64::from(u8::from(at == truth)))
            .collect();
    }
    let mut weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::evidence::{Evidence, Sample};
    use crate::judge::judge;
    use crate::need::Need;

    /// 40 cards. Those with odd seeds cost more by `apart` in the second cost, and f2fs is best on
    /// them; on the others it is ext4. Trials ran on the first two cards. `kinds` are the kinds of
    /// the cards with even and with odd seeds.
    fn case(apart: f64, kinds: [&str; 2]) -> (Verdict, PossibleCards) {
        let need = Need::named("logger").unwrap();
        let metrics = need.weights.keys().chain(&need.requires);
        let samples = metrics.flat_map(|metric| {
            let of = |candidate: &str, seed: u64, value: f64| Sample {
                candidate: candidate.to_owned(),
                metric: metric.clone(),
                seed,
                value,
                unit: "s".into(),
                lower_is_better: true,
            };
            [
                of("ext4", 1, 3.0),
                of("ext4", 2, 1.0),
                of("f2fs", 1, 1.0),
                of("f2fs", 2, 2.0),
            ]
        });
        let evidence = Evidence {
            samples: samples.collect(),
            ..Evidence::default()
        };
        let mut rng = Rng::named(1, "cards");
        let card = |seed: u64| {
            let slow = seed % 2 == 1;
            let cost = 5.0 + 0.02 * normal(&mut rng) + if slow { apart } else { 0.0 };
            let kind = kinds[usize::from(slow)].to_owned();
            let log_features = vec![7.0, cost];
            let weight = 1.0;
            (
                seed,
                PossibleCard {
                    kind,
                    log_features,
                    weight,
                },
            )
        };
        let measurement = |tells: &[usize], seconds: f64| Measurement {
            tells: tells.to_vec(),
            noise: 0.1,
            price: MeasurementPrice {
                seconds,
                written_bytes: 0,
            },
        };
        let possible = PossibleCards {
            cards: (1..=40).map(card).collect(),
            measurements: vec![measurement(&[0], 10.0), measurement(&[0, 1], 20.0)],
        };
        (judge(&need, &evidence).unwrap(), possible)
    }

    #[test]
    fn a_measurement_of_what_decides_settles_and_one_of_what_does_not_helps_nothing() {
        let (verdict, possible) = case(2.0, ["a", "b"]);
        let found = settling(&verdict, &possible).unwrap();
        assert_eq!((found.cards, found.tried), (40, 2));
        // Two cards were tried: (2 + 1) of (2 + 2) is the most.
        assert!((found.now - 0.5).abs() < 0.01, "{found:?}");
        assert!(found.measurements[0].right < 0.6, "{found:?}");
        assert!(found.measurements[1].right > 0.74, "{found:?}");
        assert_eq!(found.advised().unwrap().price.seconds, 20.0);
    }

    #[test]
    fn what_a_measurement_cannot_see_it_does_not_settle() {
        // Costs are equal, and the kind decides, which no rate tells.
        let (verdict, possible) = case(0.0, ["a", "b"]);
        let found = settling(&verdict, &possible).unwrap();
        assert!(
            found.measurements.iter().all(|one| one.right < 0.65),
            "{found:?}"
        );
        assert_eq!(found.advised(), None);
    }

    #[test]
    fn a_measurement_that_changes_nothing_is_not_advised_and_one_card_tells_nothing() {
        let (verdict, mut possible) = case(2.0, ["a", "b"]);
        let likes_f2fs = |seed: &u64| seed % 2 == 1 || *seed == 2;
        possible.cards.retain(|seed, _| likes_f2fs(seed));
        let found = settling(&verdict, &possible).unwrap();
        assert_eq!(verdict.advised().unwrap().candidate, "f2fs");
        assert!(found.now > 0.7 && found.advised().is_none(), "{found:?}");
        possible.cards.retain(|seed, _| *seed == 2);
        assert_eq!(settling(&verdict, &possible), None);
    }
}
