//! Trials and the store: what is known is not run again, what ends is kept at once.

use crate::error::{Error, ErrorKind, Outcome};
use crate::places;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use whichfs_store::{Filter, Put, Store, StoreError};
use whichfs_trial::{Identity, REAL, Status, Trial, TrialRecord};
use whichfs_units::counted;

/// Where a trial cache keeps trials: a store, or one with planted faults in tests.
pub trait TrialStore {
    /// The trial with this id.
    ///
    /// # Errors
    /// The store cannot be read.
    fn get(&self, id: &str) -> Result<Option<TrialRecord>, StoreError>;

    /// Keeps a trial that ran for `wall_ns` nanoseconds and ended so many seconds after 1970.
    ///
    /// # Errors
    /// No room, no access, or another success of the same identity.
    fn put(&mut self, trial: &Trial, wall_ns: u64, ended_unix: i64) -> Result<Put, StoreError>;

    /// All trials that `filter` lets through.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, filter: &Filter) -> Result<Vec<TrialRecord>, StoreError>;

    /// Checks that a trial can be kept now.
    ///
    /// # Errors
    /// As [`TrialStore::put`].
    fn require_writable(&self) -> Result<(), StoreError>;
}

impl TrialStore for Store {
    fn get(&self, id: &str) -> Result<Option<TrialRecord>, StoreError> {
        Store::get(self, id)
    }

    fn put(&mut self, trial: &Trial, wall_ns: u64, ended_unix: i64) -> Result<Put, StoreError> {
        Store::put(self, trial, wall_ns, ended_unix)
    }

    fn find(&self, filter: &Filter) -> Result<Vec<TrialRecord>, StoreError> {
        Store::find(self, filter)
    }

    fn require_writable(&self) -> Result<(), StoreError> {
        Store::require_writable(self)
    }
}

/// Knows no trial and keeps none: of trials whose records somebody else keeps.
impl TrialStore for () {
    fn get(&self, _id: &str) -> Result<Option<TrialRecord>, StoreError> {
        Ok(None)
    }

    fn put(&mut self, _trial: &Trial, _wall: u64, _ended: i64) -> Result<Put, StoreError> {
        Ok(Put::New)
    }

    fn find(&self, _filter: &Filter) -> Result<Vec<TrialRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn require_writable(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A store, and what was done with it.
pub struct TrialCache {
    store: Box<dyn TrialStore + Send>,
    /// Run all trials again.
    fresh: bool,
    /// Finished trials that came from the store.
    pub reused: usize,
    /// Trials that were run.
    pub ran: usize,
    /// When the last of those that came from the store was made, in seconds since 1970.
    pub newest: Option<i64>,
}

/// The store at `path`; says where the copy is if it was of an older program.
pub fn open_store(path: &Path) -> Outcome<Store> {
    places::refuse_device(path)?;
    let store = Store::open(path).map_err(Error::environment)?;
    if let Some(backup) = store.backup() {
        let backup = backup.display();
        log::warn!(
            "the store was made by an older whichfs and is up to date now; as it was: {backup}"
        );
    }
    Ok(store)
}

impl TrialCache {
    /// The store at `path`, or at its usual place.
    pub fn open(path: Option<PathBuf>, fresh: bool) -> Outcome<TrialCache> {
        let path = path.map_or_else(places::store, Ok)?;
        Ok(TrialCache::over(Box::new(open_store(&path)?), fresh))
    }

    /// The cache over `store`; `fresh` runs all trials again.
    pub fn over(store: Box<dyn TrialStore + Send>, fresh: bool) -> TrialCache {
        TrialCache {
            store,
            fresh,
            reused: 0,
            ran: 0,
            newest: None,
        }
    }

    /// The finished trial that the store has, unless all are to be run again.
    pub fn known(&mut self, identity: &Identity) -> Outcome<Option<Trial>> {
        let done = |stored: &TrialRecord| stored.trial.outcome.status == Status::Done;
        let known = self.stored(identity)?.filter(done);
        self.reused += usize::from(known.is_some());
        let at = known.as_ref().map(|stored| stored.finished_at_unix);
        self.newest = self.newest.max(at);
        Ok(known.map(|stored| stored.trial))
    }

    /// The trial that the store has, also if it failed: where failing is an answer.
    pub fn answered(&self, identity: &Identity) -> Outcome<Option<Trial>> {
        Ok(self.stored(identity)?.map(|stored| stored.trial))
    }

    fn stored(&self, identity: &Identity) -> Outcome<Option<TrialRecord>> {
        if self.fresh {
            return Ok(None);
        }
        self.store.get(&identity.id()).map_err(Error::environment)
    }

    /// Keeps a trial that ran for `wall`.
    pub fn keep(&mut self, trial: &Trial, wall: Duration) -> Outcome {
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        self.store
            .put(trial, wall_ns, now_unix())
            .map_err(Error::environment)?;
        self.ran += 1;
        Ok(())
    }

    /// All trials that were measured on the device called `card`.
    pub fn measured_on(&self, card: &str) -> Outcome<Vec<TrialRecord>> {
        let filter = Filter {
            card: Some(card.to_owned()),
            clock: Some(REAL.to_owned()),
            ..Filter::default()
        };
        self.store.find(&filter).map_err(Error::environment)
    }

    /// Checks that trials can be kept, before any is run.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn require_writable(&self) -> Outcome {
        self.store.require_writable().map_err(Error::environment)
    }

    /// Whether all trials were to be run again. From now on they are not: those of a new session
    /// are known by their identity.
    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// The wall time of the last trial in the store that is like `identity` in all that makes
    /// trials long: candidate, workload and its parameters.
    pub fn wall_of_alike(&self, identity: &Identity) -> Outcome<Option<Duration>> {
        let filter = Filter {
            candidate: Some(identity.candidate.clone()),
            workload: Some(identity.workload.clone()),
            ..Filter::default()
        };
        let found = self.store.find(&filter).map_err(Error::environment)?;
        let alike = found
            .iter()
            .filter(|stored| stored.trial.identity.parameters == identity.parameters);
        let last = alike.max_by_key(|stored| stored.finished_at_unix);
        Ok(last.map(|stored| Duration::from_nanos(stored.wall_ns)))
    }

    /// The user's interrupt, and what is left of the run.
    pub fn interrupted(&self) -> Error {
        let kept = format!(
            "interrupted; {} kept: the same command goes on from there",
            counted(self.ran, "finished trial")
        );
        Error::new(ErrorKind::Interrupted, kept)
    }
}

/// Seconds since 1970 by the clock of this machine.
pub fn now_unix() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or(0)
}
