//! Histories told from operations.
#![allow(clippy::unwrap_used)]
use super::*;

pub(crate) fn content(seed: u64) -> Content {
    Content::Generated { level: 0, seed }
}

pub(crate) fn create(path: &str, size: u64, seed: u64) -> Op {
    Op::Create {
        path: path.into(),
        size,
        content: content(seed),
        mode: Some(0o644),
        pieces: None,
    }
}

pub(crate) fn update(path: &str, offset: u64, len: u64, seed: u64) -> Op {
    Op::Update {
        path: path.into(),
        offset,
        len,
        content: content(seed),
    }
}

pub(crate) fn rename(from: &str, to: &str) -> Op {
    Op::Rename {
        from: from.into(),
        to: to.into(),
    }
}

#[test]
fn a_path_is_what_it_was() {
    let history = History::of([
        create("a", 10, 1),
        rename("a", "b"),
        Op::Unlink { path: "b".into() },
        create("a", 20, 2),
    ])
    .unwrap();
    assert_eq!(history.node_at("a", 0), None);
    assert_eq!(history.node_at("a", 1), Some(&Node::File(0)));
    assert_eq!(history.node_at("a", 2), None);
    assert_eq!(history.node_at("b", 2), Some(&Node::File(0)));
    assert_eq!(history.node_at("a", 4), Some(&Node::File(1)));
    let within = history.nodes_within("a", 1, 4);
    assert_eq!(within, [Some(&Node::File(0)), None, Some(&Node::File(1))]);
}

#[test]
fn a_digest_is_that_of_the_content() {
    let ops = [
        create("a", 300_000, 1),
        update("a", 0, 300_000, 2),
        update("a", 9, 100_000, 3),
    ];
    let file = History::of(ops).unwrap().file(0).clone();
    let mut room = vec![7; 5];
    for version in 0..=3 {
        let right = content_digest(&file.content(version));
        assert_eq!(file.digest(version, &mut room), right, "{version}");
    }
}

#[test]
fn versions_have_the_bytes_of_their_moment() {
    let history = History::of([
        create("a", 1000, 1),
        update("a", 100, 50, 2),
        Op::Append {
            path: "a".into(),
            len: 30,
            content: content(3),
            sync: true,
        },
    ])
    .unwrap();
    let file = history.file(0);
    assert_eq!(file.versions(0, 3), 0..=3);
    assert_eq!(file.versions(2, 2), 2..=2);
    assert_eq!([0, 1, 2, 3].map(|v| file.size(v)), [0, 1000, 1000, 1030]);
    let (first, second, third) = (file.content(1), file.content(2), file.content(3));
    assert_eq!(first[..100], second[..100]);
    assert_eq!(second[100..150], generated_bytes(0, 2, 0, 50)[..50]);
    assert_eq!(second[150..], first[150..]);
    assert_eq!(third[..1000], second[..]);
    assert_eq!(third[1000..], generated_bytes(0, 3, 0, 30)[..30]);
    let mut room = vec![7; 5];
    for version in 0..=3 {
        let right = content_digest(&file.content(version));
        assert_eq!(file.digest(version, &mut room), right, "{version}");
    }
    for size in [600, 1000, 1030, 2000] {
        let versions = [1, 2].map(|version| file.sectors(version, size));
        let before = file.sectors_before(3, size);
        assert_eq!(before.len(), versions[0].len());
        for (at, digests) in before.iter().enumerate() {
            assert_eq!(*digests, versions.each_ref().map(|of| of[at]).into());
        }
    }
}

