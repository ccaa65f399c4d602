//! What can be wrong with a store, and how to go on.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// A store cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock for longer than the busy timeout.
    #[error(
        "the store {} is locked{holder}; wait until that has ended, or use another store \
         with --store PATH", path.display()
    )]
    Locked {
        /// File of the store.
        path: PathBuf,
        /// ` by NAME (process ID)`, or empty where the system does not tell.
        holder: String,
    },
    /// The file is damaged or no SQLite database.
    #[error(
        "the store {path} is damaged or is not a store ({detail}); it is left as it is. \
         To go on with a new one: mv '{path}' '{path}.damaged'   \
         To save what can be saved: sqlite3 '{path}.damaged' .recover | sqlite3 '{path}'",
        path = path.display()
    )]
    Corrupt {
        /// File of the store.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file is a database of another program.
    #[error(
        "{} is an SQLite database, but not a store of whichfs (application id {found:#x}); \
         use another path with --store PATH", path.display()
    )]
    Foreign {
        /// File of the database.
        path: PathBuf,
        /// Its application id.
        found: i32,
    },
    /// A later version of the program made it.
    #[error(
        "the store {} has schema {found}, this program knows up to {known}: it was made by a \
         newer whichfs; use that one, or another store with --store PATH", path.display()
    )]
    Newer {
        /// File of the store.
        path: PathBuf,
        /// Its schema version.
        found: i32,
        /// The newest version known.
        known: i32,
    },
    /// An older program made it, and it cannot be copied before it is brought up to date.
    #[error(
        "the store {path} was made by an older whichfs and must be brought up to date, but it \
         cannot be copied to {backup} first ({detail}); it is left as it is. Make room or give \
         write permission there, or use another store with --store PATH",
        path = path.display(), backup = backup.display()
    )]
    Backup {
        /// File of the store.
        path: PathBuf,
        /// Where the copy was to go.
        backup: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// The file or its directory cannot be written or opened.
    #[error(
        "the store {} cannot be opened or written ({detail}); check its permissions, or use \
         another store with --store PATH", path.display()
    )]
    Access {
        /// File of the store.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// No room is left.
    #[error(
        "no room for the store {} ({detail}); the trials written so far are kept: free some \
         space and run again", path.display()
    )]
    Full {
        /// File of the store.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// Two successful trials of one identity differ: determinism is broken.
    #[error(
        "trial {id} was repeated and gave a different result: {difference}. The same identity \
         must give the same bytes; the first result is kept. Please report this with both \
         results (whichfs doctor shows the versions)"
    )]
    Determinism {
        /// Id of the trial.
        id: String,
        /// The first place where they differ.
        difference: String,
    },
    /// A metric is not a finite number and could not be read back.
    #[error("trial {id}: metric {metric} is {value}, which cannot be stored")]
    NotFinite {
        /// Id of the trial.
        id: String,
        /// Name of the metric.
        metric: String,
        /// Infinite or not a number.
        value: f64,
    },
    /// SQLite refuses for another reason.
    #[error("the store {}: {source}", path.display())]
    Sqlite {
        /// File of the store.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an error of SQLite by what the user can do about it.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let detail = source.to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let holder = holder(&path);
                StoreError::Locked { path, holder }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Corrupt { path, detail }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path, detail },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::Access { path, detail }
            }
            _ => StoreError::Sqlite { path, source },
        }
    }
}

/// Who holds a lock on `path`, as ` by NAME (process ID)`, from /proc/locks.
#[cfg(target_os = "linux")]
fn holder(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = std::fs::metadata(path) else {
        return String::new();
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = std::process::id().to_string();
    let inode = format!(":{}", meta.ino());
    let mut pids: Vec<&str> = locks
        .lines()
        .filter_map(|line| {
            // `1: POSIX  ADVISORY  WRITE 1234 fe:01:5678 1073741824 1073741825`
            let fields: Vec<&str> = line.split_whitespace().collect();
            let pid = fields.get(4)?;
            fields.get(5)?.ends_with(&inode).then_some(*pid)
        })
        .filter(|pid| *pid != own)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    let Some(pid) = pids.first() else {
        return String::new();
    };
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!(" by process {pid}"),
        name => format!(" by {name} (process {pid})"),
    }
}

#[cfg(not(target_os = "linux"))]
fn holder(_path: &Path) -> String {
    String::new()
}
