//! The page of a study with trials as HTML.
//!
//! From top to bottom: the question, who is best how often, the method; for each card, board
//! and workload a table and bars for each metric, published figures beside ours; what was left
//! out; reproduction.

use crate::documents::study::{GainTable, SCATTER_HEAD};
use crate::number::with_unit;
use crate::page::Item;
use askama::Template;
use std::borrow::Cow;
use std::collections::BTreeMap;
use whichfs_decide::{FigureOrigin, Grade};
use whichfs_study::{Grid, GridLine, Repeats};
use whichfs_units::counted;

/// Classes of the grades, best first.
const CLASSES: [&str; Grade::ALL.len()] = ["g0", "g1", "g2", "g3", "g4", "g5"];

/// What the page of a study says.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyPage<'a> {
    /// Modelled or measured.
    pub origin: FigureOrigin,
    /// The study's question in one line.
    pub title: &'a str,
    /// Where the experiment comes from.
    pub source: &'a str,
    /// Paragraphs of its method.
    pub method: Vec<String>,
    /// What the user calls the run by: keys and values.
    pub labels: &'a [(String, String)],
    /// A table for each card, board and workload.
    pub tables: Cow<'a, [Grid]>,
    /// What is compared, if the study compares.
    pub gains: Vec<GainTable>,
    /// How much units differ, a row for each figure; empty where the study ran on one.
    pub scatter: Vec<Vec<String>>,
    /// What is to be known of them: left out, failed, caveats.
    pub notes: Vec<String>,
    /// Versions, seeds.
    pub environment: Vec<Item>,
    /// Command line that runs the study again.
    pub reproduce: String,
}

/// The page as HTML.
pub fn study_html(page: &StudyPage) -> String {
    crate::text::rendered(&View::of(page))
}

#[derive(Template)]
#[template(path = "study.html")]
struct View<'a> {
    page: &'a StudyPage<'a>,
    best: Vec<String>,
    grids: Vec<GridView<'a>>,
    published: bool,
    doubted: bool,
    scatter_head: &'static [&'static str],
}

struct GridView<'a> {
    grid: &'a Grid,
    id: usize,
    tau: bool,
    lines: Vec<LineView<'a>>,
}

struct LineView<'a> {
    line: &'a GridLine,
    /// Metric and mount.
    label: String,
    cells: Vec<Cell>,
    published: Vec<String>,
    tau: String,
    bars: Vec<Bar>,
}

struct Cell {
    text: String,
    shade: &'static str,
    spread: String,
}

struct Bar {
    name: String,
    text: String,
    percent: String,
    best: bool,
    dots: Vec<String>,
    /// Place and text of the published figure.
    published: Option<(String, String)>,
}

impl<'a> View<'a> {
    fn of(page: &'a StudyPage<'a>) -> View<'a> {
        let lines = || page.tables.iter().flat_map(|grid| &grid.lines);
        View {
            page,
            best: best(&page.tables),
            grids: page.tables.iter().enumerate().map(grid_view).collect(),
            published: lines().any(|line| !line.published.is_empty()),
            doubted: lines().any(GridLine::is_doubted),
            scatter_head: &SCATTER_HEAD,
        }
    }
}

/// How often each candidate is the best, most often first, for each workload.
fn best(tables: &[Grid]) -> Vec<String> {
    let mut loads: Vec<&str> = Vec::new();
    for grid in tables {
        if !loads.contains(&grid.load.as_str()) {
            loads.push(&grid.load);
        }
    }
    let sentence = |load: &str| {
        let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all = 0_usize;
        for grid in tables.iter().filter(|grid| grid.load == load) {
            for line in &grid.lines {
                let Some(best) = line.best() else { continue };
                all += 1;
                *wins.entry(grid.candidates[best].as_str()).or_default() += 1;
            }
        }
        let mut wins: Vec<(&str, usize)> = wins.into_iter().collect();
        wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let wins: Vec<String> = wins.iter().map(|(name, n)| format!("{name} {n}")).collect();
        format!(
            "{load}: best of {}: {}",
            counted(all, "line"),
            wins.join(", ")
        )
    };
    loads.into_iter().map(sentence).collect()
}

