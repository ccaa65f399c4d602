//! `image` by way of the lab, and what `check` measures: these need the lab kernel and the static
//! agent.
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::path::Path;
use std::process::{Command, Output};

/// Whether there are a lab kernel and an agent.
fn can_run() -> bool {
    let names = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    let there = names.iter().all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(arguments)
        .current_dir(home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Filesystems whose tools take no tree get it in the lab; ext4, too, so that a tool of this
/// machine reads what the lab wrote.
#[test]
fn lab_a_tree_gets_into_a_filesystem_that_no_tool_fills() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("tree/etc")).unwrap();
    std::fs::write(home.path().join("tree/etc/hostname"), "card\n").unwrap();
    std::fs::write(home.path().join("tree/large"), vec![7; 5 << 20]).unwrap();
    for (fs, size) in [("ext4", "64M"), ("exfat", "64M"), ("nilfs2", "256M")] {
        let image = format!("{fs}.img");
        let arguments = [
            "image", "tree", "--lab", "--fs", fs, "--size", size, "-o", &image,
        ];
        let made = run(home.path(), &arguments);
        let (out, err) = (text(&made.stdout), text(&made.stderr));
        assert_eq!(made.status.code(), Some(0), "{fs}: {out}{err}");
        assert!(home.path().join(&image).exists());
    }
    let read = Command::new("/usr/sbin/debugfs")
        .args(["-R", "cat /etc/hostname", "ext4.img"])
        .current_dir(home.path())
        .output()
        .unwrap();
    assert_eq!(text(&read.stdout), "card\n");
}

#[test]
fn lab_what_tuning_gains_is_measured() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "truncate -s 256M x.img; \
                  echo 'start=63, type=83' | /usr/sbin/sfdisk -q -f x.img; \
                  truncate -s 200M p.img && /usr/sbin/mke2fs -q -F -t ext4 p.img && \
                  dd if=p.img of=x.img bs=512 seek=63 conv=notrunc,sparse status=none";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(home.path())
        .status();
    assert!(made.unwrap().success());
    // The profile itself: the shipped card of this name is a distribution.
    let card = format!(
        "{}/../../cards/class10-16gb.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let checked = run(home.path(), &["check", "x.img", "--card", &card, "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&checked.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&checked.stderr)));
    assert_eq!(checked.status.code(), Some(1));
    let gain = &found["partitions"][0]["gain"];
    assert_eq!(gain["lacking"], serde_json::json!([]), "{gain}");
    let gains = gain["gains"].as_array().unwrap();
    assert_eq!(gains.len(), 4, "{gain}");
    // Misaligned, with blocks of 1 KiB, on a card with hard allocation units: something is gained.
    let better = |gain: &serde_json::Value| gain["effect"] == "gain";
    assert!(gains.iter().any(better), "{gain}");
}
