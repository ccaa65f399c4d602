//! What the authors of the studies concluded, as data, and whether the lab's figures say the same.
//!
//! tidy: long: half of it is tests

use crate::grid::{Grid, GridLine, Repeats};
use crate::study::PerformanceStudy;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use whichfs_decide::range;
use whichfs_decide::{FileError, Position};

/// The claims that ship with the program.
pub const CLAIMS: (&str, &str) = (
    "studies/claims.toml",
    include_str!("../../../studies/claims.toml"),
);

/// A conclusion of a study.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Claim {
    /// Study of ours that tests it.
    pub study: String,
    /// The conclusion in a sentence.
    pub text: String,
    /// Where it is said, or which published figures say it.
    pub source: String,
    /// What must hold, all of it; empty if no figure can test it.
    pub parts: Vec<ClaimPart>,
    /// Why it cannot be tested here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_testable: Option<String>,
    /// The likeliest reason of a contradiction, where one is known, and how it was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One comparison of figures.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimPart {
    /// Workload of the study.
    pub workload: String,
    /// Metric of that workload.
    pub metric: String,
    /// Card; without: on each card of the study.
    pub card: Option<String>,
    /// Variant; without: with each that both sides have.
    pub variant: Option<String>,
    /// The candidate that is better, or one of those that are alike.
    pub better: String,
    /// The candidate that is worse, or the other one of those that are alike.
    pub than: String,
    /// Variant of the other; without: the same.
    pub than_variant: Option<String>,
    /// Workload of the other; without: the same.
    pub than_workload: Option<String>,
    /// Metric of the other, in the same unit; without: the same.
    pub than_metric: Option<String>,
    /// Card of the other; without: the same.
    pub than_card: Option<String>,
    /// How many times better at least; below 1: how much worse at most; without: better at all.
    pub at_least: Option<f64>,
    /// They are alike instead: neither is more than so many times better.
    pub within: Option<f64>,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// Our figures say the same.
    Reproduced,
    /// They say something else.
    Contradicted,
    /// Some seeds say the same, others do not.
    NotDecided,
    /// The trials that would tell were not run here.
    NotRun,
    /// No figure of the lab can tell.
    NotTestable,
}

impl ClaimOutcome {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            ClaimOutcome::Reproduced => "reproduced",
            ClaimOutcome::Contradicted => "contradicted",
            ClaimOutcome::NotDecided => "not decided",
            ClaimOutcome::NotRun => "not run",
            ClaimOutcome::NotTestable => "not testable",
        }
    }
}

/// A claim's outcome and the figures behind it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Judgement {
    /// What became of it.
    pub outcome: ClaimOutcome,
    /// How many comparisons of figures were made.
    pub comparisons: usize,
    /// How many of them hold, by the median over the seeds.
    pub hold: usize,
    /// Seeds of the comparison that has the fewest; 0 if there is none.
    pub seeds: usize,
    /// The comparisons, a sentence each, or the reason.
    pub reasons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsFile {
    claim: Vec<ClaimFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    study: Spanned<String>,
    text: Spanned<String>,
    source: Spanned<String>,
    #[serde(default)]
    parts: Vec<Spanned<ClaimPart>>,
    not_testable: Option<String>,
    reason: Option<String>,
}

/// Reads the claims in `text`; what they name must be in one of `studies`.
///
/// # Errors
/// [`FileError`] with line, key and what is legal.
pub fn claims(
    file: &str,
    text: &str,
    studies: &[&PerformanceStudy],
) -> Result<Vec<Claim>, FileError> {
    let at = Position { file, text };
    let raw: ClaimsFile = at.read("[[claim]] with study, text, source and [[claim.parts]]")?;
    raw.claim
        .iter()
        .map(|claim| read(&at, claim, studies))
        .collect()
}

fn read(at: &Position, raw: &ClaimFile, studies: &[&PerformanceStudy]) -> Result<Claim, FileError> {
    let name = raw.study.get_ref();
    if raw.parts.is_empty() == raw.not_testable.is_none() {
        let found = "neither or both of parts and not_testable";
        return Err(at.error(&raw.text, "claim", found, "one of them"));
    }
    let claim = Claim {
        study: at.filled("claim.study", &raw.study)?,
        text: at.filled("claim.text", &raw.text)?,
        source: at.filled("claim.source", &raw.source)?,
        parts: raw
            .parts
            .iter()
            .map(|part| part.get_ref().clone())
            .collect(),
        not_testable: raw.not_testable.clone(),
        reason: raw.reason.clone(),
    };
    if claim.parts.is_empty() {
        return Ok(claim);
    }
    let Some(study) = studies.iter().find(|study| study.name == *name) else {
        let all: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
        return Err(at.error(
            &raw.study,
            "claim.study",
            format!("'{name}'"),
            &all.join(", "),
        ));
    };
    for part in &raw.parts {
        check(at, part, study)?;
    }
    Ok(claim)
}

