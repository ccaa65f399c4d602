//! `whichfs report`: several runs side by side.

use crate::cli::ReportArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::keeper::open_store;
use crate::output;
use crate::page::command_line;
use crate::places::WholeFile;
use std::path::Path;
use whichfs_report::{
    ComparisonPage, comparison_cases, comparison_html, comparison_markdown, comparison_text, junit,
};
use whichfs_store::Filter;
use whichfs_study::{Row, Run, compare_runs};
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
runs: the card, the kernel, the board, the user's own image.";

/// Share that a test case may be worse where nobody says how much.
const FAIL_OVER: f64 = 0.1;

/// Runs the command. Exit code 1 if `--fail-over` is given and something is worse by more.
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
        file.write(junit("whichfs report", &cases).as_bytes())?;
    }
    if let Some(html) = html {
        let page = ComparisonPage {
            comparison: &comparison,
            fail_over: share,
            reproduce: command_line(std::env::args_os().skip(1)),
        };
        html.write(comparison_html(&page).as_bytes())?;
    }
    let failures = comparison.failures(share);
    match (args.json, args.markdown) {
        (true, _) => output::json(&comparison)?,
        (_, true) => output::text(&comparison_markdown(&comparison, args.all))?,
        _ => output::text(&comparison_text(&comparison, output::width(), args.all))?,
    }
    match args.fail_over {
        Some(_) if !failures.is_empty() => {
            let percent = share * 100.0;
            let count = counted(failures.len(), "figure");
            note!("worse by more than {percent:.0} % beyond noise, or gone: {count}");
            Ok(Kind::No as u8)
        }
        _ => Ok(0),
    }
}

/// The figures at `path`.
fn read(path: &Path) -> Outcome<Run> {
    let shown = path.display();
    let fail = |problem: String| {
        Failure::input(format!(
            "{shown}: {problem}; name the directory of a finished report (choose --out), its \
             results.json or results.csv, or a store"
        ))
    };
    let file = match path.is_dir() {
        true => path.join("results.json"),
        false => path.to_owned(),
    };
    let extension = file.extension().and_then(|extension| extension.to_str());
    let text = || std::fs::read_to_string(&file).map_err(|error| fail(error.to_string()));
    let rows = match extension {
        Some("sqlite" | "db") if file.is_file() => {
            let store = open_store(&file)?;
            let done = Filter {
                done: Some(true),
                ..Filter::default()
            };
            store.rows(&done).map_err(Failure::environment)?
        }
        Some("csv") => Row::read_csv(&text()?).map_err(fail)?,
        _ => Row::read_json(&text()?).map_err(fail)?,
    };
    Ok(Run {
        name: shown.to_string(),
        rows,
    })
}
