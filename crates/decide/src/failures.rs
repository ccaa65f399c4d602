//! Trials that failed: whose, and how many of how many.

use crate::evidence::{Evidence, Failure};
use crate::verdict::{Failed, FailedTrial};
use std::collections::BTreeSet;

/// The candidates with trials that failed, by name.
pub(crate) fn of(evidence: &Evidence) -> Vec<Failed> {
    let mut failures: Vec<&Failure> = evidence.failures.iter().collect();
    failures
        .sort_by(|a, b| (&a.candidate, a.seed, &a.reason).cmp(&(&b.candidate, b.seed, &b.reason)));
    let mut all: Vec<Failed> = Vec::new();
    for failure in failures {
        let trial = FailedTrial {
            seed: failure.seed,
            reason: failure.reason.clone(),
        };
        match all.last_mut() {
            Some(last) if last.candidate == failure.candidate => last.failed.push(trial),
            _ => all.push(Failed {
                candidate: failure.candidate.clone(),
                failed: vec![trial],
                trials: 0,
            }),
        }
    }
    for one in &mut all {
        let done: BTreeSet<u64> = (evidence.samples.iter())
            .filter(|sample| sample.candidate == one.candidate)
            .map(|sample| sample.seed)
            .collect();
        one.trials = (one.failed.len() + done.len()) as u64;
    }
    all
}

/// What to say of a candidate of which trials failed: the first of them, and how many.
pub(crate) fn sentence(one: &Failed) -> String {
    let (seed, reason) = (one.failed.first()).map_or((0, ""), |first| (first.seed, &first.reason));
    match (one.failed.len(), one.trials) {
        (_, 1) => format!("its trial with seed {seed} failed: {reason}"),
        (own, all) => {
            format!("{own} of its {all} trials failed, that with seed {seed}: {reason}")
        }
    }
}