fn grid_view((id, grid): (usize, &Grid)) -> GridView<'_> {
    GridView {
        grid,
        id,
        tau: grid.lines.iter().any(|line| line.tau_b.is_some()),
        lines: grid
            .lines
            .iter()
            .map(|line| line_view(grid, line))
            .collect(),
    }
}

fn line_view<'a>(grid: &'a Grid, line: &'a GridLine) -> LineView<'a> {
    let best = line.best();
    let cells = line.ours.iter().map(|ours| cell(line, ours.as_ref(), best));
    let published = |value: &Option<f64>| value.map_or("–".to_owned(), |v| text(line, v));
    let mut label = whichfs_trial::metric_words(&line.metric);
    if !line.load.is_empty() {
        label = format!("{label}, {}", line.load);
    }
    if !line.variant.is_empty() {
        label = format!("{label}, {}", line.variant);
    }
    LineView {
        line,
        label,
        cells: cells.collect(),
        published: line.published.iter().map(published).collect(),
        tau: line.tau_b.map_or(String::new(), |tau| format!("{tau:.2}")),
        bars: bars(grid, line, best),
    }
}

fn text(line: &GridLine, value: f64) -> String {
    with_unit(value, &line.unit)
}

fn cell(line: &GridLine, ours: Option<&Repeats>, best: Option<usize>) -> Cell {
    let Some(repeats) = ours else {
        return Cell {
            text: "–".to_owned(),
            shade: "",
            spread: String::new(),
        };
    };
    let best = best
        .and_then(|at| line.ours[at].as_ref())
        .map(|best| best.median);
    let doubt = if repeats.doubt.is_some() { "~" } else { "" };
    Cell {
        text: format!("{doubt}{}", text(line, repeats.median)),
        shade: best.map_or("", |best| shade(line, repeats.median, best)),
        spread: repeats
            .spread()
            .map_or(String::new(), |share| format!("±{:.0} %", share * 100.0)),
    }
}

/// The class of a figure by how many times the best is better.
fn shade(line: &GridLine, value: f64, best: f64) -> &'static str {
    let ratio = match line.lower_is_better {
        true => value / best,
        false => best / value,
    };
    // Where the best is zero there is no ratio.
    let ratio = if ratio.is_finite() { ratio } else { f64::MAX };
    let grade = Grade::of_ratio(ratio);
    CLASSES[Grade::ALL
        .iter()
        .position(|other| *other == grade)
        .unwrap_or(0)]
}

