//! `format` on a device of this machine from outside (root and loop are needed).
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A loop device on a file, detached when it goes.
struct Loop {
    path: PathBuf,
    file: PathBuf,
    home: tempfile::TempDir,
}

impl Loop {
    fn new() -> Option<Loop> {
        Loop::of(512)
    }

    /// One of `mib`.
    fn of(mib: u64) -> Option<Loop> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(mib << 20)
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

/// Runs `script` with a shell; whether it succeeded.
fn sh(script: &str) -> bool {
    let mut sh = Command::new("sh");
    sh.args(["-c", script]).stderr(Stdio::null());
    sh.stdout(Stdio::null()).status().unwrap().success()
}

/// A way in which a card is in use: what makes it so, what ends that, what is said, and what is
/// named in place of the card. `$D` is the card, `$M` a directory, `$F` the card's file.
const USES: [(&str, &str, &str, &str); 13] = [
    ("mount -o ro,noload ${D}p1 $M", "umount $M", "umount /", ""),
    (
        "unshare -m --propagation private sh -c 'mount -o ro,noload ${D}p1 $M; echo $$ > $M.pid; \
         exec sleep 60' & while ! [ -s $M.pid ]; do sleep 0.01; done",
        "kill $(cat $M.pid); while grep -q sleep /proc/$(cat $M.pid)/comm; do sleep 0.01; done",
        "nsenter -t ",
        "",
    ),
    ("swapon ${D}p2", "swapoff ${D}p2", "swapoff /dev/", ""),
    (
        "sleep 60 < $D & echo $! > $M.pid",
        "kill $(cat $M.pid)",
        "; end it",
        "",
    ),
    (
        "sleep 60 < ${D}p1 & echo $! > $M.pid",
        "kill $(cat $M.pid)",
        "; end it",
        "",
    ),
    (
        "blockdev --setro $D",
        "blockdev --setrw $D",
        "lock switch",
        "",
    ),
    (
        "losetup -f --show ${D} > $M.loop",
        "losetup -d $(cat $M.loop)",
        "losetup -d",
        "",
    ),
    (
        "losetup -f --show ${D} > $M.loop",
        "losetup -d $(cat $M.loop)",
        "name the disk itself",
        "$(cat $M.loop)",
    ),
    (
        "losetup -f --show $F > $M.loop",
        "losetup -d $(cat $M.loop)",
        "losetup -d",
        "$(cat $M.loop)",
    ),
    // Another loop device on the card's file, whose path is deleted.
    (
        "ln $F $F.x && losetup -f --show $F.x > $M.loop; rm $F.x",
        "losetup -d $(cat $M.loop)",
        "losetup -d",
        "",
    ),
    // The same, and another filesystem covers its path.
    (
        "mkdir $M.c && ln $F $M.c/x && losetup -f --show $M.c/x > $M.loop && \
         mount -t tmpfs none $M.c",
        "umount $M.c; losetup -d $(cat $M.loop); rm -r $M.c",
        "losetup -d",
        "",
    ),
    ("true", "true", "is a partition", "${D}p1"),
    ("true", "true", "is part of /dev/loop", "$F"),
];

/// A page of a file or device as memory of this process.
struct Mapping(*mut std::ffi::c_void);

impl Mapping {
    fn of(path: &Path) -> Mapping {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path);
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping, which nobody else knows of.
        let at = unsafe { mmap(null, 4096, rights, MapFlags::SHARED, file.unwrap(), 0) };
        Mapping(at.unwrap())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, used by nobody.
        unsafe { rustix::mm::munmap(self.0, 4096) }.unwrap();
    }
}

