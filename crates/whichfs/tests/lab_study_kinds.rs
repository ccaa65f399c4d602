//! What studies can ask beside tables: differences, the smallest partition, programs on stacks and
//! on the unmounted card. With guests: these need the lab kernel and the static agent.
#![allow(clippy::unwrap_used)]

use crate::skip;

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
parameters = { compressor = 1, layer = 1 }
[[workloads]]
name = "unionfs and posixovl"
table = "start"
workload = "stack"
parameters = { compressor = 1, layer = 2 }
"#;

/// Whether guests can be run with all of `programs`; says why not.
fn can_run(programs: &[&str]) -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
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
    if !can_run(&["mksquashfs", "unionfs-fuse", "mount.posixovl", "python3"]) {
        return;
    }
    let run = || {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("small.toml"), format!("{HEAD}{STACKS}")).unwrap();
        let ran = document(home.path(), &["run", "./small.toml", "--json"]);
        let csv = home.path().join("whichfs-study/latest/results.csv");
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

const PROCESSES: &str = r#"
seeds = 1
candidates = ["nilfs2", "ntfs3"]
[[variants]]
name = "by itself"
[[variants]]
name = "cleaner"
helper = ["-p", "0"]
only = ["nilfs2"]
[[variants]]
name = "ntfs-3g"
helper = []
only = ["ntfs3"]
[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 12582912, files = 200, updates = 50 }
"#;

#[test]
fn lab_a_filesystem_has_its_process_in_user_space() {
    if !can_run(&["nilfs_cleanerd", "nilfs-clean", "ntfs-3g"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let text = format!("{HEAD}{PROCESSES}");
    std::fs::write(home.path().join("small.toml"), &text).unwrap();
    // A cleaner that is not there when it is told to end fails its trial.
    let ran = document(home.path(), &["run", "./small.toml", "--json"]);
    let lines = ran["tables"][0]["lines"].as_array().unwrap();
    let value = |variant: &str, at: usize| {
        let is = |line: &&Value| line["metric"] == "tree_write" && line["variant"] == variant;
        lines.iter().find(is).unwrap()["ours"][at]["median"].as_f64()
    };
    assert!(value("by itself", 0).unwrap() > 0.0 && value("cleaner", 0).unwrap() > 0.0);
    let (kernel, fuse) = (value("by itself", 1).unwrap(), value("ntfs-3g", 1).unwrap());
    assert!(fuse > 0.0 && fuse < kernel, "{fuse} by FUSE, {kernel}");
    let caveats = ran["caveats"].to_string();
    assert!(
        caveats.contains("ntfs-3g computes in user space"),
        "{caveats}"
    );

    let none = text
        .replace("\"nilfs2\", \"ntfs3\"", "\"nilfs2\", \"ext4\"")
        .replace("only = [\"ntfs3\"]", "only = [\"ext4\"]");
    std::fs::write(home.path().join("none.toml"), none).unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["study", "run", "./none.toml", "--dry-run"])
        .current_dir(home.path())
        .env("XDG_DATA_HOME", home.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("ext4 has no process in user space"), "{said}");
}

#[test]
fn lab_a_study_runs_on_two_kernels_alike_again() {
    let older = std::env::var_os("HOME")
        .map(|home| Path::new(&home).join(".cache/whichfs/kernel/linux-6.1"))
        .and_then(|path| path.canonicalize().ok());
    let Some(older) = older else {
        skip::skip("no kernel 6.1 (whichfs lab kernel --build --version 6.1)");
        return;
    };
    if !can_run(&[]) {
        return;
    }
    let text = format!(
        "{HEAD}{}",
        r#"
seeds = 1
kernel = ["6.12", "6.1"]
modules = "arm64"
candidates = ["ext2"]
[compare]
variant = "6.12"
[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 4194304, files = 200 }
"#
    );
    let run = |there: bool| {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("small.toml"), &text).unwrap();
        let cache = home.path().join("cache/whichfs/kernel");
        std::fs::create_dir_all(&cache).unwrap();
        if there {
            std::os::unix::fs::symlink(&older, cache.join("linux-6.1")).unwrap();
        }
        let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(["study", "run", "./small.toml", "--json", "--jobs", "1"])
            .current_dir(home.path())
            .env("XDG_CACHE_HOME", home.path().join("cache"))
            .env("XDG_DATA_HOME", home.path().join("data"))
            .output()
            .unwrap();
        let csv = home.path().join("whichfs-study/latest/results.csv");
        (output, std::fs::read_to_string(csv).unwrap_or_default())
    };
    let (refused, _) = run(false);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("lab kernel --build --version 6.1"), "{said}");

    let (output, csv) = run(true);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gains = ran["gains"].as_array().unwrap();
    let of = |metric: &str| {
        let gain = gains.iter().find(|gain| gain["metric"] == metric).unwrap();
        gain["ratio"].as_f64().unwrap()
    };
    // fs/ext2/dir.c, ext2_handle_dirsync(): 6.12 writes the directory at each change, 6.1 where
    // dirsync asks for it.
    assert!(of("tree_write") > 1.5, "{}", of("tree_write"));
    let lines = ran["tables"][0]["lines"].as_array().unwrap();
    let module = lines
        .iter()
        .find(|line| line["metric"] == "module_size")
        .unwrap();
    assert!(
        module["ours"][0]["median"].as_f64().unwrap() > 1e6,
        "{module}"
    );
    assert!(csv.contains(",6.12.") && csv.contains(",6.1."), "{csv}");
    assert_eq!(csv, run(true).1, "the same figures, to the last digit");
}

#[test]
fn lab_with_the_same_data_one_image_serves_all_repeats() {
    if !can_run(&["mksquashfs"]) {
        return;
    }
    let of = |same: bool| {
        let home = tempfile::tempdir().unwrap();
        let text = format!(
            "{HEAD}seeds = 2\nsame_data = {same}\ncandidates = [\"squashfs-zstd\", \"ext4\"]\n\
             [[workloads]]\nname = \"root\"\nworkload = \"rootfs\"\n\
             parameters = {{ bytes = 12000000, files = 50 }}\n"
        );
        std::fs::write(home.path().join("small.toml"), text).unwrap();
        let ran = document(home.path(), &["run", "./small.toml", "--json"]);
        assert_eq!(ran["done"].as_u64(), Some(4), "{ran:#}");
        let images = std::fs::read_dir(home.path().join("cache/whichfs/images")).unwrap();
        let names = images.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Beside each image lies its digest.
        names.filter(|name| name.ends_with(".img")).count()
    };
    assert_eq!((of(true), of(false)), (1, 2));
}
