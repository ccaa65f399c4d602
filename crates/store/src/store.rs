//! Putting trials in and getting them out.

use crate::error::StoreError;
use crate::schema;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;
use whichfs_decide::FigureRow;
use whichfs_trial::{Status, Trial, TrialRecord};

/// How long another process may hold the lock before that is an error. A trial is
/// written in milliseconds, so whoever holds it longer is stuck or is not one of us.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Trials of one transaction where many are stored: a commit waits for the disk, and a batch fits
/// in memory.
pub const BATCH: usize = 500;

/// An open store.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    path: PathBuf,
    backup: Option<PathBuf>,
}

/// What became of a trial that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was not known and is stored.
    New,
    /// The same bytes were there already.
    Known,
    /// It took the place of a failed trial.
    Replaced,
    /// It failed, but there is a success of the same identity, which stays.
    SuccessKept,
}

impl Put {
    /// Whether the store has another trial than before.
    pub fn changes(self) -> bool {
        matches!(self, Put::New | Put::Replaced)
    }
}

/// Which trials to find; what is `None` does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Name of the card profile.
    pub card: Option<String>,
    /// Name of the board.
    pub board: Option<String>,
    /// `cpu:<board>`, `device` or `real`.
    pub clock: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Candidate name.
    pub candidate: Option<String>,
    /// Name of the workload.
    pub workload: Option<String>,
    /// Seed of the trial.
    pub seed: Option<u64>,
    /// Only those that were done (`true`) or failed (`false`).
    pub done: Option<bool>,
    /// `used` or `fresh`.
    pub card_state: Option<String>,
}

/// The smallest page of an SQLite database, in bytes.
const PAGE_MIN: u64 = 512;

