//! The excluded, those with the same reason together.

use std::collections::BTreeSet;
use whichfs_decide::{NOT_COMPARABLE, Verdict};
use whichfs_units::counted;

/// Candidates excluded for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Their names, in order.
    pub candidates: Vec<String>,
    /// The reason, once.
    pub why: String,
    /// Sources of the facts and of the rule, each once.
    pub sources: Vec<String>,
    /// The rule's name, or empty.
    pub rule: String,
    /// True if not a rule but its own trials exclude a candidate.
    pub tried: bool,
}

impl Group {
    /// Whether these were measured and are not ranked.
    pub(crate) fn is_measured(&self) -> bool {
        self.rule == NOT_COMPARABLE
    }
}

/// Whose trials failed, how many of how many, in a sentence; none if none did.
pub(crate) fn failed(verdict: &Verdict) -> Option<String> {
    if verdict.failed.is_empty() {
        return None;
    }
    let own_trials = |rule: &Option<String>| matches!(rule.as_deref(), Some("failed" | "requires"));
    let excluded = verdict.excluded.iter();
    let excluded = excluded.filter(|one| own_trials(&one.rule));
    let mut tried: BTreeSet<&str> = excluded.map(|one| one.candidate.as_str()).collect();
    tried.extend(verdict.ranking.iter().map(|one| one.candidate.as_str()));
    tried.extend(verdict.failed.iter().map(|one| one.candidate.as_str()));
    let each = verdict.failed.iter();
    let each = each.map(|one| format!("{} {} of {}", one.candidate, one.failed.len(), one.trials));
    let rest = match verdict.ranking.is_empty() {
        true => "",
        false => " They are not judged: the verdict is of the others.",
    };
    Some(format!(
        "Trials of {} of {} failed: {}.{rest}",
        verdict.failed.len(),
        counted(tried.len(), "candidate"),
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// Groups by reason, the largest group first, then in order of the names.
pub(crate) fn groups(verdict: &Verdict) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for excluded in &verdict.excluded {
        let group = match groups.iter_mut().find(|group| group.why == excluded.why) {
            Some(group) => group,
            None => {
                // What failed or gave no figure broke no rule.
                let rule = excluded.rule.clone().unwrap_or_default();
                let tried = rule == "failed" || rule == "requires";
                groups.push(Group {
                    candidates: Vec::new(),
                    why: excluded.why.clone(),
                    sources: Vec::new(),
                    rule: if tried { String::new() } else { rule },
                    tried,
                });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.candidates.push(excluded.candidate.clone());
        if let Some(source) = &excluded.source
            && !group.sources.contains(source)
        {
            group.sources.push(source.clone());
        }
    }
    // Stable: groups of one size stay in the order of their first names.
    groups.sort_by_key(|group| std::cmp::Reverse(group.candidates.len()));
    groups
}
