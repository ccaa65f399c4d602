//! In which order trials are run. Pure: candidates and verdicts in, a list out.

use crate::verdict::{Ranked, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Seeds of the leader and of the second without which nothing is decided.
pub const LEAST: usize = 2;

/// Seeds after which only a close contest deserves more.
const FEW: usize = 3;

/// Ratio to the leader's score within which candidates get more than one seed.
pub const MORE_SEEDS_WITHIN: f64 = 1.25;

/// Who deserves one more seed.
struct Rivalry {
    /// Ratio to the leader's score within which it must be.
    within: f64,
    /// Probability of being the best that it must have.
    may_be_best: f64,
}

/// With fewer than [`FEW`] seeds. Both rules were chosen on the trials of 374 pairs of card and
/// need, and are judged on all 660 by `tests/calibration`.
const EARLY: Rivalry = Rivalry {
    within: MORE_SEEDS_WITHIN,
    may_be_best: 0.1,
};

/// With [`FEW`] seeds and more: what is as good as the leader but for a trifle.
const LATE: Rivalry = Rivalry {
    within: 1.03,
    may_be_best: 0.2,
};

/// The leader of `ranking` and those that may still be the best by their `chances`, which is what
/// more seeds can change, the more surely the more seeds they have; the leader and the second have
/// [`LEAST`] seeds before anything is decided. With them the `baseline`, beside which all are
/// measured. Empty if nothing is open.
pub(crate) fn rivals(
    ranking: &[Ranked],
    chances: &BTreeMap<String, f64>,
    baseline: Option<&str>,
) -> Vec<String> {
    let Some((leader, others)) = ranking.split_first() else {
        return Vec::new();
    };
    let may_win = |one: &Ranked| {
        let rule = if one.seeds < FEW { &EARLY } else { &LATE };
        let chance = chances.get(&one.candidate);
        let may_be_best = chance.is_some_and(|p| *p >= rule.may_be_best);
        one.score * rule.within >= leader.score && may_be_best
    };
    let few = |one: &Ranked| one.seeds < LEAST;
    let undecided = others
        .first()
        .is_some_and(|second| few(leader) || few(second));
    let rivals = others.iter().enumerate();
    let rivals: Vec<&Ranked> = rivals
        .filter(|(at, one)| may_win(one) || (*at == 0 && undecided))
        .map(|(_, one)| one)
        .collect();
    if rivals.is_empty() {
        return Vec::new();
    }
    let own = ranking
        .iter()
        .filter(|one| Some(one.candidate.as_str()) == baseline);
    let mut names: Vec<String> = Vec::new();
    for one in std::iter::once(leader).chain(rivals).chain(own) {
        if !names.contains(&one.candidate) {
            names.push(one.candidate.clone());
        }
    }
    names
}

/// A trial to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedTrial {
    /// Seed of the trial.
    pub seed: u64,
    /// Candidate name.
    pub candidate: String,
}

/// The first round: every candidate with the first seed, in the order given.
pub fn first_round(candidates: &[String], first_seed: u64) -> Vec<PlannedTrial> {
    let mut seen = BTreeSet::new();
    let once = candidates
        .iter()
        .filter(|name| seen.insert((*name).clone()));
    once.map(|name| PlannedTrial {
        seed: first_seed,
        candidate: name.clone(),
    })
    .collect()
}

/// The next round: one more seed for those near the leader, until each of them has
/// `seeds` of them, starting from `first_seed`; empty when there is nothing left to decide.
/// Candidates further behind keep the seeds they have.
pub fn next_round(verdict: &Verdict, first_seed: u64, seeds: u64) -> Vec<PlannedTrial> {
    let near = |name: &&String| verdict.ranking.iter().find(|r| r.candidate == **name);
    let rivals: Vec<_> = verdict
        .next_seeds
        .iter()
        .filter_map(|name| near(&name))
        .collect();
    for seed in first_seed..first_seed.saturating_add(seeds) {
        let lacking: Vec<PlannedTrial> = rivals
            .iter()
            .filter(|ranked| {
                let mut figures = ranked.figures.values();
                !figures.any(|figure| figure.samples.iter().any(|point| point.seed == seed))
            })
            .map(|ranked| PlannedTrial {
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

/// About how many trials the rounds after `round` will ask for, for the time to go: all further
/// seeds of its candidates, or after the first round those of [`LEAST`] candidates, for it does not
/// know the rivals yet.
pub fn later(round: &[PlannedTrial], first_seed: u64, seeds: u64) -> usize {
    let end = first_seed.saturating_add(seeds);
    let further = |asked: &PlannedTrial| end.saturating_sub(asked.seed + 1) as usize;
    let is_first = round.iter().all(|asked| asked.seed == first_seed);
    let rivals = if is_first { LEAST } else { round.len() };
    round.iter().take(rivals).map(further).sum()
}
