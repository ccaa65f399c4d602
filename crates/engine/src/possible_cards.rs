//! The cards that one of which only some is known may be, and what a probe would tell of them.

use crate::cards::{self, NamedProfile};
use crate::inference::side_by_side;
use whichfs_card::Card;
use whichfs_curves::Modelled;
use whichfs_decide::{Measurement, MeasurementPrice, PossibleCard, PossibleCards};
use whichfs_posterior::{InferenceOptions, Jobs, Posterior, ToldBy};
use whichfs_probe::{
    NextStage, ProbeEvidence, ProbeOptions, ProbeStep, Progress, RATE_NOISE, Silent, Stage,
    Writing, probe,
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
        .map(|(told, writing)| measurement(posterior, told, writing, &mut Silent))
        .collect();
    Some(possible)
}

/// The cards of the first seeds, each sample of the posterior at most once.
pub(crate) fn of_posterior(posterior: &Posterior) -> PossibleCards {
    let seeds: Vec<u64> = (1..=MOST.min(posterior.samples().len() as u64)).collect();
    let costs = posterior.costs_of(&seeds, &options());
    let card = |(seed, costs): (&u64, Vec<f64>)| {
        let card = PossibleCard {
            kind: cards::kind(posterior.sample(*seed)),
            log_costs: costs.iter().map(|ns| ns.ln()).collect(),
            weight: 1.0,
        };
        let known = card.log_costs.iter().all(|cost| cost.is_finite());
        known.then_some((*seed, card))
    };
    PossibleCards {
        cards: seeds.iter().zip(costs).filter_map(card).collect(),
        measurements: Vec::new(),
    }
}

/// What one stage of a probe would tell, and what it takes.
pub(crate) fn stage(posterior: &Posterior, stage: Stage) -> Measurement {
    let told = ToldBy {
        reads: stage == Stage::Reading,
        writes_in_order: stage == Stage::Writing,
        writes_at_random: stage == Stage::RandomWrites,
    };
    measurement(posterior, told, Writing::Preserve, &mut Only(stage))
}

/// A probe of the card that stands for all: what it tells and takes.
fn measurement(
    posterior: &Posterior,
    told: ToldBy,
    writing: Writing,
    progress: &mut dyn Progress,
) -> Measurement {
    let profile = posterior.representative();
    let mut device = Modelled::new(Card::used(profile, 1), profile.capacity_bytes());
    let options = ProbeOptions {
        writing,
        ..ProbeOptions::default()
    };
    let found = probe(&mut device, &options, progress);
    Measurement {
        tells: Posterior::told_by(told),
        noise: RATE_NOISE,
        price: MeasurementPrice {
            seconds: found.device_s,
            written_bytes: found.bytes_written,
        },
    }
}

/// A probe of one stage.
struct Only(Stage);

impl Progress for Only {
    fn step(&mut self, _step: &ProbeStep) {}

    fn next(&mut self, left: &[Stage], _state: &ProbeEvidence) -> NextStage {
        match left.contains(&self.0) {
            true => NextStage::Run(self.0),
            false => NextStage::Done,
        }
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
