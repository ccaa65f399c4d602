//! Tables and their version.

use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};

/// `whfs`: tells our stores from other databases.
pub(crate) const APPLICATION_ID: i32 = 0x7768_6673;

/// Version of the tables below; a newer one is refused.
pub(crate) const VERSION: i32 = 2;

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
        json TEXT NOT NULL,
        card_state TEXT NOT NULL
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

/// `STEPS[n]` makes tables of version `n + 1` those of version `n + 2`.
const STEPS: [&str; VERSION as usize - 1] = [
    // What was measured on fresh and on used cards can be told apart.
    "ALTER TABLE trial ADD COLUMN card_state TEXT NOT NULL DEFAULT '';
     UPDATE trial SET card_state = json_extract(json, '$.identity.card_state');",
];

/// Makes the tables in an empty file, brings those of an older program up to date, or checks
/// that the file is ours and of our time. Returns the copy that was made of an older one.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
) -> Result<Option<PathBuf>, StoreError> {
    let sqlite = |error| StoreError::from_sqlite(path, error);
    let backup = match checked_version(connection, path)? {
        VERSION => return Ok(None),
        0 => None,
        older => Some(back_up(connection, path, older)?),
    };
    // Two programs may make or migrate the store at once: the second finds it done.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sqlite)?;
    match checked_version(&transaction, path)? {
        VERSION => return Ok(backup),
        0 => {
            transaction.execute_batch(TABLES).map_err(sqlite)?;
            transaction
                .pragma_update(None, "application_id", APPLICATION_ID)
                .map_err(sqlite)?;
        }
        older => {
            for step in &STEPS[older as usize - 1..] {
                transaction.execute_batch(step).map_err(sqlite)?;
            }
        }
    }
    transaction
        .pragma_update(None, "user_version", VERSION)
        .map_err(sqlite)?;
    transaction.commit().map_err(sqlite)?;
    Ok(backup)
}

/// Copies the store as it is, beside it, under a name that nothing has yet.
fn back_up(connection: &Connection, path: &Path, version: i32) -> Result<PathBuf, StoreError> {
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(match number {
            1 => format!(".v{version}.bak"),
            number => format!(".v{version}.{number}.bak"),
        });
        let backup = PathBuf::from(name);
        let copied = match (backup.exists(), backup.to_str()) {
            (true, _) => Err("output file already exists".to_owned()),
            (false, None) => Err("its path is not UTF-8".to_owned()),
            (false, Some(target)) => {
                let copied = connection.execute("VACUUM INTO ?1", [target]);
                copied.map_err(|error| error.to_string())
            }
        };
        match copied {
            Ok(_) => return Ok(backup),
            // Another program may take the name between the look and the copy.
            Err(detail) if detail.contains("already exists") => number += 1,
            Err(detail) => {
                let path = path.to_owned();
                return Err(StoreError::Backup {
                    path,
                    backup,
                    detail,
                });
            }
        }
    }
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
    // No program of ours leaves tables without a version, or makes a version below 1.
    if version < 0 || (version == 0 && tables > 0) {
        return Err(StoreError::Corrupt {
            path: path.to_owned(),
            detail: format!("schema version {version}"),
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
