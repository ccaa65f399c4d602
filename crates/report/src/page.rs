//! One self-contained HTML page for a verdict: no script, no network, light and dark.
//!
//! From top to bottom it answers: which one; how sure; what it costs against the second;
//! what was excluded and by which rule; the picture of all candidates; each metric; the
//! card; what it ran on; how it was judged; how to apply it; how to reproduce it.
//! The template escapes every text; nothing is marked as safe.

use crate::chart::{Chart, chart};
use crate::excluded::{Group, groups};
use crate::number::{percent, scale_of, short, with_unit};
use crate::terminal::{bound, sentence, sureness, winner};
use askama::Template;
use serde::{Deserialize, Serialize};
use whichfs_study::{Grade, MetricInfo, Verdict};

/// A labelled figure with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is.
    pub label: String,
    /// Its value with unit.
    pub value: String,
    /// Where it comes from; empty where that is this program.
    pub source: String,
}

/// What a report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The verdict with all its figures.
    pub verdict: Verdict,
    /// Figures of the card's profile, each with its source.
    pub card: Vec<Item>,
    /// Board, clock, kernel, tools and their versions.
    pub environment: Vec<Item>,
    /// The exact command that gives this report again.
    pub reproduce: Vec<String>,
}

/// The page as HTML.
pub fn html(page: &Page) -> String {
    let view = View::of(page);
    view.render()
        .unwrap_or_else(|error| unreachable!("writing to a String cannot fail: {error}"))
}

#[derive(Template)]
#[template(path = "report.html")]
struct View<'a> {
    page: &'a Page,
    verdict: &'a Verdict,
    headline: String,
    sure: Vec<String>,
    reasons: Vec<String>,
    changes: Vec<String>,
    scores: Vec<Score>,
    against: Option<Against>,
    excluded: Vec<Group>,
    heads: Vec<Head>,
    heat: Vec<HeatRow>,
    charts: Vec<Chart>,
}

/// A candidate's place, ready to be shown.
struct Score {
    candidate: String,
    score: String,
    percent: String,
    p_best: String,
    ties: bool,
}

/// The winner beside the second.
struct Against {
    first: String,
    second: String,
    /// One sentence on the average.
    sentence: String,
    rows: Vec<AgainstRow>,
}

struct AgainstRow {
    label: String,
    first: String,
    second: String,
    words: String,
    wins: bool,
}

struct Head {
    label: String,
    unit: String,
    direction: &'static str,
    share: String,
}

struct HeatRow {
    candidate: String,
    score: String,
    cells: Vec<HeatCell>,
}

struct HeatCell {
    value: String,
    grade: &'static str,
    class: String,
}

impl<'a> View<'a> {
    fn of(page: &'a Page) -> View<'a> {
        let verdict = &page.verdict;
        let first = verdict.ranking.first();
        View {
            page,
            verdict,
            headline: winner(verdict),
            sure: sureness(verdict).iter().map(|text| bound(text)).collect(),
            reasons: first.map_or(Vec::new(), |f| {
                f.reasons.iter().map(|r| format!("{r}.")).collect()
            }),
            changes: verdict
                .changes
                .iter()
                .map(|c| format!("{}.", sentence(&c.text)))
                .collect(),
            scores: scores(verdict),
            against: against(verdict),
            excluded: groups(verdict),
            heads: verdict
                .metrics
                .iter()
                .map(|metric| head(verdict, metric))
                .collect(),
            heat: heat(verdict),
            charts: verdict
                .metrics
                .iter()
                .map(|metric| chart(verdict, metric))
                .collect(),
        }
    }
}

fn scores(verdict: &Verdict) -> Vec<Score> {
    let Some(best) = verdict.ranking.first() else {
        return Vec::new();
    };
    let each = verdict.ranking.iter().map(|ranked| Score {
        candidate: ranked.candidate.clone(),
        score: format!("{:.2}", ranked.score),
        percent: format!("{:.1}", ranked.score.clamp(0.0, 1.0) * 100.0),
        p_best: percent(ranked.p_best).replace('%', " %"),
        ties: best.ties_with.contains(&ranked.candidate),
    });
    each.collect()
}

fn against(verdict: &Verdict) -> Option<Against> {
    let (first, second) = (verdict.ranking.first()?, verdict.ranking.get(1)?);
    let row = |metric: &MetricInfo| {
        let own = first.figures.get(&metric.metric)?;
        let other = second.figures.get(&metric.metric)?;
        let gain = other.ratio / own.ratio;
        let words = match gain {
            g if g >= verdict.noise_floor => format!("{}× better", crate::number::times(g)),
            g if g <= 1.0 / verdict.noise_floor => {
                format!("{}× worse", crate::number::times(1.0 / g))
            }
            _ => "no difference".to_owned(),
        };
        Some(AgainstRow {
            label: metric.label.clone(),
            first: with_unit(own.value, &metric.unit),
            second: with_unit(other.value, &metric.unit),
            words,
            wins: gain >= verdict.noise_floor,
        })
    };
    let ratio = first.score / second.score.max(1e-9);
    let sentence = if first.ties_with.contains(&second.candidate) {
        format!(
            "{} cannot be told from {} on the weighted average ({ratio:.2} times behind).",
            second.candidate, first.candidate
        )
    } else {
        format!(
            "{} is {ratio:.2} times behind {} on the weighted average.",
            second.candidate, first.candidate
        )
    };
    Some(Against {
        first: first.candidate.clone(),
        second: second.candidate.clone(),
        sentence,
        rows: verdict.metrics.iter().filter_map(row).collect(),
    })
}

fn head(verdict: &Verdict, metric: &MetricInfo) -> Head {
    let unit = scale_of(verdict, &metric.metric, &metric.unit).unit;
    Head {
        label: metric.label.clone(),
        unit: if unit.is_empty() {
            "ratio".to_owned()
        } else {
            unit
        },
        direction: if metric.lower_is_better { "↓" } else { "↑" },
        share: format!("{:.0}", metric.share * 100.0),
    }
}

fn heat(verdict: &Verdict) -> Vec<HeatRow> {
    let scales: Vec<_> = verdict
        .metrics
        .iter()
        .map(|metric| scale_of(verdict, &metric.metric, &metric.unit))
        .collect();
    let rows = verdict.ranking.iter().map(|ranked| HeatRow {
        candidate: ranked.candidate.clone(),
        score: format!("{:.2}", ranked.score),
        cells: verdict
            .metrics
            .iter()
            .zip(&scales)
            .map(|(metric, scale)| {
                let figure = ranked.figures.get(&metric.metric);
                let grade = ranked.grades.get(&metric.metric).copied();
                HeatCell {
                    value: figure.map_or("none".into(), |f| short(f.value / scale.divisor)),
                    grade: grade.map_or("", Grade::name),
                    class: grade.map_or("none".into(), |grade| format!("g{}", grade as u8)),
                }
            })
            .collect(),
    });
    rows.collect()
}
