//! Figures of a study as columns that fit a width.

use crate::crash::short;
use whichfs_study::{Grid, GridLine, Repeats};
use whichfs_units::Bytes;

/// Narrowest column of a candidate.
const COLUMN: usize = 8;

/// Some columns of a grid.
pub(super) struct Part {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The columns of `grid` in parts that fit `width`.
pub(super) fn parts(grid: &Grid, width: usize) -> Vec<Part> {
    let label = grid.lines.iter().map(|line| label(line).chars().count());
    let label = label.max().unwrap_or(0).max(COLUMN) + 2;
    let tau = grid.lines.iter().any(|line| line.tau_b.is_some());
    let spread = |line: &GridLine| line.ours.iter().flatten().any(|r| r.spread().is_some());
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
    let here = |line: &&GridLine| columns.iter().any(|&at| line.ours[at].is_some());
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
fn label(line: &GridLine) -> String {
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

fn cell(line: &GridLine, repeats: Option<&Repeats>, best: bool) -> String {
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
fn figure(line: &GridLine, value: f64) -> String {
    match line.unit.as_str() {
        "B" => Bytes(value.round() as u64).to_string(),
        _ if value > 0.0 && value < 0.01 => format!("{value:.5}"),
        _ if value > 0.0 && value < 0.1 => format!("{value:.4}"),
        _ if value < 1.0 => format!("{value:.3}"),
        _ => short(value),
    }
}
