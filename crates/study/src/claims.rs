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
    /// How many times better at least; without: better at all.
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
    let legal = |number: Option<f64>| number.is_none_or(|n| n.is_finite() && n >= 1.0);
    match (of.at_least.is_some() && of.within.is_some()) || !legal(of.at_least) || !legal(of.within)
    {
        true => Err(at.error(
            part,
            "claim.parts",
            format!("at_least {:?}, within {:?}", of.at_least, of.within),
            "one of them, at least 1",
        )),
        false => Ok(()),
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A value of each seed, from 1; the one in the middle is their median.
    fn repeats(values: &[f64]) -> Option<Repeats> {
        Some(Repeats {
            values: (1..).zip(values.iter().copied()).collect(),
            median: values[values.len() / 2],
            doubt: None,
        })
    }

    fn tables() -> Vec<Grid> {
        let line = |metric: &str, lower_is_better, values: [f64; 2]| GridLine {
            metric: metric.into(),
            unit: "x".into(),
            lower_is_better,
            variant: "sync".into(),
            load: String::new(),
            ours: values.map(|value| repeats(&[value])).to_vec(),
            published: Vec::new(),
            tau_b: None,
        };
        vec![Grid {
            card: "c".into(),
            board: "b".into(),
            load: "tree".into(),
            candidates: vec!["ext4".into(), "vfat".into()],
            lines: vec![
                line("mount", true, [2.0, 5.0]),
                line("write", false, [9.0, 10.0]),
            ],
            orders: Vec::new(),
        }]
    }

    fn claim(part: ClaimPart) -> Claim {
        Claim {
            study: "s".into(),
            text: "t".into(),
            source: "x".into(),
            parts: vec![part],
            not_testable: None,
            reason: None,
        }
    }

    fn part(metric: &str, at_least: Option<f64>, within: Option<f64>) -> ClaimPart {
        ClaimPart {
            workload: "tree".into(),
            metric: metric.into(),
            card: None,
            variant: None,
            better: "ext4".into(),
            than: "vfat".into(),
            than_variant: None,
            than_workload: None,
            than_metric: None,
            than_card: None,
            at_least,
            within,
        }
    }

    #[test]
    fn every_claim_is_a_row_of_the_document() {
        let rows = include_str!("../../../docs/seeds.md");
        let claims: ClaimsFile = toml::from_str(CLAIMS.1).unwrap();
        for claim in &claims.claim {
            let (text, study) = (claim.text.get_ref(), claim.study.get_ref());
            let row = format!("| {text} | `study run {study}` |");
            assert!(rows.contains(&row), "docs/seeds.md lacks: {row}");
        }
    }

    #[test]
    fn figures_reproduce_or_contradict() {
        let outcome = |part: ClaimPart| judge_claim(&claim(part), &tables()).outcome;
        assert_eq!(outcome(part("mount", None, None)), ClaimOutcome::Reproduced);
        assert_eq!(
            outcome(part("mount", Some(2.5), None)),
            ClaimOutcome::Reproduced
        );
        assert_eq!(
            outcome(part("mount", Some(2.6), None)),
            ClaimOutcome::Contradicted
        );
        assert_eq!(
            outcome(part("write", None, None)),
            ClaimOutcome::Contradicted
        );
        assert_eq!(
            outcome(part("write", None, Some(1.2))),
            ClaimOutcome::Reproduced
        );
        assert_eq!(
            outcome(part("write", None, Some(1.1))),
            ClaimOutcome::Contradicted
        );
        assert_eq!(outcome(part("read", None, None)), ClaimOutcome::NotRun);
        let other = ClaimPart {
            card: Some("other".into()),
            ..part("mount", None, None)
        };
        assert_eq!(outcome(other), ClaimOutcome::NotRun);
        let mounts = |than_variant: &str| ClaimPart {
            than: "ext4".into(),
            than_variant: Some(than_variant.into()),
            ..part("mount", None, Some(1.0))
        };
        assert_eq!(outcome(mounts("sync")), ClaimOutcome::Reproduced);
        assert_eq!(outcome(mounts("async")), ClaimOutcome::NotRun);
        let said = judge_claim(&claim(part("mount", Some(2.0), None)), &tables());
        let expected = "tree, mount: ext4 2.50 × vfat (claimed: at least 2), c, sync, one seed";
        assert_eq!(said.reasons, [expected]);
        assert_eq!((said.hold, said.comparisons, said.seeds), (1, 1, 1));
        let mut two = claim(part("mount", Some(2.0), None));
        two.parts.push(part("mount", Some(2.6), None));
        let said = judge_claim(&two, &tables());
        assert_eq!((said.hold, said.comparisons, said.seeds), (1, 2, 1));
    }

    #[test]
    fn a_figure_that_is_off_says_what_the_ratio_would_be() {
        let mut tables = tables();
        let of = |tables: &[Grid]| judge_claim(&claim(part("write", Some(2.0), None)), tables);
        assert!(!of(&tables).reasons[0].contains("real kernel"));
        for ours in tables[0].lines[1].ours.iter_mut().flatten().take(1) {
            ours.doubt = Some([1.25, 2.0]);
        }
        let said = of(&tables);
        assert!(
            said.reasons[0].ends_with("; with a real kernel's CPU time 0.45 to 0.72"),
            "{said:?}"
        );
    }

    #[test]
    fn workloads_of_one_table_can_be_compared() {
        let mut tables = tables();
        tables[0].lines[1].load = "4K".into();
        let mut slower = tables[0].lines[1].clone();
        slower.load = "256K".into();
        slower.ours[0] = repeats(&[3.0]);
        tables[0].lines.push(slower);
        let than = |workload: &str| ClaimPart {
            workload: "4K".into(),
            than: "ext4".into(),
            than_workload: Some(workload.into()),
            ..part("write", Some(3.0), None)
        };
        let said = judge_claim(&claim(than("256K")), &tables);
        assert_eq!(said.outcome, ClaimOutcome::Reproduced);
        assert!(
            said.reasons[0].contains("ext4 3.00 × ext4, 256K"),
            "{:?}",
            said.reasons
        );
        assert_eq!(
            judge_claim(&claim(than("1M")), &tables).outcome,
            ClaimOutcome::NotRun
        );
    }

    #[test]
    fn seeds_that_disagree_decide_nothing() {
        let outcome = |ext4: &[f64], vfat: &[f64]| {
            let mut tables = super::tests::tables();
            tables[0].lines[1].ours = vec![repeats(ext4), repeats(vfat)];
            judge_claim(&claim(part("write", None, None)), &tables)
        };
        let sure = outcome(&[2.0, 3.0, 4.0], &[1.0, 1.0, 1.0]);
        assert_eq!(sure.outcome, ClaimOutcome::Reproduced);
        assert!(
            sure.reasons[0].ends_with("sync, 2.00 to 4.00 over 3 seeds"),
            "{sure:?}"
        );
        let unsure = outcome(&[0.5, 3.0, 4.0], &[1.0, 1.0, 1.0]);
        assert_eq!(unsure.outcome, ClaimOutcome::NotDecided);
        let against = outcome(&[0.5, 0.6, 0.7], &[1.0, 1.0, 1.0]);
        assert_eq!(against.outcome, ClaimOutcome::Contradicted);
    }

    #[test]
    fn metrics_and_cards_can_be_compared_and_a_contradiction_has_its_reason() {
        let mut tables = tables();
        tables.extend(super::tests::tables());
        tables[1].card = "d".into();
        tables[1].lines[1].ours[0] = repeats(&[3.0]);
        let other_card = ClaimPart {
            card: Some("c".into()),
            than: "ext4".into(),
            than_card: Some("d".into()),
            ..part("write", Some(3.0), None)
        };
        let said = judge_claim(&claim(other_card), &tables);
        assert_eq!(said.outcome, ClaimOutcome::Reproduced, "{said:?}");
        let other_metric = ClaimPart {
            than: "ext4".into(),
            than_metric: Some("mount".into()),
            ..part("write", Some(9.0), None)
        };
        let mut told = claim(other_metric);
        told.reason = Some("a cache".into());
        let said = judge_claim(&told, &tables);
        assert_eq!(said.outcome, ClaimOutcome::Contradicted);
        assert!(
            said.reasons[0].contains("ext4 4.50 × ext4, mount"),
            "{said:?}"
        );
        assert_eq!(said.reasons.last().unwrap(), "likeliest reason: a cache");
    }

    #[test]
    fn what_cannot_be_tested_says_why() {
        let text = "[[claim]]\nstudy = \"s\"\ntext = \"t\"\nsource = \"x\"\n";
        let why = format!("{text}not_testable = \"because\"\n");
        let read = claims("c.toml", &why, &[]).unwrap();
        let said = judge_claim(&read[0], &tables());
        assert_eq!(
            (said.outcome, said.reasons),
            (ClaimOutcome::NotTestable, vec!["because".into()])
        );
        let error = claims("c.toml", text, &[]).unwrap_err().to_string();
        assert!(
            error.contains("c.toml:3") && error.contains("parts"),
            "{error}"
        );
    }
}
