//! Power cuts: cuts a second of each core and peak memory, on workloads of 256 MiB (a few videos
//! and many photos; a root filesystem of 10,000 small files), with everything (image, boot, mount,
//! reading all, both passes of the checker, mounting again) and without the checker. The recording
//! of the run is measured by a series of one cut and taken off.
//!
//! Beside it: a guest that only boots and ends, the least that any cut takes.

#[path = "memory/mod.rs"]
mod memory;

use memory::memory_kib;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CUTS: u64 = 40;
const RUNS: usize = 3;

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let boot = median(|| run(&["lab", "exec", "--fs", "vfat", "--", "true"]).0);
    println!("a guest with mkfs, mount and no program: {boot:.2} s");
    for workload in ["exchange", "rootfs"] {
        for fsck in [true, false] {
            let mut peak = 0;
            let mut series = |cuts: u64| {
                let cuts = cuts.to_string();
                let mut arguments = vec![
                    "crash",
                    "run",
                    "--fs",
                    "ext4",
                    "--workload",
                    workload,
                    "--size",
                    "256M",
                    "--partition",
                    "1024M",
                    "--fresh",
                    "--json",
                    "--cuts",
                    &cuts,
                ];
                if !fsck {
                    arguments.push("--no-fsck");
                }
                let (wall, kib) = run(&arguments);
                peak = peak.max(kib);
                wall
            };
            let one = median(|| series(1));
            let all = median(|| series(1 + CUTS));
            let what = match fsck {
                true => "with everything",
                false => "without fsck",
            };
            let each = (all - one) / CUTS as f64 * cores;
            println!(
                "{workload}, {what}: {:.2} cuts a second of a core, {:.1} x the empty guest; \
                 peak {} MiB",
                1.0 / each,
                each / boot,
                peak / 1024,
            );
        }
    }
}

fn median(mut measure: impl FnMut() -> f64) -> f64 {
    let mut walls: Vec<f64> = (0..RUNS).map(|_| measure()).collect();
    walls.sort_by(f64::total_cmp);
    walls[RUNS / 2]
}

/// Wall seconds and peak memory in KiB of `whichfs` with these arguments.
fn run(arguments: &[&str]) -> (f64, u64) {
    let data = std::env::temp_dir().join(format!("whichfs-bench-{}", std::process::id()));
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(arguments)
        .env("XDG_DATA_HOME", &data)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("whichfs could not be started: {e}"));
    let mut peak = 0;
    let ended = loop {
        if let Ok(Some(ended)) = child.try_wait() {
            break ended;
        }
        peak = peak.max(memory_kib(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(
        ended.code().is_some_and(|code| code <= 1),
        "{arguments:?}: {ended}"
    );
    let wall = begun.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(&data);
    (wall, peak)
}
