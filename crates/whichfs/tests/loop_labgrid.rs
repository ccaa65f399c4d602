//! Boards in a labgrid lab from outside: labgrid's own coordinator, exporter and client, and boards
//! that are this machine in name spaces of their own, whose power a driver of labgrid switches.
//! Root, loop devices, XFS, sshd, the agent for boards (`make agents`) and labgrid (from PyPI) are
//! needed.
#![allow(clippy::unwrap_used)]

use crate::labgrid::Lab;
use crate::powered::Powered;
use crate::skip;
use crate::sshd::BOARD;

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
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
candidates = ["ext4"]

[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// What a run gave: status, standard output, standard error.
type Run = (i32, String, String);

/// A lab of boards called a, b, …; whichfs is run by the user ada.
struct Bench {
    lab: Lab,
    boards: Vec<Powered>,
    home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Names of boards and of their places.
const NAMES: [&str; 2] = ["rack-a", "rack-b"];

impl Bench {
    /// A lab of so many boards; those with `power` can be switched.
    fn new(count: usize, power: bool) -> Option<Bench> {
        let service = |name: &str, _: &Powered| {
            Some(format!(
                "  NetworkService:\n    address: {name}\n    username: root\n"
            ))
        };
        Bench::with(count, power, service)
    }

    /// The same with the exporter's lines that `board` gives for each.
    fn with(
        count: usize,
        power: bool,
        board: impl Fn(&str, &Powered) -> Option<String>,
    ) -> Option<Bench> {
        let alone = BOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let mut boards = Vec::new();
        for _ in 0..count {
            boards.push(Powered::new()?);
        }
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::write(home.path().join("mini.toml"), STUDY).unwrap();
        ssh_to_all(home.path(), &boards);
        let places = NAMES.into_iter().zip(&boards).map(|(name, one)| {
            let switch = power.then(|| Box::new(one.switch()) as crate::labgrid::Switch);
            Some((name, board(name, one)?, switch))
        });
        let places = places.collect::<Option<_>>()?;
        let lab = Lab::new(Path::new(env!("CARGO_TARGET_TMPDIR")), places)?;
        let bench = Bench {
            lab,
            boards,
            home,
            _alone: alone,
        };
        let (code, out, err) = bench.study(&["--dry-run"]);
        if code == 3 && err.contains("make agents") {
            skip::skip(err.trim());
            return None;
        }
        assert_eq!(code, 0, "{out}{err}");
        Some(bench)
    }

    fn place(&self, at: usize) -> String {
        format!("labgrid:{}{}", NAMES[at], self.boards[at].device)
    }

    /// The program with `arguments`, run by ada from the home directory.
    fn whichfs(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(arguments)
            .args(["--au", "4M", "--settle", "0"])
            .current_dir(self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        self.lab
            .known_to(&mut command, "ada", &self.home.path().join("bin"));
        command
    }

    /// The same on all boards.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.whichfs(arguments);
        // Notes as a whole, and a line for each trial.
        command.arg("-v");
        for at in 0..self.boards.len() {
            command.args(["--on", &self.place(at)]);
        }
        command
    }

    fn study_command(&self, more: &[&str]) -> Command {
        let mut command = self.command(&["study", "run", "./mini.toml"]);
        command.args(more);
        command
    }

    fn study(&self, more: &[&str]) -> Run {
        run(&mut self.study_command(more))
    }

    fn crash(&self, more: &[&str]) -> Run {
        let start = "crash run --fs ext4 --workload atomic --size 16M --partition 64M";
        let start: Vec<&str> = start.split(' ').collect();
        run(self.command(&start).args(more))
    }

    /// A study under way that holds the place.
    fn running(&self, more: &[&str]) -> Child {
        let id = self.boards[0].id();
        let mut command = self.study_command(&["--destroy", &id]);
        command
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its signals are its own.
        let child = command.process_group(0).spawn().unwrap();
        let begun = Instant::now();
        while self.lab.holder(NAMES[0]).as_deref() != Some("lab7/ada") {
            assert!(begun.elapsed() < Duration::from_secs(60), "never held");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Into the trials.
        std::thread::sleep(Duration::from_secs(4));
        child
    }
}

/// A program `ssh` below `home` that knows all boards by their names. On all others it simulates
/// the program `usbsdmux` of the exporter's host, whose modes are in a file.
fn ssh_to_all(home: &Path, boards: &[Powered]) {
    let mut config = String::new();
    for (name, board) in NAMES.iter().zip(boards) {
        let own = board.ssh().parent().unwrap().join("config");
        let own = std::fs::read_to_string(own).unwrap();
        config += &own.replace("Host board", &format!("Host {name}"));
    }
    let path = home.join("config");
    std::fs::write(&path, config).unwrap();
    std::fs::create_dir(home.join("bin")).unwrap();
    let ssh = home.join("bin/ssh");
    let real = crate::sshd::program("ssh").unwrap();
    let modes = home.join("modes");
    std::fs::write(&modes, "host\n").unwrap();
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\ncase \"$*\" in\n\
         *usbsdmux*get) exec tail -n 1 {modes};;\n\
         *usbsdmux*) echo \"$last\" >> {modes}; exit;;\n\
         *127.0.0.1*cat) exec cat;;\n\
         *127.0.0.1*) exit;;\nesac\nexec {real} -F {path} \"$@\"\n",
        modes = modes.display(),
        real = real.display(),
        path = path.display()
    );
    std::fs::write(&ssh, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&ssh, mode).unwrap();
}

fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

fn signal(name: &str, child: &Child) {
    let pid = child.id().to_string();
    Command::new("kill").args([name, &pid]).status().unwrap();
}

#[test]
fn loop_labgrid_a_place_is_held_for_a_study_and_released_on_every_exit() {
    let Some(bench) = Bench::new(1, false) else {
        return;
    };
    let (board, id) = (NAMES[0], bench.boards[0].id());
    let (code, out, err) = bench.study(&["--dry-run"]);
    assert!(code == 0 && out.contains(&bench.place(0)), "{out}{err}");
    assert_eq!(bench.lab.holder(board), None);

    // Somebody else has it.
    assert!(bench.lab.client("bob", &["-p", board, "acquire"]).0);
    let (code, _, err) = bench.study(&["--destroy", &id]);
    assert_eq!(code, 3, "{err}");
    for words in ["lab7/bob", "reserve --wait name=rack-a"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert_eq!(
        bench.lab.holder(board).as_deref(),
        Some("lab7/bob"),
        "it stays bob's"
    );
    assert!(bench.lab.client("bob", &["-p", board, "release"]).0);

    // An error of the device, found while the place is held.
    let (code, _, err) = bench.study(&["--destroy", "another"]);
    assert!(code == 2 && err.contains("another device"), "{err}");
    assert_eq!(bench.lab.holder(board), None);

    let ends = |name: &str, status: Option<i32>| {
        let child = bench.running(&["--fresh", "--seeds", "40"]);
        signal(name, &child);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), status, "{name}: {err}");
        bench.lab.is_released(board);
    };
    ends("-INT", Some(130));
    ends("-TERM", Some(130));

    // Taken away in the middle: the trial under way is the last one, and finished ones stay.
    let mut child = bench.running(&["--seeds", "40"]);
    assert!(
        bench
            .lab
            .client("bob", &["-p", board, "release", "--kick"])
            .0
    );
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "it goes on with a place of others"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{err}");
    for words in ["labgrid place rack-a", "somebody released it", "kept"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert_eq!(bench.lab.holder(board), None);

    let out_dir = bench.home.path().join("out");
    let (code, out, err) = bench.study(&["--destroy", &id, "--json", "--out", "out"]);
    assert_eq!(code, 0, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["done"], 2, "{told}");
    assert_eq!(told["measured"]["path"], Value::from(bench.place(0)));
    assert!(told["measured"]["written_bytes"].as_u64().unwrap() > 8_000_000);
    let ktap = std::fs::read_to_string(out_dir.join("results.ktap")).unwrap();
    assert!(
        ktap.starts_with("KTAP version 1\n1..2\n") && ktap.contains("\nok 2 "),
        "{ktap}"
    );
    assert_eq!(bench.lab.holder(board), None);

    // Last, since the agent on the board goes on for a while.
    ends("-KILL", None);
}

#[test]
fn loop_labgrid_what_a_lab_lacks_is_told_with_the_remedy() {
    let Some(mut bench) = Bench::new(1, false) else {
        return;
    };
    let id = bench.boards[0].id();
    let other = |on: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command.args([
            "study",
            "run",
            "pandora",
            "--quick",
            "--dry-run",
            "--on",
            on,
        ]);
        bench
            .lab
            .known_to(&mut command, "ada", &bench.home.path().join("bin"));
        command
    };
    for (on, code, words) in [
        ("labgrid:rack-a", 2, "labgrid:PLACE/dev/mmcblk0"),
        ("labgrid:rack-z/dev/sda", 3, "labgrid-client places"),
        // A part of a name could become another place's.
        ("labgrid:rack/dev/sda", 2, "labgrid:rack-a/dev"),
    ] {
        let (status, _, err) = run(&mut other(on));
        assert!(
            status == code && err.contains(words),
            "{on}: {status} {err}"
        );
    }
    let (status, _, err) =
        run(other("labgrid:rack-a/dev/sda").env("LG_COORDINATOR", "127.0.0.1:1"));
    assert!(status == 3 && err.contains("LG_COORDINATOR"), "{err}");
    let (status, _, err) = run(other("labgrid:rack-a/dev/sda").env("PATH", "/usr/bin:/bin"));
    assert!(status == 3 && err.contains("pip install labgrid"), "{err}");

    // Nothing was erased when the power turns out to be out of reach.
    let before = bench.boards[0].blocks();
    let (code, _, err) = bench.crash(&["--power", "labgrid", "--destroy", &id, "--cuts", "1"]);
    assert!(
        code == 3 && err.contains("NetworkPowerPort"),
        "{code} {err}"
    );
    assert_eq!(bench.boards[0].blocks(), before);
    let (code, _, err) = bench.crash(&["--power", "sysrq", "--power-off-time", "2s", "--dry-run"]);
    assert!(code == 2 && err.contains("--power-off-time"), "{err}");
    assert_eq!(bench.lab.holder(NAMES[0]), None);

    bench.lab.lose_exporter();
    let (code, _, err) = bench.study(&["--dry-run"]);
    assert!(code == 3 && err.contains("rack-a show"), "{code} {err}");
    assert_eq!(bench.lab.holder(NAMES[0]), None);
}

#[test]
fn loop_labgrid_the_driver_of_the_lab_cuts_the_power() {
    let Some(bench) = Bench::new(1, true) else {
        return;
    };
    if !bench.boards[0].keeps_what_was_flushed() {
        return;
    }
    let id = bench.boards[0].id();
    let cuts = [
        "--power",
        "labgrid",
        "--power-off-time",
        "1s",
        "--cuts",
        "2",
    ];
    let (code, out, err) = bench.crash(&[&cuts[..], &["--dry-run"]].concat());
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(
        code == 0 && words.join(" ").contains("by labgrid"),
        "{out}{err}"
    );
    let (code, out, err) = bench.crash(&[&cuts[..], &["--destroy", &id, "--json"]].concat());
    assert_eq!(code, 0, "{err}{out}");
    assert_eq!(
        bench.lab.cuts.load(Ordering::Relaxed),
        2,
        "labgrid's driver took the power"
    );
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["measured"]["power"], "labgrid");
    let all = document["filesystems"][0]["cuts"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    for cut in all {
        assert_eq!(cut["broken"], false, "{cut:#}");
        assert!(cut["outcomes"]["right"].as_u64().unwrap() > 0, "{cut:#}");
    }
    assert_eq!(bench.lab.holder(NAMES[0]), None);

    // After the second of four cuts the driver says that it is on, and nothing answers.
    bench.boards[0].comes_back(1);
    let more = ["--destroy", &id, "--cuts", "4", "--board-timeout", "10s"];
    let (code, _, err) = bench.crash(&[&cuts[..4], &more].concat());
    assert_eq!(code, 3, "{err}");
    for words in [
        "for 10 s (--board-timeout)",
        "labgrid-client -p rack-a acquire",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert_eq!(bench.lab.holder(NAMES[0]), None);
    // Repaired, the same command makes the three cuts that are missing: the first was kept.
    bench.boards[0].comes_back(100);
    bench.boards[0].switch()(true);
    let before = bench.lab.cuts.load(Ordering::Relaxed);
    assert_eq!(before, 4);
    let (code, _, err) = bench.crash(&[&cuts[..4], &more].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.lab.cuts.load(Ordering::Relaxed), before + 3);

    // A board that is off is switched on.
    assert!(bench.lab.client("ada", &["-p", NAMES[0], "acquire"]).0);
    assert!(bench.lab.client("ada", &["-p", NAMES[0], "power", "off"]).0);
    assert!(bench.lab.client("ada", &["-p", NAMES[0], "release"]).0);
    let (code, out, err) = bench.study(&["--dry-run"]);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn loop_labgrid_a_board_without_a_network_is_measured_by_its_console() {
    let console = |_: &str, board: &Powered| {
        let port = board.console()?;
        Some(format!(
            "  NetworkSerialPort:\n    host: 127.0.0.1\n    port: {port}\n    protocol: raw\n  \
             NetworkUSBSDMuxDevice: {{host: 127.0.0.1, busnum: 1, devnum: 1, path: '1-1', \
             vendor_id: 1060, model_id: 16449, control_path: /dev/sg9}}\n"
        ))
    };
    let Some(bench) = Bench::with(1, true, console) else {
        return;
    };
    let id = bench.boards[0].id();
    let (code, out, err) = bench.study(&["--destroy", &id, "--json"]);
    assert_eq!(code, 0, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["done"], 2, "{told}");
    assert_eq!(told["measured"]["path"], Value::from(bench.place(0)));
    assert!(told["measured"]["written_bytes"].as_u64().unwrap() > 8_000_000);
    assert!(bench.boards[0].left().is_empty(), "the agent is gone");
    assert_eq!(bench.lab.holder(NAMES[0]), None);

    if bench.boards[0].keeps_what_was_flushed() {
        let cut = [
            "--power",
            "labgrid",
            "--power-off-time",
            "1s",
            "--cuts",
            "1",
        ];
        let (code, out, err) = bench.crash(&[&cut[..], &["--destroy", &id, "--json"]].concat());
        assert_eq!(code, 0, "{err}{out}");
        let document: Value = serde_json::from_str(&out).unwrap();
        let cut = &document["filesystems"][0]["cuts"][0];
        assert_eq!(cut["broken"], false, "{cut:#}");
        assert!(cut["outcomes"]["right"].as_u64().unwrap() > 0, "{cut:#}");
    }
    let modes = std::fs::read_to_string(bench.home.path().join("modes")).unwrap();
    assert_eq!(modes, "host\ndut\n", "the card is put into the board once");

    // No site packages, so no labgrid; no Python at all.
    let bare = bench.home.path().join("bare");
    std::fs::write(&bare, "#!/bin/sh\nexec python3 -I -S \"$@\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&bare, mode).unwrap();
    for (python, words) in [
        (bare.as_path(), "No module named 'labgrid'"),
        (Path::new("/bin/false"), "it is no Python"),
        (Path::new("/no/such"), "No such file"),
    ] {
        let begun = Instant::now();
        let mut lacks = bench.study_command(&["--dry-run"]);
        let (code, _, err) = run(lacks.env("WHICHFS_PYTHON", python));
        let remedy = code == 3 && err.contains("in WHICHFS_PYTHON");
        assert!(remedy && err.contains(words), "{code} {err}");
        assert!(begun.elapsed() < Duration::from_secs(60), "not at once");
    }
}

#[test]
fn loop_labgrid_a_choice_is_made_on_the_place_of_a_reservation() {
    let Some(bench) = Bench::new(1, false) else {
        return;
    };
    let (board, id) = (NAMES[0], bench.boards[0].id());
    // Nobody but ada can take the place that ada reserved.
    let reserve = ["reserve", "--shell", "--wait", "name=rack-a"];
    let (done, said) = bench.lab.client("ada", &reserve);
    assert!(done, "{said}");
    let token = said
        .lines()
        .find_map(|line| line.strip_prefix("export LG_TOKEN="));
    let token = token.unwrap();
    let (done, said) = bench.lab.client("bob", &["-p", board, "acquire"]);
    assert!(!done && said.contains("reserved"), "{said}");

    let reserved = format!("labgrid:+{}", bench.boards[0].device);
    let choose = |more: &[&str]| {
        let start = [
            "choose",
            "--for",
            "logger",
            "--fs",
            "ext2,ext4",
            "--seeds",
            "1",
        ];
        let mut command = bench.whichfs(&[&start[..], &["--on", &reserved], more].concat());
        run(command.env("LG_TOKEN", token))
    };
    let (code, out, err) = choose(&["--dry-run"]);
    assert!(code == 0 && out.contains(&id), "{out}{err}");
    assert_eq!(bench.lab.holder(board), None);
    let (code, out, err) = choose(&["--destroy", &id]);
    assert_eq!(code, 0, "{out}{err}");
    let place = bench.place(0);
    for words in ["Use ext", "easured", &place] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(bench.lab.holder(board), None);

    let (done, said) = bench.lab.client("ada", &["cancel-reservation", token]);
    assert!(done, "{said}");
    let (code, _, err) = choose(&["--dry-run"]);
    let remedy = "labgrid-client reserve --wait --shell";
    assert!(code == 3 && err.contains(remedy), "{code} {err}");
}

#[test]
fn loop_labgrid_a_fleet_runs_at_once_and_its_scatter_is_told() {
    let Some(bench) = Bench::new(2, false) else {
        return;
    };
    let ids = [bench.boards[0].id(), bench.boards[1].id()];
    let (code, out, err) = bench.study(&["--dry-run"]);
    assert_eq!(code, 0, "{err}");
    for (at, id) in ids.iter().enumerate() {
        assert!(out.contains(&bench.place(at)) && out.contains(id), "{out}");
    }
    // Consent is given for each.
    let (code, _, err) = bench.study(&["--destroy", &ids[0]]);
    assert!(code == 2 && err.contains("another device"), "{err}");
    assert_eq!(
        bench.boards[0].blocks(),
        0,
        "no board begins before all have their consent"
    );

    let both = ["--destroy", &ids[0], "--destroy", &ids[1], "--out", "out"];
    let (code, out, err) = bench.study(&[&both[..], &["--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["document"], "study fleet");
    for at in 0..2 {
        let one = &told["places"][at];
        assert_eq!(one["place"], Value::from(bench.place(at)));
        assert_eq!(one["card"], Value::from(ids[at].as_str()));
        assert_eq!(one["run"]["done"], 2);
        assert!(one["run"]["measured"]["written_bytes"].as_u64().unwrap() > 8_000_000);
        assert_eq!(bench.lab.holder(NAMES[at]), None);
    }
    let scatter = told["scatter"].as_array().unwrap();
    let write = scatter
        .iter()
        .find(|one| one["metric"] == "tree_write")
        .unwrap();
    assert_eq!(write["units"].as_array().unwrap().len(), 2, "{write}");
    assert!(write["within"].as_f64().is_some(), "{write}");
    let page = std::fs::read_to_string(bench.home.path().join("out/report.html")).unwrap();
    assert!(page.contains("Scatter between units"));
    let csv = std::fs::read_to_string(bench.home.path().join("out/results.csv")).unwrap();
    assert!(ids.iter().all(|id| csv.contains(id.as_str())), "{csv}");

    // One place is away: nothing of the other is lost or run again, and no consent is needed.
    let (code, out, err) = bench.study(&[]);
    assert_eq!(code, 0, "{err}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("units ±") && out.contains("tree write"),
        "{out}"
    );
    let device = bench.place(0);
    let (code, _, err) = bench.study(&["--on", &device]);
    assert_eq!(code, 3, "a place is acquired once: {err}");
}
