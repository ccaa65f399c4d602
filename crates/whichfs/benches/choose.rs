//! From the command to the verdict with nothing in the store: wall time and peak memory of
//! `whichfs choose` with the default card and needs.
//!
//! The floor beside it: the virtual seconds of the same trials, which a real card would take
//! one after the other. Memory is the proportional set size of all processes, so pages that
//! guest and engine share count once.

#[path = "memory/mod.rs"]
mod memory;

use memory::memory_kib;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 3;

fn main() {
    let directory = std::env::temp_dir().join(format!("whichfs-bench-{}", std::process::id()));
    let mut walls = Vec::new();
    for run in 0..RUNS {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(["choose", "--json", "--out"])
            .arg(directory.join("report"))
            .arg("--store")
            .arg(directory.join(format!("{run}.sqlite")))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("whichfs could not be started: {e}"));
        let mut peak_kib = 0;
        while child.try_wait().is_ok_and(|ended| ended.is_none()) {
            peak_kib = peak_kib.max(memory_kib(child.id()));
            std::thread::sleep(Duration::from_millis(200));
        }
        let wall = begun.elapsed().as_secs_f64();
        let output = child.wait_with_output().unwrap_or_else(|e| panic!("{e}"));
        let verdict: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("no JSON from whichfs: {e}"));
        let virtual_s = verdict["virtual_s"].as_f64().unwrap_or(0.0);
        println!(
            "{wall:.1} s for {} trials, {virtual_s:.0} s of virtual time ({:.1} times faster); \
             peak memory {} MiB; winner {}",
            verdict["trials"],
            virtual_s / wall,
            peak_kib / 1024,
            verdict["ranking"][0]["candidate"],
        );
        walls.push(wall);
    }
    let _ = std::fs::remove_dir_all(&directory);
    walls.sort_by(f64::total_cmp);
    println!("median: {:.1} s", walls[RUNS / 2]);
}
