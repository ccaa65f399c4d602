//! Operations in blocks, about time, and on whole directories, in a temporary directory.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use whichfs_agent::{AgentError, Manner, Time, operate};
use whichfs_trial::{Counts, LatencyHistogram};
use whichfs_workload::{Content, Op, generated_bytes};

const FILE: &str = "f";

/// On a disk: what is in memory may know no O_DIRECT.
fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn try_run(ops: Vec<Op>, dir: &Path) -> Result<(Counts, LatencyHistogram), AgentError> {
    let mut nobody = |_: &str, _: &str, _| Ok(());
    let time = Time::still();
    operate(
        ops.into_iter(),
        dir,
        None,
        &time,
        Manner::default(),
        &mut nobody,
    )
}

fn run(ops: Vec<Op>, dir: &Path) -> (Counts, LatencyHistogram) {
    try_run(ops, dir).unwrap()
}

fn content(seed: u64) -> Content {
    Content::Generated { level: 0, seed }
}

/// The first `len` bytes of [`content`].
fn bytes(seed: u64, len: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while (out.len() as u64) < len {
        let done = out.len() as u64;
        out.extend_from_slice(generated_bytes(0, seed, done, len - done));
    }
    out
}

fn write(offset: u64, len: u64, block: u64, direct: bool, seed: u64) -> Op {
    Op::WriteAt {
        path: FILE.into(),
        offset,
        len,
        block,
        direct,
        content: content(seed),
    }
}

fn read(offset: u64, len: u64, block: u64, direct: bool) -> Op {
    Op::ReadAt {
        path: FILE.into(),
        offset,
        len,
        block,
        direct,
    }
}

/// Small and large blocks, some across the places where content changes, the last one shorter.
#[test]
fn every_block_size_writes_and_reads_the_same_bytes() {
    let len = (1 << 20) + 4096;
    for direct in [false, true] {
        for block in [512, 4096, 8192, 96 << 10, 128 << 10, 384 << 10, 4 << 20] {
            let dir = directory();
            let ops = vec![write(0, len, block, direct, 1)];
            let (counts, latency) = run(ops, dir.path());
            let written = fs::read(dir.path().join(FILE)).unwrap();
            assert!(written == bytes(1, len), "{block} {direct}");
            assert_eq!(
                (counts.bytes, counts.read_bytes, latency.count()),
                (len, 0, 1)
            );
            let (counts, latency) = run(vec![read(0, len, block, direct)], dir.path());
            let expected = (len, len, 1);
            assert_eq!((counts.bytes, counts.read_bytes, latency.count()), expected);
        }
    }
}

#[test]
fn a_write_begins_where_it_says_and_a_read_ends_with_the_file() {
    let dir = directory();
    run(
        vec![
            write(0, 10_000, 1000, false, 1),
            write(9_000, 3_000, 700, false, 2),
        ],
        dir.path(),
    );
    let mut expected = bytes(1, 10_000);
    expected.truncate(9_000);
    expected.extend(bytes(2, 3_000));
    assert!(fs::read(dir.path().join(FILE)).unwrap() == expected);
    for block in [1_000, 1 << 20] {
        let (counts, _) = run(vec![read(11_500, 9_000, block, false)], dir.path());
        assert_eq!(counts.bytes, 500);
    }
}

#[test]
fn what_is_rewritten_counts_once() {
    let dir = directory();
    for block in [8192, 100_000, 200_000] {
        let rewrite = Op::Rewrite {
            path: FILE.into(),
            offset: 500,
            len: 300_000,
            block,
            content: content(2),
        };
        let ahead = Op::WillRead {
            path: FILE.into(),
            offset: 0,
            len: 4096,
        };
        let close = Op::SyncClose { path: FILE.into() };
        let ops = vec![write(0, 400_000, 8192, false, 1), ahead, rewrite, close];
        let (counts, latency) = run(ops, dir.path());
        let mut expected = bytes(1, 400_000);
        expected[500..300_500].copy_from_slice(&bytes(2, 300_000));
        assert!(
            fs::read(dir.path().join(FILE)).unwrap() == expected,
            "{block}"
        );
        assert_eq!((counts.bytes, counts.read_bytes), (700_000, 0));
        assert_eq!((counts.operations, latency.count()), (4, 2));
    }
}

