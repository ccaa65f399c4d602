//! Whether what is on a card is aligned and tuned, and what it would gain.

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_layout::superblock::SuperblockFigure;
use whichfs_layout::{LayoutFault, PartitionVerdict};
use whichfs_study::{Effect, Gain};
use whichfs_units::{Bytes, counted};

/// What tuning gained in the lab.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TuningGain {
    /// Differences by metric.
    pub gains: Vec<Gain>,
    /// Trials that failed or could not be run, with the reason.
    pub lacking: Vec<String>,
    /// The differences as rows of a table: metric and change.
    #[serde(skip)]
    pub rows: Vec<Vec<String>>,
}

/// A partition with what is to be said of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedPartition {
    /// Number in the table; 0 of a card without one.
    pub number: usize,
    /// Kernel name of the partition, or its number in the image.
    pub name: String,
    /// Its first byte.
    pub start: u64,
    /// Length of the partition in bytes.
    pub bytes: u64,
    /// What is in it, and what is wrong with that.
    #[serde(flatten)]
    pub verdict: PartitionVerdict,
    /// What tuning gains, measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<TuningGain>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

/// What is on a card or in an image, judged.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Device or image.
    pub path: String,
    /// Length of the card or image in bytes.
    pub bytes: u64,
    /// The allocation unit that it is judged by.
    pub au_bytes: u64,
    /// How that is known.
    pub au_why: String,
    /// Kind of its partition table.
    pub table: Option<&'static str>,
    /// What is wrong with it.
    pub table_faults: Vec<LayoutFault>,
    /// What was found of each partition, in the order of the table.
    pub partitions: Vec<CheckedPartition>,
    /// What a `format` that did not come to its end left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

impl Document for CheckReport {
    const NAME: &'static str = "check";
}

/// The report in lines of at most `width` columns.
pub fn check_text(document: &CheckReport, width: usize) -> String {
    let mut out = Lines::new(width);
    let table = document.table.map_or("no partition table", |table| table);
    out.paragraph(
        &format!(
            "{}: {}, {table}; allocation unit of {}: {}.",
            document.path,
            Bytes(document.bytes),
            Bytes(document.au_bytes),
            document.au_why
        ),
        2,
    );
    for fault in &document.table_faults {
        out.paragraph(&format!("- {}: {}", fault.what, fault.costs), 2);
    }
    for one in &document.partitions {
        tell_partition(&mut out, one);
    }
    out.text()
}

fn tell_partition(out: &mut Lines, one: &CheckedPartition) {
    let fs = one
        .verdict
        .candidate
        .unwrap_or("no filesystem that is known");
    let name = match one.name.as_str() {
        "" => one.number.to_string(),
        name => format!("{} {name}", one.number),
    };
    let begin = format!(
        "begins at {} ({})",
        Bytes(one.start),
        counted(one.start / 512, "sector")
    );
    out.line("");
    out.paragraph(&format!("{name}: {fs}, {}, {begin}", Bytes(one.bytes)), 2);
    let figures = one.verdict.figures.iter();
    let shown: Vec<String> = figures
        .map(|(figure, (value, _))| shown(*figure, *value))
        .collect();
    if !shown.is_empty() {
        out.paragraph(&format!("  has: {}", shown.join(", ")), 7);
    }
    if one.verdict.faults.is_empty() {
        out.line(match one.verdict.candidate {
            Some(_) => "  aligned and tuned",
            None => "  aligned; whether it is tuned cannot be told",
        });
        return;
    }
    for fault in &one.verdict.faults {
        out.paragraph(&format!("  - {}: {}", fault.what, fault.costs), 4);
    }
    if let Some(why) = &one.not_measured {
        out.paragraph(
            &format!("  What tuning would gain was not measured: {why}"),
            4,
        );
    }
    let Some(gain) = &one.gain else {
        return;
    };
    out.line("  Tuned, against as found, measured in the lab (95 % interval):");
    for row in &gain.rows {
        out.line(&format!("    {}", row.join("  ")));
    }
    for lacking in &gain.lacking {
        out.paragraph(&format!("    {lacking}"), 6);
    }
    if let Some(contradiction) = contradiction(&gain.gains) {
        out.paragraph(&format!("  {contradiction}"), 4);
    }
}

/// That the measurement says something else than the warnings above it: tuning gains nothing. None
/// where it gains something, or too few seeds decide.
fn contradiction(gains: &[Gain]) -> Option<String> {
    let count = |effect| gains.iter().filter(|gain| gain.effect == effect).count();
    let (none, losses) = (count(Effect::None), count(Effect::Loss));
    if none + losses == 0 || none + losses < gains.len() {
        return None;
    }
    let of = counted(gains.len(), "figure");
    let found = match losses {
        0 => format!("tuning gains nothing in {of}"),
        losses => format!("tuning gains nothing in {of}, and loses in {losses}"),
    };
    Some(format!(
        "The measurement contradicts this: {found}, on the model of this card and with the \
         workload rootfs."
    ))
}

fn shown(figure: SuperblockFigure, value: u64) -> String {
    match figure.is_bytes() {
        true => format!("{} {}", figure.words(), Bytes(value)),
        false => format!("{} {value}", figure.words()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(effect: Effect) -> Gain {
        Gain {
            card: String::new(),
            board: String::new(),
            load: String::new(),
            candidate: "ext4".to_owned(),
            variant: String::new(),
            metric: "tree_write".to_owned(),
            ratio: 1.0,
            interval: None,
            seeds: 3,
            effect,
        }
    }

    #[test]
    fn only_a_measurement_in_which_nothing_gains_contradicts_a_warning() {
        let said = |effects: &[Effect]| {
            let gains: Vec<Gain> = effects.iter().copied().map(gain).collect();
            contradiction(&gains)
        };
        assert_eq!(said(&[]), None, "nothing was measured");
        assert_eq!(said(&[Effect::None, Effect::Gain]), None);
        assert_eq!(said(&[Effect::None, Effect::Unknown]), None);
        let none = said(&[Effect::None, Effect::None]).unwrap_or_default();
        assert!(none.contains("gains nothing in 2 figures,"), "{none}");
        let loses = said(&[Effect::None, Effect::Loss]).unwrap_or_default();
        assert!(loses.contains("and loses in 1"), "{loses}");
    }
}
