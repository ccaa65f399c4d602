//! Small histories against what might be found of them. Each fault here is planted.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::contract::contract;
use crate::history::tests::{create, rename, update};
use crate::window::Promise;
use whichfs_trial::{content_digest, sector_digest};
use whichfs_units::Nanos;
use whichfs_workload::Op;

/// `a` and `d/b` are made and synced (4 operations, time 100), then `a` is updated and fsynced
/// (operation 5, time 200), then `c` is made and `d/b` renamed to `d/e` (6 and 7, no promise).
fn history() -> History {
    History::of([
        Op::Mkdir {
            path: "d".into(),
            mode: Some(0o755),
        },
        create("a", 3000, 1),
        create("d/b", 5000, 2),
        Op::SyncFs,
        update("a", 512, 1024, 3),
        create("c", 2000, 4),
        rename("d/b", "d/e"),
    ])
    .unwrap()
}

fn run() -> RunTimeline {
    let promise = |at, call: &str, path: &str, operations| Promise {
        at: Nanos(at),
        call: call.into(),
        path: path.into(),
        operations,
    };
    RunTimeline {
        promises: vec![promise(100, "syncfs", "", 4), promise(200, "fsync", "a", 5)],
        phases: vec![(Nanos(0), 0)],
        operations: 7,
    }
}

/// What is found if everything is as after `operation` operations.
pub(super) fn found_at(history: &History, operation: u64) -> FoundTree {
    let mut found = FoundTree::default();
    for (path, _) in history.all() {
        let (node, mode) = match history.node_at(path, operation) {
            None => continue,
            Some(Node::Directory { mode }) => (FoundNode::Directory, mode.unwrap_or(0o755)),
            Some(Node::Symlink { target }) => {
                let target = target.clone();
                (FoundNode::Symlink { target }, 0o777)
            }
            Some(Node::File(number)) => {
                let file = history.file(*number);
                let version = *file.versions(operation, operation).end();
                put(&mut found, path, &file.content(version));
                continue;
            }
        };
        found.entries.insert(path.to_owned(), (node, mode));
    }
    found
}

/// Puts a file of `content` at `path`.
pub(super) fn put(found: &mut FoundTree, path: &str, content: &[u8]) {
    let node = FoundNode::File {
        size: content.len() as u64,
        digest: content_digest(content),
    };
    found.entries.insert(path.to_owned(), (node, 0o644));
    let sectors = content.chunks(512).map(sector_digest).collect();
    found.sectors.insert(path.to_owned(), sectors);
}

pub(super) fn content_of(history: &History, path: &str, operation: u64) -> Vec<u8> {
    match history.node_at(path, operation) {
        Some(Node::File(number)) => {
            let file = history.file(*number);
            file.content(*file.versions(operation, operation).end())
        }
        other => panic!("{path}: {other:?}"),
    }
}

/// Findings at `at` of what the state after `operation` becomes by `change`.
fn judged(
    at: u64,
    operation: u64,
    candidate: &str,
    change: impl FnOnce(&History, &mut FoundTree),
) -> Vec<PathFinding> {
    let (history, run) = (history(), run());
    let mut found = found_at(&history, operation);
    change(&history, &mut found);
    let window = run.window(Nanos(at));
    let mut judge = Judge::new(&history, &run, contract(candidate, "").unwrap());
    judge.judge(window, &found, false).0
}

pub(super) fn one(findings: &[PathFinding]) -> (&str, PathOutcome, bool) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    (&findings[0].path, findings[0].outcome, findings[0].broken)
}

#[test]
fn every_state_between_the_promise_and_the_end_is_legal() {
    for operation in 5..=7 {
        let findings = judged(300, operation, "ext4", |_, _| {});
        assert!(
            findings.iter().all(|finding| !finding.broken),
            "{operation}: {findings:?}"
        );
    }
    assert!(judged(300, 7, "ext4", |_, _| {}).is_empty());
}

#[test]
fn a_state_before_the_promise_is_not() {
    let lost = judged(300, 4, "ext4", |_, _| {});
    let broken: Vec<&str> = lost
        .iter()
        .filter(|finding| finding.broken)
        .map(|finding| finding.path.as_str())
        .collect();
    assert_eq!(broken, ["a"], "the update had been fsynced: {lost:?}");
    assert!(judged(150, 4, "ext4", |_, _| {}).iter().all(|f| !f.broken));
}

