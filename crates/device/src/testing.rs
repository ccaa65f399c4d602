//! A machine in a temporary directory.
#![allow(clippy::unwrap_used)]

use crate::roots::Roots;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A machine with a disk `sdz` (8:16) and its partition `sdz1` (8:17).
pub fn machine() -> (TempDir, Roots) {
    let root = tempfile::tempdir().unwrap();
    let roots = Roots {
        proc: root.path().join("proc"),
        sys: root.path().join("sys"),
    };
    let disk = roots.sys.join("devices/sdz");
    fs::create_dir_all(disk.join("sdz1/holders")).unwrap();
    fs::create_dir_all(disk.join("holders")).unwrap();
    fs::write(disk.join("dev"), "8:16\n").unwrap();
    fs::write(disk.join("ro"), "0\n").unwrap();
    fs::write(disk.join("sdz1/dev"), "8:17\n").unwrap();
    fs::write(disk.join("sdz1/partition"), "1\n").unwrap();
    let numbers = roots.sys.join("dev/block");
    fs::create_dir_all(&numbers).unwrap();
    symlink(&disk, numbers.join("8:16")).unwrap();
    symlink(disk.join("sdz1"), numbers.join("8:17")).unwrap();
    fs::create_dir_all(roots.sys.join("block")).unwrap();
    symlink(&disk, roots.sys.join("block/sdz")).unwrap();
    fs::create_dir_all(roots.proc.join("self")).unwrap();
    (root, roots)
}
