//! `probe --write --capacity`: lies are found, and the user's data survive whatever ends it.

use super::sandbox::Sandbox;
use crate::skip::skip;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// So large that the check takes seconds: time for signals.
const BYTES: u64 = 8 << 40;
/// What it overwrites first lies in here.
const PATTERN: usize = 40 << 20;

/// A large file with a pattern at its beginning and holes behind, as a card.
struct Card {
    sandbox: Sandbox,
    path: PathBuf,
}

impl Card {
    /// `None`, told, where there is no direct I/O or no room for large files.
    fn new() -> Option<Card> {
        let sandbox = Sandbox::on_disk();
        let path = sandbox.file("card.img", pattern());
        let file = File::options().write(true).open(&path).unwrap();
        if let Err(error) = file.set_len(BYTES) {
            skip(format!("no file of 8 TiB here: {error}"));
            return None;
        }
        file.sync_all().unwrap();
        Some(Card { sandbox, path })
    }

    /// A check that has marked its stripe, was looking for it elsewhere and is stopped
    /// (SIGSTOP), and the rest of what it says.
    fn checked(&self) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
        let arguments = ["probe", "./card.img", "--write", "--capacity"];
        let mut child = self
            .sandbox
            .std_command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("elsewhere") {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "it ended: {line}");
            if line.contains("direct I/O") {
                skip(line);
                child.wait().unwrap();
                return None;
            }
        }
        // At once: however slow this test is, the check does not come to its end meanwhile.
        send(&child, Signal::STOP);
        assert!(!self.is_whole(), "the stripe is marked");
        Some((child, told))
    }

    /// Opened for a moment: a file that another process has open is not written.
    fn open(&self) -> File {
        let mut options = File::options();
        options.read(true).write(true).open(&self.path).unwrap()
    }

    /// Whether all bytes are as they were.
    fn is_whole(&self) -> bool {
        let mut found = vec![0; PATTERN];
        self.open().read_exact_at(&mut found, 0).unwrap();
        found == pattern() && self.rest_is_zero()
    }

    fn rest_is_zero(&self) -> bool {
        use rustix::fs::{SeekFrom, seek};
        let file = self.open();
        let mut at = PATTERN as u64;
        while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
            let end = seek(&file, SeekFrom::Hole(data)).unwrap();
            let mut found = vec![1; (end - data) as usize];
            file.read_exact_at(&mut found, data).unwrap();
            if found.iter().any(|byte| *byte != 0) {
                return false;
            }
            at = end;
        }
        true
    }

    fn kept_files(&self) -> usize {
        let directory = self.sandbox.path().join("data/whichfs/put-back");
        std::fs::read_dir(directory).map_or(0, Iterator::count)
    }
}

fn pattern() -> Vec<u8> {
    (0..PATTERN as u32)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8 | 1)
        .collect()
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn no_signal_that_can_be_caught_loses_data() {
    let signals = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::XFSZ,
    ];
    for first in signals {
        let Some(card) = Card::new() else { return };
        let Some((mut child, mut told)) = card.checked() else {
            return;
        };
        // The others come together, before it can have put all back.
        for signal in signals {
            send(&child, signal);
        }
        send(&child, first);
        send(&child, Signal::CONT);
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
        assert!(card.is_whole(), "{rest}");
        assert!(rest.contains("putting back what was on the card"), "{rest}");
        assert_eq!(card.kept_files(), 0);
    }
}

