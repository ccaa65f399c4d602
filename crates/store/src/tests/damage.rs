//! Locks, kills, damage, strangers.
use super::trial;
use crate::{Filter, Put, Store, StoreError, schema};
use rusqlite::Connection;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Path of the store that a child process works on.
const CHILD: &str = "WHICHFS_STORE_CHILD";

fn filled(dir: &Path, trials: u64) -> PathBuf {
    let path = dir.join("store.sqlite");
    let mut store = Store::open(&path).unwrap();
    for seed in 0..trials {
        store.put(&trial("ext4", seed, 1.0), 1, 1).unwrap();
    }
    path
}

/// Runs the ignored test `name` of this program as a process of its own, until its
/// first line that says `ready`.
fn child(name: &str, store: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--nocapture",
            "--exact",
            &format!("tests::damage::{name}"),
        ])
        .env(CHILD, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(
        output.lines().any(|line| line.unwrap().contains("ready")),
        "{name} did not start"
    );
    child
}

#[test]
#[ignore = "the body of a child process"]
fn child_stops_in_the_middle_of_a_write() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let connection = Connection::open(path).unwrap();
    // A cache of one page makes SQLite write uncommitted pages into the file itself.
    connection
        .execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE;")
        .unwrap();
    for number in 0..2000 {
        connection
            .execute(
                "INSERT INTO trial
                 VALUES (?1, 1, 'c', 'b', 'k', 'v', 'torn', '', 'w', 1, '0', 1, 1, ?2, 'used')",
                rusqlite::params![format!("torn{number}"), "x".repeat(1000)],
            )
            .unwrap();
    }
    println!("ready");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "the body of a child process"]
fn child_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let mut store = Store::open(Path::new(&path)).unwrap();
    for seed in 1000.. {
        store.put(&trial("xfs", seed, 1.0), 1, 1).unwrap();
        if seed == 1003 {
            println!("ready");
        }
    }
}

#[test]
fn a_kill_in_the_middle_of_a_write_leaves_whole_trials() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 3);
    let before = std::fs::metadata(&path).unwrap().len();
    let mut writer = child("child_stops_in_the_middle_of_a_write", &path);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let torn = std::fs::metadata(&path).unwrap().len();
    assert!(
        torn > before + 1_000_000,
        "the file holds uncommitted pages: {before} {torn}"
    );
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.find(&Filter::default()).unwrap().len(), 3);
    assert_eq!(store.put(&trial("xfs", 9, 1.0), 1, 1).unwrap(), Put::New);
}

#[test]
fn kills_between_and_in_commits_lose_nothing_that_was_finished() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1);
    for _ in 0..3 {
        let mut writer = child("child_writes_until_it_is_killed", &path);
        writer.kill().unwrap();
        writer.wait().unwrap();
        let store = Store::open(&path).unwrap();
        let found = store.find(&Filter::default()).unwrap();
        assert!(
            found.len() >= 5,
            "four of the child and ours: {}",
            found.len()
        );
        let rows = store.rows(&Filter::default()).unwrap();
        assert_eq!(rows.len(), found.len(), "every trial has its metric");
    }
}

#[test]
fn a_lock_is_an_error_that_names_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1);
    let mut holder = child("child_stops_in_the_middle_of_a_write", &path);
    let opened = Store::open_with_timeout(&path, Duration::from_millis(50));
    let result = opened.and_then(|mut store| store.put(&trial("xfs", 1, 1.0), 1, 1));
    let message = result.unwrap_err().to_string();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(message.contains("is locked by whichfs"), "{message}");
    assert!(
        message.contains(&format!("(process {})", holder.id())),
        "{message}"
    );
    assert!(message.contains("--store PATH"), "{message}");
}

#[test]
fn concurrent_writers_all_get_through() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.sqlite");
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(path).unwrap();
                for seed in 0..10 {
                    // Half of the trials are written by two of them.
                    let seed = writer / 2 * 100 + seed;
                    store.put(&trial("ext4", seed, 1.0), 1, 1).unwrap();
                }
            });
        }
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(store.find(&Filter::default()).unwrap().len(), 20);
}

/// Opens and reads everything; what a run would do.
fn used(path: &Path) -> Result<usize, StoreError> {
    let store = Store::open(path)?;
    Ok(store.find(&Filter::default())?.len() + store.rows(&Filter::default())?.len())
}

#[test]
fn damaged_files_are_reported_and_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 50);
    let whole = std::fs::read(&path).unwrap();
    let truncated = whole[..whole.len() / 2].to_vec();
    let mut overwritten = whole.clone();
    overwritten[4096..].fill(0x5a);
    for bytes in [
        truncated,
        overwritten,
        b"not a database at all, but text\n".repeat(40),
        b"x".to_vec(),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let message = used(&path).unwrap_err().to_string();
        assert!(
            message.contains("is damaged or is not a store"),
            "{message}"
        );
        assert!(
            message.contains(&format!("mv '{}' ", path.display())),
            "{message}"
        );
        assert_eq!(
            std::fs::read(&path).unwrap(),
            bytes,
            "never repaired, never deleted"
        );
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(used(&path).unwrap(), 100);
}

#[test]
fn a_record_that_is_not_what_its_id_says_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1);
    let connection = Connection::open(&path).unwrap();
    let changed = connection
        .execute(
            "UPDATE trial SET json = replace(json, 'a1-32gb', 'a1-64gb')",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let message = used(&path).unwrap_err().to_string();
    assert!(message.contains("is not what its id says"), "{message}");
}

#[test]
fn newer_and_foreign_databases_are_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let newer = filled(dir.path(), 1);
    let connection = Connection::open(&newer).unwrap();
    connection
        .pragma_update(None, "user_version", schema::VERSION + 1)
        .unwrap();
    let message = used(&newer).unwrap_err().to_string();
    assert!(
        message.contains("has schema 3, this program knows up to 2"),
        "{message}"
    );

    let foreign = dir.path().join("other.sqlite");
    let connection = Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(connection);
    let before = std::fs::read(&foreign).unwrap();
    assert!(matches!(used(&foreign), Err(StoreError::Foreign { .. })));
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
}

#[test]
fn versions_that_no_program_wrote_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1);
    for version in [0, -1, i32::MIN] {
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update(None, "user_version", version)
            .unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();
        let message = used(&path).unwrap_err().to_string();
        let said = format!("is damaged or is not a store (schema version {version})");
        assert!(message.contains(&said), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_directory_in_the_way_is_an_access_error() {
    let dir = tempfile::tempdir().unwrap();
    let message = used(dir.path()).unwrap_err().to_string();
    assert!(message.contains("cannot be opened or written"), "{message}");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let message = used(&file.join("store.sqlite")).unwrap_err().to_string();
    assert!(message.contains("cannot be opened or written"), "{message}");
}

#[test]
fn no_room_keeps_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 2);
    let mut store = Store::open(&path).unwrap();
    // A page limit gives the same error as a full disk.
    let pages = store.limit_pages();
    let mut big = trial("ext4", 77, 1.0);
    big.identity.mount_options = "x".repeat(1 << 20);
    let message = store.put(&big, 1, 1).unwrap_err().to_string();
    assert!(
        pages > 0 && message.contains("no room for the store"),
        "{message}"
    );
    assert_eq!(store.find(&Filter::default()).unwrap().len(), 2);
}
