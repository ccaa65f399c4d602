//! Figures of trials: whoever moves code must not move them. With the device clock they are the
//! same to the last digit on one kind of processor, and near on others, because programs pick code
//! by the features of the processor. A change belongs into CHANGELOG.md. To take over the figures
//! of now: `WHICHFS_GOLDEN=write cargo test -p whichfs --test all lab_golden`.
#![allow(clippy::unwrap_used)]

use crate::skip;

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use whichfs_engine::tools::cpu_features_sha256;

/// What the figures come from beside the code: the kernel, and tools of this release of Debian.
const DEBIAN: &str = "12.";

/// The figures of a trial: a digest, and the geometric mean of all that are positive.
#[derive(Default)]
struct Figures {
    hash: Sha256,
    logarithms: Vec<f64>,
}

/// The trials of the study with `clock`: what each is of, and its figures.
fn figures(clock: &str) -> BTreeMap<String, Figures> {
    let home = tempfile::tempdir().unwrap();
    let study = include_str!("golden/trials.toml");
    let study = study.replacen("seeds = 1", &format!("seeds = 1\nclock = \"{clock}\""), 1);
    // The profile itself: the shipped card of this name is a distribution.
    let cards = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cards");
    let study = study.replacen("CARDS", cards, 1);
    std::fs::write(home.path().join("golden.toml"), study).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["study", "run", "./golden.toml", "--out", "out", "--json"])
        .env("XDG_DATA_HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let table = std::fs::read_to_string(home.path().join("out/results.csv"));
    let table = table.unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let head = rows.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|one| one == name).unwrap();
    let of = ["kernel", "clock", "candidate", "workload"].map(column);
    let figure = ["metric", "value", "failed"].map(column);
    let mut trials: BTreeMap<String, Figures> = BTreeMap::new();
    for row in rows.records() {
        let row = row.unwrap();
        let text = |columns: &[usize]| {
            let cells: Vec<&str> = columns.iter().map(|&at| &row[at]).collect();
            cells.join(" ")
        };
        let trial = trials.entry(text(&of)).or_default();
        let value: Option<f64> = row[figure[1]].parse().ok();
        let [metric, _, failed] = figure.map(|at| &row[at]);
        let told = value.map_or(String::new(), |value| value.to_string());
        trial.hash.update(format!("{metric} {told} {failed}\n"));
        let positive = value.filter(|value| *value > 0.0);
        trial.logarithms.extend(positive.map(f64::ln));
    }
    trials
}

impl Figures {
    fn digest(self) -> String {
        let digest = self.hash.finalize();
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn mean(&self) -> f64 {
        (self.logarithms.iter().sum::<f64>() / self.logarithms.len() as f64).exp()
    }
}

/// Whether the lines of `new` are those of `old`, with numbers at the end that differ by 10 % at
/// most.
fn agree(old: &str, new: &str) -> Result<(), String> {
    for (old, new) in old.lines().zip(new.lines()) {
        let split = |line: &str| {
            let (trial, mean) = line.rsplit_once(' ').unwrap();
            (trial.to_owned(), mean.parse::<f64>().unwrap())
        };
        let ((trial, was), (same, is)) = (split(old), split(new));
        if trial != same || (is / was - 1.0).abs() > 0.1 {
            return Err(format!("was {old}\nis  {new}"));
        }
    }
    match old.lines().count() == new.lines().count() {
        true => Ok(()),
        false => Err("other trials".to_owned()),
    }
}

/// Compares the figures with `clock` to those in the file, or writes that.
fn hold(clock: &str) {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let names = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    if !names.into_iter().all(is_set) {
        return skip::skip("kernel, agent and userland are not named (make test names them)");
    }
    let debian = std::fs::read_to_string("/etc/debian_version").unwrap_or_default();
    if !debian.starts_with(DEBIAN) {
        return skip::skip("figures were taken with the tools of Debian 12");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = directory.join(format!("trials-{clock}.txt"));
    let figures = figures(clock).into_iter().map(|(trial, figures)| {
        let mean = figures.mean();
        match clock {
            "cpu" => format!("{trial} {mean:.6}\n"),
            _ => format!("{trial} {} {mean:.6}\n", figures.digest()),
        }
    });
    let processor = format!("processor {}\n", &cpu_features_sha256()[..16]);
    let head = (clock != "cpu").then_some(processor);
    let new: String = head.into_iter().chain(figures).collect();
    if std::env::var_os("WHICHFS_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(&path, &new).unwrap();
    }
    let old = std::fs::read_to_string(&path).unwrap();
    let held = match clock {
        "cpu" => agree(&old, &new),
        _ => same(&old, &new),
    };
    assert_eq!(held, Ok(()));
}

/// Whether the lines of `new` are those of `old`; on another kind of processor, which the first
/// line tells, whether the means agree.
fn same(old: &str, new: &str) -> Result<(), String> {
    if old.lines().next() != new.lines().next() {
        let means = |of: &str| {
            let lines = of.lines().skip(1).map(|line| {
                let (start, mean) = line.rsplit_once(' ').unwrap();
                let (trial, _) = start.rsplit_once(' ').unwrap();
                format!("{trial} {mean}\n")
            });
            lines.collect::<String>()
        };
        return agree(&means(old), &means(new));
    }
    let known = |line: &&str| old.lines().any(|one| one == *line);
    match new.lines().find(|line| !known(line)) {
        Some(line) => Err(line.to_owned()),
        None if old == new => Ok(()),
        None => Err("fewer trials".to_owned()),
    }
}

#[test]
fn lab_golden_figures_of_the_device_clock_hold() {
    hold("device");
}

/// By 10 %: instructions of the kernel that a program causes depend on where the agent lies in
/// memory, and sqlite3 tells whole milliseconds. Two builds of one source differed by 4 %.
#[test]
fn lab_golden_figures_of_the_cpu_clock_hold() {
    hold("cpu");
}

#[test]
fn a_figure_that_moves_is_seen() {
    assert_eq!(agree("a b 1.000\n", "a b 1.05\n"), Ok(()));
    assert!(agree("a b 1.000\n", "a b 1.15\n").is_err());
    assert!(agree("a b 1\n", "a c 1\n").is_err());
    assert!(agree("a b 1\n", "").is_err());
    let one = "processor 1\na b f00d 1.000\n";
    assert_eq!(same(one, one), Ok(()));
    assert!(same(one, "processor 1\na b beef 1.000\n").is_err());
    assert!(same(one, "processor 1\n").is_err());
    assert_eq!(same(one, "processor 2\na b beef 1.05\n"), Ok(()));
    assert!(same(one, "processor 2\na b beef 1.15\n").is_err());
    assert!(same(one, "processor 2\n").is_err());
}
