//! In which order trials are run. Pure: candidates and verdicts in, a list out.

use crate::verdict::Verdict;
use std::collections::BTreeSet;

/// A trial to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// Seed of the trial.
    pub seed: u64,
    /// Candidate name.
    pub candidate: String,
}

/// The first round: every candidate with the first seed, in the order given.
pub fn first_round(candidates: &[String], first_seed: u64) -> Vec<Planned> {
    let mut seen = BTreeSet::new();
    let once = candidates
        .iter()
        .filter(|name| seen.insert((*name).clone()));
    once.map(|name| Planned {
        seed: first_seed,
        candidate: name.clone(),
    })
    .collect()
}

/// The next round: one more seed for those near the leader, until each of them has
/// `seeds` of them, starting from `first_seed`; empty when there is nothing left to decide.
/// Candidates further behind keep the seeds they have.
pub fn next_round(verdict: &Verdict, first_seed: u64, seeds: u64) -> Vec<Planned> {
    let near = |name: &&String| verdict.ranking.iter().find(|r| r.candidate == **name);
    let rivals: Vec<_> = verdict
        .next_seeds
        .iter()
        .filter_map(|name| near(&name))
        .collect();
    for seed in first_seed..first_seed.saturating_add(seeds) {
        let lacking: Vec<Planned> = rivals
            .iter()
            .filter(|ranked| {
                let mut figures = ranked.figures.values();
                !figures.any(|figure| figure.samples.iter().any(|point| point.seed == seed))
            })
            .map(|ranked| Planned {
                seed,
                candidate: ranked.candidate.clone(),
            })
            .collect();
        if !lacking.is_empty() {
            return lacking;
        }
    }
    Vec::new()
}
