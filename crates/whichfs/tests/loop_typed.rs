//! Consent that is typed at a terminal (root, loop devices and the agent are needed).
#![allow(clippy::unwrap_used)]

use crate::cards;

use cards::Card;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Both sides of a new terminal: ours, and that of the program.
fn pair() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let (name, modes, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: openpty fills both numbers; the name, the modes and the size may be null.
    let failed = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, name, modes, size) };
    assert_eq!(failed, 0);
    // SAFETY: both have just been opened, for us alone.
    let [ours, theirs] = [ours, theirs].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    (ours, theirs)
}

/// Runs the study at a terminal, types `answer` when asked; exit status and all that was shown.
fn at_a_terminal(card: &Card, answer: &str) -> (i32, String) {
    let (terminal, side) = pair();
    let side = || Stdio::from(side.try_clone().unwrap());
    let mut command = card.command(&card.study(&["--seeds", "1", "--fs", "ext2"]));
    let mut child = command
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    drop(command);
    let mut terminal = File::from(terminal);
    let mut writer = terminal.try_clone().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut part) {
            if sender.send(part[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut shown = String::new();
    let (begun, mut answered) = (Instant::now(), false);
    let code = loop {
        if let Ok(part) = receiver.recv_timeout(Duration::from_millis(50)) {
            shown.push_str(&String::from_utf8_lossy(&part));
        }
        if !answered && shown.contains("Type what it is called") {
            writeln!(writer, "{answer}").unwrap();
            answered = true;
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status.code().unwrap_or(-1);
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{shown}");
    };
    while let Ok(part) = receiver.recv_timeout(Duration::from_millis(200)) {
        shown.push_str(&String::from_utf8_lossy(&part));
    }
    assert!(answered, "it did not ask: {shown}");
    (code, shown)
}

#[test]
fn loop_typed_attack_only_the_named_device_is_taken() {
    let Some(card) = Card::new(96) else { return };
    let (code, shown) = at_a_terminal(&card, "another");
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("is another device"), "{shown}");
    let (code, shown) = at_a_terminal(&card, "");
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("loses all its data"), "{shown}");
    assert_eq!(
        std::fs::metadata(&card.file).unwrap().blocks(),
        0,
        "written to"
    );
    let (code, shown) = at_a_terminal(&card, card.id());
    assert_eq!(code, 0, "{shown}");
    for words in ["96 MiB", "All of it will be lost", "tree"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    card.is_left_alone();
}
