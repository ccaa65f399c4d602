//! Times do not follow the clock on the wall: somebody sets it, or a network does, in the middle of
//! a trial. The agent runs with a library before the system's in which that clock jumps by a day at
//! each look (a C compiler is needed, which Rust links with).
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use whichfs_trial::{Job, StampedEvent, Step};
use whichfs_units::Nanos;

/// The clock `JUMPS` goes back and forth by a day.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { static long looks; return looks++ % 2 ? -86400 : 86400; }
int clock_gettime(clockid_t clock, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, t);
    if (clock == JUMPS) t->tv_sec += jump();
    return result;
}
"#;

/// The library in which `clock` jumps; `None` without a compiler.
fn library(dir: &Path, clock: &str) -> Option<PathBuf> {
    let source = dir.join("jump.c");
    let made = dir.join(format!("{clock}.so"));
    std::fs::write(&source, LIBRARY).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", &format!("-DJUMPS={clock}"), "-o"]);
    let status = cc.arg(&made).arg(&source).arg("-ldl").status().ok()?;
    status.success().then_some(made)
}

/// What the agent tells of a phase that sleeps for 200 ms, with `library` before the system's.
fn told(library: &Path) -> Vec<StampedEvent> {
    let disks = std::fs::read_dir("/sys/block").unwrap().flatten();
    let disk = disks.into_iter().next().unwrap().file_name();
    let argv = ["/bin/sleep", "0.2"].map(str::to_owned).to_vec();
    let job = Job {
        seed: 1,
        queues: Vec::new(),
        steps: vec![Step::Run {
            phase: Some("sleep".into()),
            argv,
            env: BTreeMap::new(),
            dir: "/".into(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        }],
        promises: false,
        returns: false,
        ignores_sync: false,
        counts_work: false,
        acknowledged: false,
    };
    let mut agent = Command::new(env!("CARGO_BIN_EXE_whichfs-agent"));
    agent.arg("--watch").arg(disk).arg("-");
    agent.env("LD_PRELOAD", library);
    let agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = agent.stderr(Stdio::null()).spawn().unwrap();
    let text = serde_json::to_vec(&job).unwrap();
    agent.stdin.take().unwrap().write_all(&text).unwrap();
    let output = agent.wait_with_output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Whether times only grow from the agent's beginning, and the phase took what it took.
fn is_right(told: &[StampedEvent]) -> bool {
    let grows = told.windows(2).all(|two| two[0].at <= two[1].at);
    let [begin, end, ..] = told else {
        return false;
    };
    let took = end.at.saturating_sub(begin.at);
    let most = Nanos(Duration::from_secs(60).as_nanos() as u64);
    grows && begin.at < most && took >= Nanos(200_000_000) && took < most
}

#[test]
fn a_clock_on_the_wall_that_jumps_changes_no_time() {
    if !Path::new("/sys/block").exists() {
        return skip::skip("/sys/block is not there");
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(wall) = library(dir.path(), "CLOCK_REALTIME") else {
        return skip::skip("cc is not there");
    };
    // The library does what it says.
    let mut date = Command::new("date");
    let date = date.arg("+%s").env("LD_PRELOAD", &wall).output().unwrap();
    let date: u64 = String::from_utf8_lossy(&date.stdout)
        .trim()
        .parse()
        .unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs();
    assert!(date.abs_diff(now) > 80_000, "date is as it was");

    let found = told(&wall);
    assert!(is_right(&found), "{found:?}");
    // A clock that the agent goes by would be seen here.
    let steady = library(dir.path(), "CLOCK_MONOTONIC").unwrap();
    let found = told(&steady);
    assert!(!is_right(&found), "{found:?}");
}

#[test]
fn nothing_that_times_a_trial_looks_at_the_clock_on_the_wall() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for place in ["agent/src", "device/src", "remote/src", "engine/src/device"] {
        let mut places = vec![crates.join(place)];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(place).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    places.push(path);
                    continue;
                }
                // The age of a file is told by that clock alone.
                if path.ends_with("remote/src/retire.rs") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for word in ["SystemTime", "Realtime", "CLOCK_REALTIME", "gettimeofday"] {
                    assert!(!text.contains(word), "{word} in {}", path.display());
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen} files");
}
