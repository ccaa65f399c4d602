//! Needs: what counts, how much and why, and what excludes.

use crate::document::Document;
use crate::text::{Lines, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_decide::{Condition, Enough, HardRule, Need, Weight};
use whichfs_units::Bytes;

/// A line of `need list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeedLine {
    /// Name, as after `--for`.
    name: String,
    /// What it is for, in one line.
    title: String,
    /// Workload whose trials answer it.
    workload: String,
}

/// The document of `need show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeedShown {
    #[serde(flatten)]
    line: NeedLine,
    /// Parameters of the workload that differ from its defaults.
    parameters: BTreeMap<String, u64>,
    /// What counts, the heaviest first.
    weights: Vec<WeightTold>,
    /// Metrics that a candidate must produce.
    requires: Vec<String>,
    /// What excludes a candidate before any trial.
    rules: Vec<RuleTold>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WeightTold {
    metric: String,
    /// Share relative to the other weights.
    weight: f64,
    /// The metric in words.
    label: String,
    because: String,
    /// From where on better is no better.
    #[serde(skip_serializing_if = "Option::is_none")]
    enough: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RuleTold {
    /// Name of the fact, as after `--need`.
    fact: &'static str,
    /// What it must be, in words.
    condition: String,
    /// `setting=value` under which the rule does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    unless: Option<String>,
    because: String,
    /// Where that is written.
    source: String,
}

impl Document for NeedLine {
    const NAME: &'static str = "need list";
}

impl Document for NeedShown {
    const NAME: &'static str = "need show";
}

impl NeedLine {
    /// The line of `need`.
    pub fn new(need: &Need) -> NeedLine {
        NeedLine {
            name: need.name.clone(),
            title: need.title.clone(),
            workload: need.workload.clone(),
        }
    }
}

impl NeedShown {
    /// All of `need`.
    pub fn new(need: &Need) -> NeedShown {
        let mut weights: Vec<WeightTold> = need.weights.iter().map(weight).collect();
        weights.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        NeedShown {
            line: NeedLine::new(need),
            parameters: need.parameters.clone(),
            weights,
            requires: need.requires.clone(),
            rules: need.rules.iter().map(rule).collect(),
        }
    }
}

fn weight((metric, weight): (&String, &Weight)) -> WeightTold {
    let enough = weight
        .enough
        .as_ref()
        .map(|(enough, because)| match enough {
            Enough::Value(value) => format!("{value}: {because}"),
            Enough::OfPartition(share) => format!("{share} of the partition: {because}"),
        });
    WeightTold {
        metric: metric.clone(),
        weight: weight.weight,
        label: weight.label.clone(),
        because: weight.because.clone(),
        enough,
    }
}

fn rule(rule: &HardRule) -> RuleTold {
    let name = rule.fact.name();
    let number = |number: u64| match name.ends_with("_bytes") {
        true => Bytes(number).to_string(),
        false => number.to_string(),
    };
    RuleTold {
        fact: name,
        condition: match &rule.condition {
            Condition::Is(true) => "yes".to_owned(),
            Condition::Is(false) => "no".to_owned(),
            Condition::AtLeast(least) => format!("at least {}", number(*least)),
            Condition::AtMost(most) => format!("at most {}", number(*most)),
            Condition::Not(class) => format!("not {}", class.word()),
            Condition::Online => "while it is mounted".to_owned(),
            Condition::Among(all) => {
                let all: Vec<&str> = all.iter().map(String::as_str).collect();
                format!("among {}", all.join(", "))
            }
        },
        unless: (rule.unless.as_ref()).map(|(setting, value)| format!("{setting}={value}")),
        because: rule.because.clone(),
        source: rule.source.clone(),
    }
}

/// A table of needs, of at most `width` columns.
pub fn need_table(lines: &[NeedLine], width: usize) -> String {
    let row = |need: &NeedLine| vec![need.name.clone(), need.title.clone(), need.workload.clone()];
    table(
        &["name", "what it is for", "workload"],
        lines.iter().map(row).collect(),
        width,
    )
}

/// One need in lines of at most `width` columns.
pub fn need_text(need: &NeedShown, width: usize) -> String {
    let mut out = Lines::new(width);
    out.paragraph(&format!("{}: {}", need.line.name, need.line.title), 2);
    out.paragraph(&format!("workload {}", need.line.workload), 2);
    for (name, value) in &need.parameters {
        out.line(&format!("  {name} = {value}"));
    }
    out.line("");
    let rows = need.weights.iter();
    let rows = rows.map(|one| {
        let enough = one
            .enough
            .as_ref()
            .map(|enough| format!("; enough from {enough}"));
        let because = format!("{}{}", one.because, enough.unwrap_or_default());
        vec![one.metric.clone(), one.weight.to_string(), because]
    });
    out.table(&["metric", "weight", "because"], rows.collect());
    if !need.requires.is_empty() {
        out.line("");
        out.paragraph(
            &format!("must be measured: {}", need.requires.join(", ")),
            2,
        );
    }
    if !need.rules.is_empty() {
        out.line("");
        let rows = need.rules.iter().map(|one| {
            let unless = one
                .unless
                .as_ref()
                .map(|unless| format!("; not with {unless}"));
            let condition = format!("{}{}", one.condition, unless.unwrap_or_default());
            vec![
                one.fact.to_owned(),
                condition,
                format!("{} ({})", one.because, one.source),
            ]
        });
        out.table(&["rule", "must be", "because"], rows.collect());
    }
    out.text()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_need_says_what_counts_and_what_excludes_each_with_its_reason() {
        for need in Need::builtin() {
            let shown = NeedShown::new(&need);
            let text = need_text(&shown, 80);
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            for (metric, weight) in &need.weights {
                let first = weight.because.split(' ').next().unwrap();
                assert!(text.contains(metric) && text.contains(first), "{text}");
            }
            assert!(shown.weights.is_sorted_by(|a, b| a.weight >= b.weight));
            for rule in &need.rules {
                assert!(text.contains(rule.fact.name()), "{text}");
            }
        }
        let logger = NeedShown::new(&Need::named("logger").unwrap());
        let json = crate::document_json(&logger).unwrap();
        assert!(json.contains("\"workload\": \"logger\""), "{json}");
    }
}
