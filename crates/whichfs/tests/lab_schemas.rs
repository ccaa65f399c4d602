//! What commands of the lab print with `--json` fits the schemas that the program ships.
#![allow(clippy::unwrap_used)]

use crate::choosing::can_run;
use crate::schemas::Shipped;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Two studies, each as small as can be.
const TRIALS: &str = r#"name = "mine"
kind = "performance"
title = "t"
source = "me"
method = "m"
cards = ["class10-16gb"]
boards = ["generic-1ghz"]
seeds = 1
candidates = ["ext4"]

[[workloads]]
name = "w"
workload = "tree"
parameters = { bytes = 2000000, files = 20 }
"#;
const CUTS: &str = r#"name = "cuts"
kind = "crash"
title = "t"
source = "me"
method = "m"
card = "class10-16gb"
board = "generic-1ghz"
partition_mib = 64
cuts = 2
seed = 1
filesystems = ["ext4"]

[[mounts]]
name = "usual"

[[faults]]
name = "honest"

[[workloads]]
name = "logger"
workload = "logger"
parameters = { records = 50 }
"#;

fn printed(home: &Path, line: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(line.split(' '))
        .env("XDG_DATA_HOME", home)
        .current_dir(home)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{line}: {said}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lab_documents_fit_the_schemas_of_their_names() {
    if !can_run() {
        return;
    }
    let shipped = Shipped::read();
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::fs::write(home.join("mine.toml"), TRIALS).unwrap();
    std::fs::write(home.join("cuts.toml"), CUTS).unwrap();
    let check = |line: &str| {
        let text = printed(home, line);
        let name = shipped.check(&text);
        let name = name.unwrap_or_else(|why| panic!("whichfs {line}: {why}"));
        let words: Vec<&str> = name.split(' ').take(2).collect();
        assert!(line.starts_with(&words.join(" ")), "{line}: {name}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    check("lab kernel --json");
    check("lab exec --fs ext4 --json -- true");
    let choice = check("choose --fs ext4,vfat --seeds 1 --size 12M --out out --json");
    let verdict = std::fs::read_to_string(home.join("out/verdict.json")).unwrap();
    assert_eq!(shipped.check(&verdict).as_deref(), Ok("choose"));
    let id = choice["trials_of"][0]["id"].as_str().unwrap();
    check(&format!("trial show {id} --json"));
    check("report out out --json");
    check("card rank --card a1-32gb --fs ext4 --json");
    let cuts = check("crash run --fs ext4 --workload logger --cuts 2 --json");
    let series = cuts["filesystems"][0]["series"].as_str().unwrap();
    check(&format!("crash replay {series}-0 --json"));
    let of = "--fs ext4 --workload logger --cuts 1";
    let planned = check(&format!("crash plan {of}"));
    std::fs::write(home.join("cuts.jsonl"), planned.to_string()).unwrap();
    let record = check("crash cut cuts.jsonl");
    std::fs::write(home.join("record.jsonl"), record.to_string()).unwrap();
    check("crash import record.jsonl --json");
    check("study run ./mine.toml --out study --json");
    let study = std::fs::read_to_string(home.join("study/study.json")).unwrap();
    assert_eq!(shipped.check(&study).as_deref(), Ok("study run"));
    check("study show ./mine.toml --json");
    check("study run ./cuts.toml --out cuts --json");
}
