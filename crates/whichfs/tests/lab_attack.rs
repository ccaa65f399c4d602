//! What users and machines do to a run that nobody means: the same run twice at once, few open
//! files, odd names, many files.
#![allow(clippy::unwrap_used)]

use crate::choosing;

use choosing::{can_run, choose_of_any_size, done};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn whichfs(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    command
        .args(arguments)
        .current_dir(home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Both keep their results in one file: neither spoils the other's, and both say the same.
#[test]
fn lab_attack_the_same_power_cuts_twice_at_once_give_the_same_twice() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let arguments = ["crash", "run", "--fs", "ext4", "--cuts", "6", "--json"];
    let start = || {
        let mut command = whichfs(home.path(), &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let documents = both.each_ref().map(done);
    assert_eq!(documents[0], documents[1]);
    let again = whichfs(home.path(), &arguments).output().unwrap();
    assert_eq!(done(&again), documents[0], "what is kept is what was said");
}

/// The limit is the machine's, so no filesystem is blamed.
#[test]
fn lab_attack_too_few_open_files_are_the_machines_failure() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "ulimit -n 24; exec \"$0\" choose --for database --fs ext4 --seeds 1";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_whichfs")])
        .current_dir(home.path())
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env("XDG_DATA_HOME", home.path().join("data"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("ulimit -n 4096"),
        "{}",
        said(&output)
    );
}

/// mkfs.erofs of Debian 12 refuses a name of 255 bytes: that costs EROFS the contest, not the
/// others.
#[test]
fn lab_attack_a_tool_that_fails_for_one_candidate_excludes_that_one() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("n".repeat(255)), "text").unwrap();
    std::fs::write(tree.join("file"), "x".repeat(100_000)).unwrap();
    let tree = tree.display().to_string();
    let output = choose_of_any_size(
        home.path(),
        &[
            "--for",
            "rootfs-readonly",
            "--tree",
            &tree,
            "--fs",
            "squashfs-zstd,erofs-lz4hc",
            "--json",
        ],
    )
    .output()
    .unwrap();
    let verdict = done(&output);
    let names = |key: &str| verdict[key].to_string();
    assert!(names("excluded").contains("erofs-lz4hc"), "{verdict}");
    assert!(!names("excluded").contains("squashfs-zstd"), "{verdict}");
    assert!(names("ranking").contains("squashfs-zstd"), "{verdict}");
}

/// Inodes are counted before the image is made.
#[test]
fn lab_attack_an_image_of_a_hundred_thousand_files_has_inodes_for_all() {
    let missing = ["mke2fs", "e2fsck", "debugfs"].map(|tool| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let sbin = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
        !std::env::split_paths(&path)
            .chain(sbin)
            .any(|at| at.join(tool).is_file())
    });
    if missing.contains(&true) {
        choosing::skip::skip("e2fsprogs is not installed");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for directory in 0..100 {
        let directory = home.path().join(format!("tree/{directory}"));
        std::fs::create_dir_all(&directory).unwrap();
        for file in 0..1000 {
            std::fs::File::create(directory.join(file.to_string())).unwrap();
        }
    }
    let arguments = ["image", "tree", "--fs", "ext4", "-o", "image", "--json"];
    let output = whichfs(home.path(), &arguments).output().unwrap();
    done(&output);
    let counted = Command::new("e2fsck")
        .args(["-fn", "image"])
        .current_dir(home.path())
        .output();
    let counted = String::from_utf8_lossy(&counted.unwrap().stdout).into_owned();
    // 100,000 files, 100 directories, the root, lost+found and e2fsck's nine of its own.
    assert!(counted.contains("100111/"), "{counted}");
}
