//! Figures of trials, to the last digit: whoever moves code must not move them. A change belongs
//! into CHANGELOG.md. To take over the figures of now: `WHICHFS_GOLDEN=write cargo test -p whichfs
//! --test lab_golden`.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What the figures come from beside the code: the kernel, and Debian's tools of this release.
const DEBIAN: &str = "12.";

/// A line for each trial of the study with `clock`: what it is of, and a digest of its figures.
fn figures(clock: &str) -> BTreeMap<String, String> {
    let home = tempfile::tempdir().unwrap();
    let study = include_str!("golden/trials.toml");
    let study = study.replacen("seeds = 1", &format!("seeds = 1\nclock = \"{clock}\""), 1);
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
    let mut trials: BTreeMap<String, Sha256> = BTreeMap::new();
    for row in rows.records() {
        let row = row.unwrap();
        let text = |columns: &[usize]| {
            let cells: Vec<&str> = columns.iter().map(|&at| &row[at]).collect();
            cells.join(" ")
        };
        let trial = trials.entry(text(&of)).or_default();
        trial.update(text(&figure));
        trial.update("\n");
    }
    let digest = |hash: Sha256| {
        let digest = hash.finalize();
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    trials
        .into_iter()
        .map(|(trial, hash)| (trial, digest(hash)))
        .collect()
}

/// Compares the figures with `clock` to those in the file, or writes that.
fn hold(clock: &str) {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if !is_set("WHICHFS_KERNEL") || !is_set("WHICHFS_AGENT") {
        return skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    let debian = std::fs::read_to_string("/etc/debian_version").unwrap_or_default();
    if !debian.starts_with(DEBIAN) {
        return skip::skip("figures were taken with the tools of Debian 12");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = directory.join(format!("trials-{clock}.txt"));
    let new: String = figures(clock)
        .iter()
        .map(|(trial, digest)| format!("{trial} {digest}\n"))
        .collect();
    if std::env::var_os("WHICHFS_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(&path, &new).unwrap();
    }
    let old = std::fs::read_to_string(&path).unwrap();
    let changed: Vec<&str> = new
        .lines()
        .filter(|line| !old.lines().any(|known| known == *line))
        .collect();
    assert!(
        changed.is_empty() && old == new,
        "other figures: {changed:#?}"
    );
}

#[test]
fn lab_golden_figures_of_the_device_clock_hold() {
    hold("device");
}

#[test]
fn lab_golden_figures_of_the_cpu_clock_hold() {
    hold("cpu");
}
