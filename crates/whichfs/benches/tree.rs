//! How much faster than the card itself the lab is: a tree of 1 GB written, read, rewritten
//! and deleted on ext4 on a card of 15 MB/s, one guest on one core.
//!
//! The floor beside it is the modelled card in real time: virtual seconds divided by wall
//! seconds is the ratio. Both clocks are shown; runs alternate, medians count.

use std::process::Command;
use std::time::Instant;

const RUNS: usize = 3;
const TREE_SIZE: &str = "1024M";

fn main() {
    let directory = std::env::temp_dir().join(format!("whichfs-bench-{}", std::process::id()));
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (clock, ratios) in ["device", "cpu"].into_iter().zip(&mut ratios) {
            let begun = Instant::now();
            let virtual_s = one(clock, &directory);
            let wall_s = begun.elapsed().as_secs_f64();
            println!("clock {clock}: {virtual_s:.1} s of virtual time in {wall_s:.1} s");
            ratios.push(virtual_s / wall_s);
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    for (clock, ratios) in ["device", "cpu"].into_iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        println!(
            "clock {clock}: {:.1} times faster than the card (median)",
            ratios[RUNS / 2]
        );
    }
}

/// Virtual seconds of one trial.
fn one(clock: &str, directory: &std::path::Path) -> f64 {
    let card = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/card-15mb.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args([
            "choose", "--fs", "ext4", "--seeds", "1", "--jobs", "1", "--fresh", "--json",
        ])
        .args(["--card", card, "--size", TREE_SIZE, "--clock", clock])
        .arg("--out")
        .arg(directory)
        .arg("--store")
        .arg(directory.join(format!("{clock}.sqlite")))
        .output()
        .unwrap_or_else(|e| panic!("whichfs could not be started: {e}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("no JSON from whichfs: {e}"));
    verdict["virtual_s"]
        .as_f64()
        .unwrap_or_else(|| panic!("no virtual_s in {verdict}"))
}
