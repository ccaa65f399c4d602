//! Several runs side by side as one self-contained HTML page.
//!
//! From top to bottom: how much changed; the runs; for each later run what changed beyond noise,
//! filesystem by metric; every change as a bar; every figure; how it was judged; the command. The
//! page's script only filters; without it nothing is missing.

use crate::comparison::told;
use crate::number::with_unit;
use crate::policy::policy;
use askama::Template;
use whichfs_study::{Compared, Comparison, Meaning, RunChange, RunLine};
use whichfs_trial::{is_cpu_of_phase, metric_words};

const SCRIPT: &str = include_str!("../templates/compare.js");

/// Ratio at which a bar is as long as the drawing.
const FULL: f64 = 8.0;

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
    View::of(page)
        .render()
        .unwrap_or_else(|error| unreachable!("writing to a String cannot fail: {error}"))
}

#[derive(Template)]
#[template(path = "compare.html")]
struct View<'a> {
    page: &'a ComparisonPage<'a>,
    policy: String,
    script: &'static str,
    headline: String,
    sentence: String,
    runs: Vec<RunHead>,
    maps: Vec<Map>,
    lines: Vec<LineRow>,
}

/// A run and what all its rows have in common.
struct RunHead {
    number: usize,
    name: String,
    cards: String,
    kernels: String,
    clocks: String,
    rows: usize,
}

/// One run beside the first.
struct Map {
    number: usize,
    name: String,
    sentence: String,
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
    /// Of each later run: words, colour, and on what that rests.
    changes: Vec<(String, &'static str, String)>,
}

impl<'a> View<'a> {
    fn of(page: &'a ComparisonPage<'a>) -> View<'a> {
        let comparison = page.comparison;
        let later = comparison.runs.iter().enumerate().skip(1);
        let failing = comparison.failures(page.fail_over).len();
        let percent = page.fail_over * 100.0;
        View {
            page,
            policy: policy(SCRIPT),
            script: SCRIPT,
            headline: headline(comparison),
            sentence: match failing {
                0 => format!("Nothing is worse by more than {percent:.0} % beyond noise, or gone."),
                1 => {
                    format!("1 figure is worse by more than {percent:.0} % beyond noise, or gone.")
                }
                n => {
                    format!(
                        "{n} figures are worse by more than {percent:.0} % beyond noise, or gone."
                    )
                }
            },
            runs: comparison.runs.iter().enumerate().map(run_head).collect(),
            maps: later.map(|(at, run)| map(comparison, at, run)).collect(),
            lines: comparison.lines.iter().map(line_row).collect(),
        }
    }
}

/// How many figures of all later runs changed, in a few words.
fn headline(comparison: &Comparison) -> String {
    let changes = || comparison.lines.iter().flat_map(|line| &line.changes);
    let count = |wanted| changes().flatten().filter(|c| c.meaning == wanted).count();
    let gone = changes().filter(|change| change.is_none()).count();
    let parts = [
        (count(Meaning::Worse), "worse"),
        (count(Meaning::Better), "better"),
        (count(Meaning::Other), "changed, neither better nor worse"),
        (gone, "in one run only"),
    ];
    let said: Vec<String> = (parts.iter())
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match said.is_empty() {
        true => "Nothing changed beyond noise".to_owned(),
        false => format!("{} of {} figures", said.join(", "), changes().count()),
    }
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
        rows: run.rows,
    }
}

/// Run `at` beside the first: only rows and columns in which something changed.
fn map(comparison: &Comparison, at: usize, run: &RunLine) -> Map {
    let changed = |line: &&Compared| is_change(line.changes[at - 1].as_ref());
    let lines: Vec<&Compared> = comparison.lines.iter().filter(changed).collect();
    let mut metrics: Vec<&str> = lines.iter().map(|line| line.metric.as_str()).collect();
    metrics.sort_by_key(|metric| (is_cpu_of_phase(metric), *metric));
    metrics.dedup();
    let mut names: Vec<String> = lines.iter().map(|line| name(line)).collect();
    names.sort();
    names.dedup();
    let cell = |row: &str, metric: &str| {
        let mut all = comparison.lines.iter();
        match all.find(|line| name(line) == row && line.metric == metric) {
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
    let same = comparison.lines.len() - lines.len();
    Map {
        number: at + 1,
        name: run.name.clone(),
        sentence: format!(
            "{} of {} figures changed; {same} are the same within noise.",
            lines.len(),
            comparison.lines.len()
        ),
        heads: metrics.iter().map(|metric| metric_words(metric)).collect(),
        rows: names.into_iter().map(row).collect(),
        bars: lines.iter().map(|line| change_bar(line, at)).collect(),
    }
}

fn is_change(change: Option<&RunChange>) -> bool {
    change.is_none_or(|change| change.meaning != Meaning::Same)
}

/// Filesystem, with the card and the workload where those are told apart.
fn name(line: &Compared) -> String {
    let card = match line.card.as_str() {
        "" => String::new(),
        card => format!("{card}: "),
    };
    format!("{card}{}, {}", line.candidate, line.workload)
}

fn value(line: &Compared, at: usize) -> String {
    let value = line.values.get(at).copied().flatten();
    value.map_or("–".to_owned(), |value| with_unit(value, &line.unit))
}

fn map_cell(line: &Compared, at: usize) -> MapCell {
    let change = line.changes[at - 1].as_ref();
    MapCell {
        value: value(line, at),
        change: words(line, at),
        class: class(change),
    }
}

/// What run `at` is beside the first.
fn words(line: &Compared, at: usize) -> String {
    match (&line.changes[at - 1], line.values[0]) {
        (Some(change), _) => told(change),
        (None, None) => "new".to_owned(),
        (None, Some(_)) => "gone".to_owned(),
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

fn change_bar(line: &Compared, at: usize) -> ChangeBar {
    let change = line.changes[at - 1].as_ref();
    let ratio = change.map_or(1.0, |change| change.worse);
    // The middle is no change, each edge eight times; the scale is logarithmic.
    let half = (ratio.ln() / FULL.ln()).clamp(-1.0, 1.0) * 50.0;
    ChangeBar {
        name: name(line),
        metric: metric_words(&line.metric),
        text: format!("{} → {}", value(line, 0), value(line, at)),
        change: words(line, at),
        class: class(change),
        begin: format!("{:.2}", 50.0 + half.min(0.0)),
        width: format!("{:.2}", half.abs().max(0.3)),
    }
}

fn line_row(line: &Compared) -> LineRow {
    let change = |at: usize| {
        let change = line.changes[at].as_ref();
        let rests = change.map_or(String::new(), |change| {
            let noise = (change.noise - 1.0) * 100.0;
            format!("noise {noise:.0} %, {} seeds in both", change.pairs)
        });
        (words(line, at + 1), class(change), rests)
    };
    LineRow {
        name: name(line),
        metric: metric_words(&line.metric),
        values: (0..line.values.len()).map(|at| value(line, at)).collect(),
        changes: (0..line.changes.len()).map(change).collect(),
    }
}
