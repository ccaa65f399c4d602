//! The rows themselves: CSV, JSON, Markdown. Every figure, none averaged.

use std::fmt::Write as _;
use whichfs_study::Row;

/// RFC 4180 with the columns of DESIGN.md §5 in the first line; lines end with `\n`.
pub fn csv(rows: &[Row]) -> String {
    let mut out = Row::COLUMNS.join(",");
    out.push('\n');
    for row in rows {
        out.push_str(&fields(row).map(|field| quoted(&field)).join(","));
        out.push('\n');
    }
    out
}

/// A JSON array of objects, one a row.
pub fn json(rows: &[Row]) -> String {
    let text = serde_json::to_string_pretty(rows);
    text.unwrap_or_else(|error| unreachable!("rows are strings and numbers: {error}"))
}

/// A Markdown table. The trial's id is shortened to twelve digits.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = format!("| {} |\n|", Row::COLUMNS.join(" | "));
    for column in Row::COLUMNS {
        out.push_str(if matches!(column, "value" | "seed") {
            "---:|"
        } else {
            "---|"
        });
    }
    out.push('\n');
    for row in rows {
        let mut cells = fields(row);
        cells[11] = row.trial.chars().take(12).collect();
        let cells = cells.map(|cell| escaped(&cell));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

fn fields(row: &Row) -> [String; 12] {
    [
        row.card.clone(),
        row.kernel.clone(),
        row.clock.clone(),
        row.candidate.clone(),
        row.mount_options.clone(),
        row.workload.clone(),
        row.metric.clone(),
        row.value.to_string(),
        row.unit.clone(),
        row.lower_is_better.to_string(),
        row.seed.to_string(),
        row.trial.clone(),
    ]
}

/// A CSV field, in quotes where its content asks for them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A Markdown cell: nothing in it can end the cell or begin markup.
fn escaped(cell: &str) -> String {
    let mut out = String::new();
    for c in cell.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '[' | ']' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
