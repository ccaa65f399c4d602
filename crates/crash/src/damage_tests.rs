//! Damage in files that are still there: it is called by its name, and they are not called missing.
#![allow(clippy::unwrap_used)]

use super::tests::{content_of, one, put};
use super::*;
use crate::contract::contract;
use crate::history::tests::{create, rename, update};
use crate::window::Promise;
use whichfs_units::Nanos;
use whichfs_workload::Op;

/// What is found after all of `operations`, of which the first `synced` were made durable, once
/// `change` has been at it.
fn judged(
    operations: &[Op],
    synced: u64,
    change: impl FnOnce(&History, &mut FoundTree),
) -> Vec<PathFinding> {
    let history = History::of(operations.iter().cloned()).unwrap();
    let run = RunTimeline {
        promises: vec![Promise {
            at: Nanos(100),
            call: "syncfs".into(),
            path: String::new(),
            operations: synced,
        }],
        phases: vec![(Nanos(0), 0)],
        operations: operations.len() as u64,
    };
    let mut found = super::tests::found_at(&history, operations.len() as u64);
    change(&history, &mut found);
    let mut judge = Judge::new(&history, &run, contract("ext4", "").unwrap());
    judge.judge(run.window(Nanos(200)), &found, false).0
}

#[test]
fn garbage_where_a_file_was_being_overwritten_is_garbage() {
    let operations = [create("a", 8192, 1), Op::SyncFs, update("a", 1024, 512, 2)];
    let findings = judged(&operations, 2, |history, found| {
        let mut content = content_of(history, "a", 3);
        content[1024..1536].fill(7);
        put(found, "a", &content);
    });
    assert_eq!(one(&findings), ("a", PathOutcome::WrongSilently, true));
}

#[test]
fn a_file_that_is_too_long_is_not_missing() {
    let operations = [create("a", 8192, 1), Op::SyncFs];
    let findings = judged(&operations, 2, |history, found| {
        let mut content = content_of(history, "a", 2);
        content.extend([0; 64]);
        put(found, "a", &content);
    });
    assert_eq!(one(&findings), ("a", PathOutcome::WrongSilently, true));
}

/// A shorter file was replaced; the new one ends with zeros. That it is longer than the old one
/// ever was says less.
#[test]
fn zeros_in_the_file_that_replaced_another_are_zeros() {
    let operations = [
        create("a", 4096, 1),
        Op::SyncFs,
        create("b", 10_000, 2),
        rename("b", "a"),
    ];
    let findings = judged(&operations, 2, |history, found| {
        let mut content = content_of(history, "a", 4);
        content[8192..].fill(0);
        put(found, "a", &content);
    });
    assert_eq!(one(&findings).1, PathOutcome::Zeroed);
}

#[test]
fn zeros_are_not_the_file_that_had_the_name_before() {
    let operations = [
        create("a", 9000, 1),
        update("a", 0, 512, 3),
        create("b", 8192, 2),
        rename("b", "a"),
        Op::SyncFs,
    ];
    let findings = judged(&operations, 5, |_, found| put(found, "a", &[0; 8192]));
    assert_eq!(one(&findings), ("a", PathOutcome::Zeroed, true));
}
