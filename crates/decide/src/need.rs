//! Needs: what the user requires, as data. One TOML file each in `needs/`.
//!
//! A need names a workload, weighs its metrics (each weight with its reason), lists
//! the metrics a candidate must be able to produce, and states hard rules with reason
//! and source. A rule excludes; a weight only moves the score.

use crate::advice::Standard;
use crate::facts::{CrashClass, Fact};
use crate::overrides::condition;
use crate::position::{FileError, Position};
use crate::sustained::{LongUse, LongUseFile};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use whichfs_units::{UnknownName, hint, wanted};

/// What the user requires.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Name as after `--for`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Workload whose trials answer it.
    pub workload: String,
    /// Parameters of the workload that differ from its defaults.
    pub parameters: BTreeMap<String, u64>,
    /// Weights by metric.
    pub weights: BTreeMap<String, Weight>,
    /// Metrics that a candidate must produce.
    pub requires: Vec<String>,
    /// Hard rules, in the order of the file.
    pub rules: Vec<HardRule>,
    /// The candidate that everybody uses for it: scores are beside its figures.
    pub baseline: Option<String>,
    /// What decides among candidates that trials cannot tell apart, the first first.
    pub tie_breakers: Vec<(Fact, Condition)>,
    /// Candidates that a standard has on such cards; the first that is for the card counts.
    pub standards: Vec<Standard>,
    /// Where the partition must be for it; none if that is no matter.
    pub partition: Option<PartitionRule>,
    /// What it writes in the long run, for sustained trials; none if it has none.
    pub sustained: Option<LongUse>,
    /// Switches that rules may name in `unless`, for example `power_loss`.
    pub settings: BTreeMap<String, String>,
}

/// Longest `short` label of a metric, in characters.
pub const SHORT: usize = 6;

/// Where the partition must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRule {
    /// Number of the partition in an MBR, from 1.
    pub number: u64,
    /// Reason in one sentence, for people.
    pub because: String,
    /// Where that is written.
    pub source: String,
}

/// How much a metric counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Share relative to the other weights; 0 shows the metric without counting it.
    pub weight: f64,
    /// The metric in words, for sentences and tables.
    pub label: String,
    /// The metric in at most [`SHORT`] characters, for the head of a narrow column.
    pub short: String,
    /// Why it counts this much.
    pub because: String,
    /// From where on better is no better, and why.
    pub enough: Option<(Enough, String)>,
}

/// From where on better is no better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Enough {
    /// A value in the metric's unit.
    Value(f64),
    /// This share of the partition's bytes.
    OfPartition(f64),
}

/// A hard rule: a candidate that fails it is excluded before any trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardRule {
    /// What is tested.
    pub fact: Fact,
    /// What it must be.
    pub condition: Condition,
    /// `(setting, value)` under which the rule does not apply.
    pub unless: Option<(String, String)>,
    /// Why the need has this rule.
    pub because: String,
    /// Where that is written.
    pub source: String,
}

/// What a rule's fact must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A flag must have this value.
    Is(bool),
    /// A count must not be below this.
    AtLeast(u64),
    /// A count must not be above this.
    AtMost(u64),
    /// The crash class must not be this one.
    Not(CrashClass),
    /// It must be possible while the filesystem is mounted.
    Online,
    /// Nothing but these may be in a list: the options that a kernel has, the licences that one
    /// may ship.
    Among(BTreeSet<String>),
}

/// What is wrong with a need, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedError {
    /// A need file is not as it must be.
    #[error(transparent)]
    File(#[from] FileError),
    /// `--need KEY=VALUE` cannot be applied.
    #[error("--need {given}: {problem}; {}", wanted(.expected))]
    Override {
        /// What the user typed: `KEY=VALUE`.
        given: String,
        /// What is wrong with it.
        problem: String,
        /// What is legal.
        expected: String,
    },
    /// No need has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A need cannot have this name.
    #[error("'{0}' is no name of a need; expected lower-case letters, digits and hyphens")]
    Name(String),
}

