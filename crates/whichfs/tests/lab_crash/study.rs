//! A study of its own file: the matrix is made, goes on, and says what a mount buys.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const STUDY: &str = r#"
name = "pulled"
kind = "crash"
title = "t"
source = "s"
method = "m"
card = "a1-32gb"
board = "generic-1ghz"
partition_mib = 128
cuts = 4
filesystems = ["ext4"]
[[mounts]]
name = "default"
[[mounts]]
name = "sync"
add = "sync"
[[faults]]
name = "honest card"
[[workloads]]
name = "files"
workload = "manyfiles"
parameters = { bytes = 4000000, file_bytes = 200000 }
"#;

/// The study in `data`: its document and what it said.
fn study(data: &Path) -> (Value, String) {
    let file = data.join("pulled.toml");
    std::fs::write(&file, STUDY).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["study", "run", "--json", "--out"])
        .arg(data.join("out"))
        .arg(&file)
        .env("XDG_DATA_HOME", data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn lab_a_study_goes_on_and_tells_what_sync_buys_and_costs() {
    if !crate::choosing::can_run() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let (page, _) = study(data.path());
    let rows = page["groups"][0]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["mount"].as_str())
        .collect();
    assert_eq!(names, ["default", "sync"]);
    let wrong = |row: &Value| row["files_wrong"].as_f64().unwrap();
    // What was copied before the cut is there with sync, but for the file under way.
    assert!(wrong(&rows[1]) <= 1.0, "{page}");
    assert!(rows[1]["time_ratio"].as_f64().unwrap() > 1.0, "{page}");
    let html = std::fs::read_to_string(data.path().join("out/report.html")).unwrap();
    assert!(html.contains("ext4 sync"));
    let (again, said) = study(data.path());
    assert!(said.contains("4 of 4 cuts were made before"), "{said}");
    assert_eq!(again["groups"], page["groups"]);
}
