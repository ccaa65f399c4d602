//! Hard rules first: who is no candidate, why, and who says so.

use crate::facts::{CandidateFacts, Fact, Value};
use crate::need::{Condition, Need};
use crate::verdict::Excluded;
use whichfs_units::Bytes;

/// Splits `candidates` into those that satisfy every rule of `need` and fit into a
/// partition of `partition_bytes`, and those that do not, with the first rule broken.
/// The order of the candidates is kept.
pub fn exclude(
    need: &Need,
    partition_bytes: u64,
    candidates: &[CandidateFacts],
) -> (Vec<CandidateFacts>, Vec<Excluded>) {
    let mut kept = Vec::new();
    let mut excluded = Vec::new();
    for candidate in candidates {
        match broken(need, partition_bytes, candidate) {
            Some(why) => excluded.push(why),
            None => kept.push(candidate.clone()),
        }
    }
    (kept, excluded)
}

fn broken(need: &Need, partition_bytes: u64, facts: &CandidateFacts) -> Option<Excluded> {
    for rule in need.rules.iter().filter(|rule| need.applies(rule)) {
        let (value, source) = rule.fact.of(facts);
        if satisfied(&rule.condition, value) {
            continue;
        }
        return Some(Excluded {
            candidate: facts.name.clone(),
            why: format!("{}: {}", rule.fact.phrase(value), rule.because),
            rule: Some(rule.fact.name().to_owned()),
            source: Some(format!("{source}; rule: {}", rule.source)),
        });
    }
    (facts.min_bytes.value > partition_bytes).then(|| Excluded {
        candidate: facts.name.clone(),
        why: format!(
            "needs a partition of {}, this one has {}",
            Bytes(facts.min_bytes.value),
            Bytes(partition_bytes)
        ),
        rule: Some(Fact::MinBytes.name().to_owned()),
        source: Some(facts.min_bytes.source.clone()),
    })
}

fn satisfied(condition: &Condition, value: Value) -> bool {
    match (condition, value) {
        (Condition::Is(wanted), Value::Flag(flag)) => *wanted == flag,
        (Condition::AtLeast(bound), Value::Number(number)) => number >= *bound,
        (Condition::AtMost(bound), Value::Number(number)) => number <= *bound,
        (Condition::Not(class), Value::Class(found)) => *class != found,
        // Rules are checked against the kind of their fact when they are made.
        (condition, value) => unreachable!("{condition:?} cannot test {value:?}"),
    }
}
