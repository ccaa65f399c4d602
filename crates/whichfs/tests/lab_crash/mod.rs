//! Power cuts with guests: an honest card raises no alarm, and every planted fault is caught and
//! called by its name: of the card at the cut (`planted`) and while it is read (`device`), of the
//! mount (`planted`), of the filesystem (`edited`). That of the agent is in `src/crash`. Many
//! series together: `study`. Faults of this machine: `host`.
//! These need the lab kernel and the static agent. `WHICHFS_SOAK=1` makes 2,500 honest cuts of
//! each filesystem instead of a few.
#![allow(clippy::unwrap_used)]

mod device;
mod edited;
mod host;
mod planted;
use crate::skip;
mod study;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// `whichfs crash run` on a small run; its exit status and document. `None`: no lab here.
fn crash(arguments: &[&str]) -> Option<(i32, Value)> {
    let data = tempfile::tempdir().unwrap();
    crash_in(data.path(), arguments)
}

/// The same, with series kept in `data`.
fn crash_in(data: &Path, arguments: &[&str]) -> Option<(i32, Value)> {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["crash", "run", "--size", "16M", "--json"])
        .args(arguments)
        .env("XDG_DATA_HOME", data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let status = output.status.code().unwrap();
    assert!(status <= 1, "{arguments:?} ended with {status}: {said}");
    Some((status, serde_json::from_slice(&output.stdout).unwrap()))
}

/// The cuts of the first filesystem.
fn cuts(document: &Value) -> &Vec<Value> {
    document["filesystems"][0]["cuts"].as_array().unwrap()
}

#[test]
fn lab_an_honest_card_raises_no_alarm() {
    let soak = std::env::var_os("WHICHFS_SOAK").is_some();
    let count = if soak { "2500" } else { "10" };
    // Of a soak the series stay, so that an alarm can be shown again.
    let home = tempfile::tempdir().unwrap();
    let home = match soak {
        true => home.keep(),
        false => home.path().to_owned(),
    };
    // Files that grow end in the middle of sectors; those of rootfs do not grow.
    for (card, workload) in [
        ("a1-32gb", "rootfs"),
        ("emmc-8gb", "rootfs"),
        ("a1-32gb", "logger"),
    ] {
        let arguments = [
            "--fs",
            "ext4,xfs,btrfs,f2fs",
            "--cuts",
            count,
            "--card",
            card,
            "--workload",
            workload,
        ];
        let Some((_, document)) = crash_in(&home, &arguments) else {
            return;
        };
        for report in document["filesystems"].as_array().unwrap() {
            assert!(report["outcomes"]["right"].as_u64().unwrap() > 0);
            let alarms = alarms(report);
            let (fs, series) = (&report["fs"], report["series"].as_str().unwrap());
            println!(
                "{fs} on {card}, {workload}: {} of {count} cuts broke a promise",
                alarms.len()
            );
            for alarm in &alarms {
                let number = &alarm["cut"]["number"];
                println!(
                    "  XDG_DATA_HOME={} whichfs crash replay {series}-{number}",
                    home.display()
                );
            }
            // docs/crash.md: its first fsync after a checkpoint does not wait. What rootfs makes
            // durable is never that; logger does it once in a run, where few cuts fall.
            let known = |alarm: &Value| {
                *fs == "f2fs" && workload == "logger" && is_hasty_fsync(&home, series, alarm)
            };
            let found = alarms.iter().find(|alarm| !known(alarm));
            assert!(found.is_none(), "{:#}", found.unwrap());
        }
    }
}

/// Whether what broke is the fsync that had returned last, less than 2 ms before: and that alone.
fn is_hasty_fsync(home: &Path, series: &str, alarm: &Value) -> bool {
    let id = format!("{series}-{}", alarm["cut"]["number"]);
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["crash", "replay", &id, "--json"])
        .env("XDG_DATA_HOME", home)
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let at = |line: &Value| line["at"].as_u64().unwrap();
    let cut = alarm["cut"]["at"].as_u64().unwrap();
    let mut lines = shown["timeline"].as_array().unwrap().iter();
    let promise = lines
        .rfind(|line| line["state"] == "promise" && at(line) <= cut)
        .unwrap();
    let findings = alarm["findings"].as_array().unwrap().iter();
    let mut broken = findings.filter(|finding| finding["broken"] == true);
    let of_promise = |finding: &Value| {
        let path = finding["path"].as_str().unwrap();
        promise["what"]
            .as_str()
            .unwrap()
            .contains(&format!(" {path} "))
    };
    alarm["condition"] == "durable_lost" && cut - at(promise) < 2_000_000 && broken.all(of_promise)
}

/// The cuts that broke a promise.
fn alarms(report: &Value) -> Vec<&Value> {
    let cuts = report["cuts"].as_array().unwrap().iter();
    cuts.filter(|cut| cut["broken"] == true).collect()
}

