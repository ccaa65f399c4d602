//! A study on the device of a board from outside: the board is this machine, behind an ssh server
//! of the test's own. Root, loop devices, sshd and the agent for boards (`make agents`) are needed.
#![allow(clippy::unwrap_used)]

use crate::skip;
use crate::sshd;

use sshd::{BOARD, Sshd, attendant, kill, sessions, users};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const STUDY: &str = r#"
name = "mini"
kind = "performance"
title = "Small files on a board"
source = "a test"
method = "A small tree, written and read."
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 2
candidates = ["ext4", "ext2", "squashfs-xz"]

[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// What a run gave: status, standard output, standard error.
type Run = (i32, String, String);

/// A board with a card of 256 MiB.
struct Bench {
    sshd: Sshd,
    device: String,
    file: PathBuf,
    home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Option<Bench> {
        let alone = BOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let sshd = Sshd::new()?;
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(256 << 20)
            .unwrap();
        std::fs::write(home.path().join("mini.toml"), STUDY).unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("loop devices are needed");
            return None;
        };
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let bench = Bench {
            sshd,
            device,
            file,
            home,
            _alone: alone,
        };
        let (code, _, err) = bench.study(&["--dry-run"]);
        if code == 3 {
            skip::skip(err.trim());
            return None;
        }
        Some(bench)
    }

    fn id(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// The device as `--on` and `--card` take it.
    fn address(&self) -> String {
        format!("ssh://board{}", self.device)
    }

    /// The program with `words`, which knows the board by its name.
    fn whichfs(&self, words: &[&str]) -> Command {
        let bin = self.sshd.ssh();
        let path = format!(
            "{}:{}",
            bin.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(words)
            // Notes as a whole, and a line for each trial.
            .args(["--au", "4M", "--settle", "0", "-v"])
            .current_dir(self.home.path())
            .env("PATH", path)
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    fn command(&self, more: &[&str]) -> Command {
        let on = self.address();
        let all = ["study", "run", "./mini.toml", "--on", &on];
        self.whichfs(&[&all[..], more].concat())
    }

    fn study(&self, more: &[&str]) -> Run {
        run(&mut self.command(more))
    }

    /// Nothing of a session is left: no directory, no process, no mount.
    fn is_left_alone(&self) {
        let begun = Instant::now();
        loop {
            let left = [sessions(), users(&self.device)].concat();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "left: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("partx").arg("-d").arg(&self.device).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// What a program says on standard error, as it comes.
struct Said {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Said {
    fn listen(from: ChildStderr) -> Said {
        let text = Arc::new(Mutex::new(String::new()));
        let held = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                let mut held = held.lock().unwrap();
                held.push_str(&line.unwrap());
                held.push('\n');
            }
        });
        Said { text, reader }
    }

    fn has(&self, words: &str) -> bool {
        self.text.lock().unwrap().contains(words)
    }

    /// All of it, when the program has ended.
    fn whole(self) -> String {
        self.reader.join().unwrap();
        self.text.lock().unwrap().clone()
    }
}

/// Waits until `what` is so, and looks often.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(180), "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn loop_ssh_a_study_on_a_board_is_measured_with_consent_survives_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let (code, out, err) = bench.study(&["--dry-run"]);
    assert_eq!(code, 0, "{out}{err}");
    let address = format!("ssh://board{}", bench.device);
    for words in [
        address.as_str(),
        "sfdisk",
        "mke2fs",
        "4 trials, 0 of them finished",
        "left out: squashfs-xz",
        "images are not sent",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    bench.is_left_alone();
    let (code, _, err) = bench.study(&[]);
    assert!(
        code == 2 && err.contains("on board:") && err.contains("--destroy"),
        "{err}"
    );
    let (code, _, err) = bench.study(&["--destroy", "another"]);
    assert!(code == 2 && err.contains("another device"), "{err}");
    let written = std::os::unix::fs::MetadataExt::blocks(&bench.file.metadata().unwrap());
    assert_eq!(written, 0, "written to without consent");

    // Connections break, and once everything on the board ends.
    let mut command = bench.command(&["--destroy", bench.id(), "--json"]);
    let mut study = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = Said::listen(study.stderr.take().unwrap());
    let written = || std::os::unix::fs::MetadataExt::blocks(&bench.file.metadata().unwrap());
    until("a trial writes", || written() > 0);
    kill(attendant().unwrap());
    until("the end of the agent is told", || said.has("begins anew"));
    until("a broken connection is told", || {
        bench.sshd.cut();
        said.has("trying again")
    });
    let output = study.wait_with_output().unwrap();
    let err = said.whole();
    assert_eq!(output.status.code(), Some(0), "{err}");
    bench.is_left_alone();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["done"].as_u64(), Some(4), "{told}");
    assert_eq!(told["measured"]["reference_runs"], 3);

    // All of it is known: nothing is written, and no consent is needed.
    let (code, out, err) = bench.study(&["--json"]);
    assert_eq!(code, 0, "{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["reused"].as_u64(), Some(4));
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_choice_is_made_on_the_device_of_a_board() {
    let Some(bench) = Bench::new() else { return };
    let on = bench.address();
    let all = [
        "choose",
        "--for",
        "logger",
        "--fs",
        "ext2,ext4",
        "--seeds",
        "1",
        "--card",
        &on,
        "--here",
    ];
    let (code, out, err) = run(&mut bench.whichfs(&[&all[..], &["--dry-run"]].concat()));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(bench.id()) && out.contains("mke2fs"), "{out}");
    let (code, out, err) =
        run(&mut bench.whichfs(&[&all[..], &["--destroy", bench.id()]].concat()));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("Use ext") && out.contains("easured"), "{out}");
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_board_out_of_reach_and_a_wrong_address_are_told_with_the_remedy() {
    let Some(bench) = Bench::new() else { return };
    bench.sshd.forget_key();
    let (code, _, err) = bench.study(&["--dry-run"]);
    assert!(
        code == 3 && err.contains("ssh-copy-id board"),
        "{code} {err}"
    );
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    wrong.args([
        "study",
        "run",
        "pandora",
        "--dry-run",
        "--on",
        "ssh://board",
    ]);
    let (code, _, err) = run(&mut wrong);
    assert!(
        code == 2 && err.contains("ssh://root@board/dev/mmcblk0"),
        "{code} {err}"
    );
}
