//! Stores of older programs: brought up to date, and kept as they were beside it.
use super::{failed, trial};
use crate::{Filter, Store, StoreError, schema};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// The tables of version 1, as the program of that time made them.
const FIRST: &str = "
    PRAGMA application_id = 2003330675;
    PRAGMA user_version = 1;
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

/// A store of version 1 with three trials, one of which failed.
fn old(dir: &Path) -> PathBuf {
    let path = dir.join("store.sqlite");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(FIRST).unwrap();
    let mut fresh = trial("xfs", 1, 2.0);
    fresh.identity.card_state = "fresh".into();
    for one in [trial("ext4", u64::MAX, 1.0), fresh, failed("jfs", 1)] {
        let identity = &one.identity;
        let row = rusqlite::params![
            identity.id(),
            one.outcome.status == whichfs_trial::Status::Done,
            identity.candidate,
            identity.seed.cast_signed(),
            serde_json::to_string(&one).unwrap(),
        ];
        let sql = "INSERT INTO trial VALUES (?1, ?2, 'a1-32gb', 'generic-1ghz', 'cpu:x', '6.12.57',
                   ?3, 'noatime', 'rootfs', ?4, '0.1.0', 5, 6, ?5)";
        connection.execute(sql, row).unwrap();
        for metric in &one.outcome.metrics {
            let row = rusqlite::params![identity.id(), metric.metric, metric.value, metric.unit];
            let sql = "INSERT INTO metric VALUES (?1, 0, ?2, ?3, ?4, 1)";
            connection.execute(sql, row).unwrap();
        }
    }
    path
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

fn of_state(store: &Store, state: &str) -> Vec<String> {
    let filter = Filter {
        card_state: Some(state.into()),
        ..Filter::default()
    };
    let found = store.find(&filter).unwrap();
    found
        .into_iter()
        .map(|stored| stored.trial.identity.candidate)
        .collect()
}

#[test]
fn an_older_store_is_brought_up_to_date_and_kept_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    let mut store = Store::open(&path).unwrap();
    let backup = store.backup().unwrap().to_owned();
    assert_eq!(backup, dir.path().join("store.sqlite.v1.bak"));
    assert_eq!(of_state(&store, "fresh"), ["xfs"]);
    assert_eq!(of_state(&store, "used"), ["ext4", "jfs"]);
    assert_eq!(store.rows(&Filter::default()).unwrap().len(), 3);
    store.put(&trial("new", 1, 1.0), 1, 1).unwrap();
    assert_eq!(
        (version(&path), version(&backup)),
        (i64::from(schema::VERSION), 1)
    );
    let copy = Connection::open(&backup).unwrap();
    let count: i64 = copy
        .query_row("SELECT count(*) FROM trial", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 3, "the copy holds what was there");
    drop(store);
    assert_eq!(Store::open(&path).unwrap().backup(), None, "once is enough");
}

#[test]
fn a_migrated_store_is_as_one_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    drop(Store::open(&path).unwrap());
    let anew = dir.path().join("anew.sqlite");
    drop(Store::open(&anew).unwrap());
    let columns = |path: &Path| -> Vec<(String, String)> {
        let connection = Connection::open(path).unwrap();
        let mut all = Vec::new();
        for table in ["trial", "metric"] {
            let sql = format!("SELECT name, type FROM pragma_table_info('{table}')");
            let mut statement = connection.prepare(&sql).unwrap();
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap();
            all.extend(rows.map(Result::unwrap));
        }
        all
    };
    assert_eq!(columns(&path), columns(&anew));
}

/// Killed between copy and migration, it is copied again and nothing is overwritten.
#[test]
fn a_migration_that_was_interrupted_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    std::fs::write(dir.path().join("store.sqlite.v1.bak"), "an earlier copy").unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(
        store.backup(),
        Some(dir.path().join("store.sqlite.v1.2.bak").as_path())
    );
    let earlier = std::fs::read(dir.path().join("store.sqlite.v1.bak")).unwrap();
    assert_eq!(earlier, b"an earlier copy");
}

#[test]
fn a_store_that_cannot_be_copied_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    let before = std::fs::read(&path).unwrap();
    // A name that is too long for the copy, which has more letters than the store.
    let long = dir.path().join(format!("{}.sqlite", "x".repeat(245)));
    std::fs::rename(&path, &long).unwrap();
    let error = Store::open(&long).unwrap_err();
    assert!(matches!(error, StoreError::Backup { .. }), "{error}");
    assert!(error.to_string().contains("--store PATH"), "{error}");
    assert_eq!(std::fs::read(&long).unwrap(), before);
}

#[test]
fn two_programs_may_migrate_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::open(&path).map(|_| ()).unwrap());
        }
    });
    assert_eq!(version(&path), i64::from(schema::VERSION));
    assert_eq!(
        Store::open(&path)
            .unwrap()
            .find(&Filter::default())
            .unwrap()
            .len(),
        3
    );
}
