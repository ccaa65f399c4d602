//! Faults of the machine while trials run on a device: killed at random moments, stopped,
//! write-protected (root, loop devices and the agent are needed).
//!
//! `WHICHFS_KILLS` is the number of kills (12; `make soak` takes 200), `WHICHFS_KILL_SEED` the seed
//! of their moments.
#![allow(clippy::unwrap_used)]

use crate::cards;

use cards::{Card, STUDY};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

/// A study that does not come to its end: trials of a few tenths of a second.
fn endless(card: &Card) {
    let study = STUDY
        .replace("seeds = 2", "seeds = 900")
        .replace("\"ext4\", \"ext2\", \"reiserfs\"", "\"ext4\", \"ext2\"")
        .replace(
            "bytes = 8000000, files = 100",
            "bytes = 1048576, files = 20",
        );
    std::fs::write(card.home.path().join("mini.toml"), study).unwrap();
}

fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap())
}

#[test]
fn loop_faults_killed_at_any_moment_it_leaves_nothing_and_loses_nothing() {
    let Some(card) = Card::new(96) else { return };
    endless(&card);
    let (kills, seed) = (
        setting("WHICHFS_KILLS", 12),
        setting("WHICHFS_KILL_SEED", 1),
    );
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    // From the start of the program over table, mkfs, mount and phases to the fourth run.
    let begun = Instant::now();
    let (mut child, _, _) = begin(&card);
    let span = begun.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    card.is_left_alone();
    let (mut known, mut during) = (card.finished(), 0);
    assert!(known > 0);
    for kill in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let moment = Duration::from_micros(random % span.as_micros() as u64);
        let mut child = card.start();
        std::thread::sleep(moment);
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        during += u64::from(cards::user_of(&card.path).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        let context = format!("kill {kill} of seed {seed}, after {moment:?}");
        card.is_left_alone();
        let finished = card.finished();
        assert!(
            finished >= known,
            "{context}: {finished} of {known} are left"
        );
        known = finished;
    }
    assert!(
        known > 0 && during > kills / 4,
        "{known} trials, {during} at work"
    );
    println!("{kills} kills of seed {seed}: {known} trials finished and kept, {during} at work");
    let ids = ["--destroy", card.id(), "--json", "--budget", "1s"];
    let (code, out, err) = card.run(&card.study(&ids));
    assert_eq!(code, 0, "{out}{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["reused"].as_u64(), Some(known), "{err}");
}

/// A study that has finished some trials and goes on: the run, what it says, and what it has said.
fn begin(card: &Card) -> (Child, BufReader<ChildStderr>, String) {
    let mut command = card.command(&card.study(&["--destroy", card.id()]));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("[4/") {
        let count = lines.read_line(&mut said).unwrap();
        assert!(count > 0, "it ended early: {said}");
    }
    (child, lines, said)
}

/// The agent of the run `child`: its process group, when a trial is under way.
fn agent_of(child: &mut Child) -> Pid {
    let begun = Instant::now();
    let parent = child.id().to_string();
    loop {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        assert!(begun.elapsed() < Duration::from_secs(180), "no trial began");
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((front, back)) = stat.rsplit_once(')') else {
                continue;
            };
            let is_child = back.split_whitespace().nth(1) == Some(parent.as_str());
            if is_child && front.contains("whichfs-agent") {
                let pid = front.split(' ').next().unwrap().parse().unwrap();
                return Pid::from_raw(pid).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn loop_faults_a_trial_that_was_stopped_is_run_again() {
    let Some(card) = Card::new(256) else { return };
    let mut command = card.command(&card.study(&["--destroy", card.id(), "--seeds", "1"]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let agent = agent_of(&mut child);
    // Its first readings are behind it, and phases are under way.
    let mounts = format!("/proc/{}/mountinfo", agent.as_raw_nonzero());
    let partition = format!("{}p1 ", card.path);
    while !std::fs::read_to_string(&mounts)
        .unwrap()
        .contains(&partition)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process_group(agent, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    kill_process_group(agent, Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(
        err.contains("stopped for") && err.contains("it is run again"),
        "{err}"
    );
    card.is_left_alone();
}

/// A device that is write-protected; the switch stays with a loop device when its file goes.
struct Protected<'a>(&'a str);

impl<'a> Protected<'a> {
    fn new(path: &'a str) -> Protected<'a> {
        switch("--setro", path);
        Protected(path)
    }
}

impl Drop for Protected<'_> {
    fn drop(&mut self) {
        switch("--setrw", self.0);
    }
}

fn switch(flag: &str, path: &str) {
    let mut blockdev = std::process::Command::new("blockdev");
    assert!(blockdev.args([flag, path]).status().unwrap().success());
}

#[test]
fn loop_faults_a_device_that_becomes_write_protected_ends_the_run_and_loses_nothing() {
    let Some(card) = Card::new(96) else { return };
    endless(&card);
    let (child, mut lines, mut err) = begin(&card);
    let protected = Protected::new(&card.path);
    lines.read_to_string(&mut err).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(2 | 4)), "{err}");
    assert!(err.contains("read-only") && err.contains("kept"), "{err}");
    card.is_left_alone();
    drop(protected);
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        err.contains("was interrupted"),
        "the device's state is told: {err}"
    );
    assert!(card.finished() > 0);
}
