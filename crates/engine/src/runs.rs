//! Finished runs from the files of a report or a store: figures, what was decided, what failed.

use crate::error::{Error as Failure, Outcome};
use crate::json_lines;
use crate::report_folder::LATEST;
use crate::shell::quoted_os;
use crate::trial_cache::open_store;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use whichfs_probe::Sweep;
use whichfs_store::Filter;
use whichfs_study::{RegressionRun, RunVerdict, TrialFailure, read_csv, read_json};
use whichfs_trial::Status;

/// The run at `path`: its figures, and where they are known what it decided and what failed.
///
/// # Errors
/// There are no figures, or they cannot be read.
pub fn read(path: &Path) -> Outcome<RegressionRun> {
    let shown = path.display();
    let name = shown.to_string();
    let fail = |problem: String| {
        Failure::input(format!(
            "{shown}: {problem}; name the directory of a finished report, its \
             results.json or results.csv, or a store"
        ))
    };
    let file = match path.is_dir() {
        // Of the folders of several runs the newest is meant.
        true => [path.join(LATEST).join(RESULTS), path.join(RESULTS)]
            .into_iter()
            .find(|file| file.is_file())
            .unwrap_or(path.join(RESULTS)),
        false => path.to_owned(),
    };
    let extension = file.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("sqlite" | "db")) && file.is_file() {
        return stored(&file, name);
    }
    let text = crate::input::read_text(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound if path.is_dir() => lacking(path),
        _ => fail(error.to_string()),
    })?;
    let (rows, failed) = match extension {
        Some("csv") => read_csv(&text),
        _ => read_json(&text),
    }
    .map_err(|problem| match json_lines::name_of(&text) {
        Some(name) => other_document(&file, &name),
        None => Failure::input(format!("{}: {problem}", file.display())),
    })?;
    let (answer, show) = match decision(&file)? {
        Some(decided) => (Some(decided.answer), decided.show),
        None => (None, String::new()),
    };
    Ok(RegressionRun {
        name,
        rows,
        answer,
        failed,
        show: match show.is_empty() {
            true => SHOW.to_owned(),
            false => show,
        },
    })
}

/// Name of the document that is a sweep.
const SWEEP: &str = "probe --sweep";

/// The sweeps of block sizes in the files at `paths`, documents of `probe --sweep`; none if the
/// first is no document.
///
/// # Errors
/// There are more than `most`, or one is another document.
pub fn sweeps(paths: &[PathBuf], most: usize) -> Outcome<Option<Vec<Sweep>>> {
    let read = |path: &PathBuf| {
        let text = crate::input::read_text(path).map_err(|error| error.to_string())?;
        json_lines::document::<Sweep>(text.as_bytes(), SWEEP, 1)
    };
    let first = paths.first().filter(|first| !first.is_dir());
    let text = first.and_then(|first| Some((first, crate::input::read_text(first).ok()?)));
    match text.and_then(|(first, text)| Some((first, json_lines::name_of(&text)?))) {
        None => return Ok(None),
        Some((_, name)) if name == SWEEP => {}
        Some((first, name)) => return Err(other_document(first, &name)),
    }
    if paths.len() > most {
        return Err(Failure::input(format!(
            "{} sweeps: at most {most} stand side by side: name fewer",
            paths.len()
        )));
    }
    let each = paths.iter().map(|path| {
        let wrong = |why| Failure::input(format!("{}: {why}; name sweeps alone", path.display()));
        read(path).map_err(wrong)
    });
    each.collect::<Outcome<Vec<Sweep>>>().map(Some)
}

/// That the file at `path` is the document called `name`, which has no figures to compare.
fn other_document(path: &Path, name: &str) -> Failure {
    Failure::input(format!(
        "{}: it is a document of `whichfs {name}`, which has nothing to compare; name sweeps \
         (`whichfs {SWEEP} --json DEV`), or directories that `whichfs choose --out` wrote",
        path.display()
    ))
}

/// The figures of a directory of a report.
const RESULTS: &str = "results.json";

/// What it decided.
const VERDICT: &str = "verdict.json";

/// Shows a trial that is in the user's store.
const SHOW: &str = "whichfs trial show TRIAL";

/// That a directory has no figures, and what it has in their place.
fn lacking(path: &Path) -> Failure {
    let missing = path.join(RESULTS);
    let csv = path.join("results.csv");
    let remedy = match csv.is_file() {
        true => format!("{} is there: name that file", quoted_os(csv.as_os_str())),
        false => {
            "name a directory that `whichfs choose` wrote, its results.csv, or a store".to_owned()
        }
    };
    Failure::input(format!(
        "{}: there is no such file; {remedy}",
        missing.display()
    ))
}

/// What `verdict.json` says that is compared.
#[derive(Deserialize)]
struct Decided {
    #[serde(flatten)]
    answer: RunVerdict,
    #[serde(default)]
    show: String,
}

/// The decision beside the figures in `file`; none if there is none.
fn decision(file: &Path) -> Outcome<Option<Decided>> {
    // A file of figures of another name may lie beside a decision that is not its own.
    let own = file.file_stem().is_some_and(|stem| stem == "results");
    let path = file.with_file_name(VERDICT);
    if !own || !path.is_file() {
        return Ok(None);
    }
    let read = crate::input::read_text(&path).map_err(|error| error.to_string());
    let decided = read.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    decided.map(Some).map_err(|problem| {
        let shown = path.display();
        Failure::input(format!(
            "{shown}: {problem}; it is no verdict of whichfs: run `whichfs choose` again, or \
             remove it to compare figures alone"
        ))
    })
}

/// The trials of a store.
fn stored(file: &Path, name: String) -> Outcome<RegressionRun> {
    let store = open_store(file)?;
    let which = |done| Filter {
        done: Some(done),
        ..Filter::default()
    };
    let rows = store.rows(&which(true)).map_err(Failure::environment)?;
    let failed = store.find(&which(false)).map_err(Failure::environment)?;
    let failed = failed.into_iter().filter_map(|stored| {
        let Status::Failed { reason, .. } = stored.trial.outcome.status else {
            return None;
        };
        let identity = stored.trial.identity;
        Some(TrialFailure {
            card: identity.card,
            candidate: identity.candidate,
            workload: identity.workload,
            reason,
            id: stored.id,
        })
    });
    Ok(RegressionRun {
        name,
        rows,
        answer: None,
        failed: failed.collect(),
        show: format!("{SHOW} --store {}", quoted_os(file.as_os_str())),
    })
}
