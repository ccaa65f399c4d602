//! One card of a ranking: what the need's trials on it tell.

use super::{Chooser, SEEDS, failures};
use crate::cli::ChooseArgs;
use crate::failure::Outcome;
use std::collections::BTreeMap;
use whichfs_study::plan::first_round;
use whichfs_study::{CardEvidence, Excluded, Row};

/// What the need's trials on the card of `args` tell: figures, and who has none and why.
///
/// # Errors
/// As [`super::run`].
pub fn evidence(args: &ChooseArgs) -> Outcome<CardEvidence> {
    let mut chooser = Chooser::new(args)?;
    let candidates = chooser.candidates()?;
    for seed in (args.first_seed..).take(args.seeds.unwrap_or(SEEDS) as usize) {
        chooser.run_round(&first_round(&candidates, seed))?;
    }
    let mut excluded = chooser.excluded.clone();
    for failed in failures(&chooser.trials) {
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
    let mut samples: Vec<_> = chooser.rows().iter().map(Row::sample).collect();
    samples.retain(|sample| excluded.iter().all(|one| one.candidate != sample.candidate));
    let mut trials: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for trial in &chooser.trials {
        let own = trials.entry(trial.identity.candidate.clone()).or_default();
        own.push(trial.identity.id());
    }
    let profile = &chooser.bench.card.profile;
    Ok(CardEvidence {
        card: chooser.bench.card.name.clone(),
        samples,
        uncertainty: whichfs_engine::cards::uncertainty(profile),
        fit_error: whichfs_engine::cards::fit_error(profile),
        composed: profile.composed(),
        excluded,
        caveats: chooser.caveats.clone(),
        trials,
    })
}
