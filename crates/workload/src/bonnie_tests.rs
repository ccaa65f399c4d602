//! The streams of the workload `bonnie`.
#![allow(clippy::unwrap_used)]
use super::*;
use std::collections::{BTreeMap, BTreeSet};

fn spec(parameters: &[(&str, u64)]) -> WorkloadSpec {
    WorkloadSpec {
        name: "bonnie".into(),
        parameters: parameters
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>(),
        tree: None,
        unix: true,
        script: None,
        input: None,
    }
}

fn ops(phase: &str, parameters: &[(&str, u64)]) -> Vec<Op> {
    let ops = Bonnie.operations(phase, &spec(parameters), None, 7);
    ops.unwrap().collect()
}

#[test]
fn a_tenth_of_the_seeks_writes_and_all_are_inside_the_file() {
    let ops = ops("random_seeks", &[("bytes", MIB)]);
    assert_eq!(ops.len(), 2 * 8_000 + 1);
    assert_eq!(ops[16_000], close());
    let (mut places, mut writes, mut ahead) = (BTreeSet::new(), 0, VecDeque::new());
    for op in &ops[..16_000] {
        if let Op::WillRead { offset, .. } = op {
            ahead.push_back(*offset);
            continue;
        }
        let (Op::ReadAt { offset, len, .. } | Op::Rewrite { offset, len, .. }) = op else {
            panic!("{op:?}");
        };
        assert!(ahead.len() <= 5);
        assert_eq!(ahead.pop_front(), Some(*offset), "announced in their order");
        assert!(offset % (8 * KIB) == 0 && offset + len <= MIB && *len == 8 * KIB);
        places.insert(*offset);
        writes += u64::from(matches!(op, Op::Rewrite { .. }));
    }
    assert_eq!(places.len(), 128, "every block has its turn");
    assert!((700..900).contains(&writes), "{writes}");
}

#[test]
fn names_are_those_of_bonnie() {
    let paths = |phase| -> Vec<String> {
        let ops = ops(phase, &[]).into_iter();
        let paths = ops.filter_map(|op| match op {
            Op::Create { path, .. } => Some(path),
            _ => None,
        });
        paths.collect()
    };
    let ordered = paths("sequential_create");
    assert!(ordered.is_sorted() && ordered.len() == 10_240);
    assert!(ordered[1].starts_with("bonnie/00000/0000000001"));
    let random = paths("random_create");
    assert!(!random.is_sorted() && random[1].ends_with("0000000001"));
    // 1,025 in each directory but the last, as bonnie++ counts.
    for paths in [ordered, random] {
        let in_last = paths
            .iter()
            .filter(|path| path.starts_with("bonnie/00009/"));
        assert_eq!(in_last.count(), 10_240 - 9 * 1_025);
        let names: BTreeSet<String> = paths.iter().map(|path| path.to_lowercase()).collect();
        assert_eq!(names.len(), 10_240, "also where case does not matter");
    }
}

#[test]
fn random_orders_are_those_of_the_same_files() {
    let path = |op: Op| match op {
        Op::Create { path, .. } | Op::Stat { path } | Op::Unlink { path } => Some(path),
        _ => None,
    };
    let [created, asked, deleted] = ["random_create", "random_stat", "random_delete"]
        .map(|phase| ops(phase, &[]).into_iter().filter_map(path).collect());
    let sorted = |paths: &Vec<String>| paths.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&created), sorted(&asked));
    assert_eq!(sorted(&created), sorted(&deleted));
    assert!(created != asked && asked != deleted);
}

#[test]
fn a_discarded_run_is_whole_and_comes_after_a_pause() {
    let small = [
        ("bytes", MIB),
        ("seeks", 20),
        ("files", 30),
        ("directories", 3),
    ];
    for phase in [DISCARDED, PAUSE] {
        assert_eq!(
            ops(phase, &small).len(),
            0,
            "{phase}: only where it is asked for"
        );
    }
    let asked = [&small[..], &[("discarded", 2), ("pause_s", 60)]].concat();
    let before = ops(PAUSE, &asked);
    let minute = Op::Pause {
        nanoseconds: 60_000_000_000,
    };
    assert_eq!(before, [Op::SyncFs, minute.clone()]);
    let thrown = ops(DISCARDED, &asked);
    let count = |is: &dyn Fn(&Op) -> bool| thrown.iter().filter(|op| is(op)).count();
    assert_eq!(count(&|op| *op == minute), 2);
    assert_eq!(count(&|op| matches!(op, Op::Create { .. })), 2 * 2 * 30);
    assert_eq!(count(&|op| matches!(op, Op::WriteAt { .. })), 2);
    assert_eq!(thrown.first(), Some(&Op::SyncFs));
    // The file and all directories are gone at the end of each.
    assert_eq!(count(&|op| *op == Op::Unlink { path: FILE.into() }), 2);
    let tops = |op: &Op| matches!(op, Op::Rmdir { path } if path == DIR);
    assert_eq!(count(&tops), 2 * 2);
}

#[test]
fn one_directory_has_none_below_it() {
    let one = [("files", 100), ("directories", 1)];
    assert_eq!(ops("random_directories", &one).len(), 1);
    assert_eq!(ops("sequential_stat", &one).len(), 1);
    let delete = ops("sequential_delete", &one);
    let dir = || DIR.to_owned();
    let expected = [
        Op::Clear { path: dir() },
        Op::Rmdir { path: dir() },
        Op::SyncFs,
    ];
    assert_eq!(delete, expected);
}

#[test]
fn without_sync_nothing_is_made_durable_after_files() {
    for phase in ["sequential_create", "random_delete"] {
        let (with, without) = (ops(phase, &[]), ops(phase, &[("sync", 0)]));
        assert_eq!(with.last(), Some(&Op::SyncFs));
        assert_eq!(with[..with.len() - 1], without);
    }
}

#[test]
fn contradictions_are_named() {
    let refused =
        |parameters: &[(&str, u64)]| Bonnie.check(&spec(parameters)).unwrap_err().to_string();
    assert!(refused(&[("bytes", MIB + 1)]).contains("no multiple of block"));
    assert!(refused(&[("files", 5)]).contains("less than directories = 10"));
}
