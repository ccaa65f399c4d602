//! Trials on a device of this machine from outside (root, loop devices and the agent are needed).
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two filesystems that every kernel for this test has, and one that hardly any has.
const STUDY: &str = r#"
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
struct Card {
    path: String,
    file: PathBuf,
    home: tempfile::TempDir,
}

/// What a run gave: status, standard output, standard error.
type Run = (i32, String, String);

impl Card {
    fn new(mib: u64) -> Option<Card> {
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

    fn id(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// The arguments of the study on this device.
    fn study<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code().unwrap_or(-1), text(&stdout), text(&stderr))
    }

    /// Starts the study, for good.
    fn start(&self) -> Child {
        let mut command = self.command(&self.study(&["--destroy", self.id()]));
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Trials that the dry run says are finished.
    fn finished(&self) -> u64 {
        let (code, out, err) = self.run(&self.study(&["--dry-run"]));
        assert_eq!(code, 0, "{out}{err}");
        let words: Vec<&str> = out.split_whitespace().collect();
        let at = words
            .windows(3)
            .position(|three| three[0] == "trials," && three[2] == "of");
        words[at.unwrap() + 1].parse().unwrap()
    }

    /// Nothing of a run is left: no mount in any namespace, no process that has the device open.
    fn is_left_alone(&self) {
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
fn user_of(device: &str) -> Option<String> {
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

#[test]
fn loop_here_a_study_is_measured_only_where_it_may_and_is_kept() {
    let Some(card) = Card::new(256) else { return };
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    for words in [
        "sfdisk",
        "mke2fs",
        "4 trials, 0 of them finished",
        "left out: reiserfs",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(out.contains(&format!("--destroy {}", card.id())), "{out}");
    let (code, _, err) = card.run(&card.study(&[]));
    assert!(code == 2 && err.contains("--destroy"), "{code} {err}");
    let (code, _, err) = card.run(&card.study(&["--destroy", &card.path]));
    assert!(code == 2 && err.contains("another device"), "{code} {err}");
    let written = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&card.file).unwrap());
    assert_eq!(written, 0, "written to without consent");

    let (code, out, err) = card.run(&card.study(&["--destroy", card.id()]));
    assert_eq!(code, 0, "{out}{err}");
    for words in [
        "(measured)",
        "tree_write",
        "not counted: the first",
        "reference run 1",
    ] {
        assert!(
            out.contains(words) || err.contains(words),
            "{words}: {out}{err}"
        );
    }
    assert!(out.contains("reference runs"), "{out}");
    card.is_left_alone();
    let csv = std::fs::read_to_string(card.home.path().join("whichfs-study/results.csv")).unwrap();
    assert!(
        csv.lines().skip(1).all(|line| line.contains(",real,")),
        "{csv}"
    );
    assert!(
        !csv.contains("write_amplification_card"),
        "no device tells that: {csv}"
    );
    assert!(
        csv.contains("ext4") && csv.contains("ext2") && csv.contains("_cpu,"),
        "{csv}"
    );

    // All of it is known: nothing is written, and no consent is needed.
    let (code, out, err) = card.run(&card.study(&["--json"]));
    assert_eq!(code, 0, "{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (told["done"].as_u64(), told["reused"].as_u64()),
        (Some(4), Some(4))
    );
    assert_eq!(told["measured"]["session"], 1);
    assert!(
        told["measured"]["written_bytes"].as_u64() > Some(40_000_000),
        "{told}"
    );
    assert_eq!(told["measured"]["reference_runs"], 3);
}

#[test]
fn loop_here_a_budget_of_bytes_holds_and_the_rest_goes_on() {
    let Some(card) = Card::new(256) else { return };
    let limits = ["--destroy", card.id(), "--max-write", "200M"];
    let (code, out, err) = card.run(&card.study(&limits));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("--max-write allows"), "{out}");
    let finished = card.finished();
    assert!((1..4).contains(&finished), "{finished}");
    let (code, out, err) = card.run(&card.study(&["--destroy", card.id(), "--budget", "1h"]));
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(card.finished(), 4);
}

#[test]
fn loop_here_killed_at_any_moment_it_leaves_nothing_and_loses_nothing() {
    let Some(card) = Card::new(256) else { return };
    let mut known = 0;
    // Moments that fall into the table, mkfs, the mount, phases and between trials.
    for (kill, milliseconds) in [150, 900, 1700, 2600, 3300, 400, 2100, 4100]
        .iter()
        .enumerate()
    {
        let mut child = card.start();
        std::thread::sleep(Duration::from_millis(*milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        card.is_left_alone();
        let finished = card.finished();
        assert!(
            finished >= known,
            "kill {kill}: {finished} of {known} are left"
        );
        known = finished;
    }
    let (code, out, err) = card.run(&card.study(&["--destroy", card.id(), "--json"]));
    assert_eq!(code, 0, "{out}{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (told["done"].as_u64(), told["reused"].as_u64()),
        (Some(4), Some(known))
    );
}

#[test]
fn loop_here_an_interrupted_run_tells_what_is_on_the_device() {
    let Some(card) = Card::new(256) else { return };
    let mut child = card.start();
    let journals = card.home.path().join("whichfs/format");
    let begun = || {
        let entries = std::fs::read_dir(&journals).into_iter().flatten().flatten();
        let mut texts = entries.map(|entry| std::fs::read_to_string(entry.path()));
        texts.any(|text| text.is_ok_and(|text| text.contains("\"trial\"")))
    };
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    card.is_left_alone();
    let (code, _, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    for words in [
        "was interrupted",
        "trials of mini",
        "on it now: ext",
        "format it again",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn loop_here_a_device_that_is_detached_in_the_middle_lives_until_the_run_has_ended() {
    let Some(card) = Card::new(256) else { return };
    let mut study = card.command(&card.study(&["--destroy", card.id()]));
    study.stdout(Stdio::piped()).stderr(Stdio::piped());
    let study = study.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // The loop driver lets go of the file when the last user has let go of the device.
    let mut losetup = Command::new("losetup");
    losetup.arg("-d").arg(&card.path).output().unwrap();
    let output = study.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("FAILED"), "{err}");
    let name = card.path.trim_start_matches("/dev/");
    let bound = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
    let begun = Instant::now();
    let is_ours = || {
        let text = std::fs::read_to_string(&bound).unwrap_or_default();
        text.trim_end() == card.id()
    };
    while is_ours() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "something holds it"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn loop_here_a_device_that_is_too_small_for_the_workload_is_told() {
    let Some(card) = Card::new(24) else { return };
    let study = STUDY.replace("8000000", "40000000");
    std::fs::write(card.home.path().join("mini.toml"), study).unwrap();
    let (code, out, err) = card.run(&card.study(&["--destroy", card.id(), "--seeds", "1"]));
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("FAILED") && err.contains("full"), "{err}");
    card.is_left_alone();
}

#[test]
fn loop_here_choose_tells_a_measured_verdict() {
    let Some(card) = Card::new(256) else { return };
    let choose = [
        "choose",
        "--card",
        &card.path,
        "--here",
        "--candidates",
        "ext4,ext3",
    ];
    let more = [
        "--size", "16", "--seeds", "1", "--settle", "0", "--au", "4M",
    ];
    let all = [&choose[..], &more[..]].concat();
    let (code, out, err) = card.run(&[&all[..], &["--dry-run"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("Nothing was written") && out.contains("sfdisk"),
        "{out}"
    );
    let (code, out, err) = card.run(&[&all[..], &["--destroy", card.id()]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("Figures are measured") && out.contains("on the device"),
        "{out}"
    );
    assert!(!out.contains("virtual"), "{out}");
    card.is_left_alone();
    let verdict = card.home.path().join("whichfs-report/verdict.json");
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(verdict).unwrap()).unwrap();
    assert_eq!(told["origin"], "measured");
    assert_eq!(told["ranking"].as_array().unwrap().len(), 2);
}

#[test]
fn loop_here_an_attached_modelled_card_is_a_device_too() {
    let Some(card) = Card::new(64) else { return };
    let program = env!("CARGO_BIN_EXE_whichfs");
    let study = "study run ./mini.toml --settle 0 --seeds 1 --only-fs ext4 --on $WHICHFS_DEVICE";
    let script = format!(
        "id=$({program} {study} --dry-run | sed -n 's/.*--destroy //p'); \
         eval {program} {study} --destroy \"$id\""
    );
    let attach = [
        "card", "attach", "a1-32gb", "--size", "256", "--speed", "max",
    ];
    let (code, out, err) = card.run(&[&attach[..], &["--run", &script]].concat());
    if code == 3 {
        return skip::skip(err.trim());
    }
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("tree_write") && out.contains("(measured)"),
        "{out}{err}"
    );
}

/// A modelled card that is attached; what is left of it is cleaned up when it goes.
struct Attached<'a> {
    card: &'a Card,
    process: Child,
    path: String,
}

impl<'a> Attached<'a> {
    fn new(card: &'a Card) -> Option<Attached<'a>> {
        let attach = [
            "card", "attach", "a1-32gb", "--size", "256", "--speed", "max",
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

    fn study<'b>(&'b self, more: &[&'b str]) -> Vec<&'b str> {
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

#[test]
fn loop_here_a_card_whose_driver_dies_in_the_middle_ends_the_run_and_loses_nothing() {
    let Some(card) = Card::new(64) else { return };
    let Some(mut attached) = Attached::new(&card) else {
        return;
    };
    let (code, out, err) = card.run(&attached.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    let id = out
        .rsplit("--destroy ")
        .next()
        .unwrap()
        .trim()
        .trim_matches('\'')
        .to_owned();
    let path = attached.path.clone();
    let mut command = card.command(&attached.study(&["--destroy", &id, "--seeds", "20"]));
    let study = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    attached.process.kill().unwrap();
    attached.process.wait().unwrap();
    let output = study.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{err}");
    let said = err.contains("errors of the device") || err.contains("is another device");
    assert!(said && err.contains(" kept"), "{err}");
    let begun = Instant::now();
    while let Some(user) = user_of(&path) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{user}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
