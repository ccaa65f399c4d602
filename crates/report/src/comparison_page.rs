//! Several runs side by side as one self-contained HTML page.
//!
//! From top to bottom: what stopped working and how much changed; who wins now; the runs; for each
//! later run what changed beyond noise, filesystem by metric; every change as a bar; every figure
//! with its samples; the trials; how it was judged; the command. The page's script only filters;
//! without it nothing is missing.

use crate::comparison::{told, words};
use crate::comparison_told::{Halt, halts, places, show, shows, undecided, winner};
use crate::number::with_unit;
use crate::policy::policy;
use crate::text::cut;
use askama::Template;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_decide::FigureOrigin;
use whichfs_study::{
    AnswerChange, Cause, ComparedMetric, Comparison, Meaning, RunChange, RunLine, Taken, Was,
};
use whichfs_trial::{is_use_of_phase, metric_words};
use whichfs_units::counted;

const SCRIPT: &str = include_str!("../templates/compare.js");

/// Ratio at which a bar is as long as the drawing.
const FULL: f64 = 8.0;

/// Characters of the headline.
const HEADLINE: usize = 160;

/// Samples shown of a figure; the others are in the runs' own files.
const SAMPLES: usize = 8;

/// What the page of a comparison says.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonPage<'a> {
    /// The runs side by side.
    pub comparison: &'a Comparison,
    /// Share by which a figure may be worse (0.1 is 10 %), beyond noise.
    pub fail_over: f64,
    /// The command that gives this page again.
    pub reproduce: String,
}

/// The page as HTML.
pub fn comparison_html(page: &ComparisonPage) -> String {
    crate::text::rendered(&View::of(page))
}

#[derive(Template)]
#[template(path = "compare.html")]
struct View<'a> {
    page: &'a ComparisonPage<'a>,
    policy: String,
    script: &'static str,
    headline: String,
    sentence: String,
    halts: Vec<HaltView>,
    answers: Vec<AnswerView>,
    undecided: Option<String>,
    runs: Vec<RunHead>,
    maps: Vec<Map>,
    lines: Vec<LineRow>,
    trials: Vec<TrialsRow>,
}

/// What stopped working, and the commands that show its trials.
struct HaltView {
    sentence: String,
    gone: String,
    commands: Vec<String>,
}

/// Who wins in a later run beside the first; filesystem, score, probability, whether they changed.
struct AnswerView {
    sentence: String,
    rows: Vec<(String, [String; 2], bool)>,
}

/// The trials of a filesystem in a run, and the command that shows one.
struct TrialsRow {
    name: String,
    run: usize,
    /// Seed and beginning of the id.
    trials: Vec<(String, String)>,
    command: String,
}

/// A run and what all its rows have in common.
struct RunHead {
    number: usize,
    name: String,
    cards: String,
    kernels: String,
    clocks: String,
    /// Where its figures come from.
    stamp: &'static str,
    rows: usize,
}

/// One run beside the first.
struct Map {
    number: usize,
    name: String,
    sentences: Vec<String>,
    heads: Vec<String>,
    rows: Vec<MapRow>,
    bars: Vec<ChangeBar>,
}

struct MapRow {
    name: String,
    cells: Vec<MapCell>,
}

struct MapCell {
    value: String,
    change: String,
    class: &'static str,
}

/// One change: to the right of the middle what is worse, to the left what is better.
struct ChangeBar {
    name: String,
    metric: String,
    text: String,
    change: String,
    class: &'static str,
    /// Begin and length in percent of the drawing.
    begin: String,
    width: String,
}

/// A figure in all runs.
struct LineRow {
    name: String,
    metric: String,
    values: Vec<String>,
    /// Of each run, where there are several.
    samples: Vec<String>,
    /// Of each later run: words, colour, and on what that rests.
    changes: Vec<(String, &'static str, String)>,
}

impl<'a> View<'a> {
    fn of(page: &'a ComparisonPage<'a>) -> View<'a> {
        let comparison = page.comparison;
        let names = Names::of(comparison);
        let later = comparison.runs.iter().enumerate().skip(1);
        let line = |line: &ComparedMetric| line_row(line, &names);
        View {
            page,
            policy: policy(SCRIPT),
            script: SCRIPT,
            headline: headline(comparison),
            sentence: sentence(comparison, page.fail_over),
            halts: halts(comparison)
                .iter()
                .map(|halt| halt_view(comparison, halt))
                .collect(),
            answers: comparison.answers.iter().map(answer_view).collect(),
            undecided: undecided(comparison),
            trials: trials(comparison, &names),
            runs: comparison.runs.iter().enumerate().map(run_head).collect(),
            maps: later
                .map(|(at, run)| map(comparison, &names, at, run))
                .collect(),
            lines: comparison.lines.iter().map(line).collect(),
        }
    }
}

