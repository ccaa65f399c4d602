//! The files of a report, each with its name: what the folder of a run gets.

use crate::crash::{CrashPage, crash_csv, crash_outcomes_csv};
use crate::crash_page::crash_html;
use crate::document::{Document, document_json};
use crate::junit::{Case, crash_cases, junit_of, junit_with, verdict_cases};
use crate::ktap::ktap;
use crate::page::{Page, html};
use crate::rows::{Export, markdown, results_files};
use crate::study_page::{StudyPage, study_html};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_decide::FigureRow;
use whichfs_trial::Trial;
use whichfs_units::utc_words;

/// A file: its name, and what it holds.
pub type ReportFile = (&'static str, Vec<u8>);

/// Names of the files of `choose`; the page comes first.
pub const VERDICT_FILES: [&str; 7] = [
    "report.html",
    "verdict.json",
    "junit.xml",
    "results.ktap",
    "results.md",
    "results.csv",
    "results.json",
];

/// Names of the files of a study with trials.
pub const STUDY_FILES: [&str; 5] = [
    "report.html",
    "study.json",
    "results.ktap",
    "results.csv",
    "results.json",
];

/// Names of the files of power cuts.
pub const CRASH_FILES: [&str; 4] = ["report.html", "junit.xml", "results.csv", "outcomes.csv"];

/// When a report was made, and what its user calls the run by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStamp {
    /// Seconds since 1970.
    pub made_unix: i64,
    /// Keys and values of `--label`, in the order in which they were given.
    pub labels: Vec<(String, String)>,
}

impl RunStamp {
    /// Date and labels, as names and values; nothing of a run without a stamp.
    pub fn items(&self) -> Vec<(String, String)> {
        if *self == RunStamp::default() {
            return Vec::new();
        }
        let date = ("date".to_owned(), utc_words(self.made_unix));
        [&[date], self.labels.as_slice()].concat()
    }
}

/// The files of `choose`: the page, the verdict, and the figures `rows` of `trials`.
///
/// # Errors
/// The format of a file cannot hold them.
pub fn verdict_files(
    page: &Page,
    rows: &[FigureRow],
    trials: &[Trial],
) -> Result<Vec<ReportFile>, String> {
    let verdict = &page.verdict;
    let plain: Vec<(&str, &Trial)> = trials.iter().map(|trial| ("", trial)).collect();
    let export = Export {
        rows,
        trials: &plain,
        fit_error: verdict.fit_error.map(|fit| fit.median),
    };
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for trial in trials {
        let own = seconds.entry(&trial.identity.candidate).or_default();
        *own += trial.outcome.virtual_time.as_secs_f64();
    }
    let document = document_json(page).map_err(|error| error.to_string())?;
    let mut files = vec![
        ("report.html", html(page).into_bytes()),
        ("verdict.json", document.into_bytes()),
        (
            "junit.xml",
            junit_of("whichfs choose", page, &seconds).into_bytes(),
        ),
        ("results.ktap", ktap(&verdict_cases(verdict)).into_bytes()),
        ("results.md", markdown(verdict, &export).into_bytes()),
    ];
    files.extend(results_files(&export));
    Ok(files)
}

/// The files of a study with trials, which are the test `cases`.
///
/// # Errors
/// The format of a file cannot hold it.
pub fn study_files(
    page: &StudyPage,
    document: &impl Document,
    export: &Export,
    cases: &[Case],
) -> Result<Vec<ReportFile>, String> {
    let json = document_json(document).map_err(|error| format!("study.json: {error}"))?;
    let mut files = vec![
        ("report.html", study_html(page).into_bytes()),
        ("study.json", json.into_bytes()),
        ("results.ktap", ktap(cases).into_bytes()),
    ];
    files.extend(results_files(export));
    Ok(files)
}

/// The files of power cuts.
pub fn crash_files(page: &CrashPage) -> Vec<ReportFile> {
    let mut properties = page.run.items();
    let items = page.environment.iter();
    properties.extend(items.map(|item| (item.label.clone(), item.value.clone())));
    let junit = junit_with("whichfs crash run", &properties, &crash_cases(page));
    vec![
        ("report.html", crash_html(page).into_bytes()),
        ("junit.xml", junit.into_bytes()),
        ("results.csv", crash_csv(page).into_bytes()),
        ("outcomes.csv", crash_outcomes_csv(page).into_bytes()),
    ]
}
