//! A study with trials, told in a terminal.

use super::amounts::Amount;
use super::performance::{Document, Place};
use super::{durations, gains_told, smallest};
use crate::commands::table;
use crate::failure::Outcome;
use crate::output;
use std::time::Duration;
use whichfs_report::{Item, StudyPage, short};
use whichfs_study::{
    Grid, Line, Offset, Origin, PerformanceStudy, Repeats, Score, Tuning, Variant,
};
use whichfs_trial::REAL;
use whichfs_units::{Bytes, counted};

/// Narrowest column of a candidate.
const COLUMN: usize = 8;

/// How long trials take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// One after the other, those of which something is known.
    pub wall: Duration,
    /// How many of them are known only from another machine.
    pub elsewhere: usize,
    /// How many are not known at all.
    pub unknown: usize,
}

/// What there is to do.
pub struct Plan<'a> {
    /// The study.
    pub study: &'a PerformanceStudy,
    /// Trials of the matrix.
    pub trials: usize,
    /// Those that the store has.
    pub known: usize,
    /// Candidates that cannot run here.
    pub left_out: &'a [String],
    /// What the others write into files.
    pub amount: Amount,
    /// How long the others take.
    pub wall: Expected,
    /// Trials at once.
    pub jobs: Option<usize>,
}

/// Says what `plan` has to do.
pub fn dry_run(plan: &Plan) -> Outcome {
    let left = plan.trials - plan.known;
    output::paragraph(
        &format!(
            "{}: {}, {} of them finished, {left} to run; they write {}.",
            plan.study.name,
            counted(plan.trials, "trial"),
            plan.known,
            amount(&plan.amount)
        ),
        0,
    )?;
    for said in plan.left_out {
        output::paragraph(&format!("left out: {said}"), 2)?;
    }
    let jobs = plan.jobs.unwrap_or(1);
    output::paragraph(&how_long(left, &plan.wall, jobs), 0)
}

/// How long `left` trials take, so many at once.
fn how_long(left: usize, expected: &Expected, jobs: usize) -> String {
    if left == 0 {
        return "Nothing is left to run.".to_owned();
    }
    let known = left - expected.unknown;
    let from = match expected.elsewhere {
        0 => "as trials like them did here".to_owned(),
        n if n == known => format!("as on {}", durations::MACHINE),
        n => format!(
            "as trials like them did here, and as {n} of them on {}",
            durations::MACHINE
        ),
    };
    let wall = time(expected.wall / jobs.max(1) as u32);
    let cores = counted(jobs, "core");
    match (known, expected.unknown) {
        (0, _) => "How long they take is not known: trials like them were never run here. \
                   --budget 2m runs what fits, and the next --dry-run tells."
            .to_owned(),
        (_, 0) => format!("They take about {wall} on {cores}, {from}."),
        (_, unknown) => format!(
            "{known} of them take about {wall} on {cores}, {from}; the other {unknown} were never \
             run."
        ),
    }
}

/// What is written, in words.
fn amount(amount: &Amount) -> String {
    let programs = amount.unknown.join(", ");
    let bytes = Bytes(amount.bytes);
    match (amount.bytes, programs.as_str()) {
        (_, "") => format!("{bytes} into files on modelled cards"),
        (0, _) => format!("what the programs of {programs} write, which is not known beforehand"),
        _ => format!(
            "{bytes} into files on modelled cards at least; what the programs of {programs} write \
             is not known beforehand"
        ),
    }
}

