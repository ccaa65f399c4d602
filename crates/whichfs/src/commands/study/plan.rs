//! `whichfs study plan`: the trials or cuts of a study as JSON lines for other machines.

use super::performance::{WALL_LIMIT_S, changed};
use crate::cli::StudyPlanArgs;
use crate::failure::{Kind, Outcome};
use crate::{interrupt, output};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use whichfs_engine::studies;
use whichfs_engine::study_run::{benches, plan_lines, works};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_study::{Study, TrialRequest};
use whichfs_units::counted;

/// Prints the trials of a study, a line each, or its cuts; what is left out goes to standard error.
pub fn plan(args: &StudyPlanArgs) -> Outcome<u8> {
    let study = match studies::open(&args.name)? {
        Study::Performance(study) => changed(study, &args.trials)?,
        Study::Crash(study) => return super::crash::plan(study, &args.trials),
    };
    // Nothing runs here: the wall limit is that of `trial run`.
    let benches = benches(&study, Duration::from_secs(WALL_LIMIT_S), 1)?;
    let works = works(&study, args.trials.tree.as_deref())?;
    let mut cache = match args.trials.only_missing {
        true => Some(TrialCache::open(None, false)?),
        false => None,
    };
    let spots = study.spots_of_seed(1).len() as u64 * study.seeds;
    let bar = ProgressBar::new(spots).with_style(
        ProgressStyle::with_template("{pos} of {len} trials planned, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut tell = |planned: &TrialRequest| {
        bar.inc(1);
        output::json_line(planned)
    };
    let lines = plan_lines(
        &study,
        &benches,
        &works,
        cache.as_mut(),
        interrupt::flag(),
        &mut tell,
    );
    bar.finish_and_clear();
    let lines = match lines {
        Err(end) if end.kind == Kind::Interrupted && !interrupt::asked() => return Ok(0),
        lines => lines?,
    };
    for left_out in &lines.left_out {
        note!("left out: {left_out}");
    }
    if study.smallest.is_some() {
        note!("the search for the smallest partitions is not planned: `study run` makes it");
    }
    let known = match lines.known {
        0 => String::new(),
        known => format!(", {known} known"),
    };
    note!("{} planned{known}", counted(lines.told, "trial"));
    Ok(0)
}
