//! `card attach` and `probe` on a device of this machine (root, FUSE and loop are needed).
#![allow(clippy::unwrap_used)]

use crate::skip;

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The program that attaches a card, not yet run; `None` where it cannot.
fn command(arguments: &[&str]) -> Option<Command> {
    let root = rustix::process::geteuid().is_root();
    let devices = ["/dev/fuse", "/dev/loop-control"];
    let there = devices
        .iter()
        .all(|path| std::path::Path::new(path).exists());
    if !root || !there {
        skip::skip("root, /dev/fuse and /dev/loop-control are needed");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    command.args(["card", "attach", "class4-4gb"]);
    if !arguments.contains(&"--size") {
        command.args(["--size", "512M"]);
    }
    command
        .args(arguments)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"));
    Some(command)
}

/// What it did.
fn attach(arguments: &[&str]) -> Option<Output> {
    Some(command(arguments)?.output().unwrap())
}

#[test]
fn loop_a_command_runs_on_the_card_and_its_status_is_ours() {
    let run = "test $(blockdev --getsize64 $dev) = 536870912 && exit 7";
    let Some(output) = attach(&["--speed", "max", "--run", run]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("class4-4gb"), "{stderr}");
}

#[test]
fn loop_with_json_the_command_writes_elsewhere() {
    let Some(output) = attach(&["--speed", "max", "--json", "--run", "echo hi; kill -9 $$"]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    // As a shell says it: 128 and the signal.
    assert_eq!(output.status.code(), Some(137), "{stderr}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["card"], "class4-4gb");
    assert!(stderr.contains("hi"), "{stderr}");
}

#[test]
fn loop_signals_end_it_with_its_command_and_leave_nothing() {
    // Under nohup nobody here ends at a hangup.
    let ignored = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = ignored
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap();
    let no_hangup = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1;
    for (signal, run) in [
        (Signal::INT, None),
        (Signal::HUP, None),
        (Signal::TERM, Some("exec sleep 100")),
    ] {
        if signal == Signal::HUP && no_hangup {
            continue;
        }
        let mut arguments = vec!["--speed", "max"];
        arguments.extend(run.map(|_| "--run"));
        arguments.extend(run);
        let Some(mut command) = command(&arguments) else {
            return;
        };
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let number = loop {
            // Its record is there as soon as the device is.
            if let Some(number) = number_of(child.id()) {
                break number;
            }
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(10));
        };
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        // The signal of its command, or that of ours before the command began.
        let expected: &[i32] = if run.is_some() {
            &[130, 143]
        } else {
            &[0, 130]
        };
        let code = output.status.code().unwrap_or(-1);
        assert!(expected.contains(&code), "{signal:?} {code} {stderr}");
        assert!(number_of(pid.as_raw_pid() as u32).is_none(), "{stderr}");
        let bound = format!("/sys/block/loop{number}/loop");
        assert!(!std::path::Path::new(&bound).exists(), "{stderr}");
    }
}

/// Number of the loop device that process `pid` serves.
fn number_of(pid: u32) -> Option<u64> {
    let entries = std::fs::read_dir("/run/whichfs/attach").ok()?;
    entries.flatten().find_map(|entry| {
        let text = std::fs::read_to_string(entry.path()).ok()?;
        let record: serde_json::Value = serde_json::from_str(&text).ok()?;
        (record["pid"] == pid).then(|| record["number"].as_u64())?
    })
}

#[test]
fn loop_what_cannot_be_is_bad_input() {
    let Some(output) = attach(&["--size", "8192M"]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--size"), "{stderr}");
    let detach = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["card", "detach", "/dev/loop99", "--json"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&detach.stderr);
    assert_eq!(detach.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("name one of those that are"), "{stderr}");
    let told: serde_json::Value = serde_json::from_slice(&detach.stdout).unwrap();
    assert_eq!(told["document"], "error");
}

#[test]
fn loop_the_probe_reads_an_attached_card_and_writes_nothing() {
    let run = "$WHICHFS probe $dev --budget 120s --json";
    let Some(output) = attach(&["--run", run]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["bytes_written"], 0);
    let rate = found["read_mb_s"]["value"].as_f64();
    // The profile reads at 16 MB/s.
    assert!(
        rate.is_some_and(|rate| (8.0..24.0).contains(&rate)),
        "{found}"
    );
    assert!(stderr.contains("0 writes"), "{stderr}");
}

#[test]
fn loop_a_mounted_card_is_not_probed() {
    let run = "mkfs.ext4 -q $dev && d=$(mktemp -d) && mount $dev $d && \
               { $WHICHFS probe $dev; code=$?; umount $d; rmdir $d; exit $code; }";
    let Some(output) = attach(&["--speed", "max", "--run", run]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is mounted"), "{stderr}");
}

#[test]
fn loop_an_interrupted_attach_says_so_by_its_status() {
    use std::io::{BufRead, BufReader};
    let Some(mut command) = command(&[]) else {
        return;
    };
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    lines.read_line(&mut told).unwrap();
    assert!(told.contains("Ctrl-C"), "{told}");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