#[test]
fn blocks_and_whole_directories_change_what_they_say() {
    let directory = |path: &str| Op::Mkdir {
        path: path.into(),
        mode: None,
    };
    let write = |offset, len, seed| Op::WriteAt {
        path: "d/a".into(),
        offset,
        len,
        block: 7,
        direct: false,
        content: content(seed),
    };
    let rewrite = Op::Rewrite {
        path: "d/a".into(),
        offset: 10,
        len: 20,
        block: 8,
        content: content(3),
    };
    let clear = Op::Clear { path: "d".into() };
    let remove = Op::RemoveTree { path: "d2".into() };
    let history = History::of([
        directory("d"),
        directory("d2"),
        create("d2/b", 5, 9),
        write(100, 50, 1),
        write(0, 120, 2),
        rewrite,
        Op::Pause { nanoseconds: 5 },
        clear,
        remove,
    ])
    .unwrap();
    let Some(Node::File(at)) = history.node_at("d/a", 7) else {
        panic!("no file");
    };
    let file = history.file(*at);
    assert_eq!(file.versions(0, 8), 0..=3);
    assert_eq!([1, 2, 3].map(|version| file.size(version)), [150; 3]);
    let (first, last) = (file.content(1), file.content(3));
    assert!(first[..100].iter().all(|&byte| byte == 0));
    assert_eq!(last[..10], generated_bytes(0, 2, 0, 10)[..]);
    assert_eq!(last[10..30], generated_bytes(0, 3, 0, 20)[..]);
    assert_eq!(last[120..], first[120..]);
    assert_eq!(history.node_at("d/a", 8), None, "cleared");
    assert!(history.node_at("d", 8).is_some() && history.node_at("d2/b", 8).is_some());
    assert!(history.node_at("d", 9).is_some());
    assert_eq!(
        ["d2", "d2/b"].map(|path| history.node_at(path, 9)),
        [None; 2]
    );
}

#[test]
fn a_rename_replaces_and_takes_along_what_is_below() {
    let directory = Op::Mkdir {
        path: "d".into(),
        mode: None,
    };
    let history = History::of([
        directory,
        create("d/a", 10, 1),
        create("d/b", 20, 2),
        rename("d/b", "d/a"),
        rename("d", "e"),
    ])
    .unwrap();
    assert_eq!(history.node_at("d/a", 3), Some(&Node::File(0)));
    assert_eq!(history.node_at("d/a", 4), Some(&Node::File(1)));
    assert_eq!(history.replaced_at("d/a", 1, 5), Some(4));
    assert_eq!(history.replaced_at("d/a", 1, 3), None, "not yet");
    assert_eq!(history.replaced_at("d/b", 1, 5), None, "it was new there");
    assert_eq!(history.node_at("e/a", 5), Some(&Node::File(1)));
    assert_eq!(history.node_at("e/b", 5), None);
    assert_eq!(history.node_at("d", 5), None);
    let link = Op::HardLink {
        path: "b".into(),
        existing: "a".into(),
    };
    let history = History::of([create("a", 10, 1), link, rename("a", "b")]).unwrap();
    assert_eq!(history.node_at("a", 3), Some(&Node::File(0)), "one file");
}

#[test]
fn a_synchronous_write_covers_its_own_bytes_only() {
    let write = |offset, len, seed| Op::WriteSync {
        path: "a".into(),
        offset,
        len,
        content: content(seed),
    };
    let history = History::of([
        create("a", 0, 1),
        write(512, 100, 2),
        create("b", 50, 3),
        write(0, 512, 4),
        update("a", 0, 10, 5),
        write(0, 512, 6),
    ])
    .unwrap();
    let file = history.file(0);
    assert_eq!([1, 2, 3].map(|version| file.size(version)), [0, 612, 612]);
    assert!(file.is_covered(0, 2), "it was empty before");
    assert!(file.is_covered(2, 4), "the write before had been durable");
    assert!(!file.is_covered(0, 4), "the write before is elsewhere");
    assert!(file.is_covered(4, 6), "written over");
    assert!(!file.is_covered(0, 3), "no write of this file");
    assert!(file.is_covered(4, 2), "nothing since");
}

#[test]
fn operations_that_do_not_go_together_are_refused() {
    let error = History::of([create("a", 1, 1), rename("b", "c")]).unwrap_err();
    let path = "b".to_owned();
    assert_eq!(error, HistoryError::Missing { operation: 2, path });
    let copied = Op::Create {
        path: "a".into(),
        size: 1,
        content: Content::File { path: "x".into() },
        mode: None,
        pieces: None,
    };
    assert!(matches!(
        History::of([copied]),
        Err(HistoryError::NotGenerated { .. })
    ));
}
