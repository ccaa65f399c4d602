//! The capacity check beside f3 on the same attached card that lies about its size (root, FUSE,
//! loop and Debian's f3 are needed). Figures: `docs/results.md`.
#![allow(clippy::unwrap_used)]

use crate::skip;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const CLAIMED: u64 = 64_000_000_000;
const REAL: u64 = 8 << 30;
const CHECK: &str = "$WHICHFS probe $dev --write=destroy --capacity --json >$FOUND; [ $? = 1 ]";
/// Exit status 102 or 103: a counterfeit that drops writes or wraps.
const F3: &str = "f3probe --destructive $dev >$FOUND; [ $? -ge 102 ]";

/// A card of 64 GB that has 8 GiB: what is written beyond wraps, or vanishes.
fn liar(directory: &Path, vanishes: bool) -> String {
    let lines = include_str!("../../../cards/class10-16gb.toml").lines();
    let mut text = String::new();
    for line in lines {
        if line.starts_with("capacity_bytes") {
            text += &format!("capacity_bytes = {{ value = {CLAIMED}, source = \"a lie\" }}\n");
            text += &format!("real_bytes = {{ value = {REAL}, source = \"a lie\" }}\n");
            let beyond = u8::from(vanishes);
            text += &format!("beyond = {{ value = {beyond}, source = \"a lie\" }}\n");
            continue;
        }
        text += &format!("{line}\n");
    }
    let path = directory.join(format!("liar-{vanishes}.toml"));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Writes, bytes written and nanoseconds that `run` cost the card, and what it said.
fn cost(card: &str, run: &str, found: &Path) -> ([u64; 3], String) {
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args([
            "card", "attach", card, "--json", "--speed", "max", "--run", run,
        ])
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"))
        .env("FOUND", found)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{run}: {said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |name: &str| document["figures"][name].as_u64().unwrap();
    let found = std::fs::read_to_string(found).unwrap();
    (["writes", "write_bytes", "busy"].map(figure), found)
}

#[test]
fn loop_the_capacity_check_writes_less_than_f3() {
    let root = rustix::process::geteuid().is_root();
    let mut there = ["/dev/fuse", "/dev/loop-control", "/usr/bin/f3probe"]
        .map(Path::new)
        .into_iter();
    if !root || !there.all(Path::exists) {
        skip::skip("root, /dev/fuse, /dev/loop-control and Debian's f3 are needed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let found = directory.path().join("found");
    for vanishes in [false, true] {
        let card = liar(directory.path(), vanishes);
        let (ours, report) = cost(&card, CHECK, &found);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["real_bytes"], REAL, "{report}");
        let (f3, told) = cost(&card, F3, &found);
        assert!(told.contains("*Usable* size: 8.00 GB"), "{told}");
        eprintln!("vanishes {vanishes}; writes, bytes, ns: ours {ours:?}, f3probe {f3:?}");
        // f3write and f3read fill all of the claimed size.
        assert!(400 * ours[1] <= CLAIMED, "{ours:?}");
        // f3probe fills what wraps; where writes vanish, it takes less than the marks here.
        let part = if vanishes { 1 } else { 5 };
        let times = |of: [u64; 3]| of[2] * part;
        assert!(vanishes || part * ours[0] <= f3[0] && part * ours[1] <= f3[1]);
        assert!(vanishes || times(ours) <= f3[2], "{ours:?} {f3:?}");
    }
}
