//! What needs other guests than most trials: the kernel with modules, and a disk of two parts.
//! These need the lab kernel and the static agent; the first also `kernel/build --modules`.
#![allow(clippy::unwrap_used)]

use crate::skip;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HEAD: &str = r#"
name = "small"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a1-32gb"]
boards = ["beaglebone-black"]
seeds = 1
"#;

const BOOT: &str = r#"
candidates = ["ext4", "vfat", "btrfs", "squashfs-xz"]
[[workloads]]
name = "boot"
workload = "boot"
parameters = { bytes = 4194304 }
"#;

const JOURNALS: &str = r#"
candidates = ["ext4"]
[[variants]]
name = "inside"
[[variants]]
name = "in front"
journal = { mib = 8, at = "front" }
[[variants]]
name = "behind"
journal = { mib = 8, at = "end" }
[[workloads]]
name = "half a GiB"
workload = "mkfs"
partition_mib = 512
parameters = { bytes = 4194304 }
[[workloads]]
name = "tree"
workload = "tree"
partition_mib = 512
parameters = { bytes = 4194304, files = 200 }
"#;

/// Whether guests can be run; says why not.
fn can_run() -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

/// `whichfs study run` of a study with `text` in `home`.
fn run(home: &Path, text: &str) -> Output {
    std::fs::write(home.join("small.toml"), format!("{HEAD}{text}")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["study", "run", "./small.toml", "--json"])
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .output()
        .unwrap()
}

/// The lines of the tables that it printed.
fn lines(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tables = document["tables"].as_array().unwrap().iter();
    let of = |table: &Value| table["lines"].as_array().unwrap().clone();
    tables.flat_map(of).collect()
}

/// The figure of candidate number `at`.
fn value(lines: &[Value], variant: &str, metric: &str, at: usize) -> Option<f64> {
    let is = |line: &&Value| {
        let of = line["variant"].as_str().unwrap_or_default();
        line["metric"] == metric && of == variant
    };
    lines.iter().find(is)?["ours"][at]["median"].as_f64()
}

/// The kernel with modules that was built last, of whatever series.
fn with_modules() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let link = home.join(".cache/whichfs/kernel/linux-6.12-modules");
    link.canonicalize().ok()
}

#[test]
fn lab_modules_are_loaded_in_virtual_time_alike_again() {
    if !can_run() {
        return;
    }
    let Some(kernel) = with_modules() else {
        skip::skip("no kernel with modules (whichfs lab kernel --build --modules)");
        return;
    };
    let measure = || {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("cache/whichfs/kernel");
        std::fs::create_dir_all(&cache).unwrap();
        std::os::unix::fs::symlink(&kernel, cache.join("linux-6.12-modules")).unwrap();
        let output = run(home.path(), BOOT);
        let csv = home.path().join("whichfs-study/latest/results.csv");
        (lines(&output), std::fs::read_to_string(csv).unwrap())
    };
    let (lines, csv) = measure();
    let of = |metric, at| value(&lines, "", metric, at).unwrap();
    for at in 0..4 {
        let (load, mount) = (of("module_load", at), of("mount", at));
        assert!((1e-5..1.0).contains(&load), "{at}: {load} s to load");
        assert!((of("boot", at) - load - mount).abs() < 1e-9, "{at}");
        assert!(of("first_read", at) > 0.0, "{at}");
    }
    let (ext4, vfat, btrfs) = (
        of("module_load", 0),
        of("module_load", 1),
        of("module_load", 2),
    );
    assert!(
        vfat < ext4 && ext4 < btrfs,
        "by their sizes: {vfat} {ext4} {btrfs}"
    );
    assert_eq!(csv, measure().1, "the same figures, to the last digit");
}

#[test]
fn lab_a_workload_that_loads_modules_is_left_out_without_any() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), BOOT);
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("lab kernel --build --modules"), "{said}");
    assert!(!said.contains("module_load\":"), "{said}");
}

#[test]
fn lab_a_journal_may_be_elsewhere_on_the_card() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let lines = lines(&run(home.path(), JOURNALS));
    for variant in ["inside", "in front", "behind"] {
        let of = |metric| value(&lines, variant, metric, 0).unwrap();
        assert!(
            of("tree_write") > 0.0 && of("fsck_clean") > 0.0,
            "{variant}"
        );
        // The space of a journal is taken wherever it is.
        assert!(
            (8e6..100e6).contains(&of("mkfs_used")),
            "{variant}: {}",
            of("mkfs_used")
        );
    }
    let write = |variant| value(&lines, variant, "tree_write", 0);
    assert_ne!(
        write("inside"),
        write("in front"),
        "the card sees other places"
    );
}