/// Checks the names of a part, and its numbers.
fn check(
    at: &Position,
    part: &Spanned<ClaimPart>,
    study: &PerformanceStudy,
) -> Result<(), FileError> {
    let of = part.get_ref();
    let variants: Vec<&str> = study.variants.iter().map(|v| v.name.as_str()).collect();
    let candidates: Vec<&str> = study.candidates.iter().map(String::as_str).collect();
    let cards: Vec<&str> = study.cards.iter().map(String::as_str).collect();
    let loads: Vec<&str> = study
        .workloads
        .iter()
        .map(|load| load.name.as_str())
        .collect();
    let named = [
        ("workload", Some(&of.workload), &loads),
        ("better", Some(&of.better), &candidates),
        ("than", Some(&of.than), &candidates),
        ("card", of.card.as_ref(), &cards),
        ("than_card", of.than_card.as_ref(), &cards),
        ("variant", of.variant.as_ref(), &variants),
        ("than_variant", of.than_variant.as_ref(), &variants),
        ("than_workload", of.than_workload.as_ref(), &loads),
    ];
    for (key, name, legal) in named {
        if let Some(name) = name.filter(|name| !legal.contains(&name.as_str())) {
            let key = format!("claim.parts.{key}");
            return Err(at.error(part, &key, format!("'{name}'"), &legal.join(", ")));
        }
    }
    let legal = match (of.at_least, of.within) {
        (None, None) => true,
        (Some(least), None) => least.is_finite() && least > 0.0,
        (None, Some(within)) => within.is_finite() && within >= 1.0,
        (Some(_), Some(_)) => false,
    };
    match legal {
        true => Ok(()),
        false => Err(at.error(
            part,
            "claim.parts",
            format!("at_least {:?}, within {:?}", of.at_least, of.within),
            "one of them: at_least more than 0, or within at least 1",
        )),
    }
}

/// Judges `claim` by the tables of its study; a comparison that they do not have leaves it
/// untested.
pub fn judge_claim(claim: &Claim, tables: &[Grid]) -> Judgement {
    if let Some(why) = &claim.not_testable {
        return Judgement {
            outcome: ClaimOutcome::NotTestable,
            comparisons: 0,
            hold: 0,
            seeds: 0,
            reasons: vec![why.clone()],
        };
    }
    let (mut decided, mut lacks, mut reasons) = (Vec::new(), false, Vec::new());
    let (mut hold, mut seeds) = (0, usize::MAX);
    for part in &claim.parts {
        let ratios = ratios(part, tables);
        lacks |= ratios.is_empty();
        for found in ratios {
            decided.push(part.decided(&found));
            hold += usize::from(part.holds(found.ratio));
            seeds = seeds.min(found.seeds.len());
            reasons.push(part.sentence(&found));
        }
    }
    let outcome = match lacks {
        true => ClaimOutcome::NotRun,
        false if decided.contains(&Some(false)) => ClaimOutcome::Contradicted,
        false if decided.contains(&None) => ClaimOutcome::NotDecided,
        false => ClaimOutcome::Reproduced,
    };
    let mut comparisons = decided.len();
    if lacks {
        reasons = vec![format!("whichfs study run {}", claim.study)];
        (comparisons, hold, seeds) = (0, 0, 0);
    }
    if let Some(reason) = claim
        .reason
        .as_ref()
        .filter(|_| outcome == ClaimOutcome::Contradicted)
    {
        reasons.push(format!("likeliest reason: {reason}"));
    }
    Judgement {
        outcome,
        comparisons,
        hold,
        seeds,
        reasons,
    }
}

impl ClaimPart {
    /// Whether it holds: none if the seeds disagree.
    fn decided(&self, found: &Ratio) -> Option<bool> {
        let holds = self.holds(found.ratio);
        let all = found.seeds.iter().all(|ratio| self.holds(*ratio) == holds);
        all.then_some(holds)
    }

    fn holds(&self, ratio: f64) -> bool {
        match (self.within, self.at_least) {
            (Some(within), _) => ratio <= within && 1.0 / ratio <= within,
            (None, Some(least)) => ratio >= least,
            (None, None) => ratio > 1.0,
        }
    }

