//! Logs of measurements from files: runs with their curves.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use whichfs_curves::logs::{self, Run};

/// The runs of `paths`; `run` names the one to take, and what was passed over is told on
/// standard error unless `quiet`.
pub fn read(paths: &[PathBuf], run: Option<&str>, quiet: bool) -> Outcome<Vec<Run>> {
    let mut runs = Vec::new();
    for path in paths {
        runs.extend(of_file(path, run, quiet)?);
    }
    if let Some(name) = run {
        runs.retain(|found| found.name == name);
    }
    Ok(runs)
}

fn of_file(path: &Path, run: Option<&str>, quiet: bool) -> Outcome<Vec<Run>> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let options = logs::Options {
        run: run.map(str::to_owned),
    };
    let reading = logs::read_with(&name, text, &options).map_err(Failure::input)?;
    if !quiet {
        for (what, remarks) in [
            ("passed over", &reading.skipped),
            ("mended", &reading.mended),
        ] {
            if let Some(first) = remarks.first() {
                let (more, line) = (remarks.len() - 1, first.lines.0);
                let more = if more > 0 {
                    format!(", and {more} more places")
                } else {
                    String::new()
                };
                note!("{name}: {what} at line {line}: {}{more}", first.why);
            }
        }
    }
    Ok(reading.runs)
}

/// The only run of several files, or an error that names the choices.
pub fn only(runs: Vec<Run>) -> Outcome<Run> {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    if runs.len() > 1 {
        return Err(Failure::input(format!(
            "{} runs; choose one with --run: {}",
            runs.len(),
            names.join(", ")
        )));
    }
    runs.into_iter()
        .next()
        .ok_or_else(|| Failure::input("no run of that name in these files"))
}