/// Which parts of a line's place have to be told.
struct Names {
    workloads: bool,
}

impl Names {
    fn of(comparison: &Comparison) -> Names {
        let mut lines = comparison.lines.iter();
        let first = lines.next().map(|line| &line.workload);
        Names {
            workloads: lines.any(|line| Some(&line.workload) != first),
        }
    }

    /// Filesystem, with the card and the workload where those are told apart.
    fn of_line(&self, line: &ComparedMetric) -> String {
        let card = match line.card.as_str() {
            "" => String::new(),
            card => format!("{card}: "),
        };
        match self.workloads {
            true => format!("{card}{}, {}", line.candidate, line.workload),
            false => format!("{card}{}", line.candidate),
        }
    }
}

fn halt_view(comparison: &Comparison, halt: &Halt) -> HaltView {
    let each = halt.all.iter();
    let gone: usize = each.clone().map(|one| one.gone).sum();
    HaltView {
        sentence: halt.sentence.clone(),
        gone: match gone {
            0 => String::new(),
            gone => format!("{} gone with it.", counted(gone, "figure")),
        },
        commands: each.flat_map(|one| shows(comparison, one)).collect(),
    }
}

fn answer_view(change: &AnswerChange) -> AnswerView {
    let places = places(change).into_iter();
    AnswerView {
        sentence: winner(change),
        rows: places
            .map(|(one, told)| (one.candidate.clone(), told, one.changed()))
            .collect(),
    }
}

/// The trials behind the figures of each filesystem, run by run, and those that failed.
fn trials(comparison: &Comparison, names: &Names) -> Vec<TrialsRow> {
    let mut all: BTreeMap<(String, usize), BTreeSet<(String, String)>> = BTreeMap::new();
    for line in &comparison.lines {
        for (at, samples) in line.samples.iter().enumerate() {
            let own = all.entry((names.of_line(line), at)).or_default();
            let each = samples.iter().filter(|one| !one.trial.is_empty());
            own.extend(each.map(|one| (format!("seed {}", one.seed), one.trial.clone())));
        }
    }
    for one in &comparison.stopped {
        let own = all.entry((crate::comparison_told::name(one), one.run - 1));
        let failed = one.ids.iter();
        let failed = failed.map(|id| ("failed".to_owned(), id.clone()));
        own.or_default().extend(failed);
    }
    let row = |((name, at), trials): ((String, usize), BTreeSet<(String, String)>)| {
        let run = comparison.runs.get(at);
        let first = trials.first().map_or("", |(_, id)| id.as_str());
        TrialsRow {
            command: show(run, first).unwrap_or_default(),
            name,
            run: at + 1,
            trials: trials.into_iter().collect(),
        }
    };
    let rows = all.into_iter().map(row);
    rows.filter(|row| !row.trials.is_empty()).collect()
}

/// What stopped working; if nothing did, how many figures got worse and better.
fn headline(comparison: &Comparison) -> String {
    // What was not tried need not be broken.
    let broken = |halt: &&Halt| {
        let mut all = halt.all.iter();
        all.any(|one| one.was == Was::Worked && one.cause != Cause::Absent)
    };
    let halts = halts(comparison);
    let mut told = halts.iter().filter(broken);
    match (told.next(), told.count()) {
        (None, _) => changes(comparison),
        (Some(first), 0) => cut(&first.sentence, HEADLINE),
        (Some(first), more) => format!(
            "{} (and {more} more, below)",
            cut(&first.sentence, HEADLINE)
        ),
    }
}

