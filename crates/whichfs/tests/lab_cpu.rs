//! CPU time as a figure of trials, with guests: these need the lab kernel and the static agent.
#![allow(clippy::unwrap_used)]

// Studies are run here, and no verdict.
#[allow(dead_code)]
use crate::choosing;

use choosing::{assert_same, can_run, done, trials};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use whichfs_trial::{PhaseFigures, Trial};

/// btrfs as it is and with compression, under the clock of the form `CLOCK`.
const STUDY: &str = r#"
name = "cpu"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
clock = "CLOCK"
seeds = 1
candidates = ["btrfs"]

[[variants]]
name = "plain"

[[variants]]
name = "zstd"
add = "compress-force=zstd"

[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 12582912, files = 200 }
cpu = true
"#;

/// The trials of the study in a new home, by id, as they are in the store.
fn run(home: &Path, clock: &str) -> BTreeMap<String, String> {
    let text = STUDY.replace("CLOCK", clock);
    std::fs::write(home.join("cpu.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    let command = command
        .args(["study", "run", "./cpu.toml", "--json"])
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null());
    let document = done(&command.output().unwrap());
    let lines = document["tables"][0]["lines"].as_array().unwrap();
    let is_cpu = |line: &&serde_json::Value| line["metric"] == "tree_write_cpu_per_mib";
    let expected = if clock == "cpu" { 2 } else { 0 };
    assert_eq!(lines.iter().filter(is_cpu).count(), expected, "{document}");
    trials(home)
}

/// The value of `metric` in the trial whose mount options have, or have not, compression.
fn of(trials: &BTreeMap<String, String>, compressed: bool, metric: &str) -> f64 {
    let all = trials.values();
    let mut all = all.map(|trial| serde_json::from_str::<Trial>(trial).unwrap());
    let is = |trial: &Trial| trial.identity.mount_options.contains("compress") == compressed;
    let trial = all.find(is).unwrap();
    let metrics = &trial.outcome.metrics;
    let found = metrics.iter().find(|found| found.metric == metric);
    found
        .unwrap_or_else(|| panic!("{metric}: {metrics:?}"))
        .value
}

#[test]
fn lab_compression_takes_more_cpu_for_each_mib_and_the_same_again() {
    if !can_run() {
        return;
    }
    let [first, second] = [0, 1].map(|_| {
        let home = tempfile::tempdir().unwrap();
        run(home.path(), "cpu")
    });
    assert_same(&first, &second);
    // The whole workload has phases that compression hardly touches: random updates with fsync.
    for (metric, times) in [("cpu_per_mib", 1.0), ("tree_write_cpu_per_mib", 1.5)] {
        let [plain, packed] = [false, true].map(|compressed| of(&first, compressed, metric));
        assert!(plain > 0.0, "{metric}: {plain}");
        assert!(packed > times * plain, "{metric}: {plain} {packed}");
    }
    for metric in ["cpu", "tree_read_cpu", "mount_cpu"] {
        let share = of(&first, true, metric);
        assert!(share > 0.0 && share <= 100.0, "{metric}: {share}");
    }
}

#[test]
fn lab_where_the_cpu_is_free_its_time_is_null_with_the_reason() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for trial in run(home.path(), "device").values() {
        assert!(trial.contains(r#""cpu":{"nanoseconds":null,"why":"with the clock device"#));
        let trial: Trial = serde_json::from_str(trial).unwrap();
        let unknown = |phase: &PhaseFigures| phase.cpu.as_ref().unwrap().spent().is_none();
        assert!(trial.outcome.phases.iter().all(unknown));
        let metrics = &trial.outcome.metrics;
        assert!(!metrics.iter().any(|metric| metric.metric.contains("cpu")));
    }
}
