//! What studies can ask beside tables: differences, the smallest partition, programs on stacks and
//! on the unmounted card. With guests: these need the lab kernel and the static agent.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const HEAD: &str = r#"
name = "small"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
"#;

const DIFFERENCES: &str = r#"
seeds = 2
candidates = ["ext2", "vfat"]
[[variants]]
name = "aligned"
[[variants]]
name = "63 sectors"
offset = "63 sectors"
[[variants]]
name = "defaults"
tuned_for = "nothing"
only = ["ext2"]
[[variants]]
name = "the same"
only = ["vfat"]
[compare]
variant = "aligned"
metrics = ["tree_write"]
[smallest]
workload = "one file"
resolution_kib = 512
largest_mib = 16
[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 12582912, files = 200 }
[[workloads]]
name = "one file"
workload = "limits"
"#;

const STACKS: &str = r#"
seeds = 1
candidates = ["ext4"]
[[workloads]]
name = "half a GiB"
workload = "mkfs"
partition_mib = 512
parameters = { bytes = 4194304 }
[[workloads]]
name = "update"
workload = "ota"
parameters = { image_bytes = 4194304, system_bytes = 4194304 }
[[workloads]]
name = "overlayfs"
table = "start"
workload = "stack"
parameters = { modules = 20, compressor = 1, layer = 1 }
[[workloads]]
name = "unionfs and posixovl"
table = "start"
workload = "stack"
parameters = { modules = 20, compressor = 1, layer = 2 }
"#;

/// Whether guests can be run with all of `programs`; says why not.
fn can_run(programs: &[&str]) -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
        return false;
    }
    let installed = |name: &&&str| {
        let mut dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter();
        !dirs.any(|dir| Path::new(dir).join(name).exists())
    };
    match programs.iter().find(installed) {
        Some(missing) => {
            skip::skip(format!("{missing} is not installed"));
            false
        }
        None => true,
    }
}

/// What `whichfs study …` prints, run in `home`.
fn study(home: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .arg("study")
        .args(arguments)
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn document(home: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&study(home, arguments)).unwrap()
}

#[test]
fn lab_a_study_tells_differences_and_smallest_partitions_and_shows_them_again() {
    if !can_run(&[]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("small.toml"),
        format!("{HEAD}{DIFFERENCES}"),
    )
    .unwrap();
    let ran = document(home.path(), &["run", "./small.toml", "--json"]);
    let gains = ran["gains"].as_array().unwrap();
    let of = |gain: &Value| format!("{} {}", gain["candidate"], gain["variant"]).replace('"', "");
    let pairs: Vec<String> = gains.iter().map(of).collect();
    assert_eq!(
        pairs,
        [
            "ext2 63 sectors",
            "ext2 defaults",
            "vfat 63 sectors",
            "vfat the same"
        ]
    );
    assert!(
        gains
            .iter()
            .all(|gain| gain["interval"].is_array() && gain["seeds"] == 2)
    );

    let same = &gains[3];
    assert_eq!(
        (&same["ratio"], &same["effect"]),
        (&1.0.into(), &"none".into())
    );

    let smallest = ran["smallest"].as_array().unwrap();
    assert_eq!(smallest.len(), 6, "three of each");
    for found in smallest {
        let bytes = found["bytes"].as_u64().unwrap();
        assert!(
            bytes.is_multiple_of(512 << 10) && bytes <= 16 << 20,
            "{found}"
        );
        assert!(found["free_bytes"].as_f64().unwrap() < bytes as f64);
    }
    let vfat = smallest
        .iter()
        .find(|found| found["candidate"] == "vfat")
        .unwrap();
    assert_ne!(vfat["why"], "", "why the next smaller one failed");
    let years = ran["tables"].to_string();
    assert!(
        years.contains("\"year_2040\"") && years.contains("2107"),
        "FAT ends in 2107"
    );

    let shown = document(home.path(), &["show", "./small.toml", "--json"]);
    assert_eq!(shown["last"]["gains"], ran["gains"]);
    assert_eq!(shown["last"]["smallest"], ran["smallest"]);
    let told = study(home.path(), &["show", "./small.toml"]);
    assert!(told.contains("The figures that the store has"), "{told}");
    assert!(told.contains("compared with aligned"), "{told}");
}

#[test]
fn lab_programs_on_stacks_and_on_the_unmounted_card_are_measured_alike_again() {
    if !can_run(&["mksquashfs", "unionfs-fuse", "mount.posixovl", "perl"]) {
        return;
    }
    let run = || {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("small.toml"), format!("{HEAD}{STACKS}")).unwrap();
        let ran = document(home.path(), &["run", "./small.toml", "--json"]);
        let csv = home.path().join("whichfs-study/results.csv");
        (ran, std::fs::read_to_string(csv).unwrap())
    };
    let (ran, csv) = run();
    let lines: Vec<&Value> = ran["tables"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|table| table["lines"].as_array().unwrap())
        .collect();
    let value = |metric: &str, load: &str| {
        let is = |line: &&&Value| {
            line["metric"] == metric && line["load"].as_str().unwrap_or_default() == load
        };
        let line = lines.iter().find(is);
        line.unwrap_or_else(|| panic!("{metric} {load}"))["ours"][0]["median"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (4e6..400e6).contains(&value("mkfs_used", "")),
        "journal and tables"
    );
    assert!(
        value("kernel_threads", "") >= 1.0,
        "ext4 has a thread for its journal"
    );
    assert!(value("fsck_clean", "") > 0.0 && value("first_read", "") > 0.0);
    assert!(value("ota_read_longest", "") >= value("ota_read", ""));
    for load in ["overlayfs", "unionfs and posixovl"] {
        assert!(value("appstart", load) > 0.0 && value("stack_mount", load) > 0.0);
    }
    assert_eq!(csv, run().1, "the same figures, to the last digit");
}
