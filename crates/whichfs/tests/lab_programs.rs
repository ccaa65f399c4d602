//! Workloads whose phases run programs of this machine, with guests: these need the lab kernel
//! and the static agent. What is written is small, so a trial takes a few seconds.
#![allow(clippy::unwrap_used)]

use crate::choosing;

use choosing::{assert_same, can_run, choose_of_any_size, done, trials};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file `name` with `text` in `home`.
fn file(home: &Path, name: &str, text: &str) -> PathBuf {
    let path = home.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The metrics of the only trial in `trials`.
fn metrics(trials: &BTreeMap<String, String>) -> BTreeMap<String, f64> {
    assert_eq!(trials.len(), 1);
    let trial: Value = serde_json::from_str(trials.values().next().unwrap()).unwrap();
    let all = trial["outcome"]["metrics"].as_array().unwrap();
    all.iter()
        .map(|m| {
            (
                m["metric"].as_str().unwrap().to_owned(),
                m["value"].as_f64().unwrap(),
            )
        })
        .collect()
}

/// Threads, processes, libaio and a random order, twice: fio's figures and every request.
#[test]
fn lab_fio_tells_the_same_figures_again() {
    if !can_run() {
        return;
    }
    const JOB: &str = "[global]\ndirectory=/mnt/card\nsize=256k\nbs=4k\n\
                       [threads]\nrw=randrw\nthread\nnumjobs=2\ngroup_reporting\nioengine=libaio\n\
                       direct=1\niodepth=4\n[processes]\nstonewall\nrw=randwrite\nnumjobs=2\n\
                       group_reporting\nend_fsync=1\n";
    let [first, second] = ["1", "2"].map(|jobs| {
        let home = tempfile::tempdir().unwrap();
        let job = file(home.path(), &format!("job-{jobs}.fio"), JOB);
        let arguments = ["--fs", "ext4", "--json", "--jobs", jobs, "--fio"];
        let mut command = choose_of_any_size(home.path(), &arguments);
        done(&command.arg(job).output().unwrap());
        trials(home.path())
    });
    assert_same(&first, &second);
    let metrics = metrics(&first);
    for name in [
        "fio_job",
        "fio_job_p99",
        "fio_threads_read_p99",
        "fio_threads_write_iops",
        "fio_processes_write",
        "write_amplification",
    ] {
        assert!(metrics[name] > 0.0, "{name}: {metrics:?}");
    }
}

/// FAT has no files beyond 4 GiB: its trial fails with what fio said, and the other one is made.
#[test]
fn lab_a_program_that_fails_ends_its_own_trial() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let job = "[odd]\nrw=write\nsize=1m\noffset=4g\nfilesize=5g\nfallocate=none\nend_fsync=1\n";
    let job = file(home.path(), "odd.fio", job);
    let arguments = ["--fs", "ext4,vfat", "--json", "--fio"];
    let mut command = choose_of_any_size(home.path(), &arguments);
    let verdict = done(&command.arg(job).output().unwrap());
    assert_eq!(verdict["ranking"][0]["candidate"], "ext4");
    let why = verdict["excluded"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("fio") && why.contains("File too large"),
        "{why}"
    );
}

/// A need for `workload` with small `parameters`, as a file in `home`.
fn need(home: &Path, workload: &str, metric: &str, parameters: &str) -> PathBuf {
    let text = format!(
        "name = \"small\"\ntitle = \"small\"\nworkload = \"{workload}\"\n\
         requires = [\"{metric}\"]\n[parameters]\n{parameters}\n\
         [weights.{metric}]\nweight = 1\nbecause = \"it is tested here\"\n"
    );
    file(home, "need.toml", &text)
}

#[test]
fn lab_sqlite_and_perl_tell_the_same_figures_again() {
    if !can_run() {
        return;
    }
    for (workload, metric, parameters, others) in [
        (
            "sqlite",
            "sqlite_insert_rollback",
            "transactions = 12",
            &["sqlite_update_wal", "sqlite_update_rollback_p99"][..],
        ),
        (
            "appstart",
            "appstart",
            "modules = 40",
            &["appstart_install", "space"],
        ),
    ] {
        let [first, second] = ["1", "2"].map(|jobs| {
            let home = tempfile::tempdir().unwrap();
            let need = need(home.path(), workload, metric, parameters);
            let arguments = ["--fs", "ext4", "--json", "--jobs", jobs, "--for"];
            let mut command = choose_of_any_size(home.path(), &arguments);
            done(&command.arg(need).output().unwrap());
            trials(home.path())
        });
        assert_same(&first, &second);
        let metrics = metrics(&first);
        for name in others.iter().chain([&metric]) {
            assert!(metrics[*name] > 0.0, "{name}: {metrics:?}");
        }
    }
}

#[test]
fn lab_a_command_is_timed_and_so_is_what_it_left_in_memory() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let line = "sleep 1; head -c 2000000 /dev/zero > x; test $WHICHFS_SEED = 1";
    let arguments = ["--fs", "ext4", "--json", "--command", line];
    let output = choose_of_any_size(home.path(), &arguments)
        .output()
        .unwrap();
    done(&output);
    let trials = trials(home.path());
    let metrics = metrics(&trials);
    assert!((1.0..2.0).contains(&metrics["command"]), "{metrics:?}");
    assert!(
        metrics["command_sync"] > 0.0 && metrics["space"] > 2e6,
        "{metrics:?}"
    );
    let trial: Value = serde_json::from_str(trials.values().next().unwrap()).unwrap();
    assert_eq!(trial["identity"]["input"], line);
    let tools = &trial["identity"]["tools"];
    for tool in ["/bin/sh", "sleep", "head", "sync"] {
        let known = tools[tool].as_str();
        assert!(
            known.is_some_and(|hash| hash.starts_with("sha256:")),
            "{tool}: {tools}"
        );
    }
}

/// One that is missing, one that fills the card, one that computes for ever, one that sleeps for
/// ever: each fails its own trial, and says why.
#[test]
fn lab_a_command_that_goes_wrong_fails_its_trial() {
    if !can_run() {
        return;
    }
    for (line, words) in [
        ("no-such-program x", &["status 127", "not found"][..]),
        (
            "fallocate -l 8G x",
            &["the filesystem is full", "take a larger card"],
        ),
        (
            "while :; do :; done",
            &["did not end", "raise the wall limit"],
        ),
        ("sleep infinity", &["86400 s of virtual time", "hangs"]),
    ] {
        let home = tempfile::tempdir().unwrap();
        let card = ["--card", "class4-4gb", "--wall-limit", "8"];
        let mut command = choose_of_any_size(home.path(), &card);
        command.args(["--fs", "ext4", "--command", line]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{line}: {said}");
        for word in words {
            assert!(said.contains(word), "{line}: {said}");
        }
    }
}
