//! Trials in a directory of a mounted filesystem, from outside (root, loop devices and the agent
//! are needed).
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STUDY: &str = r#"
name = "mini"
kind = "performance"
title = "Small files in a directory"
source = "a test"
method = "A small tree, written and read."
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 2
candidates = ["ext4", "f2fs", "xfs"]

[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// A filesystem on a loop device, mounted, with a file of its user's.
pub(crate) struct Card {
    device: String,
    pub(crate) place: PathBuf,
    pub(crate) home: tempfile::TempDir,
}

fn run_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

impl Card {
    pub(crate) fn new(mib: u64) -> Option<Card> {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = home.path().join("card.img");
        let made = std::fs::File::create(&file).unwrap();
        made.set_len(mib << 20).unwrap();
        std::fs::write(home.path().join("mini.toml"), STUDY).unwrap();
        let place = home.path().join("card");
        std::fs::create_dir(&place).unwrap();
        let shown = file.display().to_string();
        let Some(device) = run_of("losetup", &["-f", "--show", &shown]) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        let card = Card {
            device,
            place,
            home,
        };
        let place = card.place.display().to_string();
        let made = run_of("mkfs.ext4", &["-q", &card.device]);
        let mounted = made.and_then(|_| run_of("mount", &["-o", "noatime", &card.device, &place]));
        if mounted.is_none() {
            skip::skip("mkfs.ext4 and mount are needed");
            return None;
        }
        std::fs::write(card.place.join("mine"), "the user's").unwrap();
        let (code, _, err) = card.run(&card.study(&["--dry-run"]));
        if code == 3 {
            skip::skip(err.trim());
            return None;
        }
        Some(card)
    }

    fn study<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let place = self.place.to_str().unwrap();
        let all = [
            "study",
            "run",
            "./mini.toml",
            "--settle",
            "0",
            "--on",
            place,
        ];
        [&all[..], more].concat()
    }

    fn command(&self, arguments: &[&str]) -> Command {
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

    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let code = output.status.code().unwrap_or(-1);
        (code, text(&output.stdout), text(&output.stderr))
    }

    /// Nothing of a run is left, and what the user has is there.
    fn is_clean(&self) {
        let entries = std::fs::read_dir(&self.place).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["lost+found", "mine"]);
        let mine = std::fs::read_to_string(self.place.join("mine")).unwrap();
        assert_eq!(mine, "the user's");
    }

    /// Waits until a trial is under way.
    fn wait_for_trial(&self, child: &mut std::process::Child) {
        let begun = Instant::now();
        while !self.place.join(".whichfs-trials/trial").exists() {
            assert!(begun.elapsed() < Duration::from_secs(180));
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn start(&self) -> std::process::Child {
        let mut command = self.command(&self.study(&[]));
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

#[test]
fn loop_inside_the_filesystem_that_is_there_is_measured_and_nothing_is_left() {
    let Some(card) = Card::new(192) else { return };
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    for words in [
        "is on ext4 on",
        "mounted on",
        "noatime",
        "left out: f2fs, xfs:",
        "nothing is formatted",
        "2 trials, 0 of them finished",
        "write about",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    card.is_clean();
    let (code, out, err) = card.run(&card.study(&[]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("will be written to"), "{err}");
    for words in [
        "tree_write",
        "(measured)",
        "not measured in a directory: mkfs, mount, unmount, space",
        "was removed",
        "f2fs, xfs:",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    card.is_clean();
    let csv =
        std::fs::read_to_string(card.home.path().join("whichfs-study/latest/results.csv")).unwrap();
    let is_its = |line: &str| line.contains("ext4") && line.contains(",real,");
    assert!(csv.lines().skip(1).all(is_its), "{csv}");
    assert!(csv.contains("write_amplification"), "{csv}");
    let (_, rows) = csv.split_once('\n').unwrap();
    for never in [",mkfs,", ",mount,", ",space,", "f2fs"] {
        assert!(!rows.contains(never), "{never}: {csv}");
    }
    // All of it is known now.
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert!(
        code == 0 && out.contains("2 of them finished"),
        "{out}{err}"
    );
}

#[test]
fn loop_inside_a_killed_run_is_cleaned_up_by_the_next_and_an_interrupted_one_by_itself() {
    let Some(card) = Card::new(192) else { return };
    let mut child = card.start();
    card.wait_for_trial(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(card.place.join(".whichfs-trials").exists());
    let mut child = card.start();
    std::thread::sleep(Duration::from_millis(300));
    card.wait_for_trial(&mut child);
    let pid = child.id().to_string();
    run_of("kill", &["-INT", &pid]).unwrap();
    child.wait().unwrap();
    card.is_clean();
    // A second kill, and a whole run after it.
    let mut child = card.start();
    card.wait_for_trial(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, out, err) = card.run(&card.study(&[]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("what an interrupted run had left"), "{err}");
    card.is_clean();
}

#[test]
fn loop_inside_a_budget_of_bytes_holds() {
    let Some(card) = Card::new(192) else { return };
    let (code, out, err) = card.run(&card.study(&["--max-write", "30M"]));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("--max-write allows"), "{out}");
    card.is_clean();
}

#[test]
fn loop_inside_what_is_no_place_for_trials_is_refused() {
    let Some(card) = Card::new(64) else { return };
    let study = |on: &Path, more: &[&str]| {
        let on = on.display().to_string();
        let all = ["study", "run", "./mini.toml", "--on", &on];
        let (code, _, err) = card.run(&[&all[..], more].concat());
        assert_eq!(code, 2, "{on} {err}");
        err
    };
    let err = study(&card.place, &["--destroy", "x"]);
    assert!(
        err.contains("an ID to destroy") && err.contains("directory"),
        "{err}"
    );
    let err = study(Path::new("/dev/shm"), &[]);
    assert!(err.contains("in memory"), "{err}");
    let err = study(Path::new("/proc"), &[]);
    assert!(err.contains("no block device"), "{err}");
    // The root filesystem, unless that is none of a device.
    let (_, _, err) = card.run(&["study", "run", "./mini.toml", "--on", "/", "--dry-run"]);
    assert!(
        err.contains("--internal") || err.contains("/ is on"),
        "{err}"
    );
    // A directory of that name that is the user's.
    let own = card.place.join(".whichfs-trials");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("mine"), "data").unwrap();
    let err = study(&card.place, &[]);
    assert!(err.contains("not created by whichfs"), "{err}");
    assert!(own.join("mine").exists());
    std::fs::remove_dir_all(&own).unwrap();
    // Too little room.
    let filler = std::fs::File::create(card.place.join("filler")).unwrap();
    let free = rustix::fs::fstatvfs(&filler).unwrap();
    let fill = (free.f_bavail * free.f_frsize).saturating_sub(30 << 20);
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, fill).unwrap();
    drop(filler);
    let err = study(&card.place, &[]);
    assert!(err.contains("free, and a trial needs"), "{err}");
    std::fs::remove_file(card.place.join("filler")).unwrap();
    // Read-only.
    let place = card.place.display().to_string();
    run_of("mount", &["-o", "remount,ro", &place]).unwrap();
    let err = study(&card.place, &[]);
    assert!(err.contains("remount,rw"), "{err}");
}

#[test]
fn loop_inside_attack_names_that_the_owner_swaps_lead_nowhere() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    let Some(card) = Card::new(192) else { return };
    let victim = card.home.path().join("victim");
    std::fs::create_dir_all(victim.join("trial")).unwrap();
    std::fs::write(victim.join("trial/precious"), "data").unwrap();
    // The directory is a user's, who may do anything in it.
    chown(&card.place, Some(65534), Some(65534)).unwrap();
    let (own, aside) = (card.place.join(".whichfs-trials"), card.place.join("aside"));
    let mut child = card.start();
    card.wait_for_trial(&mut child);
    // The directory is made first, and given to the owner then.
    let owned = || std::fs::metadata(own.join("trial")).is_ok_and(|trial| trial.uid() == 65534);
    let begun = std::time::Instant::now();
    while !owned() {
        assert!(
            begun.elapsed().as_secs() < 10,
            "trials run as the owner of the directory"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::rename(&own, &aside).unwrap();
    symlink(&victim, &own).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(2), "another directory is no result");
    let precious = std::fs::read_to_string(victim.join("trial/precious")).unwrap();
    assert_eq!(precious, "data");
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1);
    assert_eq!(
        std::fs::read_dir(&aside).unwrap().count(),
        0,
        "it cleans up"
    );
    // The next run names what is wrong, and does nothing.
    let (code, _, err) = card.run(&card.study(&[]));
    assert!(
        code == 2 && err.contains("not created by whichfs"),
        "{code} {err}"
    );
    std::fs::remove_file(&own).unwrap();
    std::fs::remove_dir(&aside).unwrap();
    let (code, out, err) = card.run(&card.study(&[]));
    assert_eq!(code, 0, "{out}{err}");
    card.is_clean();
}
