//! Which card to buy: the best filesystem of each, all judged together.

use crate::judge::{Evidence, JudgeError, Sample, judge};
use crate::need::Need;
use crate::verdict::{MetricInfo, Ranked};
use serde::Serialize;
use std::collections::BTreeSet;

/// Stands between card and filesystem in the names that are judged together.
const WITH: &str = " with ";

/// What was measured of one card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardEvidence {
    /// Name of the card.
    pub card: String,
    /// Figures of its candidates.
    pub samples: Vec<Sample>,
    /// How far its figures may be off: what its profile states.
    pub uncertainty: f64,
    /// Median error of its model, where it was fitted.
    pub fit_error: Option<f64>,
}

/// Cards, the best first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardRanking {
    /// Name of the need.
    pub needs: String,
    /// What is compared.
    pub metrics: Vec<MetricInfo>,
    /// The cards.
    pub cards: Vec<CardPlace>,
    /// Cards for which no filesystem could be judged.
    pub none: Vec<String>,
}

/// A card with its best filesystem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardPlace {
    /// The card.
    pub card: String,
    /// Its best filesystem.
    pub candidate: String,
    /// Score, probability of being the best card, figures, grades among all cards.
    #[serde(flatten)]
    pub place: CardScore,
}

/// How good a card is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardScore {
    /// 1 would be best at everything.
    pub score: f64,
    /// Probability of being the best of all.
    pub p_best: f64,
    /// Other cards that cannot be told from it.
    pub ties_with: Vec<String>,
    /// Value of each metric, in the order of the metrics; none where there is no figure.
    pub values: Vec<Option<f64>>,
}

/// Ranks the cards for `need`.
///
/// # Errors
/// As [`judge`].
pub fn rank_cards(need: &Need, cards: &[CardEvidence]) -> Result<CardRanking, JudgeError> {
    let samples = cards.iter().flat_map(|card| {
        card.samples.iter().map(|sample| Sample {
            candidate: format!("{}{WITH}{}", card.card, sample.candidate),
            ..sample.clone()
        })
    });
    // One doubt for all: that of the card that is known least.
    let worst = |of: fn(&CardEvidence) -> f64| cards.iter().map(of).fold(0.0, f64::max);
    let evidence = Evidence {
        samples: samples.collect(),
        card_uncertainty: worst(|card| card.uncertainty),
        fit_error: Some(worst(|card| card.fit_error.unwrap_or(0.0))).filter(|error| *error > 0.0),
        ..Evidence::default()
    };
    let verdict = judge(need, &evidence)?;
    let mut seen = BTreeSet::new();
    let mut places: Vec<CardPlace> = Vec::new();
    for ranked in &verdict.ranking {
        let (card, candidate) = apart(&ranked.candidate);
        // A card is as likely the best as all its filesystems together.
        if seen.insert(card) {
            places.push(CardPlace {
                card: card.to_owned(),
                candidate: candidate.to_owned(),
                place: score(ranked, &verdict.metrics),
            });
        } else if let Some(place) = places.iter_mut().find(|place| place.card == card) {
            place.place.p_best += ranked.p_best;
        }
    }
    let none = cards
        .iter()
        .filter(|card| !seen.contains(card.card.as_str()));
    Ok(CardRanking {
        needs: need.name.clone(),
        none: none.map(|card| card.card.clone()).collect(),
        metrics: verdict.metrics,
        cards: places,
    })
}

fn apart(name: &str) -> (&str, &str) {
    name.split_once(WITH).unwrap_or((name, ""))
}

fn score(ranked: &Ranked, metrics: &[MetricInfo]) -> CardScore {
    let own = apart(&ranked.candidate).0;
    let others: BTreeSet<&str> = (ranked.ties_with.iter())
        .map(|name| apart(name).0)
        .filter(|card| *card != own)
        .collect();
    let value = |metric: &MetricInfo| Some(ranked.figures.get(&metric.metric)?.value);
    CardScore {
        score: ranked.score,
        p_best: ranked.p_best,
        ties_with: others.into_iter().map(str::to_owned).collect(),
        values: metrics.iter().map(value).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tests::{sample, two_metrics};

    fn card(name: &str, figures: &[(&str, f64)]) -> CardEvidence {
        let samples = figures
            .iter()
            .flat_map(|(fs, value)| [sample(fs, "a", 1, *value), sample(fs, "b", 1, 2.0 * value)]);
        CardEvidence {
            card: name.into(),
            samples: samples.collect(),
            uncertainty: 0.1,
            fit_error: None,
        }
    }

    #[test]
    fn a_card_is_as_good_as_its_best_filesystem() {
        let cards = [
            card("slow", &[("ext4", 9.0), ("f2fs", 4.0)]),
            card("fast", &[("ext4", 1.0), ("f2fs", 5.0)]),
            card("empty", &[]),
        ];
        let ranking = rank_cards(&two_metrics(), &cards).unwrap();
        let places: Vec<(&str, &str)> = (ranking.cards.iter())
            .map(|place| (place.card.as_str(), place.candidate.as_str()))
            .collect();
        assert_eq!(places, [("fast", "ext4"), ("slow", "f2fs")]);
        assert_eq!(ranking.none, ["empty"]);
        assert_eq!(ranking.cards[0].place.values, [Some(1.0), Some(2.0)]);
        let sum: f64 = ranking.cards.iter().map(|place| place.place.p_best).sum();
        assert!((sum - 1.0).abs() < 0.01, "{sum}");
    }

    #[test]
    fn cards_that_are_near_each_other_tie() {
        let cards = [card("a", &[("ext4", 1.0)]), card("b", &[("ext4", 1.03)])];
        let ranking = rank_cards(&two_metrics(), &cards).unwrap();
        assert_eq!(ranking.cards[0].place.ties_with, ["b"]);
    }
}
