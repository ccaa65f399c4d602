//! What a verdict would advise by one line of a table.

use crate::grid::GridLine;
use whichfs_decide::{Evidence, Need, NeedError, Sample, Weight, catalogue, judge};

/// The need whose baseline and tie-breakers the advice follows: that of any program.
const NEED: &str = "command";

/// The filesystem that a verdict by the figures of `line` alone advises, given names and figures
/// by seed; none where its first is the answer.
pub(super) fn of_line(line: &GridLine, ours: &[(&str, &[(u64, f64)])]) -> Option<String> {
    let need = counting(&line.metric).ok()?;
    let verdict = judge(&need, &evidence(line, ours)).ok()?;
    Some(verdict.advice?.candidate)
}

/// A need that counts `metric` only.
fn counting(metric: &str) -> Result<Need, NeedError> {
    let weight = Weight {
        weight: 1.0,
        label: metric.to_owned(),
        short: String::new(),
        because: String::new(),
        enough: None,
    };
    Ok(Need {
        weights: [(metric.to_owned(), weight)].into(),
        requires: vec![metric.to_owned()],
        rules: Vec::new(),
        ..Need::named(NEED)?
    })
}

fn evidence(line: &GridLine, ours: &[(&str, &[(u64, f64)])]) -> Evidence {
    let sample = |name: &str, (seed, value): &(u64, f64)| Sample {
        candidate: name.to_owned(),
        metric: line.metric.clone(),
        seed: *seed,
        value: *value,
        unit: line.unit.clone(),
        lower_is_better: line.lower_is_better,
    };
    let samples = ours
        .iter()
        .flat_map(|(name, seeds)| seeds.iter().map(move |one| sample(name, one)));
    let names: Vec<String> = ours.iter().map(|(name, _)| (*name).to_owned()).collect();
    Evidence {
        samples: samples.collect(),
        facts: catalogue::of_those(&names),
        ..Evidence::default()
    }
}
