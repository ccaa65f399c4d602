//! `whichfs fs`: the catalogue of filesystems, tuned to a card.

pub mod compare;
pub mod why;

use crate::cli::FsShowArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use whichfs_engine::trial_cache::open_store;
use whichfs_engine::{cards, places, tools};
use whichfs_fs::{Candidate, Geometry, Purpose};
use whichfs_report::documents::fs::{FsLine, Here, fs_shown, fs_table, fs_text};
use whichfs_store::Filter;
use whichfs_trial::Trial;

/// All filesystems, a line each.
pub fn list(json: bool) -> Outcome<u8> {
    let geometry = cards::geometry(&cards::open(cards::DEFAULT)?.profile);
    let all = whichfs_fs::candidates().iter();
    let line = |candidate| FsLine::new(candidate, missing_tools(candidate, &geometry));
    let lines: Vec<FsLine> = all.map(line).collect();
    match json {
        true => output::list(&lines)?,
        false => output::text_line(&fs_table(&lines, output::width()))?,
    }
    Ok(0)
}

/// One filesystem on a card: commands, tuning, limits, sources. Exit code 1 if it is unfit.
pub fn show(args: &FsShowArgs) -> Outcome<u8> {
    let candidate = whichfs_fs::find(&args.name).map_err(Failure::input)?;
    let card = cards::open(&args.card)?;
    let geometry = cards::geometry(&card.profile);
    let recipe = candidate.recipe(&geometry, Purpose::User);
    let code = match recipe {
        Ok(_) => 0,
        Err(_) => exit_code(Kind::No),
    };
    // The catalogue is shown without trials too: a store that cannot be read is told of, and no
    // more.
    let trials = trials(&card.name).unwrap_or_else(|failure| {
        note!("what it is good and bad at here is not known: {failure}");
        Vec::new()
    });
    let here = Here::of(candidate.name, &card.name, &trials);
    let document = fs_shown(candidate, here, missing_tools(candidate, &geometry), recipe);
    match args.json {
        true => output::document(&document)?,
        false => output::text_line(&fs_text(&document, output::width()))?,
    }
    Ok(code)
}

/// Programs that this machine lacks to make and check `candidate` on a real device.
pub fn missing_tools(candidate: &Candidate, geometry: &Geometry) -> Vec<&'static str> {
    let recipe = candidate.recipe(geometry, Purpose::Lab { seed: 1 });
    let needed = recipe.map(|recipe| recipe.tools).unwrap_or_default();
    needed
        .into_iter()
        .filter(|tool| tools::find(tool).is_none())
        .collect()
}

/// The finished trials on `card` in the user's store.
fn trials(card: &str) -> Outcome<Vec<Trial>> {
    let path = places::store()?;
    // Looking makes no store.
    if !path.exists() {
        return Ok(Vec::new());
    }
    let store = open_store(&path)?;
    let done = Filter {
        card: Some(card.to_owned()),
        done: Some(true),
        ..Filter::default()
    };
    let stored = store.find(&done).map_err(Failure::environment)?;
    Ok(stored.into_iter().map(|stored| stored.trial).collect())
}