#[test]
fn a_lost_name_is_found() {
    let findings = judged(300, 7, "ext4", |_, found| {
        found.entries.remove("a");
    });
    assert_eq!(one(&findings), ("a", PathOutcome::Missing, true));
    let findings = judged(300, 7, "ext4", |_, found| {
        found.entries.remove("c");
    });
    assert_eq!(
        one(&findings),
        ("c", PathOutcome::Missing, false),
        "c was never promised"
    );
}

#[test]
fn what_was_there_when_all_was_synced_is_promised_by_every_filesystem() {
    let history = history();
    let umount = Promise {
        at: Nanos(100),
        call: "umount".to_owned(),
        path: String::new(),
        operations: 7,
    };
    let run = RunTimeline {
        promises: vec![umount],
        phases: Vec::new(),
        operations: 7,
    };
    for candidate in ["ext2", "vfat", "ext4-nojournal", "ext4"] {
        let mut judge = Judge::new(&history, &run, contract(candidate, "").unwrap());
        let mut found = found_at(&history, 7);
        found.entries.remove("c");
        let after = judge.judge(run.window(Nanos(200)), &found, false).0;
        assert_eq!(
            one(&after),
            ("c", PathOutcome::Missing, true),
            "{candidate}"
        );
        let before = judge.judge(run.window(Nanos(50)), &found, false).0;
        assert!(before.iter().all(|finding| !finding.broken), "{candidate}");
    }
}

#[test]
fn swapped_content_is_found() {
    let findings = judged(300, 7, "ext4", |history, found| {
        let other = content_of(history, "d/e", 7);
        put(found, "a", &other[..3000]);
    });
    assert_eq!(one(&findings), ("a", PathOutcome::WrongSilently, true));
}

#[test]
fn one_wrong_byte_is_found_wherever_it_is() {
    for at in [0, 600, 2999] {
        for (path, operation) in [("a", 7), ("c", 7), ("d/e", 7)] {
            let findings = judged(300, operation, "ext4", |history, found| {
                let mut content = content_of(history, path, operation);
                let at = at.min(content.len() - 1);
                content[at] ^= 1;
                put(found, path, &content);
            });
            assert_eq!(
                one(&findings),
                (path, PathOutcome::WrongSilently, true),
                "byte {at}"
            );
        }
    }
}

#[test]
fn shorter_and_zeroed_files_are_legal_only_where_nothing_was_durable() {
    let cut = |path: &'static str, bytes: usize| {
        judged(300, 7, "ext4", move |history, found| {
            let content = content_of(history, path, 7);
            put(found, path, &content[..bytes]);
        })
    };
    assert_eq!(one(&cut("c", 1024)), ("c", PathOutcome::Truncated, false));
    assert_eq!(one(&cut("c", 0)), ("c", PathOutcome::Emptied, false));
    assert_eq!(one(&cut("a", 1024)), ("a", PathOutcome::Truncated, true));
    assert_eq!(one(&cut("a", 0)), ("a", PathOutcome::Emptied, true));
    let zeroed = judged(300, 7, "ext4", |history, found| {
        let mut content = content_of(history, "c", 7);
        content[512..1024].fill(0);
        put(found, "c", &content);
    });
    assert_eq!(one(&zeroed), ("c", PathOutcome::Zeroed, false));
    let zeroed = judged(300, 7, "ext4", |history, found| {
        let mut content = content_of(history, "a", 7);
        content[512..1024].fill(0);
        put(found, "a", &content);
    });
    assert_eq!(
        one(&zeroed),
        ("a", PathOutcome::Zeroed, true),
        "it was durable"
    );
}

#[test]
fn zeros_in_a_durable_file_are_told_with_sectors_or_without() {
    let zeroed = |path: &'static str, bytes: std::ops::Range<usize>, other: Option<usize>| {
        let mut findings = judged(150, 4, "ext4", |history, found| {
            let mut content = content_of(history, path, 4);
            content[bytes.clone()].fill(0);
            if let Some(at) = other {
                content[at] ^= 1;
            }
            put(found, path, &content);
            if path != "a" {
                // `d/b` has one version since it was synced: nobody asks for its sectors.
                found.sectors.remove(path);
                let runs = vec![(bytes.start as u64 / 512, bytes.len().div_ceil(512) as u64)];
                found.zeros.insert(path.to_owned(), runs);
            }
        });
        // The update of `a` that is under way need not be there.
        findings.retain(|finding| finding.path == path);
        findings
    };
    // `a` is being updated from 512 to 1536: what changes, and what never did.
    assert_eq!(
        one(&zeroed("a", 512..1024, None)),
        ("a", PathOutcome::Zeroed, true)
    );
    assert_eq!(
        one(&zeroed("a", 2048..3000, None)),
        ("a", PathOutcome::Zeroed, true)
    );
    assert_eq!(
        one(&zeroed("d/b", 1024..2048, None)),
        ("d/b", PathOutcome::Zeroed, true)
    );
    assert_eq!(
        one(&zeroed("d/b", 0..5000, None)),
        ("d/b", PathOutcome::Zeroed, true)
    );
    for (path, zeros) in [("a", 512..1024), ("d/b", 1024..2048)] {
        let garbage = zeroed(path, zeros, Some(2500));
        assert_eq!(one(&garbage), (path, PathOutcome::WrongSilently, true));
    }
}

