//! Studies with trials, with guests: these need the lab kernel and the static agent. Trees are
//! small, so a trial takes about a second.
#![allow(clippy::unwrap_used)]

use crate::skip;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A study of two candidates and two mounts; published: vfat the quicker, as it is here.
const STUDY: &str = r#"
name = "small"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 2
candidates = ["ext2", "vfat"]

[[variants]]
name = "noatime"

[[variants]]
name = "relatime"
without = ["noatime"]
add = "relatime"
only = ["ext2"]

[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 20971520, files = 400 }
quick = { bytes = 12582912, files = 200 }

[[published]]
file = "published.csv"
candidate_column = "fs"
metric_columns = ["what"]
value_column = "kB/s"
[published.metrics]
write = { workload = "tree", metric = "tree_write", factor = 0.001 }
"#;

/// Whether guests can be run; says why not.
fn can_run() -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

fn study(home: &Path, extra: &[&str]) -> Output {
    std::fs::write(home.join("small.toml"), STUDY).unwrap();
    let table = "fs,what,kB/s\next2,write,5000\nvfat,write,9000\nvfat,read,\n";
    std::fs::write(home.join("published.csv"), table).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    command
        .args([
            "study",
            "run",
            "./small.toml",
            "--quick",
            "--published",
            ".",
        ])
        .args(extra)
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn document(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn lab_a_study_ends_with_its_budget_goes_on_and_stands_beside_what_was_published() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    // One trial at once, and no time: the first ends the run.
    let first = document(&study(
        home.path(),
        &["--json", "--jobs", "1", "--budget", "1s"],
    ));
    let done = first["done"].as_u64().unwrap();
    assert_eq!(first["trials"], 3, "two of ext2, one of vfat");
    assert!((1..=3).contains(&done), "{done}");

    let output = study(home.path(), &["--json"]);
    let whole = document(&output);
    assert_eq!(
        (&whole["done"], &whole["reused"]),
        (&3.into(), &done.into())
    );
    let tables = whole["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1);
    let lines = tables[0]["lines"].as_array().unwrap();
    let line = |metric: &str, variant: &str| {
        let is = |line: &&Value| line["metric"] == metric && line["variant"] == variant;
        lines.iter().find(is).cloned().unwrap()
    };
    let write = line("tree_write", "noatime");
    assert_eq!(write["published"], serde_json::json!([5.0, 9.0]));
    assert_eq!(write["tau_b"], 1.0, "{write}");
    let relatime = line("tree_write", "relatime");
    assert_eq!(relatime["ours"][1], Value::Null, "vfat has no relatime");
    assert_eq!(whole["skipped"]["published.csv"]["holes"], 1);

    let told = study(home.path(), &[]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("published") && told.contains("tau"), "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 80),
        "{told}"
    );
    let csv =
        std::fs::read_to_string(home.path().join("whichfs-study/latest/results.csv")).unwrap();
    assert_eq!(
        csv.lines()
            .filter(|line| line.contains(",tree_write,"))
            .count(),
        3
    );
    let dry = study(home.path(), &["--dry-run"]);
    let dry = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(dry.contains("3 of them finished, 0 to run"), "{dry}");
}

#[test]
fn lab_a_study_tells_what_is_wrong_before_it_runs() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for (extra, said) in [
        (["--fs", "zfs"], "small has ext2, vfat"),
        (["--cuts", "5"], "this study cuts no power"),
        (["--published", "/nowhere"], "/nowhere/published.csv"),
    ] {
        let output = match extra[0] {
            "--published" => Command::new(env!("CARGO_BIN_EXE_whichfs"))
                .args(["study", "run", "./small.toml", "--published", "/nowhere"])
                .current_dir(home.path())
                .output()
                .unwrap(),
            _ => study(home.path(), &extra),
        };
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(said), "{told}");
    }
}
