//! Tables and their version.

use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// `whfs`: tells our stores from other databases.
pub(crate) const APPLICATION_ID: i32 = 0x7768_6673;

/// Version of the tables below; a newer one is refused.
pub(crate) const VERSION: i32 = 1;

/// `trial.json` is the trial whole; the other columns are copies to search by, and
/// `metric` holds its rows, never averaged. Seeds are stored as the same 64 bits, signed.
const TABLES: &str = "
    CREATE TABLE trial (
        id TEXT PRIMARY KEY NOT NULL,
        done INTEGER NOT NULL,
        card TEXT NOT NULL,
        board TEXT NOT NULL,
        clock TEXT NOT NULL,
        kernel TEXT NOT NULL,
        candidate TEXT NOT NULL,
        mount_options TEXT NOT NULL,
        workload TEXT NOT NULL,
        seed INTEGER NOT NULL,
        version TEXT NOT NULL,
        wall_ns INTEGER NOT NULL,
        finished_at INTEGER NOT NULL,
        json TEXT NOT NULL
    ) STRICT;
    CREATE INDEX trial_by_question ON trial (card, workload, candidate, seed);
    CREATE TABLE metric (
        trial TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        metric TEXT NOT NULL,
        value REAL NOT NULL,
        unit TEXT NOT NULL,
        lower_is_better INTEGER NOT NULL,
        PRIMARY KEY (trial, position)
    ) STRICT, WITHOUT ROWID;
";

/// Makes the tables in an empty file, or checks that the file is ours and of our time.
pub(crate) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sqlite = |error| StoreError::from_sqlite(path, error);
    if checked_version(connection, path)? == VERSION {
        return Ok(());
    }
    // Two programs may make the store at once: the second finds it made.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sqlite)?;
    if checked_version(&transaction, path)? == VERSION {
        return Ok(());
    }
    transaction.execute_batch(TABLES).map_err(sqlite)?;
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(sqlite)?;
    transaction
        .pragma_update(None, "user_version", VERSION)
        .map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

/// The schema version, 0 for an empty file; errors for files that are not ours.
fn checked_version(connection: &Connection, path: &Path) -> Result<i32, StoreError> {
    let number = |pragma: &str| {
        let value = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        value.map_err(|error| StoreError::from_sqlite(path, error))
    };
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| StoreError::from_sqlite(path, error))?;
    let application = number("application_id")? as i32;
    let version = number("user_version")? as i32;
    if application != APPLICATION_ID && (tables > 0 || application != 0) {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            found: application,
        });
    }
    if version > VERSION {
        let path = path.to_owned();
        return Err(StoreError::Newer {
            path,
            found: version,
            known: VERSION,
        });
    }
    Ok(version)
}
