//! Logs of measurements from files: runs with their curves.

use crate::error::{Error as Failure, Outcome};
use std::path::{Path, PathBuf};
use whichfs_curves::{Curves, TimedDevice, flashbench};
use whichfs_logs::{LogReading, LoggedRun, Remark, align_text};
use whichfs_units::counted;

/// What `flashbench -a` reads at a time, and how often at each place, if it is not told.
const ALIGN_BLOCK: u64 = 1024;
const ALIGN_TRIES: u32 = 8;

/// What `flashbench -a` would print of `device`.
///
/// # Errors
/// The device fails.
pub fn align_table(device: &mut dyn TimedDevice) -> Outcome<String> {
    let table = flashbench::align(device, ALIGN_BLOCK, ALIGN_TRIES);
    let lines = table.map_err(Failure::environment)?.into_iter();
    let align = lines.map(|(boundary, line)| (boundary, vec![line]));
    Ok(align_text(&Curves {
        align: align.collect(),
        ..Curves::default()
    }))
}

/// Hears what is to be said of a log.
pub type LogListener<'a> = &'a dyn Fn(&str);

/// The runs of `paths`, in their order, and what was passed over, which `tell`
/// hears, too.
pub fn read(paths: &[PathBuf], tell: LogListener<'_>) -> Outcome<(Vec<LoggedRun>, Vec<Remark>)> {
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        let mut reading = of_file(path, None, tell)?.map_err(Failure::input)?;
        runs.append(&mut reading.runs);
        skipped.append(&mut reading.skipped);
    }
    Ok((runs, skipped))
}

/// The only run of `paths`; where several hold one each, what they are together. `run` names
/// the one to take, in whichever of them it is.
pub fn read_one(paths: &[PathBuf], run: Option<&str>, tell: LogListener<'_>) -> Outcome<LoggedRun> {
    let mut choices = Vec::new();
    let (mut parts, mut without) = (Vec::new(), None);
    for path in paths {
        match of_file(path, run, tell)? {
            Ok(mut found) => {
                let place = |run: &LoggedRun| format!("{} ({})", run.name, path.display());
                choices.extend(found.runs.iter().map(place));
                parts.append(&mut found.runs);
            }
            Err(error) => without = without.or(Some(error)),
        }
    }
    match without {
        Some(error) if parts.is_empty() => return Err(Failure::input(error)),
        _ => {}
    }
    let choose = |why: &str| {
        Failure::input(format!(
            "{why}: choose one run, or name fewer files: {}",
            choices.join(", ")
        ))
    };
    // Runs of one file are told apart by their card: they are not parts of one.
    if choices.len() > 1 && choices.len() > paths.len() {
        return Err(choose(&format!("{} runs", choices.len())));
    }
    whichfs_logs::join(parts).map_err(|why| choose(&why))
}

/// What a file holds, or that none of them is called `run`.
fn of_file(
    path: &Path,
    run: Option<&str>,
    tell: LogListener<'_>,
) -> Outcome<Result<LogReading, whichfs_logs::LogError>> {
    let name = path.display().to_string();
    let text = crate::input::read(path)
        .map_err(|error| Failure::input(format!("{name}: {error}; name a log that can be read")))?;
    let options = whichfs_logs::LogOptions {
        run: run.map(str::to_owned),
    };
    let reading = match whichfs_logs::read_with(&name, text, &options) {
        Err(error) if error.problem == whichfs_logs::Problem::NoSuchRun => return Ok(Err(error)),
        reading => reading.map_err(Failure::input)?,
    };
    for (what, remarks) in [
        ("passed over", &reading.skipped),
        ("mended", &reading.mended),
    ] {
        if let Some(first) = remarks.first() {
            let (more, line) = (remarks.len() - 1, first.lines.0);
            let more = if more > 0 {
                format!(", and {}", counted(more, "more place"))
            } else {
                String::new()
            };
            tell(&format!(
                "{name}: {what} at line {line}: {}{more}",
                first.why
            ));
        }
    }
    Ok(Ok(reading))
}