/// How many figures of all later runs got worse and better.
fn changes(comparison: &Comparison) -> String {
    let changes = comparison.lines.iter().flat_map(|line| &line.changes);
    let count = |wanted| {
        changes
            .clone()
            .flatten()
            .filter(|c| c.meaning == wanted)
            .count()
    };
    match (count(Meaning::Worse), count(Meaning::Better)) {
        (0, 0) => "Nothing is better or worse beyond noise".to_owned(),
        (0, better) => format!("{} better, none worse", counted(better, "figure")),
        (worse, 0) => format!("{} worse, none better", counted(worse, "figure")),
        (worse, better) => format!("{} worse, {better} better", counted(worse, "figure")),
    }
}

/// How many of these are worse by more than `share`, and how many figures are gone: what
/// `--fail-over` fails at.
fn sentence(comparison: &Comparison, share: f64) -> String {
    let percent = share * 100.0;
    let each =
        || (comparison.lines.iter()).flat_map(|line| line.changes.iter().map(move |c| (line, c)));
    let beyond = each().filter(|(_, change)| {
        change.is_some_and(|c| c.meaning == Meaning::Worse && c.worse > 1.0 + share)
    });
    let gone = each().filter(|(line, change)| change.is_none() && line.values[0].is_some());
    let told = match comparison.broken().next() {
        Some(_) => format!("{}. ", changes(comparison)),
        None => String::new(),
    };
    let counts = match (beyond.count(), gone.count()) {
        (0, 0) => format!("None is worse by more than {percent:.0} %, and none is gone."),
        (worse, 0) => format!("{worse} worse by more than {percent:.0} %; none is gone."),
        (worse, gone) => format!("{worse} worse by more than {percent:.0} %; {gone} gone."),
    };
    format!("{told}{counts}")
}

fn run_head((at, run): (usize, &RunLine)) -> RunHead {
    let [cards, kernels, clocks] =
        [&run.cards, &run.kernels, &run.clocks].map(|all| all.join(", "));
    RunHead {
        number: at + 1,
        name: run.name.clone(),
        cards,
        kernels,
        clocks,
        stamp: match run.rows > 0 && run.clocks.iter().all(|clock| clock == "real") {
            true => FigureOrigin::Measured.word(),
            false if run.rows == 0 => "–",
            false => FigureOrigin::Modelled.word(),
        },
        rows: run.rows,
    }
}

/// Run `at` beside the first: only rows and columns in which something changed.
fn map(comparison: &Comparison, names: &Names, at: usize, run: &RunLine) -> Map {
    let changed: Vec<&ComparedMetric> = (comparison.lines.iter())
        .filter(|line| changed(line, at).is_some())
        .collect();
    let mut metrics: Vec<&str> = changed.iter().map(|line| line.metric.as_str()).collect();
    metrics.sort_by_key(|metric| (is_use_of_phase(metric), *metric));
    metrics.dedup();
    let mut rows: Vec<String> = changed.iter().map(|line| names.of_line(line)).collect();
    rows.sort();
    rows.dedup();
    let cell = |row: &str, metric: &str| {
        let mut all = comparison.lines.iter();
        match all.find(|line| names.of_line(line) == row && line.metric == metric) {
            Some(line) => map_cell(line, at),
            None => MapCell {
                value: "–".to_owned(),
                change: String::new(),
                class: "none",
            },
        }
    };
    let row = |row: String| MapRow {
        cells: metrics.iter().map(|metric| cell(&row, metric)).collect(),
        name: row,
    };
    Map {
        number: at + 1,
        name: run.name.clone(),
        sentences: sentences(comparison, names, at, changed.len()),
        heads: metrics.iter().map(|metric| metric_words(metric)).collect(),
        rows: rows.into_iter().map(row).collect(),
        bars: bars(&changed, names, at),
    }
}