fn time(wall: Duration) -> String {
    match wall.as_secs() {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", s / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// Shows what a study is.
pub fn definition(study: &PerformanceStudy, method: &[String]) -> Outcome {
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let mut rows = vec![
        row("question", study.title.clone()),
        row("source", study.source.clone()),
    ];
    rows.extend(method.iter().map(|text| row("method", text.clone())));
    rows.push(row("candidates", study.candidates.join(", ")));
    let named = study.variants.iter().filter(|v| !v.name.is_empty());
    rows.extend(named.map(|variant| {
        let without = variant.without.iter().map(|option| format!(" -{option}"));
        let add = [&variant.add].into_iter().filter(|add| !add.is_empty());
        let changes: String = without.chain(add.map(|add| format!(" +{add}"))).collect();
        let only = match variant.only.is_empty() {
            true => String::new(),
            false => format!(" ({} only)", variant.only.join(", ")),
        };
        let same = if changes.is_empty() {
            " the catalogue's options"
        } else {
            ""
        };
        let place = placed(variant);
        row(
            "mount",
            format!("{}:{same}{changes}{place}{only}", variant.name),
        )
    }));
    rows.extend(study.workloads.iter().map(|load| {
        let text = |map: &std::collections::BTreeMap<String, u64>| {
            let pairs = map.iter().map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<String>>().join(" ")
        };
        let quick = match load.quick.is_empty() {
            true => String::new(),
            false => format!("; quick: {}", text(&load.quick)),
        };
        let full = text(&load.parameters);
        row(
            "workload",
            format!("{}: {} {full}{quick}", load.name, load.workload),
        )
    }));
    rows.push(row("cards", study.cards.join(", ")));
    rows.push(row("boards", study.boards.join(", ")));
    rows.push(row("clock", study.clock.clone()));
    if !study.kernels.is_empty() {
        rows.push(row("kernels", study.kernels.join(", ")));
    }
    rows.push(row(
        "repeats",
        format!("{}; quick: {}", study.seeds, study.quick_seeds),
    ));
    rows.push(row("trials", study.spots().len().to_string()));
    for mapping in &study.published {
        rows.push(row("published", mapping.file.clone()));
    }
    output::text_line(&table::text(&["study", &study.name], rows))
}

/// Where a variant puts the partition, what it changes in mkfs and what it tunes for.
fn placed(variant: &Variant) -> String {
    let offset = variant.offset.map(|offset| match offset {
        Offset::Bytes(bytes) => format!(", partition at {}", Bytes(bytes)),
        Offset::Au {
            numerator,
            denominator,
        } => format!(", partition at {numerator}/{denominator} of an allocation unit"),
    });
    let set = variant
        .set
        .iter()
        .map(|(key, value)| format!(", {key}={value}"));
    let mkfs = (!variant.mkfs.is_empty()).then(|| format!(", mkfs {}", variant.mkfs.join(" ")));
    let tuned = match &variant.tuning {
        Tuning::ThisCard => None,
        Tuning::Nothing => Some(", as mkfs and mount make it by themselves".to_owned()),
        Tuning::Card(card) => Some(format!(", tuned for {card}")),
    };
    offset
        .into_iter()
        .chain(set)
        .chain(mkfs)
        .chain(tuned)
        .collect()
}

/// Prints the tables and what is to be known of them.
pub fn tell(document: &Document) -> Outcome {
    let study = document.study;
    output::paragraph(&format!("{} ({})", study.title, study.name), 0)?;
    for grid in &document.tables {
        output::text_line(&format!(
            "\n{} on {}, board {} ({})",
            grid.load,
            grid.card,
            grid.board,
            origin(study).word()
        ))?;
        for (at, part) in parts(grid, output::width()).into_iter().enumerate() {
            if at > 0 {
                output::text_line("")?;
            }
            let head: Vec<&str> = part.head.iter().map(String::as_str).collect();
            output::text_line(&table::text(&head, part.rows))?;
        }
    }
    for table in gains_told::tables(study, &document.gains, output::width()) {
        output::text_line(&format!("\n{}", table.title))?;
        let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
        output::text_line(&table::text(&head, table.rows))?;
    }
    if !document.smallest.is_empty() {
        output::text_line("")?;
        let rows = smallest::rows(&document.smallest);
        output::text_line(&table::text(&smallest::HEAD, rows))?;
    }
    output::text_line("")?;
    for sentence in legend(document) {
        output::paragraph(&sentence, 0)?;
    }
    Ok(())
}

/// Where the figures of a study come from.
fn origin(study: &PerformanceStudy) -> Origin {
    match study.clock.as_str() {
        REAL => Origin::Measured,
        _ => Origin::Modelled,
    }
}

/// The page of a study.
pub fn page<'a>(document: &'a Document, place: &Place, method: Vec<String>) -> StudyPage<'a> {
    let study = document.study;
    let item = |label: &str, value: String, source: &str| Item {
        label: label.to_owned(),
        value,
        source: source.to_owned(),
        ..Item::default()
    };
    let releases: Vec<&str> = place
        .kernels
        .iter()
        .map(|(release, _)| &**release)
        .collect();
    let short = |(_, sha256): &(String, String)| sha256.chars().take(16).collect::<String>();
    let digests: Vec<String> = place.kernels.iter().map(short).collect();
    StudyPage {
        origin: place.origin,
        title: &study.title,
        source: &study.source,
        method,
        tables: &document.tables,
        notes: [notes(document), smallest::sentences(&document.smallest)].concat(),
        environment: vec![
            item("whichfs", env!("CARGO_PKG_VERSION").to_owned(), ""),
            item(
                "kernel",
                releases.join(", "),
                &format!("sha256 {}", digests.join(", ")),
            ),
            item("cards", study.cards.join(", "), place.card_state),
            item("boards", study.boards.join(", "), ""),
            item("clock", study.clock.clone(), ""),
            item("seeds", study.seeds.to_string(), "figures are medians"),
            item(
                "trials",
                format!("{} of {}", document.done, document.trials),
                &format!("{} from the store", document.reused),
            ),
        ],
        reproduce: document.reproduce.clone(),
    }
}

