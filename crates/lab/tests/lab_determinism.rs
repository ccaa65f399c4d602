//! The same trial gives the same nanoseconds: alone, beside a CPU burner on its own core,
//! beside another trial on the other core. Three runs of each filesystem and clock;
//! `WHICHFS_SOAK=1` makes it twenty.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Trial, fingerprint, one_at_a_time, path_only, prices, profile, shell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use whichfs_fs::{Candidate, Geometry, Purpose, Recipe, candidates};
use whichfs_trial::Step;

/// The partition's size: small, so that mkfs is quick.
const PARTITION: u64 = 1 << 30;
/// Picoseconds an instruction of the clock `cpu`.
const CPU: u64 = 2_400;
/// Runs by default and with `WHICHFS_SOAK`.
const RUNS: usize = 3;
const SOAK_RUNS: usize = 20;

fn runs() -> usize {
    if std::env::var_os("WHICHFS_SOAK").is_some() {
        SOAK_RUNS
    } else {
        RUNS
    }
}

fn recipe(candidate: &Candidate, seed: u64) -> Recipe {
    let card = profile("a1-32gb");
    let geometry = Geometry {
        partition_bytes: PARTITION,
        page_bytes: card.page_bytes(),
        write_unit_bytes: card.write_unit_bytes(),
        au_bytes: card.au_bytes(),
        discard: false,
        flush: false,
    };
    candidate.recipe(&geometry, Purpose::Lab { seed }).unwrap()
}

/// Make, mount, write files big and small, remove some, read, unmount.
fn steps(recipe: &Recipe) -> Vec<Step> {
    let mut environment = path_only();
    environment.extend(recipe.mkfs_env.clone());
    let mkfs = recipe.mkfs.iter().map(|argv| Step::Run {
        phase: None,
        argv: argv
            .iter()
            .map(|word| word.replace(Recipe::DEVICE, "/dev/vda"))
            .collect(),
        env: environment.clone(),
        dir: "/".into(),
        stdin: String::new(),
        show: false,
        any_status: false,
        keeps_rights: false,
    });
    let mut steps: Vec<Step> = mkfs.collect();
    steps.extend([
        common::mount(recipe.kernel_fs, &recipe.mount_options),
        // The names differ in more than case: FAT takes them.
        shell(
            "set -e; cd /mnt/test; mkdir d; cp -r /usr/include/asm-generic d/; sync; \
             dd if=/dev/urandom of=big bs=64k count=64 conv=fsync 2>/dev/null; \
             i=0; while [ $i -lt 50 ]; do echo $i >f$i; i=$((i+1)); done; rm f1*; sync",
        ),
        Step::DropCaches,
        shell("cat /mnt/test/big /mnt/test/d/asm-generic/* 2>/dev/null | cksum"),
        common::unmount(),
    ]);
    steps
}

fn trial(candidate: &Candidate, seed: u64, cpu: u64, core: usize) -> Option<Trial> {
    let mut trial = Trial::new(seed, steps(&recipe(candidate, seed)))?;
    trial.cpu = prices(cpu);
    trial.core = Some(core);
    Some(trial)
}

fn run(candidate: &Candidate, seed: u64, cpu: u64, core: usize) -> Option<String> {
    let life = trial(candidate, seed, cpu, core)?.run();
    let text = fingerprint(&life);
    assert!(text.starts_with("done\n"), "{}: {text}", candidate.name);
    Some(text)
}

/// Runs `work` while something on `core` takes all the CPU that it can get.
fn beside_a_burner<T>(core: usize, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(core);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Runs `work` while another trial runs on the last core.
fn beside_a_trial<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let writes = shell("while :; do dd if=/dev/zero of=/dev/vda bs=4k count=1000; done");
            let mut other = Trial::new(999, vec![writes]).unwrap();
            other.core = whichfs_lab::available_cores().last().copied();
            other.run_with(&stop, &mut |_| {});
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// The first line in which two fingerprints differ.
fn difference(a: &str, b: &str) -> Option<String> {
    let lines = a.lines().zip(b.lines()).enumerate();
    let mut differs = lines.filter(|(_, (a, b))| a != b);
    let found = differs
        .next()
        .map(|(i, (a, b))| format!("line {i}\n  {a}\n  {b}"));
    found.or_else(|| (a.len() != b.len()).then(|| "another length".into()))
}

/// Runs `candidate` with each kind of company in turn; what differed.
fn leaks(candidate: &Candidate, cpu: u64) -> Vec<String> {
    let core = whichfs_lab::available_cores()[0];
    let once = || run(candidate, 7, cpu, core).unwrap();
    let first = once();
    let mut found = Vec::new();
    for index in 1..runs() {
        let (company, again) = match index % 3 {
            1 => ("beside a burner", beside_a_burner(core, once)),
            2 => ("beside a trial", beside_a_trial(once)),
            _ => ("alone", once()),
        };
        if let Some(what) = difference(&first, &again) {
            found.push(format!(
                "{} at {cpu} ps, run {index} {company}: {what}",
                candidate.name
            ));
        }
    }
    found
}

fn every_filesystem_repeats(cpu: u64) {
    let _one = one_at_a_time();
    if Trial::new(0, Vec::new()).is_none() {
        return;
    }
    let written = candidates()
        .iter()
        .filter(|candidate| !candidate.facts().read_only);
    let found: Vec<String> = written
        .flat_map(|candidate| leaks(candidate, cpu))
        .collect();
    assert!(found.is_empty(), "not deterministic:\n{}", found.join("\n"));
}

#[test]
fn lab_every_filesystem_repeats_with_the_cpu_clock() {
    every_filesystem_repeats(CPU);
}

#[test]
fn lab_every_filesystem_repeats_with_the_device_clock() {
    every_filesystem_repeats(0);
}

/// UML prints its process number while it boots: a longer one must not take longer. Needs root,
/// who may say which number comes next.
#[test]
fn lab_the_process_number_does_not_matter() {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    let _one = one_at_a_time();
    let ext4 = whichfs_fs::find("ext4").unwrap();
    let core = whichfs_lab::available_cores()[0];
    let mut found = Vec::new();
    for number in ["400", "5000", "20000"] {
        if let Err(error) = std::fs::write(NEXT, number) {
            eprintln!("skipped: {NEXT} cannot be written: {error}");
            return;
        }
        let Some(text) = run(ext4, 7, CPU, core) else {
            return;
        };
        found.push(text);
    }
    for other in &found[1..] {
        assert_eq!(difference(&found[0], other), None);
    }
}

/// The checker itself can fail: another seed is another trial.
#[test]
fn lab_another_seed_is_another_trial() {
    let _one = one_at_a_time();
    let ext4 = whichfs_fs::find("ext4").unwrap();
    let core = whichfs_lab::available_cores()[0];
    let (Some(a), Some(b)) = (run(ext4, 7, CPU, core), run(ext4, 8, CPU, core)) else {
        return;
    };
    assert!(
        difference(&a, &b).is_some(),
        "seeds 7 and 8 gave the same trial"
    );
}

/// The two clocks differ, or the CPU costs nothing.
#[test]
fn lab_the_cpu_clock_takes_time() {
    let _one = one_at_a_time();
    let ext4 = whichfs_fs::find("ext4").unwrap();
    let core = whichfs_lab::available_cores()[0];
    let Some((free, paid)) = trial(ext4, 7, 0, core).zip(trial(ext4, 7, CPU, core)) else {
        return;
    };
    let (free, paid) = (free.run().time, paid.run().time);
    assert!(paid > free, "{paid} with CPU time, {free} without");
}
