//! `whichfs study show`: what a study runs, and about how long that takes.

use super::performance;
use crate::cli::StudyShowArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_engine::studies;
use whichfs_lab::available_cores;
use whichfs_report::documents::study::{CrashStudyShown, crash_study_definition};
use whichfs_study::{CrashStudy, Study};

/// Shows one.
pub fn show(args: &StudyShowArgs) -> Outcome<u8> {
    match studies::open(&args.name)? {
        Study::Crash(_) if args.published.is_some() => Err(Failure::input(
            "--published: this study cuts the power; nothing is published to set beside it",
        )),
        Study::Crash(study) => show_crash(&study, args),
        Study::Performance(study) => performance::show(&study, args),
    }
}

fn show_crash(study: &CrashStudy, args: &StudyShowArgs) -> Outcome<u8> {
    let shown = CrashStudyShown::new(study, available_cores().len());
    if args.json {
        output::document(&shown)?;
        return Ok(0);
    }
    output::text(&crash_study_definition(&shown, output::width()))?;
    let name = whichfs_units::shell_word(&args.name);
    output::text_line(&format!("Run it: whichfs study run {name}"))?;
    Ok(0)
}
