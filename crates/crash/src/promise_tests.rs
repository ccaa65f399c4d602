//! Promises about names, O_SYNC writes, replaced files and synchronous mounts. Each fault here is
//! planted.
#![allow(clippy::unwrap_used)]

use super::tests::{content_of, found_at, one, put};
use super::*;
use crate::contract::contract;
use crate::history::tests::{content, create, rename, update};
use crate::window::Promise;
use whichfs_trial::RETURNED;
use whichfs_units::Nanos;
use whichfs_workload::Op;

fn mkdir(path: &str) -> Op {
    Op::Mkdir {
        path: path.into(),
        mode: None,
    }
}

fn unlink(path: &str) -> Op {
    Op::Unlink { path: path.into() }
}

fn write_sync(path: &str, offset: u64, len: u64, seed: u64) -> Op {
    Op::WriteSync {
        path: path.into(),
        offset,
        len,
        content: content(seed),
    }
}

/// The call of each operation that promises something, at 100 times its number.
fn promises(ops: &[Op]) -> Vec<Promise> {
    let calls = ops.iter().enumerate().filter_map(|(at, op)| {
        let (call, path) = match op {
            Op::SyncFs => ("syncfs", ""),
            Op::SyncFile { path } | Op::SyncDir { path } | Op::Update { path, .. } => {
                ("fsync", path.as_str())
            }
            Op::WriteSync { path, .. } => ("O_SYNC", path.as_str()),
            _ => return None,
        };
        let operations = at as u64 + 1;
        Some(Promise {
            at: Nanos(100 * operations),
            call: call.into(),
            path: path.into(),
            operations,
        })
    });
    calls.collect()
}

/// A run of operations on a mounted filesystem, cut when all of them had returned.
struct Case {
    history: History,
    run: RunTimeline,
    contract: Contract,
}

impl Case {
    fn of(candidate: &str, options: &str, ops: Vec<Op>) -> Case {
        let operations = ops.len() as u64;
        let contract = contract(candidate, options).unwrap();
        let mut promises = promises(&ops);
        if contract.returned_names || contract.returned_writes {
            promises.extend((1..=operations).map(|operations| Promise {
                at: Nanos(100 * operations + 1),
                call: RETURNED.into(),
                path: String::new(),
                operations,
            }));
            promises.sort_by_key(|promise| promise.at);
        }
        Case {
            history: History::of(ops).unwrap(),
            run: RunTimeline {
                promises,
                phases: vec![(Nanos(0), 0)],
                operations,
            },
            contract,
        }
    }

    /// Findings at the end of what the state after `operation` becomes by `change`.
    fn judge(&self, operation: u64, change: impl FnOnce(&mut FoundTree)) -> Vec<PathFinding> {
        self.judge_at(100 * self.run.operations + 50, operation, change)
    }

    fn judge_at(
        &self,
        at: u64,
        operation: u64,
        change: impl FnOnce(&mut FoundTree),
    ) -> Vec<PathFinding> {
        let mut found = found_at(&self.history, operation);
        change(&mut found);
        let window = self.run.window(Nanos(at));
        let mut judge = Judge::new(&self.history, &self.run, self.contract.clone());
        judge.judge(window, &found, false).0
    }

    fn breaks(&self, operation: u64, change: impl FnOnce(&mut FoundTree)) -> bool {
        let findings = self.judge(operation, change);
        findings.iter().any(|finding| finding.broken)
    }
}

fn remove(path: &'static str) -> impl FnOnce(&mut FoundTree) {
    move |found| {
        found.entries.remove(path);
    }
}

/// `d` and what is in it are made, then `d` is fsynced.
fn named(sync_file: bool) -> Vec<Op> {
    let mut ops = vec![mkdir("d"), create("d/a", 3000, 1), create("d/b", 10, 2)];
    if sync_file {
        ops.push(Op::SyncFile { path: "d/a".into() });
        ops.push(Op::SyncDir { path: ".".into() });
    }
    ops.extend([unlink("d/b"), Op::SyncDir { path: "d".into() }]);
    ops.push(create("d/c", 10, 3));
    ops
}