#[test]
fn lab_a_mount_option_that_the_kernel_refuses_is_bad_input() {
    let Some(_) = crash(&["--fs", "ext4", "--cuts", "1"]) else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args([
            "crash", "run", "--fs", "ext4", "--size", "16M", "--mount", "+nosuch",
        ])
        .env("XDG_DATA_HOME", data.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in ["mount options +nosuch", "the kernel says", "fs show ext4"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn lab_the_same_cut_is_the_same_image_and_the_same_answer() {
    let directory = tempfile::tempdir().unwrap();
    let mut answers = Vec::new();
    for name in ["a", "b"] {
        let image = directory.path().join(name);
        let keep = image.to_str().unwrap();
        let arguments = [
            "--fs",
            "ext4",
            "--partition",
            "128M",
            "--cuts",
            "30",
            "--only",
            "17",
            "--keep",
            keep,
        ];
        let Some((_, document)) = crash(&arguments) else {
            return;
        };
        assert_eq!(cuts(&document).len(), 1);
        answers.push((document, std::fs::read(image).unwrap()));
    }
    assert!(answers[0].1.len() == 128 << 20 && answers[0] == answers[1]);
}

#[test]
fn lab_a_cut_in_the_recovery_of_a_cut_is_survived() {
    let arguments = ["--fs", "ext4,f2fs", "--cuts", "8", "--recovery", "2"];
    let Some((status, document)) = crash(&arguments) else {
        return;
    };
    assert_eq!(status, 0, "{document:#}");
    let twice = cuts(&document).iter().filter(|cut| {
        let again = cut["recovery"].as_array();
        again.is_some_and(|again| again.len() == 2)
    });
    assert!(twice.count() > 0, "no recovery of ext4 wrote anything");
}

#[test]
fn lab_cuts_fall_into_collection() {
    let arguments = [
        "--fs",
        "ext4",
        "--cuts",
        "6",
        "--during",
        "collection",
        "--card",
        "class4-4gb",
    ];
    let Some((status, document)) = crash(&arguments) else {
        return;
    };
    assert!(status == 0 && cuts(&document).len() == 6);
    assert!(
        cuts(&document)
            .iter()
            .all(|cut| cut["cut"]["place"] == "inside")
    );
}

/// XFS writes its superblock and log at its first mount, so that there is something to cut; the
/// filesystem that mkfs made is whole at each of these instants. That of exFAT writes nothing and
/// is left out.
#[test]
fn lab_cuts_fall_into_the_first_mount() {
    let arguments = ["--fs", "exfat,xfs", "--cuts", "6", "--during", "mount"];
    let Some((status, document)) = crash(&arguments) else {
        return;
    };
    assert!(status == 0 && cuts(&document).len() == 6, "{document:#}");
    for cut in cuts(&document) {
        assert_eq!(cut["window"], serde_json::json!([0, 0]));
    }
}

#[test]
fn lab_a_series_goes_on_and_a_cut_of_it_is_shown_again() {
    let data = tempfile::tempdir().unwrap();
    let series = ["--fs", "ext4", "--cuts", "8", "--faults", "reorder"];
    let once = [&series[..], &["--only", "3"]].concat();
    let Some((_, one)) = crash_in(data.path(), &once) else {
        return;
    };
    let (_, all) = crash_in(data.path(), &series).unwrap();
    assert_eq!(cuts(&all).len(), 8);
    assert_eq!(cuts(&all)[3], cuts(&one)[0]);
    let id = all["filesystems"][0]["series"].as_str().unwrap();
    sums_are_those_of_the_cuts(&all);
    let replay = |number: usize| {
        Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args([
                "crash",
                "replay",
                &format!("{}-{number}", &id[..6]),
                "--json",
            ])
            .env("XDG_DATA_HOME", data.path())
            .output()
            .unwrap()
    };
    // One that broke a promise, one that did not, and the last: each records the run anew.
    let first = |broken: bool| cuts(&all).iter().position(|cut| cut["broken"] == broken);
    let shown: BTreeSet<usize> = [first(true), first(false), Some(7)]
        .into_iter()
        .flatten()
        .collect();
    for number in shown {
        let cut = &cuts(&all)[number];
        let output = replay(number);
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(again["result"]["condition"], cut["condition"]);
        assert_eq!(again["result"]["outcomes"], cut["outcomes"]);
        assert_eq!(
            output.status.code() == Some(1),
            cut["broken"] == true,
            "{number}"
        );
        let timeline = again["timeline"].as_array().unwrap();
        assert!(timeline.iter().any(|line| line["what"] == "THE POWER GOES"));
    }
    assert_eq!(replay(99).status.code(), Some(2));
}

/// The counts at the top of a document of one series, and its worst cut.
fn sums_are_those_of_the_cuts(document: &Value) {
    let called = |name: &str| {
        let cuts = cuts(document).iter();
        cuts.filter(|cut| cut["condition"] == name).count()
    };
    assert_eq!(document["cuts"], cuts(document).len());
    for (sum, condition) in [
        ("clean", "clean"),
        ("journal_recovery", "recovered"),
        ("needs_fsck", "needs_check"),
        ("durable_lost", "durable_lost"),
    ] {
        assert_eq!(document[sum], called(condition), "{sum}");
    }
    let broken = cuts(document).iter().filter(|cut| cut["broken"] == true);
    let broken = broken.count();
    assert_eq!(document["broken"], broken);
    let Some(worst) = document["worst"].get(0) else {
        assert_eq!(broken, 0, "what broke is told");
        return;
    };
    let series = document["filesystems"][0]["series"].as_str().unwrap();
    let replay = worst["replay"].as_str().unwrap();
    assert!(replay.starts_with(&format!("whichfs crash replay {series}-")));
    let same = |cut: &&Value| {
        cut["cut"]["seed"] == worst["seed"] && cut["cut"]["request"] == worst["at_request"]
    };
    let cut = cuts(document).iter().find(same).unwrap();
    assert_eq!(cut["condition"], worst["condition"]);
}

#[test]
fn lab_filesystems_that_promise_little_are_told_so() {
    let Some((status, document)) = crash(&["--fs", "vfat", "--cuts", "10"]) else {
        return;
    };
    let contract = &document["filesystems"][0]["contract"];
    assert_eq!(contract["structure"], false);
    assert!(status == 0 && contract["source"].as_str().is_some_and(|s| !s.is_empty()));
}

/// xfstests generic/342: a durable file is renamed, another takes its name and is synced.
const TAKEN: &str = r#"
{"op":"create","path":"a","size":30000,"content":{"generated":{"level":0,"seed":1}}}
{"op":"sync_fs"}
{"op":"rename","from":"a","to":"b"}
{"op":"create","path":"a","size":20000,"content":{"generated":{"level":0,"seed":2}}}
{"op":"sync_file","path":"a"}
{"op":"sync_file","path":"a"}
"#;

#[test]
fn lab_a_card_that_fails_while_it_is_used_is_told_by_what_became_of_the_system() {
    // Told: ext4 goes read-only, and what had been synced before is there. In silence: nobody
    // hears of lost writes, so what the unmount promised is broken.
    for (fault, outcomes, broken) in [
        ("live-write-errors", ["read_only", "error_returned"], false),
        ("live-dropped", ["completed", "read_only"], true),
    ] {
        let arguments = [
            "--fs",
            "ext4",
            "--faults",
            fault,
            "--workload",
            "atomic",
            "--cuts",
            "3",
        ];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        for cut in cuts(&document) {
            let outcome = cut["live"]["outcome"].as_str().unwrap();
            assert!(outcomes.contains(&outcome), "{fault}: {cut:#?}");
            assert!(
                cut["live"]["hits"].as_u64().unwrap() > 0,
                "{fault}: {cut:#?}"
            );
        }
        let any_broken = cuts(&document).iter().any(|cut| cut["broken"] == true);
        assert_eq!(
            (any_broken, status),
            (broken, i32::from(broken)),
            "{fault}: {document:#?}"
        );
    }
}

#[test]
fn lab_a_script_shows_what_f2fs_promises_in_strict_mode_only() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("taken.jsonl");
    std::fs::write(&script, TAKEN).unwrap();
    let mut lost = Vec::new();
    for mount in ["+fsync_mode=posix", "+fsync_mode=strict"] {
        let script = script.to_str().unwrap();
        let arguments = [
            "--fs", "f2fs", "--mount", mount, "--script", script, "--cuts", "all",
        ];
        let Some((_, document)) = crash(&arguments) else {
            return;
        };
        let is_lost = |cut: &&Value| {
            let findings = cut["findings"].as_array().unwrap();
            findings
                .iter()
                .any(|finding| finding["path"] == "b" && finding["durable"] == true)
        };
        let of_b: Vec<&Value> = cuts(&document).iter().filter(is_lost).collect();
        assert!(of_b.iter().all(|cut| cut["broken"] == false), "{of_b:#?}");
        lost.push(of_b.len());
    }
    assert!(lost[0] > 0 && lost[1] == 0, "{lost:?}");
}

#[test]
fn lab_synchronous_mounts_keep_every_operation_that_returned() {
    // Without dioread_lock some of the files that are replaced without fsync are zeros: see
    // docs/crash.md and reproducers/ext4-replaced-zeros.json.
    for (fs, mount) in [
        ("vfat", "+sync"),
        ("ext4", "+sync"),
        ("ext4", "+dirsync,dioread_lock"),
    ] {
        let arguments = [
            "--fs",
            fs,
            "--mount",
            mount,
            "--workload",
            "atomic",
            "--cuts",
            "8",
        ];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        let report = &document["filesystems"][0];
        assert_eq!(status, 0, "{fs} {mount}: {report:#?}");
        assert_eq!(report["contract"]["returned_names"], true);
        let options = report["mount_options"].as_str().unwrap();
        assert!(options.starts_with("noatime,"), "{options}");
        // Without promises of the mount nothing would be durable before the first syncfs.
        let contents = report["contract"]["returned_writes"] == true;
        assert_eq!(contents, mount == "+sync");
    }
}