/// How much changed in run `at`, and what only one of the two has.
fn sentences(comparison: &Comparison, names: &Names, at: usize, changed: usize) -> Vec<String> {
    let both = |line: &&ComparedMetric| line.changes[at - 1].is_some();
    let all = comparison.lines.iter().filter(both).count();
    let all = counted(all, "figure");
    let mut said = vec![match changed {
        0 => format!("Of {all} that both runs have, none changed beyond noise."),
        n => format!("Of {all} that both runs have, {n} changed beyond noise."),
    }];
    let only = |with: usize, without: usize| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in &comparison.lines {
            if line.values[with].is_some() && line.values[without].is_none() {
                *counts.entry(names.of_line(line)).or_default() += 1;
            }
        }
        let each = counts.iter();
        let each = each.map(|(name, count)| format!("{name} ({})", counted(*count, "figure")));
        each.collect::<Vec<_>>().join(", ")
    };
    for (what, names) in [("Gone", only(0, at)), ("New", only(at, 0))] {
        if !names.is_empty() {
            said.push(format!("{what}: {names}."));
        }
    }
    said
}

/// The change of run `at`, if it is one.
fn changed(line: &ComparedMetric, at: usize) -> Option<&RunChange> {
    let change = line.changes[at - 1].as_ref();
    change.filter(|change| change.meaning != Meaning::Same)
}

fn value(line: &ComparedMetric, at: usize) -> String {
    let value = line.values.get(at).copied().flatten();
    value.map_or("–".to_owned(), |value| with_unit(value, &line.unit))
}

fn map_cell(line: &ComparedMetric, at: usize) -> MapCell {
    let change = line.changes[at - 1].as_ref();
    MapCell {
        value: value(line, at),
        change: words(line, at),
        class: class(change),
    }
}

/// Colour of a change.
fn class(change: Option<&RunChange>) -> &'static str {
    let Some(change) = change else { return "none" };
    match (change.meaning, change.worse) {
        (Meaning::Same, _) => "",
        (Meaning::Other, _) => "other",
        (Meaning::Worse, ratio) if ratio >= 2.0 => "worse much",
        (Meaning::Worse, _) => "worse",
        (Meaning::Better, ratio) if ratio <= 0.5 => "better much",
        (Meaning::Better, _) => "better",
    }
}

/// What got worse first, the most worse at the head; what is neither last.
fn bars(changed: &[&ComparedMetric], names: &Names, at: usize) -> Vec<ChangeBar> {
    let mut each: Vec<(&ComparedMetric, &RunChange)> = (changed.iter())
        .filter_map(|line| Some((*line, line.changes[at - 1].as_ref()?)))
        .collect();
    each.sort_by(|(_, a), (_, b)| {
        let other = |change: &RunChange| change.meaning == Meaning::Other;
        other(a).cmp(&other(b)).then(b.worse.total_cmp(&a.worse))
    });
    let bar = |(line, change): (&ComparedMetric, &RunChange)| {
        // The middle is no change, each edge eight times; the scale is logarithmic.
        let half = (change.worse.ln() / FULL.ln()).clamp(-1.0, 1.0) * 50.0;
        ChangeBar {
            name: names.of_line(line),
            metric: metric_words(&line.metric),
            text: format!("{} → {}", value(line, 0), value(line, at)),
            change: told(change),
            class: class(Some(change)),
            begin: format!("{:.2}", 50.0 + half.min(0.0)),
            width: format!("{:.2}", half.abs().max(0.3)),
        }
    };
    each.into_iter().map(bar).collect()
}

/// The samples of a figure, if there are several.
fn samples(line: &ComparedMetric, own: &[Taken]) -> String {
    if own.len() < 2 {
        return String::new();
    }
    let told = own.iter().take(SAMPLES);
    let told: Vec<String> = told.map(|one| with_unit(one.value, &line.unit)).collect();
    match own.len().saturating_sub(SAMPLES) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

fn line_row(line: &ComparedMetric, names: &Names) -> LineRow {
    let change = |at: usize| {
        let change = line.changes[at].as_ref();
        let rests = change.map_or(String::new(), |change| {
            let noise = (change.noise - 1.0) * 100.0;
            format!(
                "noise {noise:.0} %, {} in both",
                counted(change.pairs, "seed")
            )
        });
        (words(line, at + 1), class(change), rests)
    };
    LineRow {
        name: names.of_line(line),
        metric: metric_words(&line.metric),
        values: (0..line.values.len()).map(|at| value(line, at)).collect(),
        samples: line.samples.iter().map(|own| samples(line, own)).collect(),
        changes: (0..line.changes.len()).map(change).collect(),
    }
}
