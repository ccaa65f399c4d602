//! Trials and cuts that are planned, made by another process and imported, with guests: a trial
//! takes a fraction of a second on a card of 4 GB.

use crate::skip;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use whichfs_engine::crash::spec::Spec;
use whichfs_store::{Filter, Store};
use whichfs_trial::Identity;

/// Two filesystems with two seeds, on a card and a board of files of its own.
const STUDY: &str = r#"
name = "small"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["./own-card.toml"]
boards = ["./own-board.toml"]
seeds = 2
candidates = ["ext2", "vfat"]

[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 12582912, files = 200 }
"#;

/// A directory with the study, or none where guests cannot run.
fn home() -> Option<tempfile::TempDir> {
    let parts = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    if parts.iter().any(|name| std::env::var_os(name).is_none()) {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = |from: &str, to: &str| std::fs::copy(root.join(from), home.path().join(to)).unwrap();
    copy("cards/class4-4gb.toml", "own-card.toml");
    copy("boards/generic-1ghz.toml", "own-board.toml");
    std::fs::write(home.path().join("small.toml"), STUDY).unwrap();
    Some(home)
}

/// Runs the program in `home` with its data in `data`, and `input` as standard input.
fn whichfs(home: &Path, data: &str, line: &str, input: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    command
        .args(line.split(' '))
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join(data));
    command.stdin(match input {
        None => Stdio::null(),
        Some(text) => {
            std::fs::write(home.join("input"), text).unwrap();
            File::open(home.join("input")).unwrap().into()
        }
    });
    command.output().unwrap()
}

/// What a run that succeeds prints.
#[track_caller]
fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Identity, outcome and all, of each trial in the store of `data`, as JSON.
fn records(home: &Path, data: &str) -> Vec<String> {
    let store = Store::open(&home.join(data).join("whichfs/store.sqlite")).unwrap();
    let found = store.find(&Filter::default()).unwrap();
    let json = found
        .iter()
        .map(|one| serde_json::to_string(&one.trial).unwrap());
    json.collect()
}

#[test]
fn lab_trials_of_a_plan_are_byte_for_byte_those_of_a_study() {
    let Some(home) = home() else { return };
    let home = home.path();
    printed(&whichfs(home, "local", "study run ./small.toml", None));

    let plan = printed(&whichfs(home, "far", "study plan ./small.toml", None));
    assert_eq!(plan.lines().count(), 4, "{plan}");
    assert!(
        !home.join("far").exists(),
        "planning and running keep nothing"
    );
    // Another machine does not have the study's files.
    for file in ["own-card.toml", "own-board.toml"] {
        std::fs::rename(home.join(file), home.join(format!("away-{file}"))).unwrap();
    }
    let checked = printed(&whichfs(home, "far", "trial run --check", Some(&plan)));
    assert_eq!(checked.lines().count(), 4, "{checked}");
    let halves: Vec<&str> = plan.split_inclusive('\n').collect();
    let mut ran = String::new();
    for (half, jobs) in halves.chunks(2).zip(["1", "2"]) {
        let run = format!("trial run --jobs {jobs}");
        ran += &printed(&whichfs(home, "far", &run, Some(&half.concat())));
    }
    assert!(
        !home.join("far").exists(),
        "planning and running keep nothing"
    );
    std::fs::write(home.join("plan.jsonl"), &plan).unwrap();
    let import = "store import - --plan plan.jsonl --json";
    let document = printed(&whichfs(home, "far", import, Some(&ran)));
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        (&document["new"], &document["missing"]),
        (&4.into(), &0.into())
    );
    assert_eq!(records(home, "far"), records(home, "local"));

    for file in ["own-card.toml", "own-board.toml"] {
        std::fs::rename(home.join(format!("away-{file}")), home.join(file)).unwrap();
    }
    let again = printed(&whichfs(home, "far", "study run ./small.toml --json", None));
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["reused"], 4, "the study finds them");
    let missing = "study plan ./small.toml --only-missing";
    assert_eq!(printed(&whichfs(home, "far", missing, None)), "");
}

#[test]
fn lab_a_trial_that_this_machine_makes_otherwise_is_refused_and_the_others_run() {
    let Some(home) = home() else { return };
    let home = home.path();
    let plan = printed(&whichfs(
        home,
        "data",
        "study plan ./small.toml --fs vfat",
        None,
    ));
    let lines: Vec<Value> = plan
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    // A line of another machine is whole: its id is that of its identity.
    let planned_elsewhere = |change: &dyn Fn(&mut Identity)| {
        let mut line = lines[0].clone();
        let mut identity: Identity = serde_json::from_value(line["identity"].clone()).unwrap();
        change(&mut identity);
        line["id"] = identity.id().into();
        line["identity"] = serde_json::to_value(&identity).unwrap();
        line
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut line = lines[0].clone();
        change(&mut line);
        line
    };
    let wrong = [
        (
            3,
            planned_elsewhere(&|one| one.kernel_sha256 = "0".repeat(64)),
            "the lab kernel differs",
        ),
        (
            3,
            planned_elsewhere(&|one| one.version = "0.0.9+1".into()),
            "0.0.9+1 in the plan",
        ),
        (
            3,
            planned_elsewhere(&|one| one.agent_sha256 = "0".repeat(64)),
            "the agent differs",
        ),
        (
            3,
            planned_elsewhere(&|one| one.cpu_features_sha256.clear()),
            "same kind of processor",
        ),
        (
            3,
            planned_elsewhere(&|one| one.partition_bytes += 512),
            "partition_bytes differs",
        ),
        (
            2,
            with(&|line| line["identity"]["seed"] = 9.into()),
            "not that of its identity",
        ),
        (
            2,
            with(&|line| line["inputs"]["files"] = serde_json::json!({})),
            "does not hold it",
        ),
        (
            2,
            with(&|line| line["inputs"]["variant"]["offset"] = serde_json::json!({"bytes": 7})),
            "is no offset",
        ),
        (
            2,
            with(&|line| line["schema"] = 9.into()),
            "schema 9, this program knows 1",
        ),
    ];
    for (status, line, told) in &wrong {
        let input = format!("{line}\n{}\n", lines[1]);
        let run = whichfs(home, "data", "trial run", Some(&input));
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            said.contains("line 1: refused") && said.contains(told),
            "{told}: {said}"
        );
        assert_eq!(run.status.code(), Some(*status), "{said}");
        let record: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(record["id"], lines[1]["id"], "the other one ran");
    }
    let torn = plan.get(..plan.len() - 40).unwrap();
    let run = whichfs(home, "data", "trial run --check", Some(torn));
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("line 2: refused: it is cut off"));
}

