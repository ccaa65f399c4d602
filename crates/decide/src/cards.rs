//! Which card to buy: the best filesystem of each, all judged together.

use crate::evidence::{Evidence, Sample, doubt};
use crate::exclude::{nearest, rule_lines};
use crate::judge::{JudgeError, NOISE_FLOOR, judge};
use crate::need::Need;
use crate::verdict::{Excluded, FigureOrigin, MetricInfo, ModelError, Nearest, Ranked, RuleLine};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Stands between card and filesystem in the names that are judged together.
const WITH: &str = " with ";

/// What was measured of one card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardEvidence {
    /// Name of the card.
    pub card: String,
    /// Figures of its candidates.
    pub samples: Vec<Sample>,
    /// How far its figures may be off: what its profile states.
    pub uncertainty: f64,
    /// Error of its model, where it was fitted.
    pub fit_error: Option<ModelError>,
    /// Whether its profile is composed of several sources.
    pub composed: bool,
    /// Filesystems that were excluded, by a rule or by a trial that failed.
    pub excluded: Vec<Excluded>,
    /// What the figures of a filesystem leave out.
    pub caveats: BTreeMap<String, Vec<String>>,
    /// Ids of each filesystem's trials.
    pub trials: BTreeMap<String, Vec<String>>,
}

impl CardEvidence {
    /// How far its figures may be off: what its profile states and how far its model is off what
    /// was measured, which are independent.
    fn doubt(&self) -> f64 {
        doubt(self.uncertainty, self.fit_error)
    }
}

/// Cards, the best first.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CardRanking {
    /// Name of the need.
    pub needs: String,
    /// What is compared.
    pub metrics: Vec<MetricInfo>,
    /// Cards with a best filesystem, the best card first.
    pub cards: Vec<CardPlace>,
    /// Cards for which no filesystem could be judged.
    pub none: Vec<String>,
    /// For each of these, why, and what would let one in.
    pub unqualified: Vec<Unqualified>,
}

/// A card for which no filesystem could be judged.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Unqualified {
    /// Name of the card's profile.
    pub card: String,
    /// Its filesystems, each with the reason.
    pub excluded: Vec<Excluded>,
    /// The need's rules, and whom each excludes.
    pub rules: Vec<RuleLine>,
    /// Those that break the fewest rules, and what would let them in.
    pub nearest: Vec<Nearest>,
}

/// A card with its best filesystem.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CardPlace {
    /// Name of the card's profile.
    pub card: String,
    /// Its best filesystem.
    pub candidate: String,
    /// Sentences: what it wins and loses by, beside the best card (the best one: the second).
    pub reasons: Vec<String>,
    /// What the figures of its best filesystem leave out.
    pub caveats: Vec<String>,
    /// Where its figures come from.
    pub origin: FigureOrigin,
    /// Whether its profile is composed of several sources.
    pub composed: bool,
    /// What its profile states of how far its figures may be off (0.3 is ±30 %).
    pub uncertainty: f64,
    /// Relative error of its model on what was measured of the card; none if the profile states
    /// none.
    pub fit_error: Option<ModelError>,
    /// Ids of the trials behind its figures.
    pub trials: Vec<String>,
    /// Filesystems that were excluded on it.
    pub excluded: Vec<Excluded>,
    /// Score, probability of being the best card, figures, grades among all cards.
    #[serde(flatten)]
    pub place: CardScore,
}

