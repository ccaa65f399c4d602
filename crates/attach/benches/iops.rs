//! What the tool itself costs: IOPS of 4 KiB direct random writes at the speed `max`, beside
//! nbdkit's memory plugin through nbdfuse, each below a loop device in direct I/O:
//! `cargo bench -p whichfs-attach --bench iops` (root; fio; packages nbdkit and libnbd-bin).
//!
//! The card model runs at the speed `max` too: only the waiting is left out. Runs are in pairs, now
//! the one first and now the other, so that what else the machine does meets both; the ratio is the
//! median of those of the pairs, beside it the least and the greatest and the machine's load.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{installed, options, ready, sh};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use whichfs_attach::{Speed, attach};

/// Pairs of runs.
const RUNS: usize = 7;
const SECONDS: u32 = 2;
const MIB: u64 = 512;
const DEPTHS: [u32; 2] = [1, 32];

fn main() {
    // `cargo test --benches` runs this too: then it only has to build.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let bench = "iops";
    if ready(bench).is_none() || !installed(bench, "fio") {
        return;
    }
    let peer = installed(bench, "nbdkit") && installed(bench, "nbdfuse");
    for depth in DEPTHS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            if peer && run % 2 == 1 {
                theirs.push(nbdkit(depth));
            }
            ours.push(attached(depth));
            if peer && run % 2 == 0 {
                theirs.push(nbdkit(depth));
            }
        }
        let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        println!(
            "queue {depth:>2}: attached card, speed max  {:>8.0} IOPS",
            median(&mut ours)
        );
        if peer {
            println!(
                "queue {depth:>2}: nbdkit memory, nbdfuse    {:>8.0} IOPS",
                median(&mut theirs)
            );
            println!(
                "queue {depth:>2}: ratio, median of {RUNS} pairs {:>8.2} ({:.2} to {:.2}); load {}",
                median(&mut ratios),
                ratios[0],
                ratios[RUNS - 1],
                load()
            );
        }
    }
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

/// IOPS of fio on a device, with the scheduler `none` for all.
fn measure(device: &Path, depth: u32) -> f64 {
    let name = device.file_name().unwrap().to_str().unwrap();
    std::fs::write(format!("/sys/block/{name}/queue/scheduler"), "none").unwrap();
    let text = sh(&format!(
        "fio --name=x --filename={} --rw=randwrite --bs=4k --direct=1 --size=100% \
         --ioengine=libaio --iodepth={depth} --time_based --runtime={SECONDS} \
         --output-format=json",
        device.display()
    ));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["jobs"][0]["write"]["iops"].as_f64().unwrap()
}

fn attached(depth: u32) -> f64 {
    let attached = attach(options("a1-32gb", MIB, Speed::Max)).unwrap();
    let iops = measure(&attached.device(), depth);
    attached.detach().unwrap();
    iops
}

fn nbdkit(depth: u32) -> f64 {
    let peer = Nbdkit::start();
    measure(&peer.device, depth)
}

/// nbdkit's memory plugin, nbdfuse and a loop device; all gone with the value.
struct Nbdkit {
    server: Child,
    device: PathBuf,
    // Last: unmounted before it is removed.
    directory: tempfile::TempDir,
}

impl Nbdkit {
    fn start() -> Nbdkit {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("card");
        std::fs::write(&file, "").unwrap();
        let server = Command::new("nbdfuse")
            .arg(&file)
            .args(["--command", "nbdkit", "-s", "memory", &format!("{MIB}M")])
            .spawn()
            .unwrap();
        while file.metadata().unwrap().len() != MIB << 20 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let path = file.display();
        let device = sh(&format!("losetup -f --show --direct-io=on {path}"));
        Nbdkit {
            server,
            device: device.trim().into(),
            directory,
        }
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let file = self.directory.path().join("card");
        sh(&format!("losetup -d {}", self.device.display()));
        // The loop driver lets go of the file a moment after.
        sh(&format!(
            "for i in $(seq 50); do fusermount3 -u {0} 2>&1 && exit; sleep 0.1; done; exit 1",
            file.display()
        ));
        let _ = self.server.wait();
    }
}
