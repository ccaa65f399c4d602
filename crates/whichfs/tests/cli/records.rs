//! Records of trials that are exported as lines and imported again. No guest runs.

use super::sandbox::Sandbox;
use super::stores::trial;
use crate::schemas::Shipped;
use serde_json::{Value, json};
use whichfs_engine::version::version;
use whichfs_store::Store;
use whichfs_trial::{Trial, TrialRecord};

/// A trial of `candidate` by this version of whichfs, with a figure that has no short decimal form.
fn of_now(candidate: &str, seed: u64) -> Trial {
    let mut one = trial(candidate, seed, None);
    one.identity.version = version();
    one.outcome.metrics = serde_json::from_value(json!([
        {"metric": "tree_write", "value": 0.1 + 0.2, "unit": "s", "lower_is_better": true}
    ]))
    .unwrap();
    one
}

/// The line of `trial`, as `trial run` prints it.
fn line(trial: &Trial) -> Value {
    let mut line = json!({"document": "trial run", "schema": 1});
    let record = serde_json::to_value(TrialRecord::new(trial.clone(), 7, 1_000)).unwrap();
    line.as_object_mut()
        .unwrap()
        .extend(record.as_object().unwrap().clone());
    line
}

/// The planned trial whose record is of `trial`.
fn planned(trial: &Trial) -> Value {
    json!({
        "document": "study plan", "schema": 1, "id": trial.identity.id(), "label": "t",
        "identity": trial.identity,
        "inputs": {"card": "a1-32gb", "board": "generic-1ghz", "clock": "device",
                   "variant": {"name": "", "add": "", "without": [], "only": []}},
        "needs": {"cores": 1, "memory_bytes": 1, "disk_bytes": 1, "image": false},
    })
}

/// Imports `lines` into the store `s.sqlite`, with further `words`: exit status and document.
fn import(sandbox: &Sandbox, lines: &str, words: &[&str]) -> (i32, Value) {
    sandbox.file("records.jsonl", lines);
    let import = [
        "store",
        "import",
        "records.jsonl",
        "--store",
        "s.sqlite",
        "--json",
    ];
    let run = sandbox.run(&[&import[..], words].concat());
    let document = serde_json::from_str(&run.stdout);
    (
        run.code,
        document.unwrap_or_else(|e| panic!("{e}: {}", run.stderr)),
    )
}

#[test]
fn records_are_imported_once_and_exported_as_they_were() {
    let sandbox = Sandbox::new();
    let all = [of_now("ext4", 1), of_now("ext4", 2), of_now("f2fs", 1)];
    let lines: String = all.iter().map(|one| format!("{}\n", line(one))).collect();
    let counts =
        |document: &Value| ["new", "known", "refused"].map(|name| document[name].as_u64().unwrap());
    let (code, first) = import(&sandbox, &lines, &[]);
    assert_eq!((code, counts(&first)), (0, [3, 0, 0]));
    Shipped::read().check(&first.to_string()).unwrap();
    let (code, again) = import(&sandbox, &lines, &[]);
    assert_eq!((code, counts(&again)), (0, [0, 3, 0]), "idempotent");

    let store = Store::open(&sandbox.path().join("s.sqlite")).unwrap();
    for one in &all {
        let kept = store.get(&one.identity.id()).unwrap().unwrap();
        assert_eq!((&kept.trial, kept.wall_ns), (one, 7));
    }
    let exported = sandbox.run(&["store", "export", "-", "--store", "s.sqlite"]);
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let exported: Vec<Value> = exported.succeeds().lines().map(read).collect();
    assert_eq!(exported.len(), 3);
    for one in &exported {
        Shipped::read().check(&one.to_string()).unwrap();
        assert!(lines.lines().map(read).any(|line| line == *one), "{one}");
    }
}

