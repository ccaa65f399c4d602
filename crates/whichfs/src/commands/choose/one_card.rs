//! One card of a ranking: what the need's trials on it tell.

use super::{bench, question};
use crate::cli::ChooseArgs;
use crate::failure::Outcome;
use crate::interrupt;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::time::Instant;
use whichfs_decide::plan::first_round;
use whichfs_decide::{CardEvidence, Excluded, FigureRow};
use whichfs_engine::campaign::failures;
use whichfs_engine::choose::{Choice, SEEDS};
use whichfs_engine::trial_cache::TrialCache;

/// What the need's trials on the card of `args` tell: figures, and who has none and why.
///
/// # Errors
/// As [`super::run`].
pub fn evidence(args: &ChooseArgs, progress: &mut Progress) -> Outcome<CardEvidence> {
    let question = question(args, SEEDS)?;
    let cache = TrialCache::open(args.store.clone(), args.fresh)?;
    let bench = bench(args)?;
    let now = Instant::now();
    let mut choice = Choice::new(question, &bench, cache, interrupt::flag(), now);
    let candidates = choice.candidates();
    for seed in (args.first_seed..).take(choice.question.seeds as usize) {
        choice.run_round(&first_round(&candidates, seed), progress)?;
    }
    let mut excluded = [
        choice.found.excluded.as_slice(),
        &choice.found.not_comparable,
    ]
    .concat();
    for failed in failures(&choice.found.trials) {
        if excluded.iter().all(|one| one.candidate != failed.candidate) {
            excluded.push(Excluded {
                candidate: failed.candidate,
                why: format!(
                    "its trial with seed {} failed: {}",
                    failed.seed, failed.reason
                ),
                rule: Some("failed".to_owned()),
                ..Excluded::default()
            });
        }
    }
    let mut samples: Vec<_> = choice
        .found
        .rows(&())
        .iter()
        .map(FigureRow::sample)
        .collect();
    samples.retain(|sample| excluded.iter().all(|one| one.candidate != sample.candidate));
    let mut trials: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for trial in &choice.found.trials {
        let own = trials.entry(trial.identity.candidate.clone()).or_default();
        own.push(trial.identity.id());
    }
    let mut caveats = choice.found.caveats.clone();
    for (candidate, told) in &choice.found.unsettled {
        caveats
            .entry(candidate.clone())
            .or_default()
            .push(told.clone());
    }
    let profile = &bench.card.profile;
    Ok(CardEvidence {
        card: bench.card.name.clone(),
        samples,
        uncertainty: bench.card.uncertainty(),
        fit_error: whichfs_engine::cards::fit_error(profile),
        composed: profile.composed(),
        excluded,
        caveats,
        trials,
    })
}