#[test]
fn an_update_may_be_there_in_parts_until_it_is_promised() {
    let torn = |at| {
        judged(at, 5, "ext4", |history, found| {
            let mut content = content_of(history, "a", 4);
            content[512..1024].copy_from_slice(&content_of(history, "a", 5)[512..1024]);
            put(found, "a", &content);
        })
    };
    let legal: Vec<PathFinding> = torn(150).into_iter().filter(|f| f.path == "a").collect();
    assert_eq!(one(&legal), ("a", PathOutcome::Mixed, false));
    let lost: Vec<PathFinding> = torn(300).into_iter().filter(|f| f.path == "a").collect();
    assert_eq!(
        one(&lost),
        ("a", PathOutcome::Old, true),
        "half of the update is lost"
    );
}

#[test]
fn a_lost_update_is_an_old_version_and_other_bytes_are_not() {
    let lost = judged(300, 7, "ext4", |history, found| {
        put(found, "a", &content_of(history, "a", 4));
    });
    assert_eq!(one(&lost), ("a", PathOutcome::Old, true));
    let wrong = judged(300, 7, "ext4", |history, found| {
        let mut content = content_of(history, "a", 4);
        content[600] ^= 1;
        put(found, "a", &content);
    });
    assert_eq!(one(&wrong), ("a", PathOutcome::WrongSilently, true));
}

#[test]
fn names_that_never_were_and_files_that_came_back_are_found() {
    let findings = judged(300, 7, "ext4", |_, found| put(found, "x", b"boo"));
    assert_eq!(one(&findings), ("x", PathOutcome::Unexpected, true));
    let own = judged(300, 7, "ext4", |_, found| {
        let entry = (FoundNode::Directory, 0o700);
        found.entries.insert("lost+found".into(), entry);
    });
    assert!(own.is_empty());
}

#[test]
fn what_cannot_be_read_is_found() {
    let unreadable = || FoundNode::Unreadable {
        error: "read it: EIO".into(),
    };
    let findings = judged(300, 7, "ext4", |_, found| {
        found.entries.insert("a".into(), (unreadable(), 0));
    });
    assert_eq!(one(&findings), ("a", PathOutcome::ReadError, true));
    let findings = judged(300, 7, "ext4", |_, found| {
        found.entries.clear();
        found.entries.insert(".".into(), (unreadable(), 0));
    });
    assert!(
        findings
            .iter()
            .any(|f| f.path == "a" && f.outcome == PathOutcome::ReadError)
    );
}

#[test]
fn a_wrong_mode_is_found() {
    let findings = judged(300, 7, "ext4", |_, found| {
        found
            .entries
            .insert("d".into(), (FoundNode::Directory, 0o700));
    });
    assert_eq!(one(&findings), ("d", PathOutcome::WrongSilently, true));
}

#[test]
fn a_warning_of_the_kernel_is_said() {
    let (history, run) = (history(), run());
    let mut found = found_at(&history, 7);
    put(&mut found, "a", &[1; 3000]);
    let mut judge = Judge::new(&history, &run, contract("ext4", "").unwrap());
    let (findings, right) = judge.judge(run.window(Nanos(300)), &found, true);
    assert_eq!(one(&findings).1, PathOutcome::WrongWithWarning);
    assert_eq!(right, 3);
}

#[test]
fn a_filesystem_that_promises_little_breaks_little() {
    let findings = judged(300, 7, "ext2", |_, found| {
        found.entries.remove("d/b");
        found.entries.remove("d/e");
    });
    assert!(
        findings.iter().all(|finding| !finding.broken),
        "{findings:?}"
    );
    // But fsync of a file holds for its data wherever the file is.
    let findings = judged(300, 4, "ext2", |_, _| {});
    assert!(
        findings.iter().any(|f| f.path == "a" && f.broken),
        "{findings:?}"
    );
}