#[test]
fn names_are_durable_from_the_fsync_of_their_directory_on() {
    for candidate in ["ext4", "xfs", "btrfs", "f2fs"] {
        let case = Case::of(candidate, "", named(false));
        assert!(!case.breaks(6, |_| {}), "{candidate}: it is as it was");
        assert!(!case.breaks(5, |_| {}), "{candidate}: c came later");
        assert!(case.breaks(6, remove("d/a")), "{candidate}: a name is lost");
        let back = case.judge(6, |found| put(found, "d/b", b"x"));
        assert_eq!(one(&back), ("d/b", PathOutcome::Unexpected, true));
        // The name is durable, what is in the file is not: nobody synced it.
        let empty = case.judge(6, |found| put(found, "d/a", b""));
        assert_eq!(one(&empty), ("d/a", PathOutcome::Emptied, false));
        // Before the call returned nothing was promised.
        let early = case.judge_at(450, 0, |_| {});
        assert!(early.iter().all(|finding| !finding.broken), "{early:?}");
    }
}

#[test]
fn without_a_journal_file_and_every_directory_need_an_fsync() {
    let unsynced = Case::of("ext2", "", named(false));
    assert!(!unsynced.breaks(6, remove("d/a")));
    let synced = Case::of("ext2", "", named(true));
    assert!(synced.breaks(8, remove("d/a")), "all is synced");
    assert!(synced.breaks(8, |found| put(found, "d/b", b"x")));
    assert!(!synced.breaks(8, remove("d/c")), "c came later");
    let mut ops = named(true);
    ops.retain(|op| *op != Op::SyncDir { path: ".".into() });
    let above = Case::of("ext2", "", ops);
    let nothing = |found: &mut FoundTree| found.entries.clear();
    assert!(!above.breaks(7, nothing), "d itself was new");
    let fat = Case::of("vfat", "", named(true));
    assert!(!fat.breaks(8, remove("d/a")), "FAT promises no names");
}

/// `a` is durable; `a.new` is written, fsynced if `sync`, and renamed over it.
fn replaced(sync: bool) -> Vec<Op> {
    let mut ops = vec![create("a", 3000, 1), Op::SyncFs, create("a.new", 2000, 2)];
    if sync {
        ops.push(Op::SyncFile {
            path: "a.new".into(),
        });
    }
    ops.push(rename("a.new", "a"));
    ops
}

#[test]
fn a_replaced_file_is_old_or_new_and_never_neither() {
    for candidate in ["ext4", "xfs", "btrfs", "f2fs", "nilfs2"] {
        let case = Case::of(candidate, "", replaced(true));
        for operation in 4..=5 {
            assert!(!case.breaks(operation, |_| {}), "{candidate} {operation}");
        }
        let neither = |found: &mut FoundTree| found.entries.clear();
        assert!(case.breaks(5, neither), "{candidate}: neither");
        assert!(case.breaks(5, |f| put(f, "a", b"")), "{candidate}: empty");
        let half = content_of(&case.history, "a", 5)[..1024].to_vec();
        assert!(case.breaks(5, |f| put(f, "a", &half)), "{candidate}: half");
        let old = content_of(&case.history, "a", 2);
        let mut mixed = content_of(&case.history, "a", 5);
        mixed[..512].copy_from_slice(&old[..512]);
        assert!(
            case.breaks(5, |f| put(f, "a", &mixed)),
            "{candidate}: mixed"
        );
    }
}

#[test]
fn a_file_that_replaces_without_fsync_is_whole_on_ext4_only() {
    let empty = |found: &mut FoundTree| put(found, "a", b"");
    for (candidate, options, whole) in [
        ("ext4", "", true),
        ("ext3", "", true),
        ("ext4", "data=journal", true),
        ("ext4", "noauto_da_alloc", false),
        ("ext4", "data=writeback", false),
        ("ext4", "barrier=0", false),
        ("xfs", "", false),
        ("btrfs", "", false),
        ("f2fs", "", false),
    ] {
        let case = Case::of(candidate, options, replaced(false));
        assert_eq!(case.breaks(4, empty), whole, "{candidate} {options}");
        assert!(!case.breaks(2, |_| {}), "{candidate}: the old one is legal");
        // Under its first name it may have any size.
        let first = |found: &mut FoundTree| put(found, "a.new", b"");
        assert!(!case.breaks(2, first), "{candidate}");
        if candidate != "ext4" || !options.contains('0') {
            let gone = |found: &mut FoundTree| found.entries.clear();
            assert!(case.breaks(4, gone), "{candidate}: neither");
        }
    }
}

