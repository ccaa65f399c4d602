//! What a 4 KiB direct write through the lab costs in wall time on one core, and the floor
//! under it: `cargo bench -p whichfs-lab --bench direct_writes`.
//!
//! Three figures, medians of several guests or runs, all on the same core:
//! - `write`: `dd oflag=direct` of 4 KiB blocks to a modelled card, clock `device`;
//! - `system call`: the same `dd` to /dev/null in the guest: two calls a block, each of which
//!   stops the program and lets the guest's kernel look at it (seccomp or ptrace);
//! - `switch`: a byte to another process on the same core and back, over a socket pair: the
//!   least that asking the engine and hearing its answer costs.
//!
//! The boot is measured by a job without writes and taken off.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Trial, command};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use whichfs_trial::Step;

const WRITES: u32 = 50_000;
const RUNS: usize = 5;
/// The goal of issue 2 for one write.
const GOAL_US: f64 = 30.0;
/// Round trips between guest and engine that a write needs: one to have it served and, as
/// the guest waits for it, to hear of its completion.
const ROUND_TRIPS: f64 = 1.0;

fn main() {
    // `cargo test --benches` runs this too: then it only has to build.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(boot) = guest(Vec::new) else {
        return;
    };
    let per_block = |took: Duration| micros(took.saturating_sub(boot));
    let write = per_block(guest(|| vec![dd("/dev/vda", true)]).unwrap());
    let call = per_block(guest(|| vec![dd("/dev/null", false)]).unwrap());
    let switch = micros(median(|| ping_pong(WRITES)));
    println!(
        "boot to power-off              {:>8.1} ms",
        boot.as_secs_f64() * 1e3
    );
    println!("write through the lab          {write:>8.2} µs (goal: {GOAL_US} µs)");
    println!("floor: system calls in guest   {call:>8.2} µs (dd to /dev/null)");
    println!("floor: guest, engine and back  {switch:>8.2} µs (socket pair, same core)");
    let floor = call + ROUND_TRIPS * switch;
    println!("write / floor                  {:>8.2}", write / floor);
}

/// One block's share of `took`.
fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(WRITES)
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run()).collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn dd(target: &str, direct: bool) -> Step {
    let (of, count) = (format!("of={target}"), format!("count={WRITES}"));
    let mut argv = vec!["dd", "if=/dev/zero", &of, "bs=4k", &count];
    if direct {
        argv.push("oflag=direct");
    }
    command(&argv)
}

/// Median wall time of a guest's life with these steps; `None` if there is no kernel.
fn guest(steps: impl Fn() -> Vec<Step>) -> Option<Duration> {
    Trial::new(1, Vec::new())?;
    Some(median(|| {
        let trial = Trial::new(1, steps()).unwrap();
        let start = Instant::now();
        trial.run().result.unwrap();
        start.elapsed()
    }))
}

/// `rounds` bytes to another process on this core and back.
fn ping_pong(rounds: u32) -> Duration {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let mut one = rustix::thread::CpuSet::new();
    one.set(whichfs_lab::available_cores()[0]);
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    // SAFETY: this program has one thread; the child only reads, writes and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    let mut byte = [0];
    if child == 0 {
        drop(ours);
        while theirs.read_exact(&mut byte).is_ok() && theirs.write_all(&byte).is_ok() {}
        // SAFETY: ends this process without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let start = Instant::now();
    for _ in 0..rounds {
        ours.write_all(&byte).unwrap();
        ours.read_exact(&mut byte).unwrap();
    }
    let took = start.elapsed();
    drop(ours);
    let pid = rustix::process::Pid::from_raw(child);
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
    rustix::thread::sched_setaffinity(None, &before).unwrap();
    took
}
