//! `whichfs report`: several runs side by side.

use crate::cli::ReportArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use crate::page::command_line;
use std::collections::BTreeSet;
use whichfs_engine::places::WholeFile;
use whichfs_engine::runs::{read, sweeps};
use whichfs_probe::Sweep;
use whichfs_report::{
    ComparisonPage, SWEEPS_MAX, Sweeps, comparison_cases, comparison_html, comparison_markdown,
    comparison_properties, comparison_text, junit_with, sweeps_html, sweeps_markdown, sweeps_text,
};
use whichfs_study::{Comparison, RegressionRun, compare_runs};
use whichfs_units::counted;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs choose --out before; whichfs choose --tree ./new-image --out after
  whichfs report before after                    what changed beyond noise
  whichfs report before after --fail-over 10%    exit 1 if something is worse by more
  whichfs report v1 v2 v3 --junit regressions.xml --fail-over 5%
  whichfs report before after --html changes.html
  whichfs report a1.json emmc.json --html cards.html   sweeps (probe --sweep --json), 1 to 8

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
    if let Some(sweeps) = sweeps(&args.runs, SWEEPS_MAX)? {
        return side_by_side(args, sweeps);
    }
    if args.runs.len() < 2 {
        let said = "one run compares with nothing: name two or more, for example `whichfs report \
                    before after`";
        return Err(Failure::input(said));
    }
    let file = args.junit.as_deref().map(WholeFile::told).transpose()?;
    let html = args.html.as_deref().map(WholeFile::told).transpose()?;
    let runs = args.runs.iter().map(|path| read(path));
    let runs = runs.collect::<Outcome<Vec<RegressionRun>>>()?;
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
            reproduce: command_line(),
        };
        html.write(comparison_html(&page).as_bytes())?;
    }
    match (args.json, args.markdown) {
        (true, _) => output::document(&comparison)?,
        (_, true) => output::text(&comparison_markdown(&comparison, args.all))?,
        _ => output::text(&comparison_text(&comparison, output::width(), args.all))?,
    }
    Ok(match args.fail_over {
        Some(_) => verdict(&comparison, share),
        None => 0,
    })
}

/// Sweeps of several cards, side by side.
fn side_by_side(args: &ReportArgs, sweeps: Vec<Sweep>) -> Outcome<u8> {
    if args.fail_over.is_some() || args.junit.is_some() {
        let said = "--fail-over and --junit are of runs with trials, not of sweeps";
        return Err(Failure::input(said));
    }
    if let Some(html) = args.html.as_deref().map(WholeFile::told).transpose()? {
        html.write(sweeps_html(&sweeps).as_bytes())?;
    }
    match (args.json, args.markdown) {
        (true, _) => output::document(&Sweeps { sweeps })?,
        (_, true) => output::text(&sweeps_markdown(&sweeps))?,
        _ => output::text(&sweeps_text(&sweeps, output::width()))?,
    }
    Ok(0)
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
        alert!(
            "worked in the first run and not in a later one: {}",
            names.join(", ")
        );
    }
    if failures > 0 {
        let percent = share * 100.0;
        let count = counted(failures, "figure");
        alert!("worse by more than {percent:.0} % beyond noise, or gone: {count}");
    }
    exit_code(Kind::No)
}
