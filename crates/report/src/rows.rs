//! The results as one tidy table, a row a figure and a row a trial that failed: `results.csv`,
//! `results.json` and, in part, `results.md`. [`ResultRow`] alone defines it.

use crate::answer::answer;
use crate::number::with_unit;
use crate::terminal::sentence;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_decide::{FigureOrigin, FigureRow, Verdict};
use whichfs_trial::{REAL, Status, Trial};
use whichfs_units::shell_word;

/// What the table is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Export<'a> {
    /// Figures of the trials that were done, and of series of power cuts.
    pub rows: &'a [FigureRow],
    /// The trials, each with the name of its variant (empty where there is only one). Those that
    /// failed have a row of their own.
    pub trials: &'a [(&'a str, &'a Trial)],
    /// Median relative error of the card's model on what was measured of the card, where its
    /// profile states it and the figures are modelled.
    pub fit_error: Option<f64>,
}

/// One figure of one trial, or a trial that failed. The fields are the columns, in their order.
/// New columns may come at the end; if one goes or changes its meaning, [`ResultRow::SCHEMA`]
/// counts up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ResultRow<'a> {
    /// Name of the card profile.
    pub card: &'a str,
    /// Release of the kernel.
    pub kernel: &'a str,
    /// `cpu:<board>`, `device` or `real`.
    pub clock: &'a str,
    /// Candidate name.
    pub candidate: &'a str,
    /// Mount options as in fstab.
    pub mount_options: &'a str,
    /// Name of the workload.
    pub workload: &'a str,
    /// Metric name; none if the trial failed.
    pub metric: Option<&'a str>,
    /// Value in `unit`, not rounded; none if the trial failed.
    pub value: Option<f64>,
    /// Unit of the value; none if the trial failed.
    pub unit: Option<&'a str>,
    /// True for durations and space; none if the trial failed.
    pub lower_is_better: Option<bool>,
    /// Seed of the trial.
    pub seed: u64,
    /// Id of the trial; of the metric `power_loss`, of the series of power cuts.
    pub trial: String,
    /// `modelled` (clocks `cpu:…` and `device`) or `measured` (clock `real`).
    pub origin: &'a str,
    /// Median relative error of the card's model on what was measured of the card (0.06 is 6 %);
    /// none where its profile states none, of measured figures, and in studies.
    pub fit_error: Option<f64>,
    /// Why the trial failed, in one line; none if it did not.
    pub failed: Option<&'a str>,
    /// Variant of a study: what it changes of the catalogue's options; empty where there is only
    /// one.
    pub variant: &'a str,
    /// Name of the board. This and all below are none of series of power cuts.
    pub board: Option<&'a str>,
    /// `used` or `fresh`.
    pub card_state: Option<&'a str>,
    /// The mkfs commands as run, separated by `; `.
    pub mkfs: Option<String>,
    /// Byte offset of the partition on the card.
    pub partition_offset: Option<u64>,
    /// Size of the partition in bytes.
    pub partition_bytes: Option<u64>,
    /// Parameters of the workload: `name=value`, separated by spaces.
    pub parameters: Option<String>,
    /// Version of whichfs and of its method.
    pub version: Option<&'a str>,
    /// SHA-256 of the resolved profile, after the seed's draw of its parameters.
    pub card_sha256: Option<&'a str>,
    /// SHA-256 of the kernel image.
    pub kernel_sha256: Option<&'a str>,
    /// SHA-256 of the agent's binary.
    pub agent_sha256: Option<&'a str>,
    /// SHA-256 of the sealed userland; none also where programs of the host ran.
    pub userland_sha256: Option<&'a str>,
    /// Number of the schema of this table.
    pub schema: u32,
}

impl ResultRow<'_> {
    /// Number of the schema: it counts up when a column goes or changes its meaning.
    pub const SCHEMA: u32 = 1;
}

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

/// The table of `export`: its figures, then the trials that failed.
pub fn result_rows<'a>(export: &Export<'a>) -> Vec<ResultRow<'a>> {
    let known = export.trials.iter();
    let known: BTreeMap<String, (&str, &Trial)> = known
        .map(|(variant, trial)| (trial.identity.id(), (*variant, *trial)))
        .collect();
    let figures = export.rows.iter().map(|row| {
        let plain = ResultRow {
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
            trial: row.trial.clone(),
            origin: origin(&row.clock).word(),
            fit_error: export.fit_error_of(&row.clock),
            failed: None,
            schema: ResultRow::SCHEMA,
            ..ResultRow::default()
        };
        match known.get(&row.trial) {
            Some((variant, trial)) => ResultRow {
                metric: plain.metric,
                value: plain.value,
                unit: plain.unit,
                lower_is_better: plain.lower_is_better,
                failed: None,
                ..export.row_of(variant, trial, plain.trial)
            },
            None => plain,
        }
    });
    let failed = export.trials.iter().filter_map(|(variant, trial)| {
        let Status::Failed { reason, .. } = &trial.outcome.status else {
            return None;
        };
        let why = reason.lines().next().unwrap_or_default().trim();
        Some(ResultRow {
            failed: Some(if why.is_empty() { "failed" } else { why }),
            ..export.row_of(variant, trial, trial.identity.id())
        })
    });
    figures.chain(failed).collect()
}

