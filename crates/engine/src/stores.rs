//! What is done with whole stores: look, merge, export, delete what no verdict uses.

use crate::error::{Error, Outcome};
use crate::trial_cache::open_store;
use crate::trial_lookup::existing;
use crate::version::version;
use std::path::{Path, PathBuf};
use whichfs_store::{Filter, Store};
use whichfs_trial::{Status, TrialRecord};

/// The store at `path`, or the user's, and the trials in it that `filter` lets through.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn trials(path: Option<&Path>, filter: &Filter) -> Outcome<(Store, Vec<TrialRecord>)> {
    let store = existing(path)?;
    let found = store.find(filter).map_err(Error::environment)?;
    Ok((store, found))
}

/// Puts the trials of the stores `others` into the store at `into`, or the user's, which is made if
/// there is none. Gives the store and how many were new.
///
/// # Errors
/// One of `others` is missing or damaged, or has another result of the same trial.
pub fn merge(into: Option<&Path>, others: &[PathBuf]) -> Outcome<(Store, usize)> {
    // What is wrong with them is said before anything is written.
    let others: Vec<Store> = others
        .iter()
        .map(|path| existing(Some(path)))
        .collect::<Outcome<_>>()?;
    let path = into.map_or_else(crate::places::store, |path| Ok(path.to_owned()))?;
    let mut store = open_store(&path)?;
    let mut new = 0;
    for other in &others {
        new += store.merge(other).map_err(Error::environment)?;
    }
    Ok((store, new))
}

/// Puts the trials of the store at `path`, or the user's, that `filter` lets through into the new
/// store `out`. Gives that and how many they are.
///
/// # Errors
/// `out` exists; a store cannot be read or written.
pub fn export(path: Option<&Path>, filter: &Filter, out: &Path) -> Outcome<(Store, usize)> {
    if out.exists() {
        return Err(Error::input(format!(
            "{} exists; name a new file, or use `whichfs store merge`",
            out.display()
        )));
    }
    let (_, found) = trials(path, filter)?;
    let mut new = open_store(out)?;
    for one in &found {
        let put = new.put(&one.trial, one.wall_ns, one.finished_at_unix);
        put.map_err(Error::environment)?;
    }
    Ok((new, found.len()))
}

/// Which trials `gc` deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwanted {
    /// Those that failed: they are run again anyway.
    pub failed: bool,
    /// Those of other versions of whichfs: this one never reuses them.
    pub other_versions: bool,
}

impl Unwanted {
    fn is(self, stored: &TrialRecord) -> bool {
        let failed = stored.trial.outcome.status != Status::Done;
        // A device has no version of the lab's method.
        let other = stored.trial.identity.version != version();
        (self.failed && failed) || (self.other_versions && other)
    }
}

/// Deletes the `unwanted` trials of the store at `path`, or the user's, and gives their room back;
/// with `dry_run` only counts them. Gives the store and how many they are.
///
/// # Errors
/// There is no store, or it cannot be read or written.
pub fn gc(path: Option<&Path>, unwanted: Unwanted, dry_run: bool) -> Outcome<(Store, usize)> {
    let (mut store, found) = trials(path, &Filter::default())?;
    let ids: Vec<String> = found
        .into_iter()
        .filter(|stored| unwanted.is(stored))
        .map(|stored| stored.id)
        .collect();
    if !dry_run && !ids.is_empty() {
        store.forget_all(&ids).map_err(Error::environment)?;
    }
    Ok((store, ids.len()))
}
