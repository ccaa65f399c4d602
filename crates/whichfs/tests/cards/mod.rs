//! Devices that tests of trials run on: loop devices and attached modelled cards.
#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used)]

pub(crate) use crate::skip;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two filesystems that every kernel for this test has, and one that hardly any has.
pub const STUDY: &str = r#"
name = "mini"
kind = "performance"
title = "Small files on a real device"
source = "a test"
method = "A small tree, written and read."
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 2
candidates = ["ext4", "ext2", "reiserfs"]

[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// A loop device and a home of its own; the device is detached when it goes.
pub struct Card {
    pub path: String,
    pub file: PathBuf,
    pub home: tempfile::TempDir,
}

/// What a run gave: status, standard output, standard error.
pub type Run = (i32, String, String);

impl Card {
    pub fn new(mib: u64) -> Option<Card> {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = home.path().join("card.img");
        let made = std::fs::File::create(&file).unwrap();
        made.set_len(mib << 20).unwrap();
        std::fs::write(home.path().join("mini.toml"), STUDY).unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let card = Card { path, file, home };
        let (code, _, err) = card.run(&card.study(&["--dry-run"]));
        if code == 3 {
            skip::skip(err.trim());
            return None;
        }
        Some(card)
    }

    pub fn id(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// The arguments of the study on this device.
    pub fn study<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let all = [
            "study",
            "run",
            "./mini.toml",
            "--on",
            &self.path,
            "--au",
            "4M",
        ];
        [&all[..], &["--settle", "0"], more].concat()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(arguments)
            // Notes as a whole, and a line for each trial.
            .arg("-v")
            .current_dir(self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code().unwrap_or(-1), text(&stdout), text(&stderr))
    }

    /// Starts the study, for good.
    pub fn start(&self) -> Child {
        let mut command = self.command(&self.study(&["--destroy", self.id()]));
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Trials that the dry run says are finished.
    pub fn finished(&self) -> u64 {
        let (code, out, err) = self.run(&self.study(&["--dry-run"]));
        assert_eq!(code, 0, "{out}{err}");
        let words: Vec<&str> = out.split_whitespace().collect();
        let at = words
            .windows(3)
            .position(|three| three[0] == "trials," && three[2] == "of");
        words[at.unwrap() + 1].parse().unwrap()
    }

    /// Nothing of a run is left: no mount in any namespace, no process that has the device open.
    pub fn is_left_alone(&self) {
        let begun = Instant::now();
        while let Some(user) = user_of(&self.path) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{user}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = Command::new("partx").arg("-d").arg(&self.path).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.path).output();
    }
}

/// Somebody who has `device` or a partition of it mounted or open.
pub fn user_of(device: &str) -> Option<String> {
    let own = std::process::id().to_string();
    let partition = format!("{device}p1");
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.starts_with(|c: char| c.is_ascii_digit()) || pid == own {
            continue;
        }
        let mounts = std::fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
        if let Some(line) = mounts
            .lines()
            .find(|line| line.contains(&format!("{device}p1 ")))
        {
            return Some(format!("process {pid}: {line}"));
        }
        for fd in std::fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let target = std::fs::read_link(fd.path()).unwrap_or_default();
            if target == Path::new(device) || target == Path::new(&partition) {
                return Some(format!("process {pid} has {} open", target.display()));
            }
        }
    }
    None
}

/// A modelled card that is attached; what is left of it is cleaned up when it goes.
pub struct Attached<'a> {
    card: &'a Card,
    pub process: Child,
    pub path: String,
}

impl<'a> Attached<'a> {
    pub fn new(card: &'a Card) -> Option<Attached<'a>> {
        let attach = [
            "card", "attach", "a1-32gb", "--size", "256M", "--speed", "max",
        ];
        let mut command = card.command(&attach);
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let record = |pid: u32| {
            let all = std::fs::read_dir("/run/whichfs/attach")
                .into_iter()
                .flatten()
                .flatten();
            let names = all.map(|entry| entry.path());
            names.into_iter().find_map(|path| {
                let text = std::fs::read_to_string(&path).ok()?;
                let found: serde_json::Value = serde_json::from_str(&text).ok()?;
                (found["pid"].as_u64()? == u64::from(pid)).then_some(found)
            })
        };
        let path = loop {
            if let Some(found) = record(process.id()) {
                break format!("/dev/loop{}", found["number"]);
            }
            if process.try_wait().unwrap().is_some() {
                skip::skip("a card cannot be attached here");
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Some(Attached {
            card,
            process,
            path,
        })
    }

    pub fn study<'b>(&'b self, more: &[&'b str]) -> Vec<&'b str> {
        let all = [
            "study",
            "run",
            "./mini.toml",
            "--on",
            &self.path,
            "--settle",
            "0",
        ];
        [&all[..], more].concat()
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.card.run(&["card", "detach"]);
    }
}