const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/needs.rs"));

/// Switches that rules may name, each with its default first and all legal values.
pub(crate) const SETTINGS: [(&str, &[&str]); 1] = [(POWER_LOSS, &["matters", "tolerated", "none"])];

/// The setting that says what power cuts may do, and the metric of what they did.
pub const POWER_LOSS: &str = "power_loss";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedFile {
    name: Spanned<String>,
    title: String,
    workload: Spanned<String>,
    #[serde(default)]
    parameters: BTreeMap<String, u64>,
    weights: Spanned<BTreeMap<String, Spanned<WeightFile>>>,
    #[serde(default)]
    requires: Vec<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleFile>>,
    baseline: Option<Spanned<String>>,
    #[serde(default)]
    tie_breakers: Vec<Spanned<String>>,
    #[serde(default)]
    standards: Vec<StandardFile>,
    partition: Option<PartitionFile>,
    sustained: Option<LongUseFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StandardFile {
    candidate: Spanned<String>,
    up_to_bytes: Option<u64>,
    because: Spanned<String>,
    source: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionFile {
    table: Spanned<String>,
    number: Spanned<u64>,
    because: Spanned<String>,
    source: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightFile {
    weight: Spanned<f64>,
    label: Option<String>,
    short: Option<Spanned<String>>,
    because: Spanned<String>,
    enough: Option<Spanned<f64>>,
    enough_of_partition: Option<Spanned<f64>>,
    enough_because: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    fact: Spanned<String>,
    is: Option<Spanned<bool>>,
    at_least: Option<Spanned<u64>>,
    at_most: Option<Spanned<u64>>,
    not: Option<Spanned<String>>,
    can: Option<Spanned<String>>,
    among: Option<Spanned<BTreeSet<String>>>,
    unless: Option<Spanned<String>>,
    because: Spanned<String>,
    source: Spanned<String>,
}

/// Where all facts are listed.
pub(crate) const FACTS: Option<&str> = Some("`whichfs need --help`");

impl Need {
    /// The needs that ship with the program, sorted by name.
    ///
    /// # Panics
    /// Never in a released program: a test parses every shipped file.
    pub fn builtin() -> Vec<Need> {
        let parse = |(name, text): &(&str, &str)| {
            let file = format!("needs/{name}.toml");
            Need::parse(&file, text).unwrap_or_else(|error| unreachable!("shipped file: {error}"))
        };
        BUILTIN.iter().map(parse).collect()
    }

    /// The shipped need called `name`.
    ///
    /// # Errors
    /// [`NeedError::Unknown`] with the nearest names.
    pub fn named(name: &str) -> Result<Need, NeedError> {
        let all = Need::builtin();
        let names: Vec<String> = all.iter().map(|need| need.name.clone()).collect();
        all.into_iter()
            .find(|need| need.name == name)
            .ok_or_else(|| {
                let listed = Some("`whichfs need list`");
                UnknownName::new("need", name, &names, listed).into()
            })
    }

    /// The text of a need file called `name` that begins as that of the shipped need `like`, with
    /// its comments, to be changed.
    ///
    /// # Errors
    /// There is no need `like`, or `name` has other than lower-case letters, digits and hyphens.
    pub fn file_like(like: &str, name: &str) -> Result<String, NeedError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(NeedError::Name(name.to_owned()));
        }
        Need::named(like)?;
        let text = BUILTIN.iter().find(|(known, _)| *known == like);
        let text = text.map_or("", |(_, text)| text);
        Ok(text.replacen(
            &format!("\nname = \"{like}\""),
            &format!("\nname = \"{name}\""),
            1,
        ))
    }

    /// Reads a need file; `file` is only for messages.
    ///
    /// # Errors
    /// [`NeedError::File`] with line, key and what is legal.
    pub fn parse(file: &str, text: &str) -> Result<Need, NeedError> {
        let at = Position { file, text };
        let raw: NeedFile = at.read(
            "name, title, workload, [weights.METRIC], requires, [[rules]] as in needs/rootfs.toml",
        )?;
        let need = Need {
            name: at.filled("name", &raw.name)?,
            workload: at.filled("workload", &raw.workload)?,
            weights: weights(&at, &raw.weights)?,
            requires: requires(&at, &raw)?,
            rules: raw
                .rules
                .iter()
                .map(|rule| parse_rule(&at, rule))
                .collect::<Result<_, _>>()?,
            baseline: (raw.baseline.as_ref())
                .map(|name| candidate(&at, "baseline", name))
                .transpose()?,
            tie_breakers: (raw.tie_breakers.iter())
                .map(|text| tie_breaker(&at, text))
                .collect::<Result<_, _>>()?,
            standards: (raw.standards.iter())
                .map(|raw| standard(&at, raw))
                .collect::<Result<_, _>>()?,
            partition: (raw.partition.as_ref())
                .map(|raw| partition(&at, raw))
                .transpose()?,
            sustained: (raw.sustained.as_ref())
                .map(|raw| raw.read(&at))
                .transpose()?,
            title: raw.title,
            parameters: raw.parameters,
            settings: SETTINGS
                .iter()
                .map(|(key, legal)| ((*key).to_owned(), legal[0].to_owned()))
                .collect(),
        };
        Ok(need)
    }

    /// The label of `metric`, or the metric's name in words.
    pub fn label(&self, metric: &str) -> String {
        self.weights
            .get(metric)
            .map_or_else(|| whichfs_trial::metric_words(metric), |w| w.label.clone())
    }

    /// The short label of `metric`, or the beginning of its name.
    pub fn short(&self, metric: &str) -> String {
        self.weights
            .get(metric)
            .map_or_else(|| shortened(metric), |w| w.short.clone())
    }

    /// True if the rule applies under the settings in force.
    pub(crate) fn applies(&self, rule: &HardRule) -> bool {
        rule.unless
            .as_ref()
            .is_none_or(|(key, value)| self.settings.get(key) != Some(value))
    }
}

/// The name of a candidate of the catalogue.
fn candidate(at: &Position<'_>, key: &str, name: &Spanned<String>) -> Result<String, FileError> {
    let found = whichfs_fs::find(name.get_ref());
    let found = found.map_err(|error| at.error(name, key, error.to_string(), "a candidate"))?;
    Ok(found.name.to_owned())
}

/// `FACT=VALUE`, as after `--need`.
fn tie_breaker(at: &Position<'_>, text: &Spanned<String>) -> Result<(Fact, Condition), FileError> {
    let given = text.get_ref();
    let (key, value) = given.split_once('=').unwrap_or((given, ""));
    let wrong = |expected: &str| at.error(text, "tie_breakers", format!("'{given}'"), expected);
    let names: Vec<&str> = Fact::all().map(Fact::name).collect();
    let fact = Fact::from_name(key).ok_or_else(|| wrong(&hint(key, &names, FACTS)))?;
    match condition(fact, value).map_err(wrong)? {
        Some(condition) => Ok((fact, condition)),
        None => Err(wrong("a value that parts candidates")),
    }
}

fn standard(at: &Position<'_>, raw: &StandardFile) -> Result<Standard, FileError> {
    Ok(Standard {
        candidate: candidate(at, "standards.candidate", &raw.candidate)?,
        up_to_bytes: raw.up_to_bytes,
        because: at.filled("standards.because", &raw.because)?,
        source: at.filled("standards.source", &raw.source)?,
    })
}

fn partition(at: &Position<'_>, raw: &PartitionFile) -> Result<PartitionRule, FileError> {
    let table = raw.table.get_ref();
    if table != "mbr" {
        return Err(at.error(
            &raw.table,
            "partition.table",
            format!("'{table}'"),
            "\"mbr\"",
        ));
    }
    let number = *raw.number.get_ref();
    if !(1..=4).contains(&number) {
        let found = number.to_string();
        return Err(at.error(&raw.number, "partition.number", found, "1 to 4"));
    }
    Ok(PartitionRule {
        number,
        because: at.filled("partition.because", &raw.because)?,
        source: at.filled("partition.source", &raw.source)?,
    })
}

fn weights(
    at: &Position<'_>,
    raw: &Spanned<BTreeMap<String, Spanned<WeightFile>>>,
) -> Result<BTreeMap<String, Weight>, FileError> {
    let mut weights = BTreeMap::new();
    for (metric, entry) in raw.get_ref() {
        let entry = entry.get_ref();
        let key = format!("weights.{metric}.weight");
        let weight = *entry.weight.get_ref();
        if !(0.0..=1000.0).contains(&weight) {
            return Err(at.error(
                &entry.weight,
                &key,
                format!("{weight}"),
                "a number 0 to 1000",
            ));
        }
        let because = at.filled(&format!("weights.{metric}.because"), &entry.because)?;
        let label = entry
            .label
            .clone()
            .unwrap_or_else(|| metric.replace('_', " "));
        let short = match &entry.short {
            Some(short) if short.get_ref().chars().count() > SHORT => {
                let found = format!("'{}'", short.get_ref());
                let expected = format!("at most {SHORT} characters");
                return Err(at.error(short, &format!("weights.{metric}.short"), found, &expected));
            }
            Some(short) => short.get_ref().clone(),
            None => shortened(metric),
        };
        let weight = Weight {
            weight,
            label,
            short,
            because,
            enough: enough(at, metric, entry)?,
        };
        weights.insert(metric.clone(), weight);
    }
    if weights.values().all(|w| w.weight == 0.0) {
        let expected = "at least one metric that counts";
        return Err(at.error(raw, "weights", "no weight above 0".to_owned(), expected));
    }
    Ok(weights)
}

/// From where on better is no better: one of two forms, with its reason.
fn enough(
    at: &Position<'_>,
    metric: &str,
    entry: &WeightFile,
) -> Result<Option<(Enough, String)>, FileError> {
    let key = |name: &str| format!("weights.{metric}.{name}");
    let (given, name, bound) = match (&entry.enough, &entry.enough_of_partition) {
        (None, None) => return Ok(None),
        (Some(value), None) => (value, "enough", Enough::Value(*value.get_ref())),
        (None, Some(share)) => {
            let bound = Enough::OfPartition(*share.get_ref());
            (share, "enough_of_partition", bound)
        }
        (Some(value), Some(_)) => {
            let found = "both enough and enough_of_partition";
            return Err(at.error(value, &key("enough"), found, "one of them"));
        }
    };
    let value = *given.get_ref();
    if !(value.is_finite() && value > 0.0) {
        return Err(at.error(given, &key(name), format!("{value}"), "a number above 0"));
    }
    let because = entry.enough_because.as_ref().ok_or_else(|| {
        let expected = format!("{} = \"…\" beside it", key("enough_because"));
        at.error(given, &key(name), "no reason", &expected)
    })?;
    let because = at.filled(&key("enough_because"), because)?;
    Ok(Some((bound, because)))
}

fn shortened(metric: &str) -> String {
    metric.chars().take(SHORT).collect()
}

fn requires(at: &Position<'_>, raw: &NeedFile) -> Result<Vec<String>, FileError> {
    let known: BTreeSet<&String> = raw.weights.get_ref().keys().collect();
    let check = |metric: &Spanned<String>| {
        if known.contains(metric.get_ref()) {
            return Ok(metric.get_ref().clone());
        }
        let names: Vec<String> = known.iter().map(|name| (*name).clone()).collect();
        let expected = format!("a metric that has a weight: {}", names.join(", "));
        Err(at.error(
            metric,
            "requires",
            format!("'{}'", metric.get_ref()),
            &expected,
        ))
    };
    raw.requires.iter().map(check).collect()
}

fn parse_rule(at: &Position<'_>, raw: &Spanned<RuleFile>) -> Result<HardRule, FileError> {
    let rule = raw.get_ref();
    let wanted = rule.fact.get_ref().as_str();
    let fact = Fact::from_name(wanted);
    let fact = fact.ok_or_else(|| {
        let names: Vec<&str> = Fact::all().map(Fact::name).collect();
        at.error(
            &rule.fact,
            "rules.fact",
            format!("'{wanted}'"),
            &hint(wanted, &names, FACTS),
        )
    })?;
    let mut conditions = Vec::new();
    conditions.extend(rule.is.as_ref().map(|v| Condition::Is(*v.get_ref())));
    conditions.extend(
        rule.at_least
            .as_ref()
            .map(|v| Condition::AtLeast(*v.get_ref())),
    );
    conditions.extend(
        rule.at_most
            .as_ref()
            .map(|v| Condition::AtMost(*v.get_ref())),
    );
    if let Some(name) = &rule.not {
        let class = CrashClass::from_word(name.get_ref()).ok_or_else(|| {
            let legal = "journaled, cow, log or none";
            at.error(name, "rules.not", format!("'{}'", name.get_ref()), legal)
        })?;
        conditions.push(Condition::Not(class));
    }
    if let Some(can) = &rule.can {
        if can.get_ref() != "online" {
            let found = format!("'{}'", can.get_ref());
            return Err(at.error(can, "rules.can", found, "\"online\""));
        }
        conditions.push(Condition::Online);
    }
    let among = rule.among.as_ref();
    if let Some(none) = among.filter(|list| list.get_ref().is_empty()) {
        let expected = "at least one of what is allowed";
        return Err(at.error(none, "rules.among", "an empty list", expected));
    }
    conditions.extend(among.map(|options| Condition::Among(options.get_ref().clone())));
    let expected = condition_of(fact);
    let fits = |condition: &Condition| match condition {
        Condition::Is(_) => fact.is_flag(),
        Condition::AtLeast(_) | Condition::AtMost(_) => fact.is_number(),
        Condition::Not(_) => fact == Fact::CrashClass,
        Condition::Online => fact.is_care(),
        Condition::Among(_) => fact.is_list(),
    };
    let condition = match conditions.as_slice() {
        [one] if fits(one) => one.clone(),
        [] => {
            return Err(at.error(
                raw,
                "rules",
                format!("{wanted} without condition"),
                expected,
            ));
        }
        _ => {
            let found = format!("conditions that do not fit {wanted}");
            return Err(at.error(raw, "rules", found, expected));
        }
    };
    let unless = rule
        .unless
        .as_ref()
        .map(|text| parse_unless(at, text))
        .transpose()?;
    Ok(HardRule {
        fact,
        condition,
        unless,
        because: at.filled("rules.because", &rule.because)?,
        source: at.filled("rules.source", &rule.source)?,
    })
}

fn condition_of(fact: Fact) -> &'static str {
    match fact {
        fact if fact.is_care() => "exactly one of `is = true`, `is = false` and `can = \"online\"`",
        fact if fact.is_flag() => "exactly one of `is = true` and `is = false`",
        Fact::KernelOptions => "exactly one `among = [\"CONFIG_EXT4_FS\", …]`",
        fact if fact.is_list() => "exactly one `among = [\"GPL-2.0\", …]`",
        Fact::CrashClass => "exactly one `not = \"none\"` (or another crash class)",
        _ => "exactly one of `at_least = N` and `at_most = N`",
    }
}

fn parse_unless(at: &Position<'_>, text: &Spanned<String>) -> Result<(String, String), FileError> {
    let legal: Vec<String> = SETTINGS
        .iter()
        .flat_map(|(key, values)| values.iter().map(move |value| format!("{key}={value}")))
        .collect();
    let given = text.get_ref();
    match given.split_once('=') {
        Some((key, value)) if legal.contains(given) => Ok((key.to_owned(), value.to_owned())),
        _ => Err(at.error(
            text,
            "rules.unless",
            format!("'{given}'"),
            &legal.join(" or "),
        )),
    }
}
