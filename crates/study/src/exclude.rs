//! Hard rules first: who is no candidate, why, and who says so.

use crate::facts::{CandidateFacts, Fact, Value};
use crate::need::{Condition, Need, Rule};
use crate::verdict::{Broken, Excluded, Nearest, RuleLine};
use std::collections::BTreeMap;
use whichfs_units::Bytes;

/// Splits `candidates` into those that satisfy every rule of `need` and fit into a
/// partition of `partition_bytes`, and those that do not, with the rules that they break.
/// The order of the candidates is kept.
pub fn exclude(
    need: &Need,
    partition_bytes: u64,
    candidates: &[CandidateFacts],
) -> (Vec<CandidateFacts>, Vec<Excluded>) {
    let mut kept = Vec::new();
    let mut excluded = Vec::new();
    for candidate in candidates {
        let mut broken = broken(need, partition_bytes, candidate).into_iter();
        match broken.next() {
            None => kept.push(candidate.clone()),
            Some(first) => excluded.push(Excluded {
                candidate: candidate.name.clone(),
                why: first.why,
                rule: Some(first.rule),
                source: Some(first.source),
                also: broken.collect(),
                figures: BTreeMap::new(),
                grades: BTreeMap::new(),
            }),
        }
    }
    (kept, excluded)
}

/// The rules that a candidate breaks, in the order of the need.
fn broken(need: &Need, partition_bytes: u64, facts: &CandidateFacts) -> Vec<Broken> {
    let rules = need.rules.iter().filter(|rule| need.applies(rule));
    let mut broken: Vec<Broken> = rules.filter_map(|rule| breaks(rule, facts)).collect();
    if facts.min_bytes.value > partition_bytes {
        broken.push(Broken {
            why: format!(
                "needs a partition of {}, this one has {}",
                Bytes(facts.min_bytes.value),
                Bytes(partition_bytes)
            ),
            rule: Fact::MinBytes.name().to_owned(),
            source: facts.min_bytes.source.clone(),
        });
    }
    broken
}

fn breaks(rule: &Rule, facts: &CandidateFacts) -> Option<Broken> {
    let (value, source) = rule.fact.of(facts);
    if satisfied(&rule.condition, value) {
        return None;
    }
    let phrase = match (&rule.condition, value) {
        (Condition::Among(there), Value::Options(needed)) => {
            let lacking = needed.iter().filter(|option| !there.contains(*option));
            let lacking: Vec<&str> = lacking.map(String::as_str).collect();
            let lacking = lacking.join(" and ");
            match rule.fact {
                Fact::KernelOptions => format!("needs {lacking}, which the kernel has not"),
                _ => format!("is under {lacking}, which is not wanted"),
            }
        }
        _ => rule.fact.phrase(value),
    };
    let source = match source {
        "" => format!("rule: {}", rule.source),
        source => format!("{source}; rule: {}", rule.source),
    };
    Some(Broken {
        why: format!("{phrase}: {}", rule.because),
        rule: rule.fact.name().to_owned(),
        source,
    })
}

fn satisfied(condition: &Condition, value: Value<'_>) -> bool {
    use crate::facts::Can;
    match (condition, value) {
        (Condition::Is(wanted), Value::Flag(flag)) => *wanted == flag,
        (Condition::Is(wanted), Value::Can(can)) => *wanted == (can != Can::No),
        (Condition::Online, Value::Can(can)) => matches!(can, Can::Online | Can::Yes),
        (Condition::AtLeast(bound), Value::Number(number)) => number >= *bound,
        (Condition::AtMost(bound), Value::Number(number)) => number <= *bound,
        (Condition::Not(class), Value::Class(found)) => *class != found,
        (Condition::Among(there), Value::Options(needed)) => {
            needed.iter().all(|option| there.contains(option))
        }
        // Rules are checked against the kind of their fact when they are made.
        (condition, value) => unreachable!("{condition:?} cannot test {value:?}"),
    }
}

/// The rules of `need` that are in force, with those that they exclude.
pub(crate) fn rule_lines(need: &Need, excluded: &[Excluded]) -> Vec<RuleLine> {
    let rules = need.rules.iter().filter(|rule| need.applies(rule));
    rules
        .map(|rule| RuleLine {
            rule: rule.fact.name().to_owned(),
            wants: rule.fact.wanted(&rule.condition),
            because: rule.because.clone(),
            source: rule.source.clone(),
            excludes: (excluded.iter())
                .filter(|one| one.rules().any(|name| name == rule.fact.name()))
                .map(|one| one.candidate.clone())
                .collect(),
        })
        .collect()
}

/// Those that break the fewest rules, and what would let them in; empty if no rule excludes
/// anybody.
pub(crate) fn nearest(excluded: &[Excluded]) -> Vec<Nearest> {
    let by_rule = |one: &&Excluded| {
        let facts = |name: &str| Fact::from_name(name).is_some();
        one.rules().count() > 0 && one.rules().all(facts)
    };
    let counts = excluded
        .iter()
        .filter(by_rule)
        .map(|one| one.rules().count());
    let Some(fewest) = counts.min() else {
        return Vec::new();
    };
    let near = excluded.iter().filter(by_rule);
    near.filter(|one| one.rules().count() == fewest)
        .map(|one| Nearest {
            candidate: one.candidate.clone(),
            breaks: one.rules().map(str::to_owned).collect(),
            allow: one.rules().map(allow).collect(),
        })
        .collect()
}

/// What lets a candidate in that breaks `rule`.
fn allow(rule: &str) -> String {
    match rule {
        rule if rule == Fact::MinBytes.name() => "a larger card".to_owned(),
        rule => format!("--need {rule}=any"),
    }
}