/// How good a card is.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CardScore {
    /// 1 would be best at everything.
    pub score: f64,
    /// Probability of being the best of all; none of a single card.
    pub p_best: Option<f64>,
    /// Other cards that cannot be told from it: their scores are nearer than the noise floor, or
    /// than what is known of the two cards allows.
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
        fit_error: (cards.iter().filter_map(|card| card.fit_error))
            .max_by(|one, other| one.p90.total_cmp(&other.p90)),
        ..Evidence::default()
    };
    let verdict = judge(need, &evidence)?;
    let mut places: Vec<CardPlace> = Vec::new();
    for ranked in &verdict.ranking {
        let (card, candidate) = apart(&ranked.candidate);
        // A card is as likely the best as all its filesystems together.
        if let Some(place) = places.iter_mut().find(|place| place.card == card) {
            let sum = place.place.p_best.zip(ranked.p_best);
            place.place.p_best = sum.map(|(own, other)| own + other);
        } else if let Some(own) = cards.iter().find(|own| own.card == card) {
            places.push(place(own, candidate, score(ranked, &verdict.metrics)));
        }
    }
    let reasons = reasons(need, &evidence, &places)?;
    for place in &mut places {
        let own = reasons.get(&place.card).cloned();
        place.reasons = own.unwrap_or_default();
    }
    tie(&mut places, cards);
    let ranked = |card: &&CardEvidence| places.iter().any(|place| place.card == card.card);
    let without = cards.iter().filter(|card| !ranked(card));
    let unqualified: Vec<Unqualified> = without.map(|card| unqualified(need, card)).collect();
    Ok(CardRanking {
        needs: need.name.clone(),
        none: unqualified.iter().map(|one| one.card.clone()).collect(),
        unqualified,
        metrics: verdict.metrics,
        cards: places,
    })
}

fn place(own: &CardEvidence, candidate: &str, score: CardScore) -> CardPlace {
    CardPlace {
        card: own.card.clone(),
        candidate: candidate.to_owned(),
        reasons: Vec::new(),
        caveats: own.caveats.get(candidate).cloned().unwrap_or_default(),
        origin: FigureOrigin::Modelled,
        composed: own.composed,
        uncertainty: own.uncertainty,
        fit_error: own.fit_error,
        trials: own.trials.get(candidate).cloned().unwrap_or_default(),
        excluded: own.excluded.clone(),
        place: score,
    }
}

/// Why each card stands where it does: its best filesystem beside that of the best card.
fn reasons(
    need: &Need,
    evidence: &Evidence,
    places: &[CardPlace],
) -> Result<BTreeMap<String, Vec<String>>, JudgeError> {
    let best = |sample: &&Sample| {
        let (card, candidate) = apart(&sample.candidate);
        places
            .iter()
            .any(|place| place.card == card && place.candidate == candidate)
    };
    let own = evidence.samples.iter().filter(best);
    let samples = own.map(|sample| Sample {
        candidate: apart(&sample.candidate).0.to_owned(),
        ..sample.clone()
    });
    let evidence = Evidence {
        samples: samples.collect(),
        ..evidence.clone()
    };
    let ranking = judge(need, &evidence)?.ranking.into_iter();
    Ok(ranking.map(|one| (one.candidate, one.reasons)).collect())
}

/// Cards tie whose scores differ by less than what is known of the two leaves open.
fn tie(places: &mut [CardPlace], cards: &[CardEvidence]) {
    let doubt = |name: &str| {
        let own = cards.iter().find(|card| card.card == name);
        own.map_or(0.0, CardEvidence::doubt).ln_1p()
    };
    let all: Vec<(String, f64)> = (places.iter())
        .map(|place| (place.card.clone(), place.place.score))
        .collect();
    for place in places {
        let within = |(other, score): &&(String, f64)| {
            let open = doubt(&place.card).hypot(doubt(other)).max(NOISE_FLOOR.ln());
            *other != place.card && (score / place.place.score).ln().abs() < open
        };
        let near = all.iter().filter(within).map(|(other, _)| other.clone());
        let mut ties: BTreeSet<String> = near.collect();
        ties.extend(std::mem::take(&mut place.place.ties_with));
        place.place.ties_with = ties.into_iter().collect();
    }
}

