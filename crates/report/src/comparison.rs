//! Several runs side by side: terminal, Markdown, JUnit.

use crate::junit::{Case, Told};
use crate::number::with_unit;
use crate::text::{clean, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write as _;
use whichfs_study::{Compared, Comparison, Meaning, RunChange};
use whichfs_units::counted;

/// What changed beyond noise, or with `all` every figure, in lines of at most `width` columns.
pub fn comparison_text(comparison: &Comparison, width: usize, all: bool) -> String {
    let mut out = String::new();
    for (at, run) in comparison.runs.iter().enumerate() {
        let what = [&run.cards, &run.kernels, &run.clocks].map(|names| names.join(", "));
        let text = format!("{}: {} ({})", at + 1, run.name, what.join("; "));
        wrap(&mut out, &clean(&text), "", "   ", width);
    }
    out.push('\n');
    let shown: Vec<&Compared> = shown(comparison, all);
    if shown.is_empty() {
        out.push_str("Nothing changed beyond noise.\n");
        return out;
    }
    out.push_str(&table(comparison, &shown, width));
    let note = format!(
        "{}↓ lower is better, ↑ higher is better. Seeds that both have are paired.",
        match comparison.lines.len() - shown.len() {
            0 => String::new(),
            same => format!("{}: the same within noise. ", counted(same, "more figure")),
        }
    );
    wrap(&mut out, &note, "\n", "", width);
    out
}

/// A line for each of `shown`. Where `width` has no room for it, what changed stands below the
/// figure in place of beside it.
fn table(comparison: &Comparison, shown: &[&Compared], width: usize) -> String {
    // Figures stay whole, and the mark with the last word of its metric.
    let whole = |(at, cell): (usize, String)| match at {
        0 => cell,
        1 => cell.replace(" ↓", "\u{a0}↓").replace(" ↑", "\u{a0}↑"),
        _ => cell.replace(' ', "\u{a0}"),
    };
    let whole = |cells: Vec<String>| cells.into_iter().enumerate().map(whole).collect();
    let mut rows: Vec<Vec<String>> = vec![head(comparison, "\n")];
    rows.extend(shown.iter().map(|line| whole(cells(line))));
    if natural_width(&rows) > width {
        rows = rows.into_iter().map(folded).collect();
        rows[0] = folded_head(comparison);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
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

fn folded_head(comparison: &Comparison) -> Vec<String> {
    let later = (2..=comparison.runs.len()).map(|at| format!("{at}\nbeside 1"));
    let front = head(comparison, "").into_iter().take(3);
    front.chain(later).collect()
}

/// Cells with what changed below the figure that did.
fn folded(cells: Vec<String>) -> Vec<String> {
    let (front, runs) = cells.split_at(3.min(cells.len()));
    let pairs = runs.chunks(2).map(|pair| pair.join("\n"));
    front.iter().cloned().chain(pairs).collect()
}

/// The same as a Markdown table.
pub fn comparison_markdown(comparison: &Comparison, all: bool) -> String {
    let head = head(comparison, " ");
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for line in shown(comparison, all) {
        let cells = cells(line).into_iter().map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    out
}

/// A test case for each figure: it fails if it is worse by more than `share` and beyond noise, or
/// gone.
pub fn comparison_cases(comparison: &Comparison, share: f64) -> Vec<Case> {
    let case = |line: &Compared| Case {
        class: match line.card.as_str() {
            "" => format!("{}.{}", line.workload, line.candidate),
            card => format!("{card}.{}.{}", line.workload, line.candidate),
        },
        name: line.metric.clone(),
        seconds: 0.0,
        told: match (line.fails(share), line.values.first().copied().flatten()) {
            (Some(why), _) => Told::Failed(why),
            (None, None) => Told::Skipped("the first run has no figure".to_owned()),
            (None, Some(_)) => Told::Passed,
        },
        output: cells(line).join("  "),
    };
    comparison.lines.iter().map(case).collect()
}

/// Lines in which something changed or is missing, or all.
fn shown(comparison: &Comparison, all: bool) -> Vec<&Compared> {
    let changed = |line: &&Compared| {
        let differs = |change: &Option<RunChange>| {
            change.is_none_or(|change| change.meaning != Meaning::Same)
        };
        all || line.changes.iter().any(differs)
    };
    comparison.lines.iter().filter(changed).collect()
}

fn head(comparison: &Comparison, gap: &str) -> Vec<String> {
    let mut head = vec!["filesystem".to_owned(), "metric".to_owned(), "1".to_owned()];
    for at in 2..=comparison.runs.len() {
        head.push(at.to_string());
        head.push(format!("{at}{gap}beside 1"));
    }
    head
}

fn cells(line: &Compared) -> Vec<String> {
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
pub(crate) fn words(line: &Compared, at: usize) -> String {
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_study::{Row, Run, compare_runs};

    fn run(name: &str, factor: f64) -> Run {
        let row = |candidate: &str, metric: &str, lower_is_better, value| Row {
            card: "a1-32gb".into(),
            kernel: "6.12".into(),
            clock: "cpu:b".into(),
            candidate: candidate.into(),
            mount_options: String::new(),
            workload: "rootfs".into(),
            metric: metric.into(),
            value,
            unit: if lower_is_better { "s" } else { "MB/s" }.into(),
            lower_is_better,
            seed: 1,
            trial: "t".into(),
        };
        Run {
            name: name.into(),
            rows: vec![
                row("ext4", "mount", true, 2.0 * factor),
                row("ext4|<x>", "tree_read", false, 10.0 * factor),
                row("f2fs", "mount", true, 0.004),
            ],
        }
    }

    #[test]
    fn what_changed_is_told_and_what_did_not_is_counted() {
        let both = compare_runs(&[run("before", 1.0), run("after", 3.0)]).unwrap();
        let text = comparison_text(&both, 80, false);
        assert!(
            text.contains("3.0 × worse") && text.contains("3.0 × better"),
            "{text}"
        );
        assert!(
            text.contains("1 more figure: the same") && !text.contains("f2fs"),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let alone = |line: &str| matches!(line.trim(), "↓" | "↑");
        for width in 40..80 {
            let text = comparison_text(&both, width, true);
            assert!(!text.lines().any(alone), "{width}: {text}");
        }
        let all = comparison_text(&both, 80, true);
        assert!(
            all.contains("f2fs") && !all.contains("more figure"),
            "{all}"
        );
        let markdown = comparison_markdown(&both, false);
        assert!(markdown.contains("| ext4 | mount ↓ | 2.00 s | 6.00 s | 3.0 × worse |"));
        assert!(markdown.contains("ext4\\|<x>"), "{markdown}");
        let same = compare_runs(&[run("a", 1.0), run("b", 1.0)]).unwrap();
        assert!(comparison_text(&same, 80, false).contains("Nothing changed beyond noise."));
    }

    #[test]
    fn figures_stay_whole_however_many_runs_there_are() {
        let runs = [1.0, 3.0, 0.2, 1.3].map(|factor| run("run", factor));
        for count in 2..=4 {
            let all = compare_runs(&runs[..count]).unwrap();
            for width in [80, 120] {
                let text = comparison_text(&all, width, true);
                let heads = text.matches("beside 1").count();
                let numbers = text.lines().filter(|line| line.starts_with("filesystem"));
                assert!(
                    (numbers.count(), heads) == (1, count - 1),
                    "{width}: {text}"
                );
                let fits = text.lines().all(|line| line.chars().count() <= width);
                assert!(fits, "{width}: {text}");
                let words = ["2.00 s", "6.00 s", "3.0 × worse", "400 ms", "5.0 × better"];
                for word in &words[..(2 * count - 1).min(words.len())] {
                    assert!(text.contains(word), "{width}: no {word} in {text}");
                }
            }
        }
    }

    #[test]
    fn regressions_are_failed_test_cases() {
        let both = compare_runs(&[run("before", 1.0), run("after", 3.0)]).unwrap();
        let cases = comparison_cases(&both, 0.1);
        let failed: Vec<&str> = (cases.iter())
            .filter(|case| matches!(case.told, Told::Failed(_)))
            .map(|case| case.name.as_str())
            .collect();
        assert_eq!(failed, ["mount"]);
        assert_eq!(cases.len(), 3);
        assert!(
            comparison_cases(&both, 2.5)
                .iter()
                .all(|case| case.told == Told::Passed)
        );
    }
}
