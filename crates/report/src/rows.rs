//! The rows themselves: CSV, JSON, Markdown. Every figure, none averaged, and every trial that
//! failed.

use crate::number::with_unit;
use crate::terminal::{answer, sentence};
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_decide::{FigureOrigin, FigureRow, Verdict};
use whichfs_trial::{REAL, Status, Trial};

/// What `results.csv`, `.json` and `.md` hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Export<'a> {
    /// Figures of the trials that were done.
    pub rows: &'a [FigureRow],
    /// Trials that failed.
    pub failed: &'a [FailedRow],
    /// Median relative error of the card's model on what was measured of the card, where its
    /// profile states it and the figures are modelled.
    pub fit_error: Option<f64>,
}

/// A trial that failed: what it was, and why it gave no figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRow {
    /// Name of the card profile.
    pub card: String,
    /// Release of the kernel.
    pub kernel: String,
    /// `cpu:<board>`, `device` or `real`.
    pub clock: String,
    /// Candidate name.
    pub candidate: String,
    /// Mount options as in fstab.
    pub mount_options: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Id of the trial.
    pub trial: String,
    /// Why it failed, in one line.
    pub why: String,
}

/// Those of `trials` that failed.
pub fn failed_rows<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Vec<FailedRow> {
    let of = |trial: &Trial| {
        let Status::Failed { reason, .. } = &trial.outcome.status else {
            return None;
        };
        let identity = &trial.identity;
        let why = reason.lines().next().unwrap_or_default().trim();
        Some(FailedRow {
            card: identity.card.clone(),
            kernel: identity.kernel.clone(),
            clock: identity.clock.clone(),
            candidate: identity.candidate.clone(),
            mount_options: identity.mount_options.clone(),
            workload: identity.workload.clone(),
            seed: identity.seed,
            trial: identity.id(),
            why: match why {
                "" => "failed".to_owned(),
                why => why.to_owned(),
            },
        })
    };
    trials.into_iter().filter_map(of).collect()
}

/// Columns of the CSV after those of a row.
const MORE: [&str; 3] = ["origin", "fit_error", "failed"];

/// Columns of the Markdown table.
const MARKDOWN: [&str; 12] = [
    "card",
    "kernel",
    "clock",
    "candidate",
    "mount_options",
    "workload",
    "metric",
    "value",
    "better",
    "seed",
    "trial",
    "origin",
];

/// `modelled` or `measured`: what a trial by this clock is.
fn origin(clock: &str) -> FigureOrigin {
    match clock {
        REAL => FigureOrigin::Measured,
        _ => FigureOrigin::Modelled,
    }
}

impl Export<'_> {
    /// The model's error that belongs to a figure by this clock.
    fn fit_error(&self, clock: &str) -> Option<f64> {
        let modelled = origin(clock) == FigureOrigin::Modelled;
        self.fit_error.filter(|_| modelled)
    }
}

/// RFC 4180 with the columns [`FigureRow::COLUMNS`] in the first line, then where a figure comes
/// from and, of a trial that failed, why: its line has no metric and no value. Lines end with `\n`.
pub fn csv(export: &Export) -> String {
    let mut out = [&FigureRow::COLUMNS[..], &MORE].concat().join(",");
    out.push('\n');
    let fit = |clock: &str| {
        let error = export.fit_error(clock);
        error.map_or(String::new(), |error| error.to_string())
    };
    for row in export.rows {
        let more = [
            origin(&row.clock).word().to_owned(),
            fit(&row.clock),
            String::new(),
        ];
        line(&mut out, fields(row).into_iter().chain(more));
    }
    for one in export.failed {
        let more = [
            origin(&one.clock).word().to_owned(),
            fit(&one.clock),
            one.why.clone(),
        ];
        line(&mut out, failed_fields(one).into_iter().chain(more));
    }
    out
}

/// Appends a record of RFC 4180 and `\n`.
pub(crate) fn line(out: &mut String, fields: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(fields);
    let bytes = writer.into_inner().unwrap_or_default();
    debug_assert!(written.is_ok(), "memory takes every record");
    let text = String::from_utf8_lossy(&bytes);
    out.push_str(&whichfs_units::printable_lines(&text));
}

/// An object of `results.json`: of a trial that failed without metric and value.
#[derive(Serialize)]
struct Object<'a> {
    card: &'a str,
    kernel: &'a str,
    clock: &'a str,
    candidate: &'a str,
    mount_options: &'a str,
    workload: &'a str,
    metric: Option<&'a str>,
    value: Option<f64>,
    unit: Option<&'a str>,
    lower_is_better: Option<bool>,
    seed: u64,
    trial: &'a str,
    origin: FigureOrigin,
    fit_error: Option<f64>,
    failed: Option<&'a str>,
}

