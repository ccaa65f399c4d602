//! Workloads whose phases run programs of this machine, with guests: these need the lab kernel
//! and the static agent. What is written is small, so a trial takes a few seconds.
#![allow(clippy::unwrap_used)]

mod choosing;

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
        let arguments = ["--candidates", "ext4", "--json", "--jobs", jobs, "--fio"];
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

/// FAT has no names with a question mark: its trial fails with what fio said, and the other one
/// is made.
#[test]
fn lab_a_program_that_fails_ends_its_own_trial() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let job = "[odd]\nrw=write\nsize=1m\nfilename=which?\nend_fsync=1\n";
    let job = file(home.path(), "odd.fio", job);
    let arguments = ["--candidates", "ext4,vfat", "--json", "--fio"];
    let mut command = choose_of_any_size(home.path(), &arguments);
    let verdict = done(&command.arg(job).output().unwrap());
    assert_eq!(verdict["ranking"][0]["candidate"], "ext4");
    let why = verdict["excluded"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("fio") && why.contains("Invalid argument"),
        "{why}"
    );
}