fn legend(document: &Document) -> Vec<String> {
    let lines = || document.tables.iter().flat_map(|grid| &grid.lines);
    let mut said = vec!["*: best of the line.".to_owned()];
    if document.study.seeds > 1 {
        said.push(format!(
            "Medians of {} {}; ±: the largest distance from the median.",
            document.study.seeds,
            match origin(document.study) {
                Origin::Measured => "repeats",
                Origin::Modelled | Origin::Published => "seeds",
            }
        ));
    }
    if lines().any(Line::is_doubted) {
        said.push(
            "~: off by more than 15 % because of what the virtual CPU takes; see below.".into(),
        );
    }
    if lines().any(|line| !line.published.is_empty()) {
        said.push(
            "published: what the authors measured on the real card, in our unit; tau: how far \
             the two rankings agree (Kendall's tau-b: 1 wholly, 0 not at all, -1 reversed)."
                .to_owned(),
        );
    }
    said.extend(notes(document));
    said
}

/// What is to be known of the figures.
fn notes(document: &Document) -> Vec<String> {
    let mut said = gains_told::sentences(document.study, &document.gains, &document.turns);
    for (file, skipped) in &document.skipped {
        if skipped.holes + skipped.others > 0 {
            said.push(format!(
                "{file}: {} without a figure, {} about what this study does not have.",
                counted(skipped.holes, "line"),
                skipped.others
            ));
        }
        if !skipped.unused.is_empty() {
            said.push(format!(
                "{file}: no line has {}, which the study would set beside its figures.",
                skipped.unused.join(", ")
            ));
        }
    }
    said.extend(orders(document));
    said.extend(document.score.iter().flat_map(Score::told));
    if document.study.clock == "device" {
        said.push("cpu: not known: with the clock device the CPU is free.".to_owned());
    }
    let list = |label: &str, all: &[String]| -> Vec<String> {
        all.iter().map(|text| format!("{label}: {text}")).collect()
    };
    said.extend(list("left out", &document.left_out));
    said.extend(list("FAILED", &document.failed));
    said.extend(list("note", &document.caveats));
    if document.budget_ended {
        said.push(format!(
            "The budget is spent: of {} {} done; the same command goes on.",
            counted(document.trials, "trial"),
            document.done
        ));
    }
    said
}

/// How far published figures rank the workloads of a table as ours do.
fn orders(document: &Document) -> Vec<String> {
    let of = |grid: &Grid| {
        let (card, table) = (grid.card.clone(), grid.load.clone());
        let told = grid.orders.iter().map(move |order| {
            format!(
                "{table} on {card}: {} on {}, tau of the {} published forms: {:.2}.",
                order.metric, order.candidate, order.forms, order.tau_b
            )
        });
        told.collect::<Vec<String>>()
    };
    document.tables.iter().flat_map(of).collect()
}