#[test]
fn a_closed_standard_error_loses_no_data() {
    let Some(card) = Card::new() else { return };
    let Some((mut child, told)) = card.checked() else {
        return;
    };
    drop(told);
    send(&child, Signal::INT);
    send(&child, Signal::CONT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(card.is_whole());
}

#[test]
fn an_interrupted_probe_says_so_and_writes_no_profile() {
    let Some(card) = Card::new() else { return };
    // Most of the card's file are holes, which no card answers for.
    let sparse = card.sandbox.run(&["probe", "./card.img"]);
    sparse.fails(2, &["sparse", "written in full"]);
    card.sandbox.file("whole.img", pattern());
    for signal in [Signal::INT, Signal::TERM] {
        card.sandbox.file("mine.toml", "a good profile");
        let arguments = ["probe", "./whole.img", "--save", "mine.toml"];
        let mut child = card
            .sandbox
            .std_command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        send(&child, signal);
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        if line.contains("direct I/O") {
            return;
        }
        assert_eq!(code, Some(130), "{line}{rest}");
        let profile = std::fs::read_to_string(card.sandbox.path().join("mine.toml")).unwrap();
        assert_eq!(profile, "a good profile");
    }
}

#[test]
fn what_a_killed_check_left_is_offered_and_put_back() {
    let Some(card) = Card::new() else { return };
    let Some((mut child, _told)) = card.checked() else {
        return;
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(card.kept_files(), 1);
    for arguments in [
        &["probe", "./card.img", "--write", "--capacity"][..],
        &["probe", "./card.img"],
    ] {
        let refused = card.sandbox.run(arguments);
        refused.fails(2, &["--write --put-back", "put-back/"]);
    }
    // Somebody wrote there since.
    card.open().write_all_at(&[0xee; 4096], 2 << 20).unwrap();
    let arguments = ["probe", "./card.img", "--write", "--put-back", "--json"];
    let report = card.sandbox.run(&arguments);
    assert_eq!(report.code, 0, "{}", report.stderr);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(
        (&report["changed"], &report["lost"]),
        (&1.into(), &0.into())
    );
    let mut found = [0; 4096];
    card.open().read_exact_at(&mut found, 2 << 20).unwrap();
    assert_eq!(found, [0xee; 4096]);
    let own = &pattern()[2 << 20..][..4096];
    card.open().write_all_at(own, 2 << 20).unwrap();
    assert!(card.is_whole());
    assert_eq!(card.kept_files(), 0);
    card.sandbox.run(&arguments).fails(2, &["put back"]);
}

/// After a power cut a card may be called otherwise, or be in another reader: what tells it then
/// are the marks on it.
#[test]
fn a_card_under_another_name_is_known_by_its_marks() {
    let Some(card) = Card::new() else { return };
    let Some((mut child, _told)) = card.checked() else {
        return;
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let other = card.sandbox.path().join("other.img");
    std::fs::rename(&card.path, &other).unwrap();
    let stranger = card.sandbox.file("card.img", pattern());
    let arguments = ["probe", "./card.img", "--write", "--put-back"];
    card.sandbox.run(&arguments).fails(2, &["put back"]);
    let refused = card.sandbox.run(&["probe", "./other.img", "--write"]);
    refused.fails(2, &["--write --put-back", "put-back/"]);
    std::fs::remove_file(stranger).unwrap();
    let arguments = ["probe", "./other.img", "--write", "--put-back"];
    let report = card.sandbox.run(&arguments);
    assert_eq!(report.code, 0, "{}", report.stderr);
    assert_eq!(card.kept_files(), 0);
    std::fs::rename(&other, &card.path).unwrap();
    assert!(card.is_whole());
}

#[test]
fn what_cannot_be_kept_is_not_overwritten() {
    let Some(card) = Card::new() else { return };
    card.sandbox.file("data", "no directory");
    let refused = card
        .sandbox
        .run(&["probe", "./card.img", "--write", "--capacity"]);
    if !refused.stderr.contains("direct I/O") {
        refused.fails(3, &["data/whichfs/put-back"]);
    }
    assert!(card.is_whole());
}

#[test]
fn lying_cards_are_found_out_and_honest_ones_are_not() {
    let sandbox = Sandbox::new();
    let honest = sandbox.run(&["probe", "a1-32gb", "--write", "--capacity"]);
    assert_eq!(honest.code, 0, "{}{}", honest.stdout, honest.stderr);
    let text = include_str!("../../../../cards/class4-4gb.toml");
    for (beyond, honesty) in [(0, "wraps"), (1, "vanishes")] {
        let figure = |name: &str, value: u64| {
            format!("{name} = {{ value = {value}, source = \"planted\" }}")
        };
        let lie = format!(
            "[geometry]\n{}\n{}",
            figure("real_bytes", 1 << 30),
            figure("beyond", beyond)
        );
        sandbox.file("liar.toml", text.replace("[geometry]", &lie));
        let checked = sandbox.run(&["probe", "./liar.toml", "--write", "--capacity", "--json"]);
        assert_eq!(checked.code, 1, "{}", checked.stderr);
        let report: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(report["honesty"], honesty);
        assert_eq!(report["real_bytes"], 1 << 30);
    }
    sandbox
        .run(&["probe", "a1-32gb", "--capacity"])
        .fails(2, &["--write"]);
}

#[test]
fn data_are_overwritten_only_where_the_device_is_named() {
    let sandbox = Sandbox::on_disk();
    // What mkswap leaves at the end of the first page.
    let mut card = vec![0; 64 << 20];
    card[4086..4096].copy_from_slice(b"SWAPSPACE2");
    card[1024] = 1;
    card[1028..1032].copy_from_slice(&16000_u32.to_le_bytes());
    let path = sandbox.file("card.img", &card);
    let probe = |more: &[&str]| {
        let arguments = [
            &["probe", "./card.img", "--write=destroy", "--budget", "4M"],
            more,
        ]
        .concat();
        let output = sandbox.std_command(&arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, told) = probe(&[]);
    if told.contains("direct I/O") {
        skip(told);
        return;
    }
    assert!(
        status == Some(2) && told.contains("swap"),
        "{status:?} {told}"
    );
    let (_, after) = told.split_once("ID: '").unwrap();
    let (identity, _) = after.split_once('\'').unwrap();
    assert!(identity.contains("card.img, inode"), "{told}");
    let (status, told) = probe(&["--destroy", "serial OTHER, 1 sectors"]);
    assert!(
        status == Some(2) && told.contains("another device"),
        "{told}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), card, "nothing was written");
    let (status, told) = probe(&["--confirm", identity]);
    assert_eq!(status, Some(0), "{told}");
    assert_ne!(std::fs::read(&path).unwrap(), card);
}
