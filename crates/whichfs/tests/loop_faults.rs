//! Faults of the machine while trials run on a device: killed at random moments, stopped,
//! write-protected (root, loop devices and the agent are needed).
//!
//! `WHICHFS_KILLS` is the number of kills (40; `make soak` takes 200), `WHICHFS_KILL_SEED` the seed of
//! their moments.
#![allow(clippy::unwrap_used)]

mod cards;

use cards::{Card, STUDY};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A study that does not come to its end: trials of a few tenths of a second.
fn endless(card: &Card) {
    let study = STUDY
        .replace("seeds = 2", "seeds = 900")
        .replace("\"ext4\", \"ext2\", \"reiserfs\"", "\"ext4\", \"ext2\"")
        .replace(
            "bytes = 8000000, files = 100",
            "bytes = 1000000, files = 20",
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
        setting("WHICHFS_KILLS", 40),
        setting("WHICHFS_KILL_SEED", 1),
    );
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let (mut known, mut during) = (0, 0);
    for kill in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // From the start of the program over table, mkfs, mount and phases to the third trial.
        let moment = Duration::from_micros(random % 1_500_000);
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

/// The agent of the run `child`: its process group, when a trial is under way.
fn agent_of(child: &mut Child) -> Pid {
    let begun = Instant::now();
    let parent = child.id().to_string();
    loop {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        assert!(begun.elapsed() < Duration::from_secs(60), "no trial began");
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
    // mkfs and the mount take a part of this, then phases are under way.
    std::thread::sleep(Duration::from_millis(100));
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

#[test]
fn loop_faults_a_device_that_becomes_write_protected_ends_the_run_and_loses_nothing() {
    let Some(card) = Card::new(96) else { return };
    endless(&card);
    let mut command = card.command(&card.study(&["--destroy", card.id()]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let protect = |flag: &str| {
        let mut blockdev = std::process::Command::new("blockdev");
        let status = blockdev.arg(flag).arg(&card.path).status().unwrap();
        assert!(status.success());
    };
    protect("--setro");
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(2 | 4)), "{err}");
    assert!(err.contains("read-only") && err.contains("kept"), "{err}");
    card.is_left_alone();
    protect("--setrw");
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        err.contains("was interrupted"),
        "the device's state is told: {err}"
    );
    assert!(card.finished() > 0);
}