#[test]
fn what_was_written_with_o_sync_is_durable() {
    let ops = vec![
        create("j", 0, 1),
        write_sync("j", 512, 4096, 2),
        write_sync("j", 0, 512, 3),
    ];
    for candidate in ["ext4", "btrfs", "ext2"] {
        let case = Case::of(candidate, "", ops.clone());
        let old = |case: &Case| content_of(&case.history, "j", 2);
        let before = old(&case);
        assert!(case.breaks(3, |f| put(f, "j", &before)), "{candidate}");
        assert!(case.breaks(3, |f| put(f, "j", &before[..1000])));
        let early = case.judge_at(250, 2, |_| {});
        assert!(early.iter().all(|f| !f.broken), "{candidate}: {early:?}");
    }
    let names = |candidate| Case::of(candidate, "", ops.clone()).breaks(3, remove("j"));
    assert!(names("ext4"), "O_SYNC is as an fsync after each write");
    assert!(!names("ext2"), "the directory was not synced");
}

#[test]
fn an_o_sync_write_promises_nothing_of_other_bytes() {
    let part = vec![create("j", 4096, 1), write_sync("j", 0, 512, 2)];
    let case = Case::of("ext4", "", part);
    let short = content_of(&case.history, "j", 2)[..512].to_vec();
    assert!(!case.breaks(2, |f| put(f, "j", &short)));
    let whole = vec![create("j", 4096, 1), write_sync("j", 0, 4096, 2)];
    let case = Case::of("ext4", "", whole);
    assert!(case.breaks(2, |f| put(f, "j", &short)));
}

/// No call promises anything here.
fn plain() -> Vec<Op> {
    vec![
        mkdir("d"),
        create("d/a", 3000, 1),
        create("b", 2000, 2),
        Op::Overwrite {
            path: "b".into(),
            offset: 0,
            len: 600,
            content: content(3),
        },
        rename("d/a", "d/c"),
        unlink("b"),
        create("e", 1000, 4),
    ]
}

#[test]
fn a_synchronous_mount_promises_every_operation_that_returned() {
    for candidate in ["ext2", "ext4", "vfat", "xfs", "f2fs"] {
        let case = Case::of(candidate, "sync", plain());
        let async_case = Case::of(candidate, "", plain());
        for returned in 1..=6 {
            let at = 100 * returned + 50;
            let now = case.judge_at(at, returned, |_| {});
            assert!(now.iter().all(|f| !f.broken), "{candidate}: {now:?}");
            let next = case.judge_at(at, returned + 1, |_| {});
            assert!(next.iter().all(|f| !f.broken), "{candidate}: {next:?}");
            let lost = case.judge_at(at, returned - 1, |_| {});
            assert!(lost.iter().any(|f| f.broken), "{candidate} {returned}");
            let lost = async_case.judge_at(at, returned - 1, |_| {});
            assert!(lost.iter().all(|f| !f.broken), "{candidate}: {lost:?}");
        }
        let vanished = case.judge_at(450, 4, remove("d/a"));
        assert!(
            vanished.iter().any(|f| f.broken),
            "{candidate}: under neither name while it is renamed"
        );
    }
}

#[test]
fn what_is_being_made_on_a_synchronous_mount_may_be_half_made() {
    let unreadable = |path: &'static str| {
        move |found: &mut FoundTree| {
            let error = "stat it: EIO".into();
            let entry = (FoundNode::Unreadable { error }, 0);
            found.entries.insert(path.into(), entry);
        }
    };
    let case = Case::of("ext2", "sync,dirsync", plain());
    let making = case.judge_at(650, 6, unreadable("e"));
    assert_eq!(one(&making), ("e", PathOutcome::ReadError, false));
    assert!(case.breaks(7, unreadable("e")), "it had returned");
    let whole = Case::of("ext4", "sync", plain());
    let making = whole.judge_at(650, 6, unreadable("e"));
    assert_eq!(
        one(&making),
        ("e", PathOutcome::ReadError, true),
        "structure"
    );
}

#[test]
fn dirsync_promises_names_and_sync_on_btrfs_promises_contents() {
    let names = Case::of("ext4", "dirsync", plain());
    let empty = |found: &mut FoundTree| put(found, "e", b"");
    assert!(!names.breaks(7, empty), "its content was not promised");
    assert!(names.breaks(7, remove("e")));
    assert!(
        names.breaks(7, |found| put(found, "b", b"")),
        "it was deleted"
    );
    let contents = Case::of("btrfs", "sync", plain());
    assert!(contents.breaks(7, empty));
    assert!(!contents.breaks(7, remove("e")));
}