fn unqualified(need: &Need, card: &CardEvidence) -> Unqualified {
    Unqualified {
        card: card.card.clone(),
        rules: rule_lines(need, &card.excluded),
        nearest: nearest(&card.excluded),
        excluded: card.excluded.clone(),
    }
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

    const FIT: ModelError = ModelError {
        median: 0.2,
        p90: 0.4,
    };

    fn card(name: &str, figures: &[(&str, f64)]) -> CardEvidence {
        let samples = figures
            .iter()
            .flat_map(|(fs, value)| [sample(fs, "a", 1, *value), sample(fs, "b", 1, 2.0 * value)]);
        CardEvidence {
            card: name.into(),
            samples: samples.collect(),
            uncertainty: 0.1,
            ..CardEvidence::default()
        }
    }

    const FIRST: &str =
        "fast wins a 4.0× (1.00 against 4.00 s) and b 4.0× (2.00 against 8.00 s) over slow";
    const SECOND: &str =
        "slow loses a 4.0× (4.00 against 1.00 s) and b 4.0× (8.00 against 2.00 s) to fast";

    #[test]
    fn a_card_says_why_it_is_where_it_is_and_what_its_figures_rest_on() {
        let mut fast = card("fast", &[("nilfs2", 1.0), ("ext4", 5.0)]);
        fast.caveats
            .insert("nilfs2".into(), vec!["its cleaner did not run".into()]);
        fast.trials.insert("nilfs2".into(), vec!["t1".into()]);
        (fast.composed, fast.fit_error) = (true, Some(FIT));
        let ranking = rank_cards(&two_metrics(), &[card("slow", &[("ext4", 4.0)]), fast]).unwrap();
        let [first, second] = &ranking.cards[..] else {
            panic!("{ranking:?}")
        };
        // Beside the other card, never beside another filesystem of its own.
        assert_eq!(first.reasons, [FIRST]);
        assert_eq!(second.reasons, [SECOND]);
        assert_eq!(first.caveats, ["its cleaner did not run"]);
        assert_eq!(
            (first.trials.len(), first.composed, first.fit_error),
            (1, true, Some(FIT))
        );
    }

    #[test]
    fn cards_tie_that_their_uncertainty_does_not_tell_apart() {
        let ties = |uncertainty| {
            let mut cards = [card("a", &[("ext4", 1.0)]), card("b", &[("ext4", 1.3)])];
            for card in &mut cards {
                card.uncertainty = uncertainty;
            }
            let ranking = rank_cards(&two_metrics(), &cards).unwrap();
            ranking
                .cards
                .into_iter()
                .map(|one| one.place.ties_with)
                .collect::<Vec<_>>()
        };
        assert_eq!(ties(0.3), [["b"], ["a"]]);
        assert_eq!(ties(0.05), [[""; 0]; 2]);
    }

    #[test]
    fn a_card_that_nothing_qualifies_on_says_which_rules_and_the_nearest() {
        let mut none = card("none", &[]);
        none.excluded = vec![Excluded {
            candidate: "ext4".into(),
            why: "is not read by Windows".into(),
            rule: Some("windows".into()),
            allow: Some("--need windows=any".into()),
            ..Excluded::default()
        }];
        let ranking = rank_cards(&two_metrics(), &[none]).unwrap();
        let one = &ranking.unqualified[0];
        assert_eq!(one.nearest[0].allow, ["--need windows=any"]);
        assert_eq!((one.card.as_str(), one.excluded.len()), ("none", 1));
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
        let sum: f64 = (ranking.cards.iter())
            .filter_map(|place| place.place.p_best)
            .sum();
        assert!((sum - 1.0).abs() < 0.01, "{sum}");
    }

    #[test]
    fn cards_that_are_near_each_other_tie() {
        let cards = [card("a", &[("ext4", 1.0)]), card("b", &[("ext4", 1.03)])];
        let ranking = rank_cards(&two_metrics(), &cards).unwrap();
        assert_eq!(ranking.cards[0].place.ties_with, ["b"]);
    }
}
