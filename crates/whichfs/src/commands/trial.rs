//! `whichfs trial`: planned trials run; one trial of the store: what decided it, what came out, how
//! to repeat it, and how to be rid of it.

use crate::cli::{FilterArgs, TrialArgs, TrialListArgs, TrialRunArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::progress::Progress;
use crate::{interrupt, output};
use std::time::Duration;
use whichfs_engine::json_lines::NumberedLines;
use whichfs_engine::planned_run::{self, LineResult, PlannedRun};
use whichfs_engine::stores;
use whichfs_engine::trial_lookup::{existing, find};
use whichfs_report::documents::planned::TrialChecked;
use whichfs_report::documents::store::{TrialListed, trials_table};
use whichfs_report::{TrialTold, repeat_command, trial_text};
use whichfs_store::Filter;
use whichfs_trial::TrialRecord;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs trial list --fs ext4 --failed          which trials there are
  whichfs trial show 3f2a91                      the beginning of an id is enough
  whichfs trial show 3f2a91 --store trials.sqlite
  whichfs trial show 3f2a91 --json               identity, phases, figures, whole

Ids of trials are in that list, in a report's lists of samples, in its results.csv and in its
verdict.json.";

/// Examples in the help text of `trial run`.
pub const RUN_EXAMPLES: &str = "\
Examples:
  whichfs study plan pandora --quick > trials.jsonl
  whichfs trial run trials.jsonl --jobs 2 > records.jsonl
  sed -n 7p trials.jsonl | whichfs trial run > record.jsonl
  whichfs trial run trials.jsonl --check         would this machine make the same trials?
  whichfs store import records.jsonl             nothing is in the store before

A trial whose id this machine does not come to (another version, kernel, agent, userland, processor
or card) is refused; the others run. A record of a trial that failed is printed too.

Exit status: 0 done, 2 a line is no planned trial, 3 a trial is refused or this machine lacks
something, 4 a trial failed, 130 interrupted.";

/// Digits of a whole id.
const ID_DIGITS: usize = 64;

/// Finished trials, a line each.
pub fn list(args: &TrialListArgs) -> Outcome<u8> {
    let (_, found) = stores::trials(args.of.store.as_deref(), &filter(&args.filter))?;
    let line = |one: &TrialRecord| TrialListed::new(&one.id, &one.trial, one.finished_at_unix);
    let lines: Vec<TrialListed> = found.iter().map(line).collect();
    match args.of.json {
        true => output::list(&lines)?,
        false if lines.is_empty() => {
            alert!("no trial is like that; `whichfs store info` counts all")
        }
        false => output::text_line(&trials_table(&lines, output::width()))?,
    }
    Ok(if lines.is_empty() {
        exit_code(Kind::No)
    } else {
        0
    })
}

/// What the options say of trials.
pub fn filter(args: &FilterArgs) -> Filter {
    Filter {
        candidate: args.fs.clone(),
        card: args.card.clone(),
        board: args.board.clone(),
        workload: args.workload.clone(),
        seed: args.seed,
        done: args.failed.then_some(false),
        ..Filter::default()
    }
}

/// Runs planned trials.
pub fn run(args: &TrialRunArgs) -> Outcome<u8> {
    let how = PlannedRun {
        jobs: args.jobs as usize,
        wall_limit: Duration::from_secs(args.wall_limit),
        check_only: args.check,
    };
    let mut hear = |result: LineResult<'_>| match result {
        LineResult::Ran(record) => output::json_line(record),
        LineResult::Checked(planned) => output::json_line(&TrialChecked {
            id: planned.id.clone(),
        }),
        LineResult::Refused(line) => {
            let (source, number, why) = (&line.source, line.line, &line.why);
            alert!("{source}, line {number}: refused: {why}");
            Ok(())
        }
    };
    let lines = NumberedLines::open(&args.plan)?;
    let (flag, say) = (interrupt::flag(), |line: &str| note!("{line}"));
    let counts = planned_run::run(lines, how, flag, &say, &mut Progress::default(), &mut hear)?;
    let worst = [
        (counts.malformed, Kind::Input),
        (counts.foreign, Kind::Environment),
        (counts.failed, Kind::Trial),
    ];
    let worst = worst.into_iter().find(|(count, _)| *count > 0);
    Ok(worst.map_or(0, |(_, kind)| exit_code(kind)))
}

/// Runs `whichfs trial show`.
pub fn show(args: &TrialArgs) -> Outcome<u8> {
    tell(args, &find(&args.id, args.of.store.as_deref())?.1)?;
    Ok(0)
}

/// Runs `whichfs trial forget`.
pub fn forget(args: &TrialArgs) -> Outcome<u8> {
    let (mut store, id) = match find(&args.id, args.of.store.as_deref()) {
        Ok((store, stored)) => {
            tell(args, &stored)?;
            (store, stored.id)
        }
        // A record that cannot be read is deleted by its whole id.
        Err(failure) if args.id.len() == ID_DIGITS && failure.kind == Kind::Environment => {
            alert!("{}", failure.message);
            (
                existing(args.of.store.as_deref())?,
                args.id.to_ascii_lowercase(),
            )
        }
        Err(failure) => return Err(failure),
    };
    match store.forget(&id).map_err(Failure::environment)? {
        true => note!("deleted from {}", store.path().display()),
        false => return Err(Failure::environment(format!("{id} is gone meanwhile"))),
    }
    Ok(0)
}

/// Prints the trial.
fn tell(args: &TrialArgs, stored: &TrialRecord) -> Outcome {
    let told = TrialTold {
        id: &stored.id,
        trial: &stored.trial,
        wall_s: stored.wall_ns as f64 / 1e9,
        finished_at_unix: stored.finished_at_unix,
        repeat: repeat_command(&stored.trial.identity),
    };
    match args.of.json {
        true => output::document(&told),
        false => output::text(&trial_text(&told, output::width())),
    }
}
