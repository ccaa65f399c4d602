//! What the answer would be without a candidate whose figures leave something out, and without a
//! rule: from the trials at hand.

use crate::evidence::Evidence;
use crate::exclude::NOT_COMPARABLE;
use crate::judge::{JudgeError, judge};
use crate::need::Need;
use crate::verdict::{Change, Ranked, Without};
use std::collections::{BTreeMap, BTreeSet};

/// The answer without those whose figures leave something out, if the winner is one of them.
///
/// # Errors
/// As [`judge`].
pub(crate) fn without(
    need: &Need,
    evidence: &Evidence,
    ranking: &[Ranked],
) -> Result<Option<Without>, JudgeError> {
    let leaves_out = |one: &&Ranked| evidence.caveats.contains_key(&one.candidate);
    if !ranking.first().is_some_and(|first| leaves_out(&first)) {
        return Ok(None);
    }
    let left_out: Vec<String> = (ranking.iter())
        .filter(leaves_out)
        .map(|one| one.candidate.clone())
        .collect();
    // One that is left alone was compared with nobody.
    if ranking.len() < left_out.len() + 2 {
        return Ok(None);
    }
    let mut whole = evidence.clone();
    whole.caveats = BTreeMap::new();
    whole
        .samples
        .retain(|sample| !left_out.contains(&sample.candidate));
    let verdict = judge(need, &whole)?;
    Ok(verdict.ranking.into_iter().next().map(|first| Without {
        left_out,
        winner: first.candidate,
        p_best: first.p_best,
    }))
}

/// Who would lead without each rule that excludes somebody of whom there are trials; only changes
/// are listed. Who breaks another rule too, or of whom a trial failed, stays out.
pub(crate) fn without_rules(need: &Need, evidence: &Evidence, winner: Option<&str>) -> Vec<Change> {
    let measured: BTreeSet<&String> = (evidence.samples.iter().chain(&evidence.aside))
        .map(|sample| &sample.candidate)
        .collect();
    let rules: BTreeSet<&str> = (evidence.excluded.iter())
        .filter(|one| measured.contains(&one.candidate))
        .flat_map(|one| one.rules())
        .filter(|rule| *rule != NOT_COMPARABLE)
        .collect();
    let change = |rule: &str| {
        let mut dropped = evidence.clone();
        dropped.caveats = BTreeMap::new();
        dropped.samples.append(&mut dropped.aside);
        // Whom this rule alone keeps out takes part; the others stay out.
        dropped
            .excluded
            .retain(|one| one.rules().count() != 1 || one.rules().any(|name| name != rule));
        let staying: BTreeSet<&String> = (dropped.excluded.iter())
            .map(|one| &one.candidate)
            .collect();
        dropped
            .samples
            .retain(|one| !staying.contains(&one.candidate));
        dropped.excluded = Vec::new();
        let verdict = judge(need, &dropped).ok()?;
        let first = verdict.ranking.into_iter().next()?;
        (Some(first.candidate.as_str()) != winner).then(|| Change {
            metric: String::new(),
            rule: Some(rule.to_owned()),
            text: format!(
                "without the rule {rule}, {} would lead (of those that were measured)",
                first.candidate
            ),
            winner: first.candidate,
        })
    };
    rules.into_iter().filter_map(change).collect()
}
