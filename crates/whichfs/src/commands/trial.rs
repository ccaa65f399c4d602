//! `whichfs trial`: one trial of the store: what decided it, what came out, how to repeat it; and
//! how to be rid of it.

use crate::cli::{FilterArgs, TrialArgs, TrialListArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use whichfs_engine::stores;
use whichfs_engine::trial_lookup::{existing, find};
use whichfs_report::documents::store::{TrialListed, trials_table};
use whichfs_report::{TrialTold, repeat_command, trial_text};
use whichfs_store::{Filter, Stored};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs trial list --fs ext4 --failed          which trials there are
  whichfs trial show 3f2a91                      the beginning of an id is enough
  whichfs trial show 3f2a91 --store trials.sqlite
  whichfs trial show 3f2a91 --json               identity, phases, figures, whole

Ids of trials are in that list, in a report's lists of samples, in its results.csv and in its
verdict.json.";

/// Digits of a whole id.
const ID_DIGITS: usize = 64;

/// Finished trials, a line each.
pub fn list(args: &TrialListArgs) -> Outcome<u8> {
    let (_, found) = stores::trials(args.of.store.as_deref(), &filter(&args.filter))?;
    let line = |one: &Stored| TrialListed::new(&one.id, &one.trial, one.finished_at_unix);
    let lines: Vec<TrialListed> = found.iter().map(line).collect();
    match args.of.json {
        true => output::list(&lines)?,
        false if lines.is_empty() => {
            note!("no trial is like that; `whichfs store info` counts all")
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
            note!("{}", failure.message);
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
fn tell(args: &TrialArgs, stored: &Stored) -> Outcome {
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
