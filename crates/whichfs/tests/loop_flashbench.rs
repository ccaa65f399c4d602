//! What a probe costs beside the real flashbench, on the same attached card (root, FUSE, loop and
//! Debian's flashbench are needed).
#![allow(clippy::unwrap_used)]

use crate::skip;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything of flashbench that the probe answers: `-a`, `-f`, and `-O` with one to seven AUs, in
/// order and at random. Without `-o` Debian's build wants a standard input that can be written.
const FLASHBENCH: &str = "set -e; fb() { flashbench -o /dev/null \"$@\" $dev; }; \
    fb -a --blocksize=1024; fb -f --erasesize=4194304 --blocksize=4096; \
    for n in 1 2 3 4 5 6 7; do for order in '' --random; do \
    fb -O --erasesize=4194304 --blocksize=4096 --open-au-nr=$n $order; done; done";
const PROBE: &str = "$WHICHFS probe $dev --write=destroy --json >$FOUND";

/// What `run` cost the attached card: bytes written, nanoseconds of its own time.
fn cost(speed: &str, run: &str, found: &Path) -> (u64, u64) {
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["card", "attach", "emmc-8gb", "--json"])
        .args(["--speed", speed, "--run", run])
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"))
        .env("FOUND", found)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{run}: {said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |name: &str| document["figures"][name].as_u64().unwrap();
    (figure("write_bytes"), figure("busy"))
}

#[test]
fn loop_a_probe_costs_at_most_a_fifth_of_flashbench() {
    let root = rustix::process::geteuid().is_root();
    let mut there = ["/dev/fuse", "/dev/loop-control"]
        .map(Path::new)
        .into_iter();
    let program = ["/usr/bin/flashbench", "/usr/sbin/flashbench"];
    if !root || !there.all(Path::exists) || !program.iter().any(|path| Path::new(path).exists()) {
        skip::skip("root, /dev/fuse, /dev/loop-control and Debian's flashbench are needed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let found = directory.path().join("found.json");
    // The card's own time is the same at any speed; the probe has to see it.
    let flashbench = cost("max", FLASHBENCH, &found);
    let probe = cost("1.0", PROBE, &found);
    eprintln!("bytes written, ns of the card: probe {probe:?}, flashbench {flashbench:?}");
    assert!(
        5 * probe.0 <= flashbench.0,
        "bytes: {probe:?} {flashbench:?}"
    );
    assert!(
        5 * probe.1 <= flashbench.1,
        "time: {probe:?} {flashbench:?}"
    );
    let found: Value = serde_json::from_str(&std::fs::read_to_string(found).unwrap()).unwrap();
    assert_eq!(
        found["complete"], true,
        "it was not cheap by leaving things out"
    );
}