#[test]
fn files_between_two_versions_are_known_before_they_are_read() {
    let (history, run) = (history(), run());
    let ext4 = contract("ext4", "").unwrap();
    let in_flux_at = |at| in_flux(&history, &run, run.window(Nanos(at)), &ext4);
    assert_eq!(in_flux_at(150), ["a"]);
    // `a` is whole, but an old version of it could come back.
    assert_eq!(in_flux_at(300), ["a", "c"]);
}

/// A log of two records; the first is fdatasynced, the second is not.
fn appended() -> (History, RunTimeline) {
    let append = |len, seed, sync| Op::Append {
        path: "l".into(),
        len,
        content: crate::history::tests::content(seed),
        sync,
    };
    let history = History::of([append(700, 1, true), append(900, 2, false)]).unwrap();
    let run = RunTimeline {
        promises: vec![Promise {
            at: Nanos(100),
            call: "fdatasync".into(),
            path: "l".into(),
            operations: 1,
        }],
        phases: vec![(Nanos(0), 0)],
        operations: 2,
    };
    (history, run)
}

#[test]
fn zeros_may_stand_for_an_append_but_not_for_what_was_synced() {
    let (history, run) = appended();
    let outcome = |content: &[u8]| {
        let mut found = FoundTree::default();
        put(&mut found, "l", content);
        let mut judge = Judge::new(&history, &run, contract("ext4", "").unwrap());
        let findings = judge.judge(run.window(Nanos(200)), &found, false).0;
        (findings[0].outcome, findings[0].broken)
    };
    let (synced, whole) = (content_of(&history, "l", 1), content_of(&history, "l", 2));
    // The size is that of both records, the bytes are those of the first: 700 is no sector's end.
    let padded = [synced.clone(), vec![0; 900]].concat();
    assert_eq!(outcome(&padded), (PathOutcome::Zeroed, false));
    // The second sector is whole, those behind it are not there yet.
    let partly = [whole[..1024].to_vec(), vec![0; 576]].concat();
    assert_eq!(outcome(&partly), (PathOutcome::Zeroed, false));
    assert_eq!(outcome(&whole[..1024]), (PathOutcome::Truncated, false));
    assert_eq!(outcome(&synced), (PathOutcome::Old, false));
    let zeroed = [vec![0; 512], padded[512..].to_vec()].concat();
    assert!(outcome(&zeroed).1, "the first sector was durable");
    let foreign = [padded[..1024].to_vec(), vec![7; 576]].concat();
    assert!(outcome(&foreign).1);
}

/// Judges what `change` makes of `a`, made and fsynced, then renamed to `b`.
fn renamed(candidate: &str, change: impl FnOnce(&mut FoundTree)) -> Vec<PathFinding> {
    let history = History::of([create("a", 3000, 1), rename("a", "b")]).unwrap();
    let run = RunTimeline {
        promises: vec![Promise {
            at: Nanos(100),
            call: "fsync".into(),
            path: "a".into(),
            operations: 1,
        }],
        phases: vec![(Nanos(0), 0)],
        operations: 2,
    };
    let mut found = found_at(&history, 2);
    change(&mut found);
    let mut judge = Judge::new(&history, &run, contract(candidate, "").unwrap());
    judge.judge(run.window(Nanos(200)), &found, false).0
}

#[test]
fn a_durable_file_may_not_vanish_between_two_names() {
    let gone = |found: &mut FoundTree| found.entries.clear();
    assert_eq!(
        one(&renamed("ext4", gone)),
        ("b", PathOutcome::Missing, true),
        "neither name is durable, but the file is"
    );
    let fat = renamed("vfat", gone);
    assert_eq!(one(&fat), ("b", PathOutcome::Missing, false));
    assert!(fat[0].durable);
    assert!(renamed("ext4", |_| {}).is_empty());
    let back = renamed("ext4", |found| {
        let entry = found.entries.remove("b").unwrap();
        found.entries.insert("a".into(), entry);
    });
    assert!(
        back.iter().all(|f| !f.durable && !f.broken),
        "the rename was not durable: {back:?}"
    );
}