/// Refuses what is shorter than a page and not empty: SQLite would take some of that for a new
/// database, and write over it.
fn refuse_short(path: &Path) -> Result<(), StoreError> {
    let bytes =
        std::fs::metadata(path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
    match bytes {
        1..PAGE_MIN => Err(StoreError::Corrupt {
            path: path.to_owned(),
            detail: format!("{} long", whichfs_units::Bytes(bytes)),
        }),
        _ => Ok(()),
    }
}

/// A filter's `WHERE` clause; its parameters are bound in this order.
const WHERE: &str = "(?1 IS NULL OR card = ?1) AND (?2 IS NULL OR board = ?2)
    AND (?3 IS NULL OR clock = ?3) AND (?4 IS NULL OR kernel = ?4)
    AND (?5 IS NULL OR candidate = ?5) AND (?6 IS NULL OR workload = ?6)
    AND (?7 IS NULL OR seed = ?7) AND (?8 IS NULL OR done = ?8)
    AND (?9 IS NULL OR card_state = ?9)";

impl Store {
    /// Opens the store at `path`, making it and its directories if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: locked, damaged, foreign, newer, no access, no room.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open_with_timeout(path, BUSY_TIMEOUT)
    }

    /// As [`Store::open`], waiting for another process's lock for `busy` at most.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with_timeout(path: &Path, busy: Duration) -> Result<Store, StoreError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| StoreError::Access {
                path: path.to_owned(),
                detail: error.to_string(),
            })?;
        }
        refuse_short(path)?;
        let sqlite = |error| StoreError::from_sqlite(path, error);
        let mut connection = Connection::open(path).map_err(sqlite)?;
        connection.busy_timeout(busy).map_err(sqlite)?;
        let backup = schema::prepare(&mut connection, path)?;
        // Wait for the disk at each commit: trials are dear and commits are few.
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
            .map_err(sqlite)?;
        Ok(Store {
            connection,
            path: path.to_owned(),
            backup,
        })
    }

    /// File of the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that a trial can be stored now.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn require_writable(&self) -> Result<(), StoreError> {
        let tried = self.connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK;");
        tried.map_err(|error| StoreError::from_sqlite(&self.path, error))
    }

    /// The copy that opening this store made of it, because an older program had written it.
    pub fn backup(&self) -> Option<&Path> {
        self.backup.as_deref()
    }

    /// Stores a trial in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Determinism`] if a success of the same identity has other bytes;
    /// [`StoreError::NotFinite`]; else as [`Store::open`].
    pub fn put(
        &mut self,
        trial: &Trial,
        wall_ns: u64,
        finished_at_unix: i64,
    ) -> Result<Put, StoreError> {
        let mut put = None;
        self.put_each([(trial, wall_ns, finished_at_unix)], |became| {
            put = Some(became);
        })?;
        put.unwrap_or_else(|| unreachable!("one trial was given"))
    }

    /// Stores the trials of `records` in one transaction; what became of each. A record that is
    /// refused does not keep the others out. The id of a record is computed anew.
    ///
    /// # Errors
    /// As [`Store::open`]; then none of `records` is stored. Those of [`Store::put`] that concern
    /// one trial are in the list.
    pub fn put_all<'r>(
        &mut self,
        records: impl IntoIterator<Item = &'r TrialRecord>,
    ) -> Result<Vec<Result<Put, StoreError>>, StoreError> {
        let records = records.into_iter();
        let parts = records.map(|one| (&one.trial, one.wall_ns, one.finished_at_unix));
        let mut all = Vec::new();
        self.put_each(parts, |became| all.push(became))?;
        Ok(all)
    }

    fn put_each<'r>(
        &mut self,
        trials: impl IntoIterator<Item = (&'r Trial, u64, i64)>,
        mut became: impl FnMut(Result<Put, StoreError>),
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let sqlite = |error| StoreError::from_sqlite(&path, error);
        // Immediate: what is read below must still hold when it is written.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sqlite)?;
        for (trial, wall_ns, finished_at_unix) in trials {
            let put = put_in(&transaction, trial, wall_ns, finished_at_unix);
            became(match put {
                Ok(put) => put,
                Err(error) => return Err(sqlite(error)),
            });
        }
        transaction.commit().map_err(sqlite)
    }

    /// The trial with this id.
    ///
    /// # Errors
    /// As [`Store::open`]; a record that cannot be read or is not what its id says is damage.
    pub fn get(&self, id: &str) -> Result<Option<TrialRecord>, StoreError> {
        let sql = "SELECT id, json, wall_ns, finished_at FROM trial WHERE id = ?1";
        let raw = self.connection.query_row(sql, [id], raw_trial).optional();
        raw.map_err(|error| self.sqlite(error))?
            .map(|raw| self.stored(raw))
            .transpose()
    }

    /// Whether the trial with this id is there and has figures.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn has_done(&self, id: &str) -> Result<bool, StoreError> {
        let found = || {
            let sql = "SELECT 1 FROM trial WHERE id = ?1 AND done";
            self.connection.prepare_cached(sql)?.exists([id])
        };
        found().map_err(|error| self.sqlite(error))
    }

    /// The trials whose ids begin with `digits`, by id; `most` of them at most.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn beginning(&self, digits: &str, most: usize) -> Result<Vec<TrialRecord>, StoreError> {
        let run = || {
            let mut statement = self.connection.prepare(
                "SELECT id, json, wall_ns, finished_at FROM trial
                 WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2",
            )?;
            let rows = statement.query_map(params![digits, most as i64], raw_trial)?;
            rows.collect::<rusqlite::Result<Vec<RawTrial>>>()
        };
        let raw = run().map_err(|error| self.sqlite(error))?;
        raw.into_iter().map(|raw| self.stored(raw)).collect()
    }

    /// All trials that `filter` lets through, by candidate, then seed, then id.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn find(&self, filter: &Filter) -> Result<Vec<TrialRecord>, StoreError> {
        let sql = format!(
            "SELECT id, json, wall_ns, finished_at FROM trial WHERE {WHERE}
             ORDER BY candidate, seed, id"
        );
        self.query(&sql, filter, raw_trial)?
            .into_iter()
            .map(|raw| self.stored(raw))
            .collect()
    }

    /// The metric rows of all finished trials that `filter` lets through, in the order of
    /// [`Store::find`] and, within a trial, in the order in which it reported them.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn rows(&self, filter: &Filter) -> Result<Vec<FigureRow>, StoreError> {
        let sql = format!(
            "SELECT card, kernel, clock, candidate, mount_options, workload, metric, value, unit,
                    lower_is_better, seed, id
             FROM trial JOIN metric ON metric.trial = trial.id WHERE {WHERE}
             ORDER BY candidate, seed, id, position"
        );
        self.query(&sql, filter, metric_row)
    }

    /// Deletes the trial with this id, with its metric rows; false if there is none.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn forget(&mut self, id: &str) -> Result<bool, StoreError> {
        let deleted = self
            .connection
            .execute("DELETE FROM trial WHERE id = ?1", [id]);
        deleted
            .map(|rows| rows > 0)
            .map_err(|error| self.sqlite(error))
    }

    /// Deletes the trials with these ids in one transaction, and gives their room back to the
    /// filesystem.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn forget_all(&mut self, ids: &[String]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let sqlite = |error| StoreError::from_sqlite(&path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sqlite)?;
        for id in ids {
            transaction
                .execute("DELETE FROM trial WHERE id = ?1", [id])
                .map_err(sqlite)?;
        }
        transaction.commit().map_err(sqlite)?;
        self.connection.execute_batch("VACUUM").map_err(sqlite)
    }

    /// Puts every trial of `other` into this store; returns how many were new here.
    ///
    /// # Errors
    /// As [`Store::put`]; the other trials of the batch stay merged.
    pub fn merge(&mut self, other: &Store) -> Result<usize, StoreError> {
        let mut new = 0;
        for batch in other.find(&Filter::default())?.chunks(BATCH) {
            for put in self.put_all(batch)? {
                new += usize::from(put?.changes());
            }
        }
        Ok(new)
    }

    fn query<T>(
        &self,
        sql: &str,
        filter: &Filter,
        read: fn(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let run = || {
            let mut statement = self.connection.prepare(sql)?;
            let rows = statement.query_map(
                params![
                    filter.card,
                    filter.board,
                    filter.clock,
                    filter.kernel,
                    filter.candidate,
                    filter.workload,
                    filter.seed.map(u64::cast_signed),
                    filter.done,
                    filter.card_state
                ],
                read,
            )?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| self.sqlite(error))
    }

    fn stored(&self, raw: RawTrial) -> Result<TrialRecord, StoreError> {
        let corrupt = |detail| StoreError::Corrupt {
            path: self.path.clone(),
            detail,
        };
        let trial: Trial = serde_json::from_str(&raw.json)
            .map_err(|error| corrupt(format!("trial {}: {error}", raw.id)))?;
        if trial.identity.id() != raw.id {
            return Err(corrupt(format!("trial {} is not what its id says", raw.id)));
        }
        Ok(TrialRecord {
            id: raw.id,
            trial,
            wall_ns: raw.wall_ns.cast_unsigned(),
            finished_at_unix: raw.finished_at,
        })
    }

    pub(crate) fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }
}

