//! `whichfs report`: several runs side by side.

use crate::cli::ReportArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use crate::page::command_line;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use whichfs_engine::places::WholeFile;
use whichfs_engine::shell::quoted_os;
use whichfs_engine::trial_cache::open_store;
use whichfs_report::{
    ComparisonPage, comparison_cases, comparison_html, comparison_markdown, comparison_properties,
    comparison_text, junit_with,
};
use whichfs_store::Filter;
use whichfs_study::{Answer, Comparison, Run, TrialFailure, compare_runs, read_csv, read_json};
use whichfs_trial::Status;
use whichfs_units::counted;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs choose --out before; whichfs choose --tree ./new-image --out after
  whichfs report before after                    what changed beyond noise
  whichfs report before after --fail-over 10%    exit 1 if something is worse by more
  whichfs report v1 v2 v3 --junit regressions.xml --fail-over 5%
  whichfs report before after --html changes.html

A run is the directory of a finished report (choose --out), its results.json or results.csv, or
a file of finished trials (--store). What a run's figures have in common may differ between
runs: the card, the kernel, the board, the user's own image. Who wins, and what failed, is read
from the verdict.json beside the figures. A filesystem that worked in the first run and fails in
a later one is told first, and fails --fail-over.";

/// Share that a test case may be worse where nobody says how much.
const FAIL_OVER: f64 = 0.1;

/// Runs the command. Exit code 1 if `--fail-over` is given and something is worse by more, gone,
/// or works no more.
pub fn run(args: &ReportArgs) -> Outcome<u8> {
    if args.runs.len() < 2 {
        let said = "one run compares with nothing: name two or more, for example `whichfs report \
                    before after`";
        return Err(Failure::input(said));
    }
    let file = args.junit.as_deref().map(WholeFile::new).transpose()?;
    let html = args.html.as_deref().map(WholeFile::new).transpose()?;
    let runs = args.runs.iter().map(|path| read(path));
    let runs = runs.collect::<Outcome<Vec<Run>>>()?;
    let comparison = compare_runs(&runs).map_err(Failure::input)?;
    let share = args.fail_over.unwrap_or(FAIL_OVER);
    if let Some(file) = file {
        let cases = comparison_cases(&comparison, share);
        let properties = comparison_properties(&comparison);
        file.write(junit_with("whichfs report", &properties, &cases).as_bytes())?;
    }
    if let Some(html) = html {
        let page = ComparisonPage {
            comparison: &comparison,
            fail_over: share,
            reproduce: command_line(std::env::args_os().skip(1)),
        };
        html.write(comparison_html(&page).as_bytes())?;
    }
    match (args.json, args.markdown) {
        (true, _) => output::json(&comparison)?,
        (_, true) => output::text(&comparison_markdown(&comparison, args.all))?,
        _ => output::text(&comparison_text(&comparison, output::width(), args.all))?,
    }
    Ok(match args.fail_over {
        Some(_) => verdict(&comparison, share),
        None => 0,
    })
}

/// The exit code of `--fail-over`, which is said.
fn verdict(comparison: &Comparison, share: f64) -> u8 {
    let failures = comparison.failures(share).len();
    let broken: BTreeSet<&str> = comparison
        .broken()
        .map(|one| one.candidate.as_str())
        .collect();
    if broken.is_empty() && failures == 0 {
        return 0;
    }
    if !broken.is_empty() {
        let names: Vec<&str> = broken.into_iter().collect();
        note!(
            "worked in the first run and not in a later one: {}",
            names.join(", ")
        );
    }
    if failures > 0 {
        let percent = share * 100.0;
        let count = counted(failures, "figure");
        note!("worse by more than {percent:.0} % beyond noise, or gone: {count}");
    }
    exit_code(Kind::No)
}

/// The run at `path`: its figures, and where they are known what it decided and what failed.
fn read(path: &Path) -> Outcome<Run> {
    let shown = path.display();
    let name = shown.to_string();
    let fail = |problem: String| {
        Failure::input(format!(
            "{shown}: {problem}; name the directory of a finished report (choose --out), its \
             results.json or results.csv, or a store"
        ))
    };
    let file = match path.is_dir() {
        true => path.join(RESULTS),
        false => path.to_owned(),
    };
    let extension = file.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("sqlite" | "db")) && file.is_file() {
        return stored(&file, name);
    }
    let text = whichfs_engine::input::read_text(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound if path.is_dir() => lacking(path),
        _ => fail(error.to_string()),
    })?;
    let (rows, failed) = match extension {
        Some("csv") => read_csv(&text),
        _ => read_json(&text),
    }
    .map_err(|problem| Failure::input(format!("{}: {problem}", file.display())))?;
    let (answer, show) = match decision(&file)? {
        Some(decided) => (Some(decided.answer), decided.show),
        None => (None, String::new()),
    };
    Ok(Run {
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
        false => "name a directory that `whichfs choose --out` wrote, its results.csv, or a store"
            .to_owned(),
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
    answer: Answer,
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
    let read = whichfs_engine::input::read_text(&path).map_err(|error| error.to_string());
    let decided = read.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    decided.map(Some).map_err(|problem| {
        let shown = path.display();
        Failure::input(format!(
            "{shown}: {problem}; it is no verdict of whichfs: run `whichfs choose --out` again, or \
             remove it to compare figures alone"
        ))
    })
}

/// The trials of a store.
fn stored(file: &Path, name: String) -> Outcome<Run> {
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
    Ok(Run {
        name,
        rows,
        answer: None,
        failed: failed.collect(),
        show: format!("{SHOW} --store {}", quoted_os(file.as_os_str())),
    })
}
