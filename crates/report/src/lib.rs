//! Rows to HTML, Markdown and tables. Pure.
//!
//! [`terminal`] writes a verdict for a terminal of a given width, [`html`] one
//! self-contained page, [`csv()`], [`json`] and [`markdown`] the rows behind it. All are
//! functions of their arguments: the same rows give the same bytes.

mod answer;
mod boundaries;
mod chart;
mod commands;
mod comparison;
mod comparison_page;
mod comparison_told;
mod crash;
mod crash_page;
mod crash_strip;
mod curves;
mod device;
mod document;
pub mod documents;
mod excluded;
mod files;
mod fit_picture;
mod items;
mod junit;
mod ktap;
pub mod lava;
mod number;
mod page;
mod page_device;
mod page_front;
mod page_parts;
mod page_time;
mod policy;
mod power_cuts;
mod probe_picture;
mod repeat;
mod rows;
mod samples;
mod settling;
mod study_page;
mod svg;
mod sweep;
mod terminal;
mod text;
mod trial;

pub use boundaries::boundaries_text;
pub use comparison::{comparison_cases, comparison_markdown, comparison_text};
pub use comparison_page::{ComparisonPage, comparison_html};
pub use comparison_told::comparison_properties;
pub use crash::{
    ConditionCount, CountWithInterval, CrashGroup, CrashLine, CrashPage, CrashRow, FileCount,
    LineState, Promises, WorstCase, crash_csv, crash_outcomes_csv, milliseconds, ratio, short,
};
pub use crash_page::{crash_file_outcomes, crash_html, files_of};
pub use curves::{svg as curves_svg, terminal as curves_text};
pub use device::{DeviceView, LatencyView, PhaseView, SeriesView, TrialLine, devices, trial_lines};
pub use document::{Document, DocumentSchema, document_json, line_json, list_json};
pub use files::{
    CRASH_FILES, ReportFile, RunStamp, STUDY_FILES, VERDICT_FILES, crash_files, study_files,
    verdict_files,
};
pub use fit_picture::fit_svg;
pub use items::{aside, card_items, item};
pub use junit::{Case, CaseResult, junit, junit_of, junit_with, verdict_cases};
pub use ktap::{KTAP_FIGURE, ktap, ktap_name};
pub use number::{percent, percents, with_unit as figure};
pub use page::{CutSeries, DEFAULT, Item, Page, html};
pub use power_cuts::PowerCuts;
pub use probe_picture::probe_svg;
pub use repeat::repeat_command;
pub use rows::{Export, ResultRow, TrialTable, csv, json, markdown, result_rows, results_files};
pub use study_page::{StudyPage, study_html};
pub use sweep::{
    SWEEPS_MAX, Sweeps, sweep_text, sweeps_csv, sweeps_html, sweeps_markdown, sweeps_text,
};
pub use terminal::{TerminalLook, terminal};
pub use text::{Lines, folded, one_line, table};
pub use trial::{TrialTold, trial_text};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