#[test]
fn a_promise_about_a_file_holds_under_its_name_where_names_are_not_promised() {
    let emptied = |found: &mut FoundTree| put(found, "b", b"");
    let fat = renamed("vfat", emptied);
    assert_eq!(one(&fat), ("b", PathOutcome::Emptied, false));
    assert!(
        fat[0].durable,
        "the rename that nobody synced lost its size"
    );
    assert!(one(&renamed("ext4", emptied)).2);
    let at_its_name = renamed("vfat", |found| {
        found.entries.remove("b");
        put(found, "a", b"");
    });
    assert!(at_its_name.iter().any(|f| f.path == "a" && f.broken));
}

#[test]
fn what_is_lost_without_a_promise_is_told_and_breaks_nothing() {
    let findings = judged(300, 7, "ext2", |_, found| {
        put(found, "d/e", &[7; 100]);
    });
    let (path, _, broken) = one(&findings);
    assert_eq!((path, broken), ("d/e", false));
    assert!(findings[0].durable, "it had been synced: {findings:?}");
}

#[test]
fn a_name_that_is_listed_twice_is_no_loss_but_what_is_lost_with_it_is() {
    let twice = |fs: &str| {
        judged(300, 7, fs, |_, found| {
            found.repeated.insert("a".into());
        })
    };
    for (fs, broken) in [("ext4", true), ("ext2", false)] {
        let findings = twice(fs);
        assert_eq!(one(&findings), ("a", PathOutcome::ListedTwice, broken));
        assert!(
            !findings[0].durable && !findings[0].is_loss(),
            "{findings:?}"
        );
    }
    let findings = judged(300, 7, "ext4", |_, found| {
        found.repeated.insert("d/e".into());
        put(found, "d/e", &[7; 100]);
    });
    assert_ne!(one(&findings).1, PathOutcome::ListedTwice);
    assert!(findings[0].is_loss(), "{findings:?}");
    assert!(findings[0].what.ends_with("lists it more than once"));
}

#[test]
fn names_of_checkers_and_of_the_exercise_are_no_finding() {
    let own = judged(300, 7, "vfat", |_, found| {
        for name in ["LOST+FOUND", whichfs_trial::EXERCISE_NAME, "FSCK0000.REC"] {
            put(found, name, b"x");
        }
    });
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn a_sector_older_than_the_durable_version_is_lost_not_foreign() {
    // Version 2 is durable, 3 is under way over the same sectors; version 1 comes back.
    let history = History::of([
        create("a", 2048, 1),
        update("a", 0, 1024, 2),
        update("a", 0, 1024, 3),
    ])
    .unwrap();
    let run = RunTimeline {
        promises: vec![Promise {
            at: Nanos(100),
            call: "fsync".into(),
            path: "a".into(),
            operations: 2,
        }],
        phases: vec![(Nanos(0), 0)],
        operations: 3,
    };
    let mut found = FoundTree::default();
    let mut content = content_of(&history, "a", 3);
    content[..512].copy_from_slice(&content_of(&history, "a", 1)[..512]);
    put(&mut found, "a", &content);
    let mut judge = Judge::new(&history, &run, contract("ext4", "").unwrap());
    let findings = judge.judge(run.window(Nanos(200)), &found, false).0;
    assert_eq!(one(&findings), ("a", PathOutcome::Old, true));
    assert!(findings[0].durable);
}

#[test]
fn a_version_of_long_ago_is_old_and_what_was_never_written_is_zeros() {
    let updates = (0..200).map(|n| update("a", n % 4 * 512, 512, n + 2));
    let history = History::of([create("a", 2048, 1)].into_iter().chain(updates)).unwrap();
    let run = RunTimeline {
        promises: vec![Promise {
            at: Nanos(100),
            call: "fsync".into(),
            path: "a".into(),
            operations: 201,
        }],
        phases: vec![(Nanos(0), 0)],
        operations: 201,
    };
    let with = |content: &[u8]| {
        let mut found = FoundTree::default();
        put(&mut found, "a", content);
        let mut judge = Judge::new(&history, &run, contract("ext4", "").unwrap());
        judge.judge(run.window(Nanos(200)), &found, false).0
    };
    let mut content = content_of(&history, "a", 20);
    assert_eq!(one(&with(&content)), ("a", PathOutcome::Old, true));
    content[512..1024].fill(0);
    assert_eq!(one(&with(&content)), ("a", PathOutcome::Zeroed, true));
    content[700] = 1;
    assert_eq!(
        one(&with(&content)),
        ("a", PathOutcome::WrongSilently, true)
    );
}
