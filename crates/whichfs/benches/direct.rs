//! What the agent costs beside fio: direct reads and writes of 4 KiB at random places of the same
//! attached card, and of a loop device in memory, where nothing but the tool takes time: `cargo
//! bench -p whichfs --bench direct` (root; fio; `WHICHFS_AGENT`).
//!
//! Runs are in pairs, now the one first and now the other, so that what else the machine does
//! meets both. Both make the same requests (fio from a log), and on the modelled card, whose state
//! is that which the writes before left, each run has a card of its own in the same state. The
//! agent's side is its executor, in this process, with the latencies that it takes. fio runs with
//! psync, one request at a time, as the agent does, and as a thread: else it makes a session of
//! its own, which the scheduler prefers to ours on a busy machine (autogroup). The last line is
//! what counting requests by their size costs: fio alone, and while the agent's program counts
//! them.
#![allow(missing_docs, clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_agent::{Manner, Time, operate};
use whichfs_attach::{AttachOptions, BeginState, HostQueue, Speed, Transport, attach};
use whichfs_card::{Profile, builtin};
use whichfs_device::sandboxed_agent::{AgentRun, SandboxedAgent, run};
use whichfs_trial::{Content, Job, Op, Step};
use whichfs_units::{MIB, Nanos};

/// Pairs of runs.
const RUNS: usize = 9;
const CARD_BYTES: u64 = 256 * MIB;
const BLOCK: u64 = 4096;

fn main() {
    // `cargo test --benches` runs this too: then it only has to build.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let agent = std::env::var_os("WHICHFS_AGENT").map(PathBuf::from);
    let Some(agent) = agent.filter(|_| rustix::process::geteuid().is_root()) else {
        println!("direct: skipped: root and WHICHFS_AGENT are needed (make bench)");
        return;
    };
    for (name, speed, count) in [
        ("card at its speed", Speed::REAL, 1500),
        ("card, speed max", Speed::Max, 20_000),
    ] {
        for writes in [false, true] {
            compare(name, writes, count, &|run| {
                let card = attach(options(speed)).unwrap();
                let iops = run(&card.device());
                card.detach().unwrap();
                iops
            });
        }
    }
    let memory = Memory::new();
    for writes in [false, true] {
        compare("loop in memory", writes, 60_000, &|run| run(&memory.device));
    }
    counting(&agent, &memory.device);
}

/// A loop device on a file in memory.
struct Memory {
    device: PathBuf,
    file: PathBuf,
}

impl Memory {
    fn new() -> Memory {
        let file = PathBuf::from(format!("/dev/shm/whichfs-bench-{}", std::process::id()));
        std::fs::write(&file, vec![7; CARD_BYTES as usize]).unwrap();
        let device = sh(&format!("losetup -f --show {}", file.display()));
        Memory {
            device: device.trim().into(),
            file,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        sh(&format!("losetup -d {}", self.device.display()));
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Gives a run its device, and returns the run's IOPS.
type OnDevice<'a> = dyn Fn(&dyn Fn(&Path) -> f64) -> f64 + 'a;

/// Prints the ratio of both, each on what `on` gives it.
fn compare(name: &str, writes: bool, count: u64, on: &OnDevice<'_>) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..RUNS {
        let seed = pair as u64 + 1;
        let agent = || on(&|device| by_agent(queueless(device), writes, count, seed));
        let fio = || on(&|device| by_fio(queueless(device), writes, count, seed));
        if pair % 2 == 0 {
            ours.push(agent());
        }
        theirs.push(fio());
        if pair % 2 == 1 {
            ours.push(agent());
        }
    }
    let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    let what = if writes { "writes" } else { "reads" };
    println!(
        "{name:18} {what:6} agent {:>8.0} IOPS, fio {:>8.0} IOPS; ratio, median of {RUNS} pairs \
         {:.3} (quartiles {:.3} to {:.3}); load {}",
        median(&mut ours),
        median(&mut theirs),
        median(&mut ratios),
        ratios[RUNS / 4],
        ratios[RUNS - 1 - RUNS / 4],
        load()
    );
}

/// The same device, without a scheduler.
fn queueless(device: &Path) -> &Path {
    let name = device.file_name().unwrap().to_str().unwrap();
    std::fs::write(format!("/sys/block/{name}/queue/scheduler"), "none").unwrap();
    device
}

/// Prints what it costs fio that an agent counts the requests by size.
fn counting(agent: &Path, device: &Path) {
    let mut ratios = Vec::new();
    for pair in 0..RUNS as u64 {
        let alone = || by_fio(device, false, 60_000, pair);
        let watched = || {
            let step = Step::Settle {
                milliseconds: 60_000,
            };
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (over, job) = (&over, job(vec![step]));
                let watcher = scope.spawn(move || done(agent, device, &job, over));
                // Until it watches.
                std::thread::sleep(Duration::from_millis(300));
                let iops = alone();
                over.store(true, std::sync::atomic::Ordering::Relaxed);
                watcher.join().unwrap();
                iops
            })
        };
        ratios.push(match pair % 2 {
            0 => alone() / watched(),
            _ => 1.0 / (watched() / alone()),
        });
    }
    let least = median(&mut ratios);
    println!(
        "sizes of requests  fio alone / fio while they are counted: median of {RUNS} pairs \
         {least:.3} (quartiles {:.3} to {:.3}); load {}",
        ratios[RUNS / 4],
        ratios[RUNS - 1 - RUNS / 4],
        load()
    );
}

