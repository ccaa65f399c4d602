//! `format` on a device of this machine from outside (root and loop are needed).
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A loop device on a file of 512 MiB, detached when it goes.
struct Loop {
    path: PathBuf,
    file: PathBuf,
    home: tempfile::TempDir,
}

impl Loop {
    fn new() -> Option<Loop> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(512 << 20)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        Some(Loop {
            path: String::from_utf8_lossy(&output.stdout).trim().into(),
            file,
            home,
        })
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(arguments)
            .current_dir(self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (status.code().unwrap(), text(&stdout), text(&stderr))
    }

    /// Whether not one byte of it is written.
    fn is_empty(&self) -> bool {
        let blocks =
            std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&self.file).unwrap());
        blocks == 0
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("partx").arg("-d").arg(&self.path).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

#[test]
fn loop_a_card_is_written_only_when_it_is_named() {
    let Some(card) = Loop::new() else { return };
    let device = card.path.to_str().unwrap();
    let make = [
        "format", device, "--fs", "ext4", "--au", "8M", "--label", "CARD",
    ];
    let (code, out, err) = card.run(&[&make[..], &["--dry-run"]].concat());
    assert_eq!(code, 0, "{err}");
    let id = card.file.to_str().unwrap();
    for words in [
        "sfdisk",
        "partx --update",
        "mke2fs -L CARD",
        "Nothing was written",
        id,
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (code, _, err) = card.run(&make);
    assert!(code == 2 && err.contains("--destroy"), "{code} {err}");
    let (code, _, err) = card.run(&[&make[..], &["--destroy", device]].concat());
    assert!(code == 2 && err.contains("another device"), "{code} {err}");
    let (code, _, err) = card.run(&[&make[..], &["--destroy", id, "--max-size", "100M"]].concat());
    assert!(
        code == 2 && err.contains("more than 100 MiB"),
        "{code} {err}"
    );
    assert!(card.is_empty(), "written to");

    let (code, out, err) = card.run(&[&make[..], &["--destroy", id]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("1 MiB came back after a remount"), "{out}");
    assert!(out.contains("e2fsck finds nothing"), "{out}");
    let (code, out, err) = card.run(&["check", device, "--au", "8M", "--no-gain"]);
    assert!(
        code == 0 && out.contains("aligned and tuned"),
        "{code} {out}{err}"
    );
    let (code, out, _) = card.run(&["check", device, "--au", "24M", "--no-gain"]);
    assert!(
        code == 1 && out.contains("behind an allocation unit"),
        "{code} {out}"
    );
}

#[test]
fn loop_a_run_that_was_killed_tells_what_it_left() {
    let Some(card) = Loop::new() else { return };
    let (device, id) = (card.path.to_str().unwrap(), card.file.to_str().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["format", device, "--fs", "ext4", "--destroy", id])
        .env("XDG_DATA_HOME", card.home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journals = card.home.path().join("whichfs/format");
    let begun = |journals: &Path| {
        let entries = std::fs::read_dir(journals).into_iter().flatten().flatten();
        let texts = entries.map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default());
        texts.into_iter().any(|text| text.contains("\"step\""))
    };
    while !begun(&journals) && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had started ends by itself; then the next call tells.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let (code, _, err) = card.run(&["format", device, "--fs", "ext4", "--dry-run"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("was interrupted") && err.contains("format it again"),
        "{err}"
    );
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(device), "{mounts}");
}