    fn sentence(&self, found: &Ratio) -> String {
        let than = match &self.than_variant {
            Some(variant) => format!("{}, {variant}", self.than),
            None => self.than.clone(),
        };
        let others = [&self.than_workload, &self.than_metric, &self.than_card];
        let others = others.into_iter().flatten();
        let than = others.fold(than, |than, other| format!("{than}, {other}"));
        let claimed = match (self.within, self.at_least) {
            (Some(within), _) => format!("alike within {within}"),
            (None, Some(least)) => format!("at least {least}"),
            (None, None) => "better".to_owned(),
        };
        let real = found.real.map_or(String::new(), |[least, most]| {
            format!("; with a real kernel's CPU time {}", range(least, most))
        });
        let seeds = match found.seeds[..] {
            [_] => ", one seed".to_owned(),
            [] => String::new(),
            _ => {
                let least = found.seeds.iter().copied().fold(f64::INFINITY, f64::min);
                let most = found.seeds.iter().copied().fold(0.0, f64::max);
                format!(", {} over {} seeds", range(least, most), found.seeds.len())
            }
        };
        format!(
            "{}, {}: {} {:.2} × {} (claimed: {claimed}){}{seeds}{real}",
            self.workload, self.metric, self.better, found.ratio, than, found.place
        )
    }
}

/// How many times one figure is better than another.
struct Ratio {
    /// Card and variant, after a comma.
    place: String,
    /// Times that the median over the seeds is better.
    ratio: f64,
    /// That of each seed that both have.
    seeds: Vec<f64>,
    /// What it would be, least and greatest, if the virtual CPU took a real kernel's time, where
    /// one of the figures is off for that.
    real: Option<[f64; 2]>,
}

/// How many times better `part.better` is, with each card and variant that the part is about.
fn ratios(part: &ClaimPart, tables: &[Grid]) -> Vec<Ratio> {
    let mut found = Vec::new();
    for grid in tables {
        let card = part.card.as_ref().is_none_or(|card| *card == grid.card);
        let loaded = |line: &&GridLine| load_of(grid, line) == part.workload;
        for line in grid.lines.iter().filter(loaded).filter(|_| card) {
            let variant = part.variant.as_ref().is_none_or(|v| *v == line.variant);
            if line.metric != part.metric || !variant {
                continue;
            }
            let Some((there, other)) = other(part, (grid, line), tables) else {
                continue;
            };
            let than = value(there, other, &part.than);
            if let Some((better, than)) = value(grid, line, &part.better).zip(than) {
                let times = |better: f64, than: f64| match line.lower_is_better {
                    true => than / better,
                    false => better / than,
                };
                let ratio = times(better.median, than.median);
                let of_seed = |(seed, figure): &(u64, f64)| {
                    let mut others = than.values.iter();
                    let (_, other) = others.find(|(other, _)| other == seed)?;
                    Some(times(*figure, *other))
                };
                let seeds = better.values.iter().filter_map(of_seed).collect();
                let doubted = better.doubt.is_some() || than.doubt.is_some();
                let [own, other] = [better, than].map(|figure| figure.doubt.unwrap_or([1.0; 2]));
                let real = [ratio * other[0] / own[1], ratio * other[1] / own[0]];
                let place = match line.variant.as_str() {
                    "" => format!(", {}", grid.card),
                    variant => format!(", {}, {variant}", grid.card),
                };
                found.push(Ratio {
                    place,
                    ratio,
                    seeds,
                    real: doubted.then_some(real),
                });
            }
        }
    }
    found
}

/// The workload of a line.
fn load_of<'a>(grid: &'a Grid, line: &'a GridLine) -> &'a str {
    match line.load.as_str() {
        "" => &grid.load,
        load => load,
    }
}

/// The line that `line` of `grid` is compared with, and its table.
fn other<'a>(
    part: &ClaimPart,
    (grid, line): (&Grid, &GridLine),
    tables: &'a [Grid],
) -> Option<(&'a Grid, &'a GridLine)> {
    let variant = part.than_variant.as_ref().unwrap_or(&line.variant);
    let metric = part.than_metric.as_ref().unwrap_or(&line.metric);
    let card = part.than_card.as_ref().unwrap_or(&grid.card);
    let load = part.than_workload.as_deref();
    let load = load.unwrap_or_else(|| load_of(grid, line));
    let mut lines = tables
        .iter()
        .filter(|there| there.card == *card && there.board == grid.board)
        .flat_map(|there| there.lines.iter().map(move |other| (there, other)));
    lines.find(|(there, other)| {
        (&other.metric, &other.variant) == (metric, variant) && load_of(there, other) == load
    })
}

fn value<'a>(grid: &Grid, line: &'a GridLine, candidate: &str) -> Option<&'a Repeats> {
    let at = grid.candidates.iter().position(|name| name == candidate)?;
    line.ours[at].as_ref()
}

#[cfg(test)]
mod tests;
