//! Several runs side by side: terminal, Markdown, JUnit.

use crate::comparison_told::{halts, name, places, show, shows, undecided, winner};
use crate::document::Document;
use crate::junit::{Case, CaseResult};
use crate::number::with_unit;
use crate::text::{clean, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use whichfs_study::{ComparedMetric, Comparison, Meaning, RunChange, Stopped, Was};
use whichfs_units::counted;

impl Document for Comparison {
    const NAME: &'static str = "report";
}

/// Commands that are named of one failure.
const NAMED: usize = 4;

/// What stopped working, who wins, and what changed beyond noise, or with `all` every figure, in
/// lines of at most `width` columns, but for commands.
pub fn comparison_text(comparison: &Comparison, width: usize, all: bool) -> String {
    let mut out = String::new();
    halted(&mut out, comparison, width);
    answers(&mut out, comparison, width, all);
    for (at, run) in comparison.runs.iter().enumerate() {
        let what = [&run.cards, &run.kernels, &run.clocks].map(|names| names.join(", "));
        let what = match run.rows {
            0 => "no figures".to_owned(),
            _ => what.join("; "),
        };
        let text = format!("{}: {} ({what})", at + 1, run.name);
        wrap(&mut out, &clean(&text), "", "   ", width);
    }
    if let Some(said) = undecided(comparison) {
        wrap(&mut out, &said, "", "", width);
    }
    out.push('\n');
    let shown: Vec<&ComparedMetric> = shown(comparison, all);
    if shown.is_empty() {
        out.push_str(match comparison.stopped.is_empty() {
            true => "Nothing changed beyond noise.\n",
            false => "Of what both runs have nothing changed beyond noise.\n",
        });
        return out;
    }
    out.push_str(&table(comparison, &shown, width));
    let told = |line: &&ComparedMetric| !shown.iter().any(|one| std::ptr::eq(*one, *line));
    let left = comparison.lines.iter().filter(told);
    let note = format!(
        "{}↓ lower is better, ↑ higher is better. Seeds that both have are paired.",
        match left.filter(|line| !is_told_above(comparison, line)).count() {
            0 => String::new(),
            same => format!("{}: the same within noise. ", counted(same, "more figure")),
        }
    );
    wrap(&mut out, &note, "\n", "", width);
    out
}

/// What stopped, with the commands that show its trials.
fn halted(out: &mut String, comparison: &Comparison, width: usize) {
    let halts = halts(comparison);
    for halt in &halts {
        wrap(out, &clean(&halt.sentence), "", "   ", width);
        let commands = halt.all.iter().flat_map(|one| shows(comparison, one));
        let commands: Vec<String> = commands.collect();
        for command in commands.iter().take(NAMED) {
            // A command is never broken: a line that is copied must run.
            let _ = writeln!(out, "   {}", clean(command));
        }
        if let Some(more) = commands.len().checked_sub(NAMED).filter(|more| *more > 0) {
            let _ = writeln!(out, "   and {more} more; --json and --html have all");
        }
        let gone: usize = halt.all.iter().map(|one| one.gone).sum();
        if gone > 0 {
            let _ = writeln!(out, "   {} gone with it", counted(gone, "figure"));
        }
    }
    if !halts.is_empty() {
        out.push('\n');
    }
}

/// Who wins in each run, and whose score or probability changed; with `all`, everybody's.
fn answers(out: &mut String, comparison: &Comparison, width: usize, all: bool) {
    for change in &comparison.answers {
        wrap(out, &clean(&winner(change)), "", "   ", width);
        let shown = places(change).into_iter();
        for (one, told) in shown.filter(|(one, _)| all || one.changed()) {
            let [score, p_best] = told.map(|text| text.replace(' ', "\u{a0}"));
            let name = clean(&one.candidate);
            let text = format!("{name}: score {score}; probability of being the best {p_best}");
            wrap(out, &text, "   ", "      ", width);
        }
    }
    if !comparison.answers.is_empty() {
        out.push_str(
            "Scores are beside the baseline of the need, or the best of their own run.\n\n",
        );
    }
}

/// A line for each of `shown`. Where `width` has no room for it, the figures stand below their
/// name.
fn table(comparison: &Comparison, shown: &[&ComparedMetric], width: usize) -> String {
    // Figures stay whole, and the mark with the last word of its metric.
    let whole = |(at, cell): (usize, String)| match at {
        0 => cell,
        1 => cell.replace(" ↓", "\u{a0}↓").replace(" ↑", "\u{a0}↑"),
        _ => cell.replace(' ', "\u{a0}"),
    };
    let whole = |cells: Vec<String>| cells.into_iter().enumerate().map(whole).collect();
    let mut rows: Vec<Vec<String>> = vec![whole(head(comparison))];
    rows.extend(shown.iter().map(|line| whole(cells(line))));
    if natural_width(&rows) > width {
        return narrow(&rows, width);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(rows.remove(0))
        .add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at > 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines();
    let lines = lines.map(|line| format!("{}\n", line.trim_end().replace('\u{a0}', " ")));
    lines.collect()
}

/// Columns before the figures: filesystem and metric.
const FRONT: usize = 2;

/// Rows for a narrow terminal: filesystem and metric in a line of their own, the figures of all
/// runs and what changed in the next; where not even that has room, a line for each run.
fn narrow(rows: &[Vec<String>], width: usize) -> String {
    const INDENT: usize = 4;
    let figures = |row: &[String]| row.iter().skip(FRONT).cloned().collect::<Vec<_>>();
    let all: Vec<Vec<String>> = rows.iter().map(|row| figures(row)).collect();
    let beside = natural_width(&all) + INDENT <= width;
    let longest = |at: usize| {
        let cells = all.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut out = String::new();
    for (number, (row, figures)) in rows.iter().zip(&all).enumerate() {
        let front = row.iter().take(FRONT).cloned().collect::<Vec<_>>();
        wrap(&mut out, &front.join(": "), "", "  ", width);
        let cell = |(at, cell): (usize, &String)| format!("{cell:>width$}", width = longest(at));
        if beside {
            let cells: Vec<String> = figures.iter().enumerate().map(cell).collect();
            let line = format!("{}{}", " ".repeat(INDENT), cells.join("  "));
            let _ = writeln!(out, "{}", line.replace('\u{a0}', " ").trim_end());
            continue;
        }
        if number == 0 {
            out.push_str("    run, its figure, beside run 1\n");
            continue;
        }
        let (first, later) = figures.split_at(1.min(figures.len()));
        let value = |at: usize| longest(at.saturating_mul(2).saturating_sub(1));
        let widest = (0..=later.len() / 2).map(value).max().unwrap_or(0);
        let runs = std::iter::once(first).chain(later.chunks(2));
        for (at, run) in runs.enumerate() {
            let own = run.first().map_or("", String::as_str);
            let beside = run.get(1).map_or("", String::as_str);
            let line = format!("    {}  {own:>widest$}  {beside}", at + 1);
            let _ = writeln!(out, "{}", line.replace('\u{a0}', " ").trim_end());
        }
    }
    out
}

/// Columns that rows take if nothing is wrapped.
fn natural_width(rows: &[Vec<String>]) -> usize {
    let of_cell = |cell: &String| cell.lines().map(|line| line.chars().count()).max();
    let of_column = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.filter_map(of_cell).max().unwrap_or(0) + 2
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..columns).map(of_column).sum::<usize>().saturating_sub(2)
}

/// The same as Markdown: what stopped working and who wins in sentences, figures in a table.
pub fn comparison_markdown(comparison: &Comparison, all: bool) -> String {
    let mut out = String::new();
    let text = |text: &str| clean(text).replace('|', "\\|").replace('<', "&lt;");
    for halt in halts(comparison) {
        let _ = writeln!(out, "**{}**\n", text(&halt.sentence).replace('*', "\\*"));
    }
    for change in &comparison.answers {
        let _ = writeln!(out, "{}\n", text(&winner(change)));
        let changed: Vec<_> = (places(change).into_iter())
            .filter(|(one, _)| all || one.changed())
            .collect();
        if !changed.is_empty() {
            out.push_str("| filesystem | score | probability of being the best |\n|---|---|---|\n");
        }
        for (one, [score, p_best]) in &changed {
            let _ = writeln!(out, "| {} | {score} | {p_best} |", text(&one.candidate));
        }
        if !changed.is_empty() {
            out.push('\n');
        }
    }
    let head = head(comparison);
    let _ = write!(
        out,
        "| {} |\n|{}\n",
        head.join(" | "),
        "---|".repeat(head.len())
    );
    for line in shown(comparison, all) {
        let cells = cells(line).into_iter().map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    out
}

/// A test case for each filesystem, which fails if it stopped working, those first; then one for
/// each figure, which fails if it is worse by more than `share` and beyond noise, or gone.
pub fn comparison_cases(comparison: &Comparison, share: f64) -> Vec<Case> {
    let case = |line: &ComparedMetric| Case {
        class: class(&line.card, &line.workload, &line.candidate),
        name: line.metric.clone(),
        seconds: 0.0,
        told: match (line.fails(share), line.values.first().copied().flatten()) {
            (Some(why), _) => CaseResult::Failed(reasoned(comparison, line, why)),
            (None, None) => CaseResult::Skipped("the first run has no figure".to_owned()),
            (None, Some(_)) => CaseResult::Passed,
        },
        output: output(comparison, line, share),
    };
    let mut cases = works(comparison);
    cases.extend(comparison.lines.iter().map(case));
    cases
}

/// Why a figure fails, with the reason why it is gone if that is known.
fn reasoned(comparison: &Comparison, line: &ComparedMetric, why: String) -> String {
    let runs = 2..=comparison.runs.len();
    let told = runs.filter_map(|run| comparison.why_gone(line, run));
    let told = told.filter(|one| !one.why.is_empty());
    let all: Vec<String> = told.map(|one| format!(": {}", one.why)).collect();
    format!("{why}{}", all.concat())
}

/// The figures of a line, and if it fails the commands that show its trials.
fn output(comparison: &Comparison, line: &ComparedMetric, share: f64) -> String {
    let mut out = cells(line).join("  ");
    if line.fails(share).is_some() {
        for (run, samples) in comparison.runs.iter().zip(&line.samples) {
            let shows = samples.iter().filter_map(|one| show(Some(run), &one.trial));
            for command in shows.take(NAMED) {
                let _ = write!(out, "\n{command}");
            }
        }
    }
    out
}

fn class(card: &str, workload: &str, candidate: &str) -> String {
    let parts = [card, workload, candidate].into_iter();
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(".")
}

/// A case for each filesystem of the first run: that it works in the later ones.
fn works(comparison: &Comparison) -> Vec<Case> {
    let workload = |one: &Stopped| {
        let of_it = |line: &&ComparedMetric| {
            line.candidate == one.candidate && (one.card.is_empty() || line.card == one.card)
        };
        let line = comparison.lines.iter().find(of_it);
        let known = line.map_or("", |line| line.workload.as_str());
        match one.workload.as_str() {
            "" => known.to_owned(),
            own => own.to_owned(),
        }
    };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut cases = Vec::new();
    for halt in halts(comparison) {
        for one in &halt.all {
            let class = class(&one.card, &workload(one), &one.candidate);
            seen.insert(class.clone());
            // Each case tells of its own filesystem alone.
            let sentence = match halt.all.len() {
                1 => halt.sentence.clone(),
                _ => format!("{}: {}", name(one), halt.sentence),
            };
            cases.push(Case {
                class,
                name: "works".to_owned(),
                seconds: 0.0,
                told: match one.was {
                    Was::Worked => CaseResult::Failed(sentence),
                    Was::Stopped | Was::Absent => CaseResult::Skipped(sentence),
                },
                output: shows(comparison, one).join("\n"),
            });
        }
    }
    for line in comparison
        .lines
        .iter()
        .filter(|line| line.values[0].is_some())
    {
        let class = class(&line.card, &line.workload, &line.candidate);
        if seen.insert(class.clone()) {
            cases.push(Case {
                class,
                name: "works".to_owned(),
                seconds: 0.0,
                told: CaseResult::Passed,
                output: String::new(),
            });
        }
    }
    cases
}

/// Lines in which something changed or is missing, or all. What went with its filesystem is told
/// there.
fn shown(comparison: &Comparison, all: bool) -> Vec<&ComparedMetric> {
    let changed = |line: &&ComparedMetric| {
        let differs = |change: &Option<RunChange>| {
            change.is_none_or(|change| change.meaning != Meaning::Same)
        };
        let changed = line.changes.iter().any(differs) && !is_told_above(comparison, line);
        all || changed
    };
    comparison.lines.iter().filter(changed).collect()
}

/// Whether all that happened to `line` is that its filesystem stopped working.
fn is_told_above(comparison: &Comparison, line: &ComparedMetric) -> bool {
    let mut gone = false;
    for (at, change) in line.changes.iter().enumerate() {
        match change {
            Some(change) if change.meaning != Meaning::Same => return false,
            Some(_) => {}
            None if comparison.why_gone(line, at + 2).is_none() => return false,
            None => gone = true,
        }
    }
    gone
}

fn head(comparison: &Comparison) -> Vec<String> {
    let mut head = vec!["filesystem".to_owned(), "metric".to_owned(), "1".to_owned()];
    for at in 2..=comparison.runs.len() {
        head.push(at.to_string());
        head.push(format!("{at} beside 1"));
    }
    head
}

fn cells(line: &ComparedMetric) -> Vec<String> {
    let value = |value: &Option<f64>| value.map_or("–".to_owned(), |v| with_unit(v, &line.unit));
    let name = match line.card.as_str() {
        "" => line.candidate.clone(),
        card => format!("{card}: {}", line.candidate),
    };
    let arrow = match (line.is_judged(), line.lower_is_better) {
        (false, _) => "",
        (true, true) => " ↓",
        (true, false) => " ↑",
    };
    let metric = format!("{}{arrow}", whichfs_trial::metric_words(&line.metric));
    let first = line.values.first().map_or(String::new(), value);
    let mut cells = vec![clean(&name), clean(&metric), first];
    for (at, own) in line.values.iter().enumerate().skip(1) {
        cells.push(value(own));
        cells.push(words(line, at));
    }
    cells
}

/// What run `at` is beside the first, in words.
pub(crate) fn words(line: &ComparedMetric, at: usize) -> String {
    match (&line.changes[at - 1], line.values[0], line.values[at]) {
        (Some(change), _, _) => told(change),
        (None, None, Some(_)) => "new".to_owned(),
        (None, Some(_), None) => "gone".to_owned(),
        (None, _, _) => String::new(),
    }
}

pub(crate) fn told(change: &RunChange) -> String {
    let times = |ratio: f64| match ratio {
        ratio if ratio < 2.0 => format!("{:.0} %", (ratio - 1.0) * 100.0),
        ratio => format!("{} ×", crate::number::times(ratio)),
    };
    match change.meaning {
        Meaning::Worse => format!("{} worse", times(change.worse)),
        Meaning::Better => format!("{} better", times(1.0 / change.worse)),
        Meaning::Other if change.worse > 1.0 => format!("{} higher", times(change.worse)),
        Meaning::Other => format!("{} lower", times(1.0 / change.worse)),
        Meaning::Same => "same".to_owned(),
    }
}

#[cfg(test)]
mod tests;
