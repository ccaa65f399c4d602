//! Study files: what is read, what is refused, the matrix.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::{CrashStudy, Known, Study};
use std::collections::BTreeMap;

const WHOLE: &str = r#"name = "s"
kind = "crash"
title = "t"
source = "x"
method = "m"
card = "a1-32gb"
board = "generic-1ghz"
partition_mib = 128
cuts = 5
filesystems = ["vfat", "ext4"]
[[mounts]]
name = "default"
[[mounts]]
name = "flush"
add = "flush"
only = ["vfat"]
[[faults]]
name = "honest"
[[faults]]
name = "lies"
faults = ["flush-lies"]
[[workloads]]
name = "tree"
workload = "rootfs"
parameters = { bytes = 1048576 }
"#;

fn parse(text: &str) -> Result<CrashStudy, String> {
    let workload = |name: &str, _: &BTreeMap<String, u64>| match name {
        "rootfs" => Ok(()),
        _ => Err("rootfs".to_owned()),
    };
    let known = Known {
        candidates: &[],
        metric: &|_, _| Err(String::new()),
        filesystems: &["vfat", "ext4"],
        faults: &["flush-lies"],
        card: &|name| match name {
            "a1-32gb" => Ok(()),
            _ => Err(format!("unknown card '{name}'")),
        },
        board: &|_| Ok(()),
        workload: &workload,
    };
    match Study::parse("f.toml", text, &known) {
        Ok(Study::Crash(study)) => Ok(study),
        Ok(other) => Err(format!("{} is of another kind", other.name())),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn the_matrix_is_every_mount_that_a_filesystem_has() {
    let study = parse(WHOLE).unwrap();
    assert_eq!((study.partition_bytes, study.seed), (128 << 20, 1));
    let cells: Vec<String> = study
        .cells()
        .iter()
        .map(|cell| format!("{} {} {}", cell.faults.name, cell.fs, cell.mount.name))
        .collect();
    assert_eq!(
        cells,
        [
            "honest vfat default",
            "honest vfat flush",
            "honest ext4 default",
            "lies vfat default",
            "lies vfat flush",
            "lies ext4 default",
        ]
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (right, wrong, told) in [
        (
            "\"crash\"",
            "\"speed\"",
            "f.toml:2: kind: 'speed'; expected crash",
        ),
        ("title = \"t\"", "title = \" \"", "f.toml:3: title"),
        (
            "cuts = 5",
            "cuts = 0",
            "f.toml:9: cuts: 0; expected 1 to 1000000",
        ),
        ("cuts = 5", "cut = 5", "f.toml:9: the file"),
        (
            "a1-32gb",
            "a1-32g",
            "f.toml:6: card: unknown card 'a1-32g'; expected a name of `whichfs card list`",
        ),
        (
            "\"vfat\", \"ext4\"]",
            "\"vfat\", \"ext5\"]",
            "f.toml:10: filesystems: 'ext5'; did you mean 'ext4'",
        ),
        (
            "\"vfat\", \"ext4\"]",
            "\"vfat\", \"vfat\"]",
            "f.toml:10: filesystems: 'vfat' twice",
        ),
        (
            "name = \"flush\"",
            "name = \"default\"",
            "f.toml:14: mounts.name: 'default' twice",
        ),
        (
            "only = [\"vfat\"]",
            "only = [\"xfs\"]",
            "f.toml:16: mounts.only: 'xfs'",
        ),
        (
            "[\"flush-lies\"]",
            "[\"lies\"]",
            "f.toml:21: faults.faults: 'lies'; did you mean 'flush-lies'?",
        ),
        (
            "\"rootfs\"",
            "\"root\"",
            "f.toml:24: workloads.workload: 'root' with these parameters; expected rootfs",
        ),
    ] {
        assert!(WHOLE.contains(right), "{right}");
        let error = parse(&WHOLE.replace(right, wrong)).unwrap_err();
        assert!(error.contains(told), "{error}\nis not\n{told}");
    }
}

#[test]
fn an_empty_axis_is_refused() {
    let none = WHOLE
        .replace("[\"vfat\", \"ext4\"]", "[]")
        .replace("only = [\"vfat\"]", "");
    let error = parse(&none).unwrap_err();
    assert!(error.contains("f.toml:10: filesystems: none"), "{error}");
}