/// A JSON array of objects, one a row and one a trial that failed.
pub fn json(export: &Export) -> String {
    let rows = export.rows.iter().map(|row| Object {
        card: &row.card,
        kernel: &row.kernel,
        clock: &row.clock,
        candidate: &row.candidate,
        mount_options: &row.mount_options,
        workload: &row.workload,
        metric: Some(&row.metric),
        value: Some(row.value),
        unit: Some(&row.unit),
        lower_is_better: Some(row.lower_is_better),
        seed: row.seed,
        trial: &row.trial,
        origin: origin(&row.clock),
        fit_error: export.fit_error(&row.clock),
        failed: None,
    });
    let failed = export.failed.iter().map(|one| Object {
        card: &one.card,
        kernel: &one.kernel,
        clock: &one.clock,
        candidate: &one.candidate,
        mount_options: &one.mount_options,
        workload: &one.workload,
        metric: None,
        value: None,
        unit: None,
        lower_is_better: None,
        seed: one.seed,
        trial: &one.trial,
        origin: origin(&one.clock),
        fit_error: export.fit_error(&one.clock),
        failed: Some(&one.why),
    });
    let text = serde_json::to_string_pretty(&rows.chain(failed).collect::<Vec<_>>());
    let text = text.unwrap_or_else(|error| unreachable!("rows are strings and numbers: {error}"));
    whichfs_units::printable_json(&text)
}

/// The verdict, then a Markdown table of the figures: values with three digits and their unit, a
/// trial's id shortened to twelve digits; then the trials that failed.
pub fn markdown(verdict: &Verdict, export: &Export) -> String {
    let mut out = String::new();
    told(&mut out, verdict);
    out.push_str("\n## Figures\n\n");
    let _ = write!(out, "| {} |\n|", MARKDOWN.join(" | "));
    for column in MARKDOWN {
        let right = matches!(column, "value" | "seed");
        out.push_str(if right { "---:|" } else { "---|" });
    }
    out.push('\n');
    for row in export.rows {
        let better = match row.lower_is_better {
            true => "lower",
            false => "higher",
        };
        let cells = [
            row.card.clone(),
            row.kernel.clone(),
            row.clock.clone(),
            row.candidate.clone(),
            row.mount_options.clone(),
            row.workload.clone(),
            row.metric.clone(),
            with_unit(row.value, &row.unit),
            better.to_owned(),
            row.seed.to_string(),
            row.trial.chars().take(12).collect(),
            origin(&row.clock).word().to_owned(),
        ];
        let cells = cells.map(|cell| escaped(&cell));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if !export.failed.is_empty() {
        out.push_str("\n## Trials that failed\n\n");
    }
    for one in export.failed {
        let trial: String = one.trial.chars().take(12).collect();
        let said = format!(
            "{}, seed {}, trial {trial}: {}",
            one.candidate, one.seed, one.why
        );
        let _ = writeln!(out, "- {}", escaped(&said));
    }
    out
}

/// The verdict with its probability and reasons.
fn told(out: &mut String, verdict: &Verdict) {
    let (headline, sentences) = answer(verdict);
    let _ = writeln!(out, "# {}\n", escaped(&headline));
    let question = format!("{}, on {}.", verdict.title, verdict.card);
    let _ = writeln!(out, "{}\n", escaped(&question));
    for said in sentences {
        let _ = writeln!(out, "{}\n", escaped(&said));
    }
    let reasons = verdict.advised().map(|advised| advised.reasons.iter());
    for reason in reasons.into_iter().flatten() {
        let _ = writeln!(out, "- {}.", escaped(&sentence(reason)));
    }
    for change in &verdict.changes {
        let _ = writeln!(out, "- {}.", escaped(&sentence(&change.text)));
    }
}

fn fields(row: &FigureRow) -> [String; 12] {
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

fn failed_fields(one: &FailedRow) -> [String; 12] {
    let none = String::new;
    [
        one.card.clone(),
        one.kernel.clone(),
        one.clock.clone(),
        one.candidate.clone(),
        one.mount_options.clone(),
        one.workload.clone(),
        none(),
        none(),
        none(),
        none(),
        one.seed.to_string(),
        one.trial.clone(),
    ]
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
            c if whichfs_units::is_harmful(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
