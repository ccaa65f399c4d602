//! What the tests with real tools share.
#![allow(clippy::unwrap_used, dead_code)]

pub use whichfs_testkit::skip;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use whichfs_layout::superblock::{self, Superblock};
use whichfs_layout::{BUILTIN, BootRules, DiskPlan, Layout, Medium, TableKind, Unit};
use whichfs_units::MIB;

/// Where Debian puts these tools, whoever runs the test.
pub fn path() -> String {
    format!(
        "/usr/sbin:/sbin:{}",
        std::env::var("PATH").unwrap_or_default()
    )
}

/// Whether all `tools` are there; else says which is not.
pub fn have(tools: &[&str]) -> bool {
    let is_there = |tool: &str| {
        path()
            .split(':')
            .any(|dir| Path::new(dir).join(tool).is_file())
    };
    let missing = tools.iter().find(|tool| !is_there(tool));
    if let Some(tool) = missing {
        skip::skip(format!("{tool} is not installed"));
    }
    missing.is_none()
}

/// Runs `program` in `dir`, which must succeed.
pub fn run(dir: &Path, program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .env("PATH", path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Bytes of a file, fewer at its end.
pub fn bytes_at(file: &File, at: u64, bytes: usize) -> Result<Vec<u8>, String> {
    let mut data = vec![0; bytes];
    let mut done = 0;
    while done < bytes {
        match file.read_at(&mut data[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) => return Err(error.to_string()),
        }
    }
    data.truncate(done);
    Ok(data)
}

/// The filesystem at `offset` of the image `path`.
pub fn superblock_at(path: &Path, offset: u64) -> Option<Superblock> {
    let file = File::open(path).unwrap();
    superblock::read(&mut |at, bytes| bytes_at(&file, at, bytes), offset).unwrap()
}

/// The shipped layout `name` for `fs` on a disk of so many MiB with units of `unit_mib`.
pub fn plan(name: &str, table: TableKind, fs: &str, mib: u64, unit_mib: u64) -> DiskPlan {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name).unwrap();
    let layout = Layout {
        table,
        ..Layout::parse(name, text).unwrap()
    };
    let unit = Unit::new(unit_mib * MIB, "given").unwrap();
    let medium = Medium::of_unit(mib * MIB, unit, false);
    DiskPlan::new(&layout, &medium, Some(fs), 1).unwrap()
}

/// The shipped layout `name` with ext4 for the shipped board `board`, on 4 GiB with units of 4 MiB.
pub fn board_plan(name: &str, board: &str) -> DiskPlan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../boards/{board}.toml"));
    let text = std::fs::read_to_string(path).unwrap();
    let file: toml::Table = text.parse().unwrap();
    let rules: BootRules = file["boot"].clone().try_into().unwrap();
    assert_eq!(rules.fault(), None, "{board}");
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name).unwrap();
    let layout = Layout::parse(name, text).unwrap();
    let layout = layout.for_board(board, &rules, None).unwrap();
    let medium = Medium::of_unit(4096 * MIB, Unit::new(4 * MIB, "given").unwrap(), false);
    DiskPlan::new(&layout, &medium, Some("ext4"), 1).unwrap()
}

/// Writes all files for builders into `dir`.
pub fn emit(plan: &DiskPlan, dir: &Path) {
    for output in whichfs_layout::emit::all(plan, "made by a test") {
        let path = dir.join(output.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, output.text).unwrap();
    }
}
