//! The cards that one of which only some is known may be, and what a probe would tell of them.

use crate::cards::{self, NamedProfile};
use crate::inference::side_by_side;
use std::collections::BTreeMap;
use whichfs_card::Card;
use whichfs_curves::Modelled;
use whichfs_decide::{Measurement, MeasurementPrice, PossibleCard, PossibleCards};
use whichfs_posterior::{InferenceOptions, Jobs, Posterior, ToldBy};
use whichfs_probe::{
    Findings, NextStage, ProbeEvidence, ProbeOptions, ProbeStep, Progress, RATE_NOISE, Silent,
    Stage, Writing, probe,
};

/// Most cards that are looked at: samples of a posterior, spread over all.
const MOST: u64 = 128;

/// How cards are put through requests.
pub(crate) fn options() -> InferenceOptions {
    InferenceOptions {
        jobs: Jobs(side_by_side),
        ..InferenceOptions::default()
    }
}

/// What `card` may be, and what a probe that reads and one that writes, too, would tell of it; none
/// of a card that is known. What a probe has told already it would tell again.
pub(crate) fn of(card: &NamedProfile) -> Option<PossibleCards> {
    let posterior = card.posterior.as_ref()?;
    let mut possible = of_posterior(posterior);
    let reads = ToldBy {
        reads: true,
        ..ToldBy::NOTHING
    };
    possible.measurements = [(reads, Writing::Never), (ToldBy::ALL, Writing::Preserve)]
        .into_iter()
        .map(|(told, writing)| (told.beside(card.probed), writing))
        .filter(|(told, _)| *told != ToldBy::NOTHING)
        .map(|(told, writing)| measurement(posterior, told, writing))
        .collect();
    Some(possible)
}

/// The cards of the first seeds, each sample of the posterior at most once.
pub(crate) fn of_posterior(posterior: &Posterior) -> PossibleCards {
    let seeds: Vec<u64> = (1..=MOST.min(posterior.samples().len() as u64)).collect();
    let features = posterior.features_of(&seeds, &options());
    let card = |(seed, features): (&u64, Vec<f64>)| {
        let card = PossibleCard {
            kind: cards::kind(posterior.sample(*seed)),
            log_features: features.iter().map(|feature| feature.ln()).collect(),
            weight: 1.0,
        };
        let known = card.log_features.iter().all(|feature| feature.is_finite());
        known.then_some((*seed, card))
    };
    PossibleCards {
        cards: seeds.iter().zip(features).filter_map(card).collect(),
        measurements: Vec::new(),
    }
}

/// What each of `stages` takes on the card that stands for all, one after the other in a probe.
pub(crate) fn prices(posterior: &Posterior, stages: &[Stage]) -> BTreeMap<Stage, MeasurementPrice> {
    let mut these = These {
        stages,
        spent: Vec::new(),
    };
    probed(posterior, Writing::Preserve, &mut these);
    let pairs = stages.iter().zip(these.spent.windows(2));
    pairs
        .map(|(stage, spent)| {
            let [before, after] = [&spent[0], &spent[1]];
            let price = MeasurementPrice {
                seconds: after.seconds - before.seconds,
                written_bytes: after.written_bytes - before.written_bytes,
            };
            (*stage, price)
        })
        .collect()
}

/// What `stages` of a probe tell and take, where each has its price.
pub(crate) fn measurement_of(
    stages: &[Stage],
    prices: &BTreeMap<Stage, MeasurementPrice>,
) -> Measurement {
    let runs = |stage: Stage| stages.contains(&stage);
    let prices = || stages.iter().filter_map(|stage| prices.get(stage));
    Measurement {
        tells: Posterior::told_by(ToldBy {
            reads: runs(Stage::Reading),
            writes_in_order: runs(Stage::Writing),
            writes_at_random: runs(Stage::RandomWrites),
            open_aus: runs(Stage::OpenRandom),
        }),
        noise: RATE_NOISE,
        price: MeasurementPrice {
            seconds: prices().map(|price| price.seconds).sum(),
            written_bytes: prices().map(|price| price.written_bytes).sum(),
        },
    }
}

/// A probe of the card that stands for all: what it tells and takes.
fn measurement(posterior: &Posterior, told: ToldBy, writing: Writing) -> Measurement {
    let found = probed(posterior, writing, &mut Silent);
    Measurement {
        tells: Posterior::told_by(told),
        noise: RATE_NOISE,
        price: MeasurementPrice {
            seconds: found.device_s,
            written_bytes: found.bytes_written,
        },
    }
}

/// Probes the card that stands for all.
fn probed(posterior: &Posterior, writing: Writing, progress: &mut dyn Progress) -> Findings {
    let profile = posterior.representative();
    let mut device = Modelled::new(Card::used(profile, 1), profile.capacity_bytes());
    let options = ProbeOptions {
        writing,
        ..ProbeOptions::default()
    };
    probe(&mut device, &options, progress)
}

/// A probe of some stages, in their order.
struct These<'s> {
    stages: &'s [Stage],
    /// What was spent before each of them, and after the last.
    spent: Vec<MeasurementPrice>,
}

impl Progress for These<'_> {
    fn step(&mut self, _step: &ProbeStep) {}

    fn next(&mut self, _left: &[Stage], state: &ProbeEvidence) -> NextStage {
        let next = self.stages.get(self.spent.len());
        self.spent.push(MeasurementPrice {
            seconds: state.spent.device.as_secs_f64(),
            written_bytes: state.spent.write_bytes,
        });
        next.map_or(NextStage::Done, |stage| NextStage::Run(*stage))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_probe_is_not_said_to_tell_what_a_probe_has_told() {
        let mut card = cards::open(cards::DEFAULT).unwrap();
        let tells = |card: &NamedProfile| -> Vec<usize> {
            let told = of(card).unwrap().measurements;
            told.iter().map(|one| one.tells.len()).collect()
        };
        let [reads, all] = tells(&card)[..] else {
            panic!("a probe that reads, and one that writes");
        };
        assert!(0 < reads && reads < all);
        card.probed.reads = true;
        assert_eq!(tells(&card), [all - reads]);
        card.probed = ToldBy::ALL;
        assert!(tells(&card).is_empty());
    }
}