#[test]
fn directories_are_asked_and_cleared_as_a_whole() {
    let dir = directory();
    let mut ops = vec![Op::Mkdir {
        path: "d".into(),
        mode: None,
    }];
    ops.extend((0..700).map(|at| Op::Create {
        path: format!("d/{at}"),
        size: 0,
        content: content(0),
        mode: None,
        pieces: None,
    }));
    run(ops, dir.path());
    let all = || "d".to_owned();
    let asked = vec![Op::StatAll { path: all() }, Op::Stat { path: "d/5".into() }];
    assert_eq!(run(asked, dir.path()).0.files, 701);
    assert_eq!(
        run(vec![Op::Clear { path: all() }], dir.path()).0.files,
        700
    );
    assert_eq!(fs::read_dir(dir.path().join("d")).unwrap().count(), 0);
    fs::create_dir(dir.path().join("d/below")).unwrap();
    let error = try_run(vec![Op::Clear { path: all() }], dir.path()).unwrap_err();
    assert!(error.to_string().contains("d/below"), "{error}");
    let error = try_run(vec![Op::Stat { path: "d/5".into() }], dir.path()).unwrap_err();
    assert!(error.to_string().contains("stat"), "{error}");
}

#[test]
fn a_saved_file_is_promised() {
    let dir = directory();
    let mut heard = Vec::new();
    let save = Op::Save {
        path: FILE.into(),
        size: 9_000,
        content: content(3),
        mode: Some(0o600),
    };
    let mut promised = |call: &str, path: &str, done| {
        heard.push(format!("{call} {path} {done}"));
        Ok(())
    };
    let time = Time::still();
    let ops = [save.clone(), Op::SyncClose { path: FILE.into() }];
    operate(
        ops.into_iter(),
        dir.path(),
        None,
        &time,
        Manner::default(),
        &mut promised,
    )
    .unwrap();
    assert_eq!(heard, ["fsync f 1", "fsync f 2"]);
    assert!(fs::read(dir.path().join(FILE)).unwrap() == bytes(3, 9_000));
    let error = try_run(vec![save], dir.path()).unwrap_err();
    assert!(error.to_string().contains("exists"), "{error}");
}

#[test]
fn laps_are_measured_and_waits_are_slept() {
    let dir = directory();
    let now = Cell::new(1_000_u64);
    let tick = || {
        now.set(now.get() + 1);
        now.get()
    };
    let slept = Cell::new(0);
    let sleep = |nanoseconds| {
        slept.set(slept.get() + nanoseconds);
        now.set(now.get() + nanoseconds);
    };
    let wait = |nanoseconds| Op::WaitUntil { nanoseconds };
    let ops = [
        Op::Lap,
        wait(500),
        Op::Lap,
        Op::Pause { nanoseconds: 100 },
        wait(550),
        Op::Lap,
    ];
    let time = Time {
        now: &tick,
        sleep: &sleep,
    };
    let mut nobody = |_: &str, _: &str, _| Ok(());
    let done = operate(
        ops.into_iter(),
        dir.path(),
        None,
        &time,
        Manner::default(),
        &mut nobody,
    );
    let (counts, latency) = done.unwrap();
    assert_eq!(counts.operations, 6);
    // Two laps after the first, which starts the watch, each right behind a wait.
    assert_eq!(latency.0.into_iter().collect::<Vec<_>>(), [(1, 2)]);
    // Until 500 after the start, of which one is past; 100 more; 550 are past by then.
    assert_eq!(slept.get(), 499 + 100);
}

#[test]
fn blocks_of_nothing_and_of_a_users_file_are_refused() {
    let dir = directory();
    let error = try_run(vec![read(0, 9, 0, false)], dir.path()).unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
    let copied = Op::WriteAt {
        path: FILE.into(),
        offset: 0,
        len: 9,
        block: 9,
        direct: false,
        content: Content::File { path: "a".into() },
    };
    let error = try_run(vec![copied], dir.path()).unwrap_err();
    assert!(error.to_string().contains("only generated"), "{error}");
}
