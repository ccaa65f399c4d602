//! The power of a board is cut: the board is this machine, in name spaces of its own, with a card
//! whose cache is volatile. Root, loop devices, XFS, sshd and the agent for boards (`make agents`)
//! are needed.
#![allow(clippy::unwrap_used)]

use crate::powered;
use crate::skip;
use crate::sshd::BOARD;

use powered::Powered;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError};

/// What a run gave: status, standard output, standard error.
type Run = (i32, String, String);

struct Bench {
    board: Powered,
    home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Option<Bench> {
        let alone = BOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let bench = Bench {
            board: Powered::new()?,
            home: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            _alone: alone,
        };
        let (code, _, err) = run(&mut bench.command(&["--power", "sysrq", "--dry-run"]));
        if code == 3 {
            skip::skip(err.trim());
            return None;
        }
        Some(bench)
    }

    /// ext4 with files that are replaced, on the card of the board.
    fn command(&self, more: &[&str]) -> Command {
        let on = format!("ssh://board{}", self.board.device);
        let ssh = self.board.ssh();
        let path = format!("{}:{}", ssh.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args([
                "crash",
                "run",
                "--fs",
                "ext4",
                "--workload",
                "atomic",
                "--size",
                "16M",
            ])
            .args([
                "--partition",
                "64M",
                "--au",
                "4M",
                "--settle",
                "0",
                "--on",
                &on,
            ])
            .args(more)
            // Notes as a whole, and a line for each trial.
            .arg("-v")
            .current_dir(self.home.path())
            .env("PATH", path)
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    fn cut(&self, power: &str, more: &[&str]) -> Command {
        let mut command = self.command(&["--power-command", power]);
        command.args(["--destroy", &self.board.id()]).args(more);
        command
    }
}

fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// The newest lines of this machine's kernel log, where they may be read.
fn kernel_log() -> String {
    let output = Command::new("dmesg").output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let lines: Vec<&str> = text.lines().rev().take(150).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn cuts(document: &Value) -> &Vec<Value> {
    document["filesystems"][0]["cuts"].as_array().unwrap()
}

#[test]
fn loop_power_an_honest_card_raises_no_alarm_and_an_interrupted_series_goes_on() {
    let Some(bench) = Bench::new() else { return };
    if !bench.board.keeps_what_was_flushed() {
        return;
    }
    let (code, out, err) = run(&mut bench.command(&["--power", "watchdog", "--dry-run"]));
    assert_eq!(code, 0, "{out}{err}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "sfdisk",
        "mke2fs",
        "100 cuts",
        "by watchdog",
        &bench.board.id(),
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let cut = bench.board.cut();
    let (code, _, err) = run(&mut bench.command(&["--power-command", &cut]));
    assert!(code == 2 && err.contains("--destroy"), "{err}");
    assert_eq!(bench.board.blocks(), 0, "written to without consent");

    // Interrupted after the first cut.
    let count = ["--cuts", "3", "--json"];
    let mut first = bench
        .cut(&cut, &count)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for line in BufReader::new(first.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        said.push_str(&line);
        said.push('\n');
        if line.contains("cut 0 of 3") {
            let pid = first.id().to_string();
            Command::new("kill").args(["-INT", &pid]).status().unwrap();
        }
    }
    assert_eq!(first.wait().unwrap().code(), Some(130), "{said}");
    assert_eq!(bench.board.left(), Vec::<String>::new());

    let out_dir = bench.home.path().join("out").display().to_string();
    let (code, out, err) = run(bench.cut(&cut, &count).args(["--out", &out_dir]));
    assert_eq!(code, 0, "{err}{out}{}", kernel_log());
    assert!(err.contains("1 of 3 cuts were made before"), "{err}");
    assert_eq!(bench.board.left(), Vec::<String>::new());
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["measured"]["power"], Value::from(cut.as_str()));
    assert_eq!(document["clock"], "real");
    assert_eq!(cuts(&document).len(), 3);
    let mut heard = 0;
    for cut in cuts(&document) {
        assert_eq!(cut["broken"], false, "{cut:#}");
        let condition = cut["condition"].as_str().unwrap();
        assert!(["clean", "recovered"].contains(&condition), "{cut:#}");
        assert_eq!(cut["cut"]["place"], "unseen");
        heard += cut["measured"]["promises"].as_u64().unwrap();
        let right = cut["outcomes"]["right"].as_u64().unwrap();
        assert!(right > 0, "{cut:#}");
    }
    assert!(
        heard > 0,
        "nothing was promised before a cut: the test tests nothing"
    );
    let csv = std::fs::read_to_string(bench.home.path().join("out/results.csv")).unwrap();
    assert!(csv.lines().nth(1).unwrap().ends_with(",,measured"), "{csv}");

    // All of it is kept: no consent is needed, and the lab is not asked to show it again.
    let (code, again, err) = run(bench.command(&["--power-command", &cut]).args(count));
    assert_eq!((code, again), (0, out), "{err}");
    let series = document["filesystems"][0]["series"].as_str().unwrap();
    let mut replay = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    replay.args(["crash", "replay", &format!("{series}-1")]);
    let (code, out, err) = run(replay.env("XDG_DATA_HOME", bench.home.path()));
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("measured") && out.contains("promises told"),
        "{out}"
    );
    let mut minimise = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    minimise.args(["crash", "minimise", &format!("{series}-1")]);
    let (code, _, err) = run(minimise.env("XDG_DATA_HOME", bench.home.path()));
    assert!(code == 2 && err.contains("real device"), "{err}");
}

#[test]
fn loop_power_a_card_that_lies_about_its_flushes_is_found() {
    let Some(bench) = Bench::new() else { return };
    let lying = bench.board.lying_cut();
    let (code, out, err) = run(&mut bench.cut(&lying, &["--cuts", "2", "--json"]));
    assert_eq!(code, 1, "{out}{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    let broken: Vec<&Value> = cuts(&document)
        .iter()
        .filter(|cut| cut["broken"] == true)
        .collect();
    assert!(!broken.is_empty(), "{err}");
    for cut in broken {
        let findings = cut["findings"].as_array().unwrap();
        let lost = findings.iter().any(|finding| finding["durable"] == true);
        assert!(lost, "{cut:#}");
    }
    assert_eq!(bench.board.left(), Vec::<String>::new());
}

#[test]
fn loop_power_a_command_that_fails_is_told_and_nothing_is_judged() {
    let Some(bench) = Bench::new() else { return };
    let (code, _, err) = run(&mut bench.cut("echo no such socket; exit 7", &["--cuts", "1"]));
    assert_eq!(code, 3, "{err}");
    for words in [
        "no such socket",
        "the command that takes the power",
        "0 cuts kept",
        "by hand",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert_eq!(bench.board.left(), Vec::<String>::new());
}
