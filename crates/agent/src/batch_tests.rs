//! Lists of calls on this machine, whose kernel performs them call by call.
#![allow(clippy::unwrap_used)]
use super::*;
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use std::fs;
use std::path::Path;

fn directory(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

#[test]
fn files_are_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let root = directory(dir.path());
    let mut batch = Batch::default();
    let new = OFlags::WRONLY | OFlags::CREATE;
    for name in ["a", "b"] {
        let file = batch.open(&root, name, new, 0o600).unwrap();
        batch.write(file, &[7; 300_000], 0);
        batch.write(file, b"end", 300_000);
        batch.chmod_open(file, 0o640);
        batch.close(file);
    }
    assert_eq!(batch.perform(), Ok(0));
    assert!(batch.is_empty());
    let a = fs::read(dir.path().join("a")).unwrap();
    assert_eq!((a.len(), &a[300_000..]), (300_003, &b"end"[..]));
    for name in ["a", "b"] {
        let file = batch.open(&root, name, OFlags::RDONLY, 0).unwrap();
        batch.read_all(file);
        batch.close(file);
    }
    assert_eq!(batch.perform(), Ok(600_006));
}

#[test]
fn nothing_is_done_behind_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let root = directory(dir.path());
    let mut batch = Batch::default();
    batch.mkdir(&root, "d", 0o755).unwrap();
    batch.unlink(&root, "none", AtFlags::empty()).unwrap();
    batch.mkdir(&root, "e", 0o755).unwrap();
    let failed = Failed {
        what: "delete",
        path: "none".into(),
        errno: Errno::NOENT,
    };
    assert_eq!(batch.perform(), Err(failed));
    assert!(batch.is_empty());
    assert!(dir.path().join("d").exists() && !dir.path().join("e").exists());
    assert_eq!(
        batch.mkdir(&root, "z\0z", 0).unwrap_err().errno,
        Errno::INVAL
    );
}

#[test]
fn a_full_filesystem_is_told() {
    let root = directory(Path::new("/dev"));
    let mut batch = Batch::default();
    let file = batch.open(&root, "full", OFlags::WRONLY, 0).unwrap();
    batch.write(file, b"x", 0);
    let failed = batch.perform().unwrap_err();
    assert_eq!((failed.what, failed.errno), ("write", Errno::NOSPC));
    assert_eq!(failed.path, "full");
}

#[test]
fn heads_and_attributes_are_told_whatever_fails() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), b"hello").unwrap();
    fs::write(dir.path().join("long"), vec![5; 3 * HEAD]).unwrap();
    let root = directory(dir.path());
    let mut batch = Batch::default();
    let files = ["a", "none", "long"].map(|name| {
        let file = batch.open(&root, name, OFlags::RDONLY, 0).unwrap();
        (file, batch.stat_open(file), batch.read_head(file))
    });
    batch.perform_each();
    let [(_, stat, head), none, long] = files;
    assert_eq!(batch.head(head), b"hello");
    assert_eq!(batch.attributes(stat).unwrap().0, 5);
    assert_eq!(batch.result(none.0), Err(Errno::NOENT));
    assert_eq!(batch.attributes(none.1), Err(Errno::BADF));
    assert_eq!(batch.head(none.2), b"");
    assert_eq!(batch.head(long.2), [5; HEAD]);
    let left = batch.result(long.0).unwrap() as RawFd;
    batch.clear();
    batch.close(left);
    assert_eq!(batch.perform(), Ok(0));
}
