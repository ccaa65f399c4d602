//! Failing cuts made small, as files in `reproducers/`: each must be seen again. A kernel that
//! mends one makes its test fail: then the file goes, and docs/crash.md says so.
#![allow(clippy::unwrap_used)]

use crate::skip;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether a kernel and an agent are there.
fn lab() -> bool {
    let set = |name| std::env::var_os(name).is_some();
    let there = set("WHICHFS_KERNEL") && set("WHICHFS_AGENT") && set("WHICHFS_USERLAND");
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

fn whichfs(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["crash"])
        .args(arguments)
        .current_dir(data)
        .env("XDG_DATA_HOME", data)
        .output()
        .unwrap()
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reproducers");
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn lab_every_reproducer_shows_its_failure() {
    if !lab() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let files = files();
    assert!(!files.is_empty());
    for file in files {
        let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let output = whichfs(data.path(), &["replay", file.to_str().unwrap(), "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {said}", file.display());
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            shown["result"]["condition"],
            kept["signature"]["condition"],
            "{}",
            file.display()
        );
    }
}

#[test]
fn lab_a_failing_cut_is_made_small() {
    if !lab() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    // The journal of ext4 on a card that loses writes in any order.
    let script = data.path().join("operations.jsonl");
    let mut operations = String::new();
    for n in 0..24 {
        operations += &format!(
            "{{\"op\":\"create\",\"path\":\"f{n}\",\"size\":9000,\
             \"content\":{{\"generated\":{{\"level\":4,\"seed\":{n}}}}}}}\n\
             {{\"op\":\"sync_file\",\"path\":\"f{n}\"}}\n"
        );
    }
    std::fs::write(&script, operations).unwrap();
    let series = [
        "run",
        "--fs",
        "ext4",
        "--script",
        "operations.jsonl",
        "--faults",
        "reorder",
        "--cuts",
        "20",
        "--no-fsck",
        "--json",
    ];
    let document: Value = serde_json::from_slice(&whichfs(data.path(), &series).stdout).unwrap();
    let report = &document["filesystems"][0];
    let cuts = report["cuts"].as_array().unwrap();
    let failing = cuts.iter().find(|cut| cut["broken"] == true).unwrap();
    let id = format!(
        "{}-{}",
        report["series"].as_str().unwrap(),
        failing["cut"]["number"]
    );
    let minimised = |arguments: &[&str]| -> Value {
        let all = [&["minimise", "--json"], arguments].concat();
        let made = whichfs(data.path(), &all);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        serde_json::from_slice(&made.stdout).unwrap()
    };
    let begun = minimised(&[&id, "--out", "small.json", "--budget", "1"]);
    // On a fast machine a second is enough.
    let ended = (&begun["ended"], &begun["minimal"]);
    let legal = [("budget", false), ("minimal", true)];
    assert!(
        legal
            .iter()
            .any(|(how, minimal)| ended == (&json!(how), &json!(minimal))),
        "{ended:?}"
    );
    // It goes on from its own file.
    let done = minimised(&["small.json", "--budget", "60"]);
    assert_eq!(done["file"], "small.json");
    let left = done["operations"].as_u64().unwrap();
    assert!(left <= 6, "{left} of 48 operations are left: {done:#}");
    let small: Value =
        serde_json::from_slice(&std::fs::read(data.path().join("small.json")).unwrap()).unwrap();
    assert_eq!(small, done["reproducer"]);
    let again = whichfs(data.path(), &["replay", "small.json"]);
    assert_eq!(again.status.code(), Some(1));
    let fine = cuts.iter().find(|cut| cut["broken"] == false).unwrap();
    let id = format!(
        "{}-{}",
        report["series"].as_str().unwrap(),
        fine["cut"]["number"]
    );
    let nothing = whichfs(data.path(), &["minimise", &id]);
    assert_eq!(nothing.status.code(), Some(2));
}