impl<'a> Export<'a> {
    /// The model's error that belongs to a figure by this clock.
    fn fit_error_of(&self, clock: &str) -> Option<f64> {
        let modelled = origin(clock) == FigureOrigin::Modelled;
        self.fit_error.filter(|_| modelled)
    }

    /// What a row of `trial`, which has the id `id`, says of it, without a figure.
    fn row_of(&self, variant: &'a str, trial: &'a Trial, id: String) -> ResultRow<'a> {
        let of = &trial.identity;
        let commands = of.mkfs.iter().map(|words| {
            let words = words.iter().map(|word| shell_word(word));
            words.collect::<Vec<_>>().join(" ")
        });
        let parameters = of.parameters.iter();
        let parameters = parameters.map(|(name, value)| format!("{name}={value}"));
        ResultRow {
            card: &of.card,
            kernel: &of.kernel,
            clock: &of.clock,
            candidate: &of.candidate,
            mount_options: &of.mount_options,
            workload: &of.workload,
            metric: None,
            value: None,
            unit: None,
            lower_is_better: None,
            seed: of.seed,
            trial: id,
            origin: origin(&of.clock).word(),
            fit_error: self.fit_error_of(&of.clock),
            failed: None,
            variant,
            board: Some(&of.board),
            card_state: Some(&of.card_state),
            mkfs: Some(commands.collect::<Vec<_>>().join("; ")),
            partition_offset: Some(of.partition_offset),
            partition_bytes: Some(of.partition_bytes),
            parameters: Some(parameters.collect::<Vec<_>>().join(" ")),
            version: Some(&of.version),
            card_sha256: Some(&of.card_sha256),
            kernel_sha256: Some(&of.kernel_sha256),
            agent_sha256: Some(&of.agent_sha256),
            userland_sha256: of.userland_sha256.as_deref(),
            schema: ResultRow::SCHEMA,
        }
    }
}

/// RFC 4180 with the columns of [`ResultRow`] in the first line. Lines end with `\n`.
pub fn csv(export: &Export) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = result_rows(export);
    // The writer takes the columns from the first row; also a table without rows has them.
    let none = [ResultRow::default()];
    let some = if rows.is_empty() { &none[..] } else { &rows };
    for row in some {
        let written = writer.serialize(row);
        debug_assert!(written.is_ok(), "memory takes every record");
    }
    let bytes = writer.into_inner().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = match rows.is_empty() {
        true => text.split_inclusive('\n').take(1).collect(),
        false => text,
    };
    whichfs_units::printable_lines(&text)
}

/// The files of the table, each with its name.
pub fn results_files(export: &Export) -> [(&'static str, Vec<u8>); 2] {
    [
        ("results.csv", csv(export).into_bytes()),
        ("results.json", json(export).into_bytes()),
    ]
}

/// A form of the table of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialTable {
    /// RFC 4180.
    Csv,
    /// An array of objects.
    Json,
}

impl TrialTable {
    /// The form of files whose names end so.
    pub fn of_extension(extension: &str) -> Option<TrialTable> {
        match extension {
            "csv" => Some(TrialTable::Csv),
            "json" => Some(TrialTable::Json),
            _ => None,
        }
    }

    /// The table of `trials`: of each that was done its figures, of each that failed why.
    pub fn text<'a>(self, trials: impl Iterator<Item = &'a Trial>) -> String {
        let trials: Vec<(&str, &Trial)> = trials.map(|trial| ("", trial)).collect();
        let done = trials.iter().map(|(_, trial)| *trial);
        let done = done.filter(|trial| trial.outcome.status == Status::Done);
        let rows: Vec<FigureRow> = done.flat_map(FigureRow::of_trial).collect();
        let export = Export {
            rows: &rows,
            trials: &trials,
            fit_error: None,
        };
        match self {
            TrialTable::Csv => csv(&export),
            TrialTable::Json => json(&export),
        }
    }
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

/// A JSON array with an object for each row.
pub fn json(export: &Export) -> String {
    let text = serde_json::to_string_pretty(&result_rows(export));
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
    let rows = result_rows(export);
    let (failed, figures): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.failed.is_some());
    for row in figures {
        let better = match row.lower_is_better {
            Some(true) => "lower",
            _ => "higher",
        };
        let cells = [
            row.card.to_owned(),
            row.kernel.to_owned(),
            row.clock.to_owned(),
            row.candidate.to_owned(),
            row.mount_options.to_owned(),
            row.workload.to_owned(),
            row.metric.unwrap_or_default().to_owned(),
            with_unit(row.value.unwrap_or_default(), row.unit.unwrap_or_default()),
            better.to_owned(),
            row.seed.to_string(),
            row.trial.chars().take(12).collect(),
            row.origin.to_owned(),
        ];
        let cells = cells.map(|cell| escaped(&cell));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if !failed.is_empty() {
        out.push_str("\n## Trials that failed\n\n");
    }
    for row in failed {
        let trial: String = row.trial.chars().take(12).collect();
        let why = row.failed.unwrap_or_default();
        let said = format!("{}, seed {}, trial {trial}: {why}", row.candidate, row.seed);
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

/// A Markdown cell: nothing in it can end the cell or begin markup.
pub(crate) fn escaped(cell: &str) -> String {
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
