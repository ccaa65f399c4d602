//! `card attach` and `probe` on a device of this machine (root, FUSE and loop are needed).
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

/// The program with `arguments`; `None` where a card cannot be attached.
fn attach(arguments: &[&str]) -> Option<Output> {
    let root = rustix::process::geteuid().is_root();
    let devices = ["/dev/fuse", "/dev/loop-control"];
    let there = devices
        .iter()
        .all(|path| std::path::Path::new(path).exists());
    if !root || !there {
        println!("skipped: root, /dev/fuse and /dev/loop-control are needed");
        return None;
    }
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["card", "attach", "class4-4gb", "--size", "512"])
        .args(arguments)
        .env("XDG_CACHE_HOME", cache.path())
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"))
        .output()
        .unwrap();
    Some(output)
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
fn loop_the_probe_reads_an_attached_card_and_writes_nothing() {
    let run = "$WHICHFS probe $dev --budget 20s --json";
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