/// A durable file is renamed, another takes its name and is synced: xfstests generic/342.
#[test]
fn a_file_whose_name_was_taken_is_lost_on_f2fs_in_posix_mode_only() {
    let ops = vec![
        create("a", 3000, 1),
        Op::SyncFs,
        rename("a", "b"),
        create("a", 2000, 2),
        Op::SyncFile { path: "a".into() },
    ];
    for (candidate, options, kept) in [
        ("f2fs", "", false),
        ("f2fs", "fsync_mode=strict", true),
        ("ext4", "", true),
        ("btrfs", "", true),
    ] {
        let case = Case::of(candidate, options, ops.clone());
        let findings = case.judge(5, remove("b"));
        assert_eq!(
            one(&findings),
            ("b", PathOutcome::Missing, kept),
            "{candidate} {options}"
        );
        assert!(findings[0].durable, "it is lost all the same");
        // The fsync that ousts it has begun and not returned.
        let under_way = case.judge_at(450, 4, remove("b"));
        let lost: Vec<PathFinding> = under_way.into_iter().filter(|f| f.durable).collect();
        assert_eq!(one(&lost), ("b", PathOutcome::Missing, kept), "{candidate}");
    }
    // Where nobody took its name, or what took it is not synced, f2fs keeps it too.
    let case = Case::of("f2fs", "", ops[..4].to_vec());
    assert!(case.breaks(4, remove("b")));
    let case = Case::of("f2fs", "", ops[..3].to_vec());
    assert!(case.breaks(3, remove("b")));
}

#[test]
fn a_synced_file_may_not_vanish_while_syncfs_alone_made_it_durable() {
    let ops = vec![create("a", 3000, 1), Op::SyncFs, rename("a", "b")];
    let neither = |found: &mut FoundTree| found.entries.clear();
    assert!(Case::of("ext4", "", ops.clone()).breaks(3, neither));
    assert!(!Case::of("vfat", "", ops.clone()).breaks(3, neither));
    let case = Case::of("ext4", "", ops);
    assert!(!case.breaks(3, |_| {}) && !case.breaks(2, |_| {}));
    let updated = vec![
        create("a", 3000, 1),
        update("a", 0, 10, 2),
        rename("a", "b"),
    ];
    let case = Case::of("ext4", "", updated);
    assert!(case.breaks(3, neither));
}

/// A FAT has both entries while a file is renamed, and its checker lets one keep the clusters.
#[test]
fn a_file_whole_under_its_old_name_is_not_lost_under_the_new_one() {
    let ops = vec![
        create("a", 3000, 1),
        Op::SyncFile { path: "a".into() },
        rename("a", "b"),
    ];
    let case = Case::of("vfat", "sync", ops);
    let with = |at, old: bool| {
        case.judge_at(at, 2, |found| {
            put(found, "b", &[]);
            if !old {
                found.entries.remove("a");
            }
        })
    };
    let under_way = with(250, true);
    assert_eq!(one(&under_way), ("b", PathOutcome::Emptied, false));
    assert!(!under_way[0].durable);
    assert!(with(250, false).iter().any(|finding| finding.broken));
    assert!(
        with(350, true).iter().any(|finding| finding.broken),
        "the rename had returned"
    );
}

/// A rename over a file was durable and is lost: the file that it replaced is there again.
#[test]
fn a_name_that_went_back_to_its_old_file_is_old() {
    for size in [2000, 3000, 4000] {
        let ops = vec![
            create("a", 3000, 1),
            Op::SyncFs,
            create("a.new", size, 2),
            Op::SyncFile {
                path: "a.new".into(),
            },
            rename("a.new", "a"),
            Op::SyncDir { path: ".".into() },
        ];
        let case = Case::of("ext4", "", ops);
        let back = case.judge(4, |_| {});
        let of_a = back.iter().find(|finding| finding.path == "a").unwrap();
        assert_eq!(
            (of_a.outcome, of_a.broken, of_a.durable),
            (PathOutcome::Old, true, true)
        );
        // With the new file gone as a whole it is so too.
        let gone = case.judge(2, |_| {});
        assert_eq!(one(&gone), ("a", PathOutcome::Old, true), "{size}");
        // Bytes of neither file are no old version.
        let garbage = case.judge(4, |found| put(found, "a", &[7; 3000]));
        assert!(
            garbage
                .iter()
                .all(|finding| finding.outcome != PathOutcome::Old),
            "{size}"
        );
    }
}

/// A cache that nobody flushed: an umount promised nothing then.
#[test]
fn without_barriers_an_unmount_promises_nothing_either() {
    let ops = vec![create("a", 3000, 1), Op::SyncFs];
    let lost = |options: &str| Case::of("ext4", options, ops.clone()).breaks(2, remove("a"));
    assert!(lost("") && !lost("nobarrier"));
}
