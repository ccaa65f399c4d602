//! What is done with stores, the cache and needs as wholes. No guest runs.

use super::sandbox::Sandbox;
use serde_json::{Value, json};
use whichfs_store::Store;
use whichfs_trial::Trial;

/// A trial of `candidate` by whichfs 0.0.1, which failed if there is a reason.
pub fn trial(candidate: &str, seed: u64, failed: Option<&str>) -> Trial {
    let status = match failed {
        None => json!({"status": "done"}),
        Some(reason) => json!({"status": "failed", "reason": reason, "log": []}),
    };
    let identity = json!({
        "card": "a1-32gb", "card_sha256": "", "card_state": "used", "board": "generic-1ghz",
        "board_sha256": "", "clock": "device", "kernel": "6.12", "kernel_sha256": "",
        "candidate": candidate, "mkfs": [], "mount_options": "", "workload": "rootfs",
        "parameters": {}, "tree_sha256": "", "partition_offset": 0, "partition_bytes": 1,
        "memory_mib": 64, "version": "0.0.1", "agent_sha256": "", "tools": {},
        "cpu_features_sha256": "", "seed": seed,
    });
    let outcome = json!({"status": status, "phases": [], "metrics": [], "trace_sha256": "",
                         "virtual_time": 0});
    serde_json::from_value(json!({"identity": identity, "outcome": outcome})).unwrap()
}

/// A home with a store of three trials, `old.sqlite`.
fn with_store() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut store = Store::open(&sandbox.path().join("old.sqlite")).unwrap();
    for one in [
        trial("ext4", 1, None),
        trial("ext4", 2, Some("no space left")),
        trial("f2fs", 1, None),
    ] {
        store.put(&one, 1, 1).unwrap();
    }
    sandbox
}

#[track_caller]
fn told(sandbox: &Sandbox, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').chain(["--json"]).collect();
    serde_json::from_str(sandbox.run(&words).succeeds()).unwrap()
}

#[test]
fn trials_are_listed_by_what_they_are_of() {
    let sandbox = with_store();
    let ids = |filter: &str| {
        let command = format!("trial list --store old.sqlite{filter}");
        let all = told(&sandbox, &command);
        let all = all.as_array().unwrap().clone();
        let words = |one: &Value| {
            let candidate = one["candidate"].as_str().unwrap();
            format!("{candidate} {} {}", one["seed"], one["failed"])
        };
        all.iter().map(words).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), ["ext4 1 false", "ext4 2 true", "f2fs 1 false"]);
    assert_eq!(ids(" --fs ext4 --seed 1"), ["ext4 1 false"]);
    assert_eq!(ids(" --failed"), ["ext4 2 true"]);
    let text = sandbox.run(&["trial", "list", "--store", "old.sqlite"]);
    assert!(text.succeeds().contains("no space left"), "{}", text.stdout);
    let none = sandbox.run(&["trial", "list", "--store", "old.sqlite", "--fs", "none"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert!(
        none.stderr.contains("whichfs store info"),
        "{}",
        none.stderr
    );
}

#[test]
fn exported_trials_are_merged_into_another_store() {
    let sandbox = with_store();
    let count = told(&sandbox, "store info --store old.sqlite")["trials"].clone();
    let exported = told(&sandbox, "store export part.sqlite --store old.sqlite");
    assert_eq!(
        (&exported["what"], &exported["trials"]),
        (&"exported".into(), &count)
    );
    let merged = told(&sandbox, "store merge part.sqlite --store new.sqlite");
    assert_eq!(merged["trials"], count);
    let again = told(&sandbox, "store merge part.sqlite --store new.sqlite");
    assert_eq!(again["trials"], 0);
    let over = ["store", "export", "part.sqlite", "--store", "old.sqlite"];
    sandbox
        .run(&over)
        .fails(2, &["part.sqlite exists", "store merge"]);
    let missing = ["store", "merge", "none.sqlite", "--store", "fresh.sqlite"];
    sandbox.run(&missing).fails(2, &["no store at none.sqlite"]);
    assert!(
        !sandbox.path().join("fresh.sqlite").exists(),
        "nothing is made for nothing"
    );
}

#[test]
fn failed_trials_and_those_of_other_versions_are_counted_and_then_deleted() {
    let sandbox = with_store();
    let info = || told(&sandbox, "store info --store old.sqlite");
    assert_eq!(
        (&info()["trials"], &info()["failed"]),
        (&3.into(), &1.into())
    );
    let gc = "store gc --failed --store old.sqlite";
    let dry = told(&sandbox, &format!("{gc} --dry-run"));
    assert_eq!(
        (&dry["what"], &dry["trials"]),
        (&"would be deleted".into(), &1.into())
    );
    assert_eq!(info()["trials"], 3);
    assert_eq!(told(&sandbox, gc)["trials"], 1);
    assert_eq!(info()["trials"], 2);
    let old = told(&sandbox, "store gc --other-versions --store old.sqlite");
    assert_eq!(old["trials"], 2);
    assert_eq!(info()["trials"], 0);
    sandbox
        .run(&["store", "gc"])
        .fails(2, &["--failed", "--other-versions"]);
}

#[test]
fn the_cache_is_shown_and_what_is_old_in_it_is_removed() {
    let sandbox = Sandbox::new();
    let images = sandbox.path().join("cache/whichfs/images");
    std::fs::create_dir_all(&images).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(90_000);
    for name in ["a.img", "a.img.sha256"] {
        let file = std::fs::File::create(images.join(name)).unwrap();
        std::io::Write::write_all(&mut &file, &[7; 9000]).unwrap();
        let times = std::fs::FileTimes::new()
            .set_accessed(long_ago)
            .set_modified(long_ago);
        file.set_times(times).unwrap();
    }
    let shown = told(&sandbox, "cache list");
    assert_eq!(shown["kinds"][0]["entries"], 1, "{shown}");
    assert_eq!(told(&sandbox, "cache gc")["removed"], 0, "it is below 5G");
    let cleaned = told(&sandbox, "cache gc --limit 4K");
    assert_eq!(
        (&cleaned["removed"], &cleaned["bytes"]),
        (&1.into(), &0.into())
    );
    assert!(!images.join("a.img").exists());
}

#[test]
fn a_need_of_ones_own_begins_as_a_shipped_one() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&[
        "need",
        "new",
        "sensor",
        "--from",
        "logger",
        "--out",
        "sensor.toml",
    ]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let own = told(&sandbox, "need show ./sensor.toml");
    let shipped = told(&sandbox, "need show logger");
    assert_eq!(own["name"], "sensor");
    assert_eq!(own["weights"], shipped["weights"]);
    let again = ["need", "new", "other", "--out", "sensor.toml"];
    sandbox.run(&again).fails(2, &["it exists"]);
    sandbox
        .run(&["need", "new", "x", "--from", "loger"])
        .fails(2, &["did you mean 'logger'?"]);
    let listed = told(&sandbox, "need list");
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .any(|need| need["name"] == "logger")
    );
}

#[test]
fn a_size_that_excludes_nobody_is_refused() {
    let sandbox = Sandbox::new();
    let words = ["excludes nobody", "smallest partition", "--card"];
    sandbox
        .run(&["choose", "--need", "min_bytes=99T"])
        .fails(2, &words);
}