#[test]
fn loop_attack_what_is_in_use_is_refused_and_not_one_byte_changes() {
    let Some(card) = Loop::of(64) else { return };
    let id = card.file.to_str().unwrap();
    let place = card.home.path().join("mnt");
    std::fs::create_dir(&place).unwrap();
    let names = format!(
        "export D={} M={} F={id}; ",
        card.path.display(),
        place.display()
    );
    let table = "printf 'label: gpt\\n4MiB,28MiB\\n32MiB,28MiB\\n' | sfdisk -q $D && partx -u $D; \
                 mke2fs -q -t ext4 ${D}p1 && mkswap ${D}p2 && sync";
    assert!(sh(&format!("{names}{table}")));
    // Without the pages of the swap space behind its header: the kernel itself writes these, where
    // memory is short, from the moment on at which the space is in use.
    const SWAP_PAGES: std::ops::Range<usize> = (32 << 20) + 4096..60 << 20;
    let hash = || {
        use std::hash::Hasher;
        let mut hasher = std::hash::DefaultHasher::new();
        let bytes = std::fs::read(&card.file).unwrap();
        hasher.write(&bytes[..SWAP_PAGES.start]);
        hasher.write(&bytes[SWAP_PAGES.end..]);
        hasher.finish()
    };
    let before = hash();
    let mut refused = 0;
    for (begin, end, words, other) in USES {
        if !sh(&format!("{names}{begin}")) {
            // Not every machine lets one swap to a loop device.
            skip::skip(format!("{begin} fails here"));
            continue;
        }
        let named = match other {
            "" => card.path.display().to_string(),
            other => {
                let echo = Command::new("sh")
                    .args(["-c", &format!("{names}echo {other}")])
                    .output();
                String::from_utf8(echo.unwrap().stdout)
                    .unwrap()
                    .trim()
                    .to_owned()
            }
        };
        // What a loop device shows is what it is called.
        let ids = [id, card.path.to_str().unwrap()];
        let runs = ids.map(|id| {
            let size: &[&str] = if named == card.file.to_str().unwrap() {
                &["--size", "64M"]
            } else {
                &[]
            };
            let all = [
                "format",
                &named,
                "--fs",
                "ext4",
                "--internal",
                "--destroy",
                id,
            ];
            card.run(&[&all[..], size].concat())
        });
        let ended = sh(&format!(
            "{names}{end}; code=$?; rm -f $M.pid $M.loop; exit $code"
        ));
        for (code, out, err) in runs {
            assert!(
                code == 2 && err.contains(words),
                "{begin}: {code} {out}{err}"
            );
        }
        assert!(ended, "{end}");
        assert!(hash() == before, "{begin}: written to");
        refused += 1;
    }
    assert!(refused >= 12, "{refused}");
    // Memory that a process shares with the card or its file, which it has closed.
    for path in [&card.file, &card.path] {
        let mapping = Mapping::of(path);
        let device = card.path.to_str().unwrap();
        let all = ["format", device, "--fs", "ext4", "--destroy", id];
        let (code, out, err) = card.run(&all);
        assert!(code == 2 && err.contains("; end it"), "{code} {out}{err}");
        assert!(hash() == before, "{}: written to", path.display());
        drop(mapping);
    }
    // Nothing is in the way any more.
    let (code, out, err) = card.run(&[
        "format",
        card.path.to_str().unwrap(),
        "--fs",
        "ext4",
        "--destroy",
        id,
    ]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(hash() != before);
}

#[test]
fn loop_a_run_that_failed_tells_it_at_once_and_later() {
    let Some(card) = Loop::new() else { return };
    let memory = card.home.path().join("memory");
    std::fs::create_dir(&memory).unwrap();
    let full = format!("M={}; ", memory.display());
    let begin = "mount -t tmpfs -o size=1M none $M && truncate -s 256M $M/c && \
                 losetup -f --show $M/c > $M.loop";
    if !sh(&format!("{full}{begin}")) {
        return skip::skip("tmpfs or loop devices are missing");
    }
    let device = std::fs::read_to_string(memory.with_extension("loop")).unwrap();
    let device = device.trim();
    let id = memory.join("c").display().to_string();
    let made = card.run(&["format", device, "--fs", "ext4", "--destroy", &id]);
    let later = card.run(&["format", device, "--fs", "ext4", "--dry-run"]);
    let checked = card.run(&["check", device, "--no-gain"]);
    sh(&format!(
        "{full} partx -d {device}; losetup -d {device}; umount $M"
    ));
    let (code, _, err) = made;
    assert!(code == 4 && err.contains("half done: ext4"), "{code} {err}");
    let (code, _, err) = later;
    assert!(
        code == 0 && err.contains("the last run on this card failed"),
        "{code} {err}"
    );
    let (code, out, err) = checked;
    assert!(
        code == 1 && err.contains("format it again"),
        "{code} {out}{err}"
    );
}