/// A row of the table `trial`, not yet checked.
struct RawTrial {
    id: String,
    json: String,
    wall_ns: i64,
    finished_at: i64,
}

fn raw_trial(row: &SqlRow<'_>) -> rusqlite::Result<RawTrial> {
    Ok(RawTrial {
        id: row.get(0)?,
        json: row.get(1)?,
        wall_ns: row.get(2)?,
        finished_at: row.get(3)?,
    })
}

fn metric_row(row: &SqlRow<'_>) -> rusqlite::Result<FigureRow> {
    Ok(FigureRow {
        card: row.get(0)?,
        kernel: row.get(1)?,
        clock: row.get(2)?,
        candidate: row.get(3)?,
        mount_options: row.get(4)?,
        workload: row.get(5)?,
        metric: row.get(6)?,
        value: row.get(7)?,
        unit: row.get(8)?,
        lower_is_better: row.get(9)?,
        seed: row.get::<_, i64>(10)?.cast_unsigned(),
        trial: row.get(11)?,
    })
}

/// Stores `trial` in the open transaction of `connection`: what became of it, or why it is refused.
///
/// # Errors
/// What SQLite says.
fn put_in(
    connection: &Connection,
    trial: &Trial,
    wall_ns: u64,
    finished_at_unix: i64,
) -> rusqlite::Result<Result<Put, StoreError>> {
    let id = trial.identity.id();
    if let Some(bad) = trial.outcome.metrics.iter().find(|m| !m.value.is_finite()) {
        let (metric, value) = (bad.metric.clone(), bad.value);
        return Ok(Err(StoreError::NotFinite { id, metric, value }));
    }
    let json = serde_json::to_string(trial).unwrap_or_else(|error| {
        unreachable!("a Trial is strings, numbers and sorted maps: {error}")
    });
    let known: Option<(bool, String)> = connection
        .prepare_cached("SELECT done, json FROM trial WHERE id = ?1")?
        .query_row([&id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let done = trial.outcome.status == Status::Done;
    let put = match known {
        None => Put::New,
        Some((_, old)) if old == json => return Ok(Ok(Put::Known)),
        Some((false, _)) => Put::Replaced,
        Some((true, _)) if !done => return Ok(Ok(Put::SuccessKept)),
        Some((true, old)) => {
            let difference = difference(&old, &json);
            return Ok(Err(StoreError::Determinism { id, difference }));
        }
    };
    // The metric rows of a replaced failure go with it (ON DELETE CASCADE).
    if put == Put::Replaced {
        connection.execute("DELETE FROM trial WHERE id = ?1", [&id])?;
    }
    insert(connection, &id, trial, &json, wall_ns, finished_at_unix)?;
    Ok(Ok(put))
}

fn insert(
    connection: &Connection,
    id: &str,
    trial: &Trial,
    json: &str,
    wall_ns: u64,
    finished_at_unix: i64,
) -> rusqlite::Result<()> {
    let identity = &trial.identity;
    let mut statement = connection.prepare_cached(
        "INSERT INTO trial
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    statement.execute(params![
        id,
        trial.outcome.status == Status::Done,
        identity.card,
        identity.board,
        identity.clock,
        identity.kernel,
        identity.candidate,
        identity.mount_options,
        identity.workload,
        identity.seed.cast_signed(),
        identity.version,
        wall_ns.cast_signed(),
        finished_at_unix,
        json,
        identity.card_state
    ])?;
    let mut statement =
        connection.prepare_cached("INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (position, metric) in (0_i64..).zip(&trial.outcome.metrics) {
        statement.execute(params![
            id,
            position,
            metric.metric,
            metric.value,
            metric.unit,
            metric.lower_is_better
        ])?;
    }
    Ok(())
}

/// Characters of each result that a determinism alarm shows.
const SHOWN: usize = 60;

/// The first place where two records differ, with a little of each.
fn difference(old: &str, new: &str) -> String {
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let start = same.saturating_sub(SHOWN / 2);
        let bytes = text.as_bytes();
        let end = bytes.len().min(start + SHOWN);
        String::from_utf8_lossy(&bytes[start.min(end)..end]).into_owned()
    };
    format!(
        "at byte {same}, '{}' then, '{}' now",
        around(old),
        around(new)
    )
}

#[cfg(test)]
impl Store {
    /// Forbids this connection to grow the file; returns the pages it has.
    pub(crate) fn limit_pages(&self) -> i64 {
        let query = "PRAGMA max_page_count = 1";
        self.connection
            .query_row(query, [], |row| row.get(0))
            .unwrap_or(0)
    }
}
