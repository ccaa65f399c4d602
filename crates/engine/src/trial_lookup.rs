//! A finished trial by the beginning of its id.

use crate::error::{Error as Failure, Outcome};
use crate::places;
use crate::shell::quoted_os;
use crate::trial_cache::open_store;
use std::ffi::OsString;
use std::path::Path;
use whichfs_store::Store;
use whichfs_trial::TrialRecord;

/// Trials that are named where the beginning of an id is that of several.
const NAMED: usize = 5;

/// Digits that an id begins with, at least.
const LEAST: usize = 4;

/// The store, and in it the one trial whose id begins with `id`.
///
/// # Errors
/// `id` is none, there is no such trial, or there are several; the store cannot be read.
pub fn find(id: &str, store: Option<&Path>) -> Outcome<(Store, TrialRecord)> {
    let asked = id.to_ascii_lowercase();
    if asked.len() < LEAST || !asked.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(Failure::input(format!(
            "'{}' is no id of a trial: name its first {LEAST} or more hexadecimal digits, as in a \
             report's results.csv",
            id
        )));
    }
    let store = existing(store)?;
    let path = store.path().to_owned();
    let found = store
        .beginning(&asked, NAMED + 1)
        .map_err(Failure::environment)?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok((store, one)),
        (None, _) => Err(Failure::input(format!(
            "no trial in {} begins with {asked}; was it kept in another store?",
            path.display()
        ))),
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(found);
            let mut names: Vec<String> = all.map(|one| named(&one)).collect();
            if names.len() > NAMED {
                names[NAMED] = "…".to_owned();
            }
            Err(Failure::input(format!(
                "several trials begin with {asked}: {}; name more digits",
                names.join(", ")
            )))
        }
    }
}

/// The store at `path`, or in the user's data directory; looking makes none.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn existing(path: Option<&Path>) -> Outcome<Store> {
    let path = path.map_or_else(places::store, |path| Ok(path.to_owned()))?;
    if !path.exists() {
        return Err(Failure::input(format!(
            "there is no store at {}: name the one that the trials were kept in",
            path.display()
        )));
    }
    open_store(&path)
}

fn named(stored: &TrialRecord) -> String {
    let identity = &stored.trial.identity;
    let id = stored.id.get(..12).unwrap_or(&stored.id);
    format!("{id} ({}, seed {})", identity.candidate, identity.seed)
}

/// The command that shows a trial of a run with the arguments `words`: TRIAL stands for its id.
pub fn show_line(words: impl Iterator<Item = OsString>) -> String {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let show = "whichfs trial show TRIAL".to_owned();
    while let Some(word) = words.next() {
        let store = match word.split_once('=') {
            Some(("--store", path)) => Some(path.to_owned()),
            _ if word == "--store" => words.next(),
            _ => None,
        };
        if let Some(store) = store {
            return format!(
                "{show} --store {}",
                quoted_os(OsString::from(store).as_ref())
            );
        }
    }
    show
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_shown_from_the_store_that_has_it() {
        let show = |line: &str| show_line(line.split(' ').map(OsString::from));
        assert_eq!(show("choose --json"), "whichfs trial show TRIAL");
        let kept = "whichfs trial show TRIAL --store t.sqlite";
        assert_eq!(
            [
                show("choose --store t.sqlite"),
                show("choose --store=t.sqlite -x")
            ],
            [kept; 2]
        );
    }
}