/// Some columns of a grid.
struct Part {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The columns of `grid` in parts that fit `width`.
fn parts(grid: &Grid, width: usize) -> Vec<Part> {
    let label = grid.lines.iter().map(|line| label(line).chars().count());
    let label = label.max().unwrap_or(0).max(COLUMN) + 2;
    let tau = grid.lines.iter().any(|line| line.tau_b.is_some());
    let spread = |line: &Line| line.ours.iter().flatten().any(|r| r.spread().is_some());
    let figure = if grid.lines.iter().any(spread) {
        COLUMN + 6
    } else {
        COLUMN
    };
    let room = width.saturating_sub(label + if tau { 7 } else { 0 });
    let own = |at: usize| grid.candidates[at].chars().count().max(figure) + 2;
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for at in 0..grid.candidates.len() {
        if used.saturating_add(own(at)) > room {
            parts.push(Vec::new());
            used = 0;
        }
        used += own(at);
        if let Some(part) = parts.last_mut() {
            part.push(at);
        }
    }
    let last = parts.len().saturating_sub(1);
    let part = |(index, columns): (usize, &Vec<usize>)| part(grid, columns, tau && index == last);
    let parts = parts.iter().enumerate().map(part);
    parts.filter(|part| !part.rows.is_empty()).collect()
}

fn part(grid: &Grid, columns: &[usize], tau: bool) -> Part {
    let names = columns.iter().map(|&at| grid.candidates[at].clone());
    let mut head: Vec<String> = [String::new()].into_iter().chain(names).collect();
    if tau {
        head.push("tau".to_owned());
    }
    let mut rows = Vec::new();
    let here = |line: &&Line| columns.iter().any(|&at| line.ours[at].is_some());
    for line in grid.lines.iter().filter(here) {
        let best = line.best();
        let cells = columns
            .iter()
            .map(|&at| cell(line, line.ours[at].as_ref(), best == Some(at)));
        let mut row: Vec<String> = [label(line)].into_iter().chain(cells).collect();
        if tau {
            row.push(line.tau_b.map_or(String::new(), |tau| format!("{tau:.2}")));
        }
        rows.push(row);
        if !line.published.is_empty() {
            let cells = columns
                .iter()
                .map(|&at| line.published[at].map_or("-".to_owned(), |v| figure(line, v)));
            rows.push(
                ["  published".to_owned()]
                    .into_iter()
                    .chain(cells)
                    .collect(),
            );
        }
    }
    Part { head, rows }
}

/// Metric, unit and mount of a line.
fn label(line: &Line) -> String {
    let unit = match line.unit.as_str() {
        "1" | "B" => String::new(),
        unit => format!(" {unit}"),
    };
    let variant = match line.variant.is_empty() {
        true => String::new(),
        false => format!(", {}", line.variant),
    };
    let load = match line.load.is_empty() {
        true => String::new(),
        false => format!(", {}", line.load),
    };
    format!("{}{unit}{load}{variant}", line.metric)
}

fn cell(line: &Line, repeats: Option<&Repeats>, best: bool) -> String {
    let Some(repeats) = repeats else {
        return "-".to_owned();
    };
    let spread = repeats
        .spread()
        .map_or(String::new(), |share| format!(" ±{:.0}%", share * 100.0));
    let mark = if best { "*" } else { "" };
    let doubt = if repeats.doubt.is_some() { "~" } else { "" };
    format!("{doubt}{}{mark}{spread}", figure(line, repeats.median))
}

/// A figure of a line with three digits that count.
fn figure(line: &Line, value: f64) -> String {
    match line.unit.as_str() {
        "B" => Bytes(value.round() as u64).to_string(),
        _ if value > 0.0 && value < 0.01 => format!("{value:.5}"),
        _ if value > 0.0 && value < 0.1 => format!("{value:.4}"),
        _ if value < 1.0 => format!("{value:.3}"),
        _ => short(value),
    }
}