#[test]
fn what_is_foreign_or_torn_is_refused_by_its_line_and_the_rest_is_imported() {
    let sandbox = Sandbox::new();
    let good = line(&of_now("ext4", 1)).to_string();
    let foreign = line(&trial("ext4", 2, None)).to_string();
    let mut changed = line(&of_now("ext4", 3));
    changed["trial"]["identity"]["seed"] = 4.into();
    let mut newer = line(&of_now("ext4", 5));
    newer["schema"] = 2.into();
    let mut other = of_now("ext4", 1);
    other.outcome.trace_sha256 = "another".to_owned();
    let last = line(&of_now("ext4", 6)).to_string();
    let lines = [
        "id,seed,value".to_owned(),
        good,
        foreign,
        changed.to_string(),
        newer.to_string(),
        planned(&of_now("ext4", 7)).to_string(),
        line(&other).to_string(),
        last.clone(),
        last[..last.len() / 2].to_owned(),
    ];
    let (code, document) = import(&sandbox, &lines.join("\n"), &[]);
    assert_eq!((code, &document["new"]), (2, &2.into()), "{document}");
    let refusals = document["refusals"].as_array().unwrap();
    let mut refused: Vec<(u64, &str)> = refusals
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), one["why"].as_str().unwrap()))
        .collect();
    refused.sort_unstable();
    let expected = [
        (1, "no document of `whichfs trial run`"),
        (3, "made by whichfs 0.0.1"),
        (4, "is not what its id says"),
        (5, "schema 2, this program knows 1"),
        (6, "a document of `whichfs study plan`"),
        (7, "gave a different result"),
        (9, "cut off"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for ((line, why), (at, told)) in refused.iter().zip(expected) {
        assert!(*line == at && why.contains(told), "{line}: {why}");
    }
    let (code, taken) = import(&sandbox, &lines[2], &["--other-versions"]);
    assert_eq!((code, &taken["new"]), (0, &1.into()));
}

#[test]
fn a_plan_lets_only_its_own_records_in_and_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let [one, two, three] = [1, 2, 3].map(|seed| of_now("ext4", seed));
    sandbox.file(
        "plan.jsonl",
        format!("{}\n{}\n", planned(&one), planned(&two)),
    );
    let rules = ["--plan", "plan.jsonl"];
    let lines = format!("{}\n{}\n", line(&one), line(&three));
    let (code, first) = import(&sandbox, &lines, &rules);
    assert_eq!(
        (code, &first["new"], &first["missing"]),
        (2, &1.into(), &1.into())
    );
    let why = first["refusals"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("not in the plan") && why.contains("seed 3"),
        "{why}"
    );
    let (code, none) = import(&sandbox, "", &rules);
    assert_eq!(
        (code, &none["missing"]),
        (1, &1.into()),
        "one is missing still"
    );
    let (code, whole) = import(&sandbox, &line(&two).to_string(), &rules);
    assert_eq!((code, &whole["missing"]), (0, &0.into()));
    sandbox.file("plan.jsonl", line(&one).to_string());
    let wrong = ["store", "import", "records.jsonl", "--plan", "plan.jsonl"];
    sandbox.run(&wrong).fails(
        2,
        &[
            "plan.jsonl, line 1",
            "`whichfs trial run`, not of `whichfs study plan`",
        ],
    );
}

#[test]
fn a_clock_that_is_ahead_elsewhere_makes_no_record_of_the_future() {
    let sandbox = Sandbox::new();
    let mut ahead = line(&of_now("ext4", 1));
    ahead["finished_at_unix"] = 99_999_999_999_i64.into();
    assert_eq!(import(&sandbox, &ahead.to_string(), &[]).0, 0);
    let store = Store::open(&sandbox.path().join("s.sqlite")).unwrap();
    let kept = store
        .get(&of_now("ext4", 1).identity.id())
        .unwrap()
        .unwrap();
    assert!(kept.finished_at_unix < 99_999_999_999, "{kept:?}");
}

#[test]
fn records_that_cannot_be_read_or_written_are_an_error() {
    let sandbox = Sandbox::new();
    let import = |file: &str| sandbox.run(&["store", "import", file, "--store", "s.sqlite"]);
    import("none.jsonl").fails(2, &["none.jsonl", "name a file of JSON lines"]);
    sandbox.file("no.sqlite", "no database");
    let damaged = ["store", "import", "/dev/null", "--store", "no.sqlite"];
    sandbox.run(&damaged).fails(3, &["no.sqlite is damaged"]);
    sandbox.file("r.jsonl", line(&of_now("ext4", 1)).to_string());
    assert_eq!(import("r.jsonl").code, 0);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut export = sandbox.std_command(&["store", "export", "-", "--store", "s.sqlite"]);
    let ended = export
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}
