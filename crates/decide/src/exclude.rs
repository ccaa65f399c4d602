//! Hard rules first: who is no candidate, why, and who says so.

use crate::facts::{Can, CandidateFacts, Fact, Matter, Value};
use crate::need::{Condition, HardRule, Need};
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
                allow: first.allow,
                also: broken.collect(),
                figures: BTreeMap::new(),
                grades: BTreeMap::new(),
            }),
        }
    }
    (kept, excluded)
}

/// The rule of candidates whose trials cannot be sustained.
pub const NOT_COMPARABLE: &str = "not_comparable";

/// Those of `candidates` whose trials say nothing of their use for long: they are measured and
/// shown, and not ranked.
pub fn not_comparable(candidates: &[CandidateFacts]) -> Vec<Excluded> {
    let reclaims = |facts: &CandidateFacts| {
        let care = facts.care.get(&Matter::Reclaims);
        care.filter(|care| care.can == Can::No).cloned()
    };
    let excluded = candidates.iter().filter_map(|facts| {
        let care = reclaims(facts)?;
        Some(Excluded {
            candidate: facts.name.clone(),
            why: format!("its trial cannot be sustained: {}", care.how),
            rule: Some(NOT_COMPARABLE.to_owned()),
            source: Some(care.source),
            ..Excluded::default()
        })
    });
    excluded.collect()
}

/// What the rules of `need` leave open for `facts`, in a sentence that follows the candidate's
/// name: it is let in, though nobody knows.
pub fn not_known(need: &Need, facts: &CandidateFacts) -> Option<String> {
    let rules = need.rules.iter().filter(|rule| need.applies(rule));
    let asked = rules.filter_map(|rule| match (rule.fact, &rule.condition) {
        (Fact::MemoryBytes, Condition::AtMost(bytes)) => Some(*bytes),
        _ => None,
    });
    let memory = facts.memory.value;
    let unknown = asked
        .min()
        .filter(|asked| memory.works_in(*asked).is_none())?;
    Some(format!(
        "is not known to work in {} of memory: {} is the least in which it was seen to ({})",
        Bytes(unknown),
        Bytes(memory.works),
        facts.memory.source
    ))
}

/// The rules that a candidate breaks, in the order of the need.
fn broken(need: &Need, partition_bytes: u64, facts: &CandidateFacts) -> Vec<Broken> {
    let rules = need.rules.iter().filter(|rule| need.applies(rule));
    let mut broken: Vec<Broken> = rules.filter_map(|rule| breaks(need, rule, facts)).collect();
    if facts.min_bytes.value > partition_bytes {
        let least = Bytes(facts.min_bytes.value);
        broken.push(Broken {
            why: format!(
                "needs a partition of {least}, this one has {}",
                Bytes(partition_bytes)
            ),
            rule: Fact::MinBytes.name().to_owned(),
            source: facts.min_bytes.source.clone(),
            allow: Some(format!("a card with a partition of {least} or more")),
        });
    }
    broken
}

fn breaks(need: &Need, rule: &HardRule, facts: &CandidateFacts) -> Option<Broken> {
    let (value, source) = rule.fact.of(facts);
    let lacking = lacking(need, rule, facts);
    let holds = match rule.condition {
        Condition::Among(_) => lacking.is_empty(),
        _ => satisfied(&rule.condition, value),
    };
    if holds {
        return None;
    }
    let phrase = match (&rule.condition, rule.fact) {
        (Condition::Among(_), Fact::KernelOptions) => {
            format!("needs {}, which the kernel has not", lacking.join(" and "))
        }
        (Condition::Among(_), _) => {
            format!("is under {}, which is not wanted", lacking.join(" and "))
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
        allow: allow(rule, value, &lacking),
    })
}