fn job(steps: Vec<Step>) -> Job {
    Job {
        seed: 1,
        queues: Vec::new(),
        steps,
        promises: false,
        returns: false,
        ignores_sync: false,
        counts_work: false,
        acknowledged: false,
    }
}

fn done(agent: &Path, device: &Path, job: &Job, over: &AtomicBool) -> AgentRun {
    let writable = [device.to_path_buf()];
    let sandboxed = SandboxedAgent {
        agent,
        job,
        disk: device.file_name().unwrap().to_str().unwrap(),
        writable: &writable,
        directory: None,
        write_limit: None,
        wall_limit: Duration::from_secs(600),
    };
    run(&sandboxed, over, &mut |_| ()).unwrap()
}

/// Where the requests of a run begin, in bytes.
fn places(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count).map(move |_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % (CARD_BYTES / BLOCK) * BLOCK
    })
}

/// IOPS of the agent's executor.
fn by_agent(device: &Path, writes: bool, count: u64, seed: u64) -> f64 {
    let name = device.file_name().unwrap().to_str().unwrap().to_owned();
    let content = Content::Generated { level: 0, seed };
    let ops = places(seed, count).map(move |offset| {
        let path = name.clone();
        match writes {
            true => Op::WriteAt {
                path,
                offset,
                len: BLOCK,
                block: BLOCK,
                direct: true,
                content: content.clone(),
            },
            false => Op::ReadAt {
                path,
                offset,
                len: BLOCK,
                block: BLOCK,
                direct: true,
            },
        }
    });
    let begun = Instant::now();
    let time = Time {
        now: &|| u64::try_from(begun.elapsed().as_nanos()).unwrap(),
        sleep: &|_| (),
    };
    let manner = Manner {
        returns: false,
        ignores_sync: false,
    };
    let done = operate(
        ops,
        Path::new("/dev"),
        None,
        &time,
        manner,
        &mut |_, _, _| Ok(()),
    );
    let (counts, latency) = done.unwrap();
    assert_eq!((counts.operations, latency.count()), (count, count));
    count as f64 / begun.elapsed().as_secs_f64()
}

/// IOPS of fio.
fn by_fio(device: &Path, writes: bool, count: u64, seed: u64) -> f64 {
    let what = if writes { "write" } else { "read" };
    let (device, mut log) = (device.display(), tempfile::NamedTempFile::new().unwrap());
    let lines = places(seed, count).map(|offset| format!("{device} {what} {offset} {BLOCK}\n"));
    let lines: String = lines.collect();
    let text = format!("fio version 2 iolog\n{device} add\n{device} open\n{lines}{device} close\n");
    log.write_all(text.as_bytes()).unwrap();
    let text = sh(&format!(
        "fio --name=x --read_iolog={} --direct=1 --ioengine=psync --thread --output-format=json",
        log.path().display()
    ));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found = &document["jobs"][0][what];
    assert_eq!(found["total_ios"].as_u64(), Some(count), "{found}");
    found["iops"].as_f64().unwrap()
}

fn options(speed: Speed) -> AttachOptions {
    let (_, text) = builtin()
        .iter()
        .find(|(name, _)| *name == "a1-32gb")
        .unwrap();
    let whole = Profile::parse("a1-32gb", text).unwrap();
    AttachOptions {
        name: "a1-32gb".to_owned(),
        profile: whole.with_capacity(CARD_BYTES).unwrap(),
        state: BeginState::Used(1),
        speed,
        transport: Transport::Fuse,
        queue: HostQueue {
            scheduler: "none".into(),
            rotational: false,
            nr_requests: 128,
            read_ahead_kib: 128,
            largest_request_kib: 512,
        },
        request_cost: Nanos::ZERO,
        memory_bytes: CARD_BYTES,
        directory: std::env::temp_dir(),
    }
}

fn sh(command: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {text}{errors}");
    text
}

/// Mean number of processes that ran or wanted to in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