/// The file of the only series in the archive of `data`: its lines, sorted, for cuts come in any
/// order.
fn series(home: &Path, data: &str) -> Vec<String> {
    let mut files = std::fs::read_dir(home.join(data).join("whichfs/crash")).unwrap();
    let file = files.next().unwrap().unwrap();
    assert!(files.next().is_none(), "one series");
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn lab_cuts_of_a_plan_are_byte_for_byte_those_of_a_run() {
    let Some(home) = home() else { return };
    let home = home.path();
    let of = "--fs ext4 --card ./own-card.toml --board ./own-board.toml --workload logger \
              --partition 64M --cuts 6";
    let run = format!("crash run {of}");
    printed(&whichfs(home, "local", &run, None));

    let plan = format!("crash plan {of} --per-line 4");
    let plan = printed(&whichfs(home, "far", &plan, None));
    assert_eq!(plan.lines().count(), 2, "{plan}");
    // Another machine does not have the files of card and board.
    for file in ["own-card.toml", "own-board.toml"] {
        std::fs::rename(home.join(file), home.join(format!("away-{file}"))).unwrap();
    }
    let (first, second) = plan.split_once('\n').unwrap();
    let first = printed(&whichfs(home, "far", "crash cut --jobs 1", Some(first)));
    let second = printed(&whichfs(home, "far", "crash cut --jobs 2", Some(second)));
    assert!(
        !home.join("far").exists(),
        "planning and cutting keep nothing"
    );
    std::fs::write(home.join("plan.jsonl"), &plan).unwrap();
    let import = "crash import - --plan plan.jsonl --json";
    let half = whichfs(home, "far", import, Some(&first));
    assert_eq!(half.status.code(), Some(1), "two cuts are missing");
    let all = printed(&whichfs(home, "far", import, Some(&(first + &second))));
    let all: Value = serde_json::from_str(&all).unwrap();
    let counts = ["new", "known", "missing"].map(|field| all[field].clone());
    assert_eq!(counts, [2, 4, 0].map(Value::from), "{all}");
    assert_eq!(series(home, "far"), series(home, "local"));

    for file in ["own-card.toml", "own-board.toml"] {
        std::fs::rename(home.join(format!("away-{file}")), home.join(file)).unwrap();
    }
    let again = whichfs(home, "far", &run, None);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains("6 of 6 cuts were made before"), "{said}");
    let missing = format!("crash plan {of} --only-missing");
    assert_eq!(printed(&whichfs(home, "far", &missing, None)), "");
}

#[test]
fn lab_cuts_that_this_machine_makes_otherwise_are_refused_and_the_others_made() {
    let Some(home) = home() else { return };
    let home = home.path();
    let plan = "crash plan --fs ext4 --card class4-4gb --workload logger --partition 64M --cuts 2 \
                --per-line 1";
    let plan = printed(&whichfs(home, "data", plan, None));
    let lines: Vec<Value> = plan
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // A line of another machine is whole: its number is that of its series.
    let of_another = |change: &dyn Fn(&mut Spec)| {
        let mut line = lines[0].clone();
        let mut spec: Spec = serde_json::from_value(line["spec"].clone()).unwrap();
        change(&mut spec);
        line["series"] = spec.id().into();
        line["spec"] = serde_json::to_value(&spec).unwrap();
        line
    };
    let mut beyond = lines[0].clone();
    beyond["cuts"] = serde_json::json!([7]);
    let wrong = [
        (
            3,
            of_another(&|spec| spec.made_by.kernel_sha256 = "0".repeat(64)),
            "its lab kernel is not that of the plan",
        ),
        (
            2,
            of_another(&|spec| spec.card = "./gone.toml".into()),
            "does not hold it",
        ),
        (2, beyond, "has no cut 7"),
    ];
    for (status, line, told) in &wrong {
        let input = format!("{line}\n{}\n", lines[1]);
        let run = whichfs(home, "data", "crash cut", Some(&input));
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            said.contains("line 1: refused") && said.contains(told),
            "{told}: {said}"
        );
        assert_eq!(run.status.code(), Some(*status), "{said}");
        let record: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(
            record["result"]["cut"]["number"], 1,
            "the other one was made"
        );
    }
}