/// What the candidate has that is not in the rule's list: kernel options that it needs, of which
/// those of extended attributes count only where the need asks for them; licences.
fn lacking<'a>(need: &Need, rule: &HardRule, facts: &'a CandidateFacts) -> Vec<&'a str> {
    let (Condition::Among(there), (Value::Options(own), _)) =
        (&rule.condition, rule.fact.of(facts))
    else {
        return Vec::new();
    };
    let asked =
        |other: &HardRule| other.fact == Fact::Xattrs && other.condition == Condition::Is(true);
    let wants = rule.fact == Fact::KernelOptions
        && need
            .rules
            .iter()
            .any(|other| need.applies(other) && asked(other));
    let xattrs = facts.xattr_options.iter().filter(|_| wants);
    let all = own.iter().chain(xattrs);
    all.filter(|option| !there.contains(*option))
        .map(String::as_str)
        .collect()
}

/// What lets a candidate past `rule` whose fact has `value`; none if nothing does.
fn allow(rule: &HardRule, value: Value<'_>, lacking: &[&str]) -> Option<String> {
    let name = rule.fact.name();
    let need = |value: &str| Some(format!("--need {name}={value}"));
    match (&rule.condition, value) {
        // What is built once as an image cannot do the work of a need that writes.
        (Condition::Is(false), _) if rule.fact == Fact::ReadOnly => None,
        (Condition::AtMost(_), Value::Memory(memory)) => need(&plain(memory.works)),
        (Condition::AtMost(_) | Condition::AtLeast(_), Value::Number(n)) => {
            need(&match rule.fact {
                Fact::LastYear => n.to_string(),
                _ => plain(n),
            })
        }
        (Condition::Among(_), _) if rule.fact == Fact::KernelOptions => {
            Some(format!("a kernel with {} (=y or =m)", lacking.join(", ")))
        }
        (Condition::Among(allowed), _) => {
            let allowed = allowed.iter().map(String::as_str);
            let all: Vec<&str> = allowed.chain(lacking.iter().copied()).collect();
            need(&all.join(","))
        }
        _ => need("any"),
    }
}

/// Bytes as `--need` takes them: in the largest unit in which they are whole.
fn plain(bytes: u64) -> String {
    let units = [
        ("GiB", whichfs_units::GIB),
        ("MiB", whichfs_units::MIB),
        ("KiB", 1024),
    ];
    let whole = units
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

pub(crate) fn satisfied(condition: &Condition, value: Value<'_>) -> bool {
    match (condition, value) {
        (Condition::Is(wanted), Value::Flag(flag)) => *wanted == flag,
        (Condition::Is(wanted), Value::Can(can)) => *wanted == (can != Can::No),
        (Condition::Online, Value::Can(can)) => matches!(can, Can::Online | Can::Yes),
        (Condition::AtLeast(bound), Value::Number(number)) => number >= *bound,
        (Condition::AtMost(bound), Value::Number(number)) => number <= *bound,
        (Condition::Not(class), Value::Class(found)) => *class != found,
        // What was never tried excludes nobody; `not_known` says so.
        (Condition::AtMost(bound), Value::Memory(memory)) => memory.works_in(*bound) != Some(false),
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
/// anybody. Those that nothing lets in come into it only if there are no others.
pub(crate) fn nearest(excluded: &[Excluded]) -> Vec<Nearest> {
    let by_rule = |one: &&Excluded| {
        let facts = |name: &str| Fact::from_name(name).is_some();
        one.rules().count() > 0 && one.rules().all(facts)
    };
    let hopeless = |one: &Excluded| one.allows().any(|allow| allow.is_none());
    let all: Vec<&Excluded> = excluded.iter().filter(by_rule).collect();
    let distance = |one: &Excluded| (hopeless(one), one.rules().count());
    let Some(least) = all.iter().map(|one| distance(one)).min() else {
        return Vec::new();
    };
    let near = all.into_iter().filter(|one| distance(one) == least);
    near.map(|one| Nearest {
        candidate: one.candidate.clone(),
        breaks: one.rules().map(str::to_owned).collect(),
        allow: match hopeless(one) {
            true => vec!["nothing".to_owned()],
            false => one.allows().flatten().map(str::to_owned).collect(),
        },
    })
    .collect()
}