/// The bars of a line: a bar to the median, a dot for each repeat, a mark for what was
/// published.
fn bars(grid: &Grid, line: &GridLine, best: Option<usize>) -> Vec<Bar> {
    let ours = line
        .ours
        .iter()
        .flatten()
        .flat_map(|repeats| &repeats.values);
    let ours = ours.map(|(_, value)| *value);
    let theirs = line.published.iter().flatten().copied();
    let end = ours
        .chain(theirs)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let place = |value: f64| format!("{:.2}", (value / end * 100.0).clamp(0.0, 100.0));
    let bar = |(at, name): (usize, &String)| {
        let repeats = line.ours[at].as_ref()?;
        let published = line.published.get(at).copied().flatten();
        Some(Bar {
            name: name.clone(),
            text: text(line, repeats.median),
            percent: place(repeats.median),
            best: best == Some(at),
            dots: match repeats.values.len() {
                1 => Vec::new(),
                _ => repeats
                    .values
                    .iter()
                    .map(|(_, value)| place(*value))
                    .collect(),
            },
            published: published.map(|value| (place(value), text(line, value))),
        })
    };
    grid.candidates.iter().enumerate().filter_map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(lower_is_better: bool, published: Vec<Option<f64>>) -> GridLine {
        let repeats = |values: &[f64]| {
            Some(Repeats {
                values: values
                    .iter()
                    .enumerate()
                    .map(|(at, &v)| (at as u64, v))
                    .collect(),
                median: values[values.len() / 2],
                doubt: None,
            })
        };
        GridLine {
            load: String::new(),
            metric: "tree_write".into(),
            unit: "MB/s".into(),
            lower_is_better,
            variant: "sync <x>".into(),
            ours: vec![repeats(&[1.0, 2.0, 4.0]), repeats(&[8.0]), None],
            published,
            tau_b: Some(-1.0),
        }
    }

    fn grid(lines: Vec<GridLine>) -> Grid {
        Grid {
            card: "c".into(),
            board: "b".into(),
            load: "tree".into(),
            candidates: vec!["ext4".into(), "f2fs".into(), "vfat".into()],
            lines,
            orders: Vec::new(),
        }
    }

    #[test]
    fn the_best_is_dark_and_what_is_missing_is_a_dash() {
        let own = line(false, Vec::new());
        let grid = grid(vec![own.clone()]);
        let view = line_view(&grid, &own);
        let cells: Vec<(&str, &str)> = view
            .cells
            .iter()
            .map(|c| (c.text.as_str(), c.shade))
            .collect();
        assert_eq!(cells, [("2.00 MB/s", "g3"), ("8.00 MB/s", "g0"), ("–", "")]);
        assert_eq!(view.cells[0].spread, "±100 %");
        let mut doubted = own.clone();
        for repeats in doubted.ours.iter_mut().flatten() {
            repeats.doubt = Some([1.2, 1.3]);
        }
        let view = line_view(&grid, &doubted);
        assert_eq!(view.cells[1].text, "~8.00 MB/s");
        let other = line(true, Vec::new());
        assert_eq!(line_view(&grid, &other).cells[0].shade, "g0");
        assert_eq!(
            best(std::slice::from_ref(&grid)),
            ["tree: best of 1 line: f2fs 1"]
        );
    }

    #[test]
    fn bars_end_where_the_largest_of_all_is() {
        let own = line(false, vec![Some(16.0), None, Some(3.0)]);
        let grid = grid(vec![own.clone()]);
        let bars = bars(&grid, &own, own.best());
        assert_eq!(bars.len(), 2, "no bar without a figure of ours");
        assert_eq!(
            (bars[0].percent.as_str(), bars[1].percent.as_str()),
            ("12.50", "50.00")
        );
        assert_eq!(
            bars[0].published.as_ref().map(|p| p.0.as_str()),
            Some("100.00")
        );
        assert_eq!(bars[0].dots.len(), 3);
    }

    #[test]
    fn the_page_says_everything_and_escapes() {
        let tables = [grid(vec![line(false, vec![Some(16.0), None, None])])];
        let labels = [("requirement".to_owned(), "REQ-<12>".to_owned())];
        let page = StudyPage {
            origin: FigureOrigin::Modelled,
            title: "Which & why?",
            source: "somebody",
            method: vec!["so".into()],
            labels: &labels,
            tables: Cow::Borrowed(&tables),
            gains: vec![GainTable {
                title: "compared with <x>".into(),
                head: vec![String::new(), "2 jobs".into()],
                rows: vec![vec!["ext4".into(), "1.85".into()]],
            }],
            scatter: vec![vec!["ext4 <b>".into(), "2.0 %".into()]],
            notes: vec!["left out: vfat <too small>".into()],
            environment: vec![Item {
                label: "kernel".into(),
                value: "6.12".into(),
                source: String::new(),
                ..Item::default()
            }],
            reproduce: "whichfs study run x".into(),
        };
        let html = study_html(&page);
        for said in [
            "Which &#38; why?",
            "sync &#60;x&#62;",
            "16.0 MB/s",
            "-1.00",
            "&#60;too small&#62;",
            "Scatter between units",
            "<b>requirement</b> REQ-&#60;12&#62;",
            "ext4 &#60;b&#62;",
            "whichfs study run x",
            "higher is better",
            "modelled",
        ] {
            assert!(html.contains(said), "{said}");
        }
        crate::tests::pages::check_widths(&html, "study");
        for network in ["http:", "https:", "src=", "url("] {
            assert!(!html.contains(network), "{network}");
        }
    }
}
