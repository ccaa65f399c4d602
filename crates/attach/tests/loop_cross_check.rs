//! The same work on the same card, here in real time and in the lab in virtual time.
//!
//! Here: this machine's kernel on an attached card, in a memory cgroup of the board's size,
//! with the lab's queue limits and scheduler, without writeback throttling (the lab's kernel
//! has none). There: `whichfs lab exec --clock device`. Both run fio with the same offsets.
//!
//! Phases that wait for the device (direct, or fsync after each write, device busy for 95 %
//! and more of the time) must agree within 5 %. The others are shown: what fits in memory
//! takes no device time here or there, CPU is free in the lab, and dirty pages are written
//! when the kernel sees fit, which depends on its memory and version.
//!
//! fio and the kernel's threads that serve it (loop, jbd2, btrfs) have real-time priority
//! here, as they have the processor for themselves in the lab: what else this machine does
//! would otherwise be measured.
//!
//! What differs nevertheless: the kernels' versions; requests under way at once (loop takes
//! 128, UML's virtio its ring); the dirty limits of a cgroup (version 1 has none of its own).
//!
//! Reduced by default (a minute); `WHICHFS_SOAK=1` runs longer phases and more cards,
//! `WHICHFS_CROSS_CHECK_CARDS` names them.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{installed, options, ready, sh};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use whichfs_attach::{AttachOptions, Attached, Speed, attach};
use whichfs_card::{Profile, builtin};
use whichfs_units::{MIB, Nanos};

/// How far a device-bound phase here may be from the lab's.
const TOLERANCE: f64 = 0.05;
/// A phase is device-bound from here on.
const BUSY: f64 = 0.95;
/// A machine that does something else at the same time is slow, never fast: so often may it
/// be asked again.
const ATTEMPTS: usize = 3;
/// Bytes of the card that are used: the rest of its size only costs memory.
const CARD_MIB: u64 = 1024;

/// Filesystem, mkfs, mount options. btrfs without data checksums: with them, kernels from
/// 6.15 on (and some earlier ones) turn direct writes into buffered ones.
const FILESYSTEMS: [(&str, &str, &str); 2] = [
    (
        "ext4",
        "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 {device}",
        "noatime",
    ),
    ("btrfs", "mkfs.btrfs -q -f {device}", "noatime,nodatasum"),
];

/// What fio does, and whether it waits for the device. `{n}` is the length's factor.
const PHASES: [(&str, bool, &str); 8] = [
    (
        "direct sequential write 512K",
        true,
        "--filename=seq --rw=write --bs=512k --direct=1 --size=32M --loops={n}",
    ),
    (
        "direct sequential read 512K",
        true,
        "--filename=seq --rw=read --bs=512k --direct=1 --size=32M --loops={n}",
    ),
    (
        "direct random write 4K",
        true,
        "--filename=seq --rw=randwrite --bs=4k --direct=1 --size=32M --io_size={n}M",
    ),
    (
        "direct random write 4K, queue 8",
        true,
        "--filename=seq --rw=randwrite --bs=4k --direct=1 --size=32M --io_size={n}M \
         --ioengine=libaio --iodepth=8 --randseed=7",
    ),
    (
        "direct random read 64K",
        true,
        "--filename=seq --rw=randread --bs=64k --direct=1 --size=32M --io_size={n}6M",
    ),
    (
        "random write 4K, fsync each",
        true,
        "--filename=sync --rw=randwrite --bs=4k --size=16M --io_size={n}M \
         --number_ios={n}60 --fsync=1",
    ),
    (
        "buffered write 64K, fsync at the end",
        false,
        "--filename=buffered --rw=write --bs=64k --size=32M --end_fsync=1",
    ),
    (
        "buffered read of what was written",
        false,
        "--filename=buffered --rw=read --bs=64k --size=32M --invalidate=0",
    ),
];

/// One phase, here and there.
#[derive(Clone, Debug)]
struct Row {
    phase: &'static str,
    waits: bool,
    here_s: f64,
    lab_s: f64,
    /// The device's share of the time here.
    busy: f64,
}

impl Row {
    fn gated(&self) -> bool {
        self.waits && self.busy >= BUSY
    }

    fn ratio(&self) -> f64 {
        self.here_s / self.lab_s
    }
}

/// Why a cross-check does not hold.
#[derive(Debug, PartialEq)]
enum Fault {
    /// Too few phases keep the device busy to judge by: this machine is slow beside the card.
    Idle,
    /// Phases that differ by more than [`TOLERANCE`].
    Off(Vec<&'static str>),
}

/// The gated phases that disagree; or that there is nothing to judge.
fn judge(rows: &[Row]) -> Result<(), Fault> {
    let gated = |kind: &str| {
        let ours = rows.iter().filter(|row| row.phase.contains(kind));
        ours.filter(|row| row.gated()).count()
    };
    if gated("direct") < 2 || gated("fsync each") < 1 {
        return Err(Fault::Idle);
    }
    let off = |row: &&Row| row.gated() && (row.ratio() - 1.0).abs() > TOLERANCE;
    let wrong: Vec<&str> = rows.iter().filter(off).map(|row| row.phase).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Fault::Off(wrong)),
    }
}

fn table(title: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "{title}\n{:<38} {:>9} {:>9} {:>6} {:>6}\n",
        "phase", "here s", "lab s", "ratio", "busy"
    );
    for row in rows {
        let note = if row.gated() { "" } else { "  not gated" };
        let _ = writeln!(
            text,
            "{:<38} {:>9.3} {:>9.3} {:>6.3} {:>5.1}%{note}",
            row.phase,
            row.here_s,
            row.lab_s,
            row.ratio(),
            row.busy * 100.0
        );
    }
    text
}

/// The fio command line of a phase.
fn fio(args: &str, factor: u64) -> String {
    let args = args.replace("{n}", &factor.to_string());
    format!(
        "fio --name=x --ioengine=psync --clocksource=clock_gettime --output-format=json \
         --fallocate=none {args}"
    )
}

/// Seconds that the job in a document of fio took.
fn seconds(document: &Value) -> f64 {
    let job = &document["jobs"][0];
    assert_eq!(job["error"], 0, "{document}");
    let millis = ["read", "write"].map(|side| job[side]["runtime"].as_f64().unwrap());
    let sync = millis[0]
        .max(millis[1])
        .max(job["job_runtime"].as_f64().unwrap_or(0.0));
    sync / 1e3
}

/// Profile file of the card for the lab, and the options for here. `name:8000` is the card
/// with 8,000 us more for each write and read: as slow as many are that were measured, so that
/// what the processor does between two requests is little beside it.
fn card(name: &str, directory: &Path) -> (PathBuf, AttachOptions) {
    let (name, overhead) = name.split_once(':').unwrap_or((name, ""));
    let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
    let whole = Profile::parse(name, text).unwrap();
    let old = whole.capacity_bytes().to_string();
    // Only the capacity is another: the spare blocks of the whole card stay, so garbage
    // collection, whose pauses depend on where a kernel put what, does not begin.
    let shown = text.lines().map(|line| {
        if !line.starts_with("capacity_bytes") {
            return line.to_owned();
        }
        let plain = line
            .replace('_', "")
            .replace("capacitybytes", "capacity_bytes");
        assert!(plain.contains(&old), "{line}");
        plain.replacen(&old, &(CARD_MIB * MIB).to_string(), 1)
    });
    let mut text: String = shown.map(|line| line + "\n").collect();
    if !overhead.is_empty() {
        for (section, name) in [("[write]", "overhead_us"), ("[read]", "first_page_us")] {
            let at = text.find(section).unwrap();
            let from = at + text[at..].find(name).unwrap();
            let end = from + text[from..].find('\n').unwrap();
            let figure = format!("{name} = {{ value = {overhead}, source = \"slower\" }}");
            text.replace_range(from..end, &figure);
        }
    }
    let file = directory.join(format!("{name}-cut.toml"));
    std::fs::write(&file, &text).unwrap();
    // The lab draws a card within the profile's uncertainty by the seed; so do we.
    let profile = Profile::parse(name, &text).unwrap().draw(1);
    let options = AttachOptions {
        profile,
        // boards/generic-1ghz.toml, host.mmc.request_cost_ns: the lab's default board.
        request_cost: Nanos(30_000),
        ..options(name, CARD_MIB, Speed::Max)
    };
    (file, options)
}

/// The lab's command, kernel and agent; prints what is missing.
fn lab() -> Option<PathBuf> {
    let Some(agent) = std::env::var_os("WHICHFS_AGENT") else {
        common::skip::skip("WHICHFS_AGENT is not set (make test sets it)");
        return None;
    };
    let command = Path::new(&agent).with_file_name("whichfs");
    if std::env::var_os("WHICHFS_KERNEL").is_none() || !command.is_file() {
        common::skip::skip(format!(
            "no lab kernel (make kernel) or no {command:?} (make build)"
        ));
        return None;
    }
    Some(command)
}

/// Runs all phases in one guest; seconds of each.
fn there(whichfs: &Path, card: &Path, fs: (&str, &str, &str), factor: u64) -> Vec<f64> {
    let script: String = PHASES
        .iter()
        .map(|(_, _, args)| fio(args, factor) + " || exit 1; sync; ")
        .collect();
    let output = Command::new(whichfs)
        .args(["lab", "exec", "--json", "--clock", "device", "--seed", "1"])
        .args(["--fs", fs.0, "--mkfs", fs.1, "--mount", fs.2, "--card"])
        .arg(card)
        .args(["--", "/bin/sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{output:?}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let printed = document["stdout"].as_str().unwrap();
    let documents = serde_json::Deserializer::from_str(printed).into_iter::<Value>();
    documents
        .map(|document| seconds(&document.unwrap()))
        .collect()
}

/// A cgroup with the memory of the lab's guest; gone with the value.
struct Memory(PathBuf);

impl Memory {
    fn new(mib: u64) -> Memory {
        let name = format!("whichfs-cross-check-{}", std::process::id());
        let old = Path::new("/sys/fs/cgroup/memory");
        let (parent, limit) = match old.is_dir() {
            true => (old, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        if !old.is_dir() {
            std::fs::write(parent.join("cgroup.subtree_control"), "+memory").unwrap();
        }
        let group = parent.join(name);
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join(limit), (mib * MIB).to_string()).unwrap();
        Memory(group)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Kernel threads between fio and the card, with real-time priority until the value goes.
struct Urgent(Vec<String>);

impl Urgent {
    const NAMES: [&str; 3] = ["kworker/u", "jbd2/", "btrfs-"];

    fn new() -> Urgent {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let names = processes.filter_map(|process| {
            let comm = std::fs::read_to_string(process.path().join("comm")).ok()?;
            let is_one = Urgent::NAMES.iter().any(|name| comm.starts_with(name));
            is_one.then(|| process.file_name().to_string_lossy().into_owned())
        });
        let urgent = Urgent(names.collect());
        urgent.set("-f", "1");
        urgent
    }

    fn set(&self, policy: &str, priority: &str) {
        for pid in &self.0 {
            // Kernel threads come and go: one that is gone needs nothing.
            let mut chrt = Command::new("chrt");
            let _ = chrt.args([policy, "-p", priority, pid]).output();
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        self.set("-o", "0");
    }
}

/// The partition that the lab gives its guest: its path.
fn partition(attached: &Attached, profile: &Profile) -> String {
    let offset = (4 * MIB).next_multiple_of(profile.au_bytes());
    let room = profile.capacity_bytes() - offset;
    let bytes = room - room % profile.au_bytes();
    let device = attached.device().display().to_string();
    sh(&format!(
        "addpart {device} 1 {} {}",
        offset / 512,
        bytes / 512
    ));
    format!("{device}p1")
}

/// Runs all phases here; for each the seconds and the device's share of them.
fn here(options: &AttachOptions, fs: (&str, &str, &str), factor: u64) -> Vec<(f64, f64)> {
    const BOARD_MIB: u64 = 512;
    let memory = Memory::new(BOARD_MIB);
    let attached = attach(options.clone()).unwrap();
    let name = attached.device().file_name().unwrap().to_owned();
    let wbt = Path::new("/sys/block")
        .join(name)
        .join("queue/wbt_lat_usec");
    if wbt.exists() {
        std::fs::write(&wbt, "0").unwrap();
    }
    let device = partition(&attached, &options.profile);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    sh(&fs.1.replace("{device}", &device));
    sh(&format!("mount -o {} {device} {at} && sync", fs.2));
    let mut measured = Vec::new();
    for (_, _, args) in PHASES {
        let urgent = Urgent::new();
        attached.set_speed(Speed::REAL);
        let before = attached.statistics();
        let group = memory.0.display();
        let command = fio(args, factor);
        let printed = sh(&format!(
            "echo $$ >{group}/cgroup.procs; cd {at}; exec chrt -f 1 {command}"
        ));
        let after = attached.statistics();
        drop(urgent);
        let s = seconds(&serde_json::from_str(&printed).unwrap());
        let busy = (after.figures.busy - before.figures.busy).as_secs_f64();
        measured.push((s, busy / s));
        attached.set_speed(Speed::Max);
        sh(&format!("sync -f {at}"));
    }
    sh(&format!("umount {at}"));
    let figures = attached.detach().unwrap();
    let us = |ns: u64| ns as f64 / 1e3;
    eprintln!(
        "delivered minus modelled: median {:.0} us, 99 % within {:.0} us, at most {:.0} us",
        us(figures.delivery.median_ns),
        us(figures.delivery.p99_ns),
        us(figures.delivery.max_ns)
    );
    measured
}

fn rows(here: &[(f64, f64)], lab: &[f64]) -> Vec<Row> {
    assert_eq!((here.len(), lab.len()), (PHASES.len(), PHASES.len()));
    let each = PHASES.iter().zip(here).zip(lab);
    each.map(|(((phase, waits, _), (here_s, busy)), lab_s)| Row {
        phase,
        waits: *waits,
        here_s: *here_s,
        lab_s: *lab_s,
        busy: *busy,
    })
    .collect()
}

/// Compares `fs` on the card `name`, in several attempts; where this machine is too slow to keep
/// that card busy, on one that takes half as long again for a request, and so on.
fn checked(whichfs: &Path, name: &str, fs: (&str, &str, &str), factor: u64) -> Result<(), Fault> {
    const SLOWEST_US: u64 = 18_000;
    let directory = tempfile::tempdir().unwrap();
    let mut name = name.to_owned();
    loop {
        let (file, options) = card(&name, directory.path());
        let lab = there(whichfs, &file, fs, factor);
        let mut verdict = Ok(());
        for attempt in 1..=ATTEMPTS {
            let rows = rows(&here(&options, fs, factor), &lab);
            let title = format!("{} on {name}, attempt {attempt}", fs.0);
            eprintln!("{}", table(&title, &rows));
            verdict = judge(&rows);
            if verdict.is_ok() {
                return verdict;
            }
        }
        match (&verdict, name.split_once(':')) {
            (Err(Fault::Idle), Some((card, us))) if us.parse::<u64>().unwrap() < SLOWEST_US => {
                name = format!("{card}:{}", us.parse::<u64>().unwrap() * 3 / 2);
            }
            _ => return verdict,
        }
    }
}

#[test]
fn loop_cross_check() {
    let test = "loop_cross_check";
    let Some(whichfs) = lab().filter(|_| ready(test).is_some() && installed(test, "fio")) else {
        return;
    };
    let soak = std::env::var_os("WHICHFS_SOAK").is_some();
    let (cards, factor) = match soak {
        true => ("a1-32gb:3000 a1-32gb:8000 emmc-8gb:3000", 5),
        false => ("a1-32gb:8000", 1),
    };
    let cards = std::env::var("WHICHFS_CROSS_CHECK_CARDS").unwrap_or(cards.to_owned());
    let mut wrong = Vec::new();
    for name in cards.split(' ') {
        for fs in FILESYSTEMS {
            let known = std::fs::read_to_string("/proc/filesystems").unwrap();
            if !known.lines().any(|line| line.trim() == fs.0) {
                common::skip::skip(format!("{test}: {}: this kernel does not have it", fs.0));
                continue;
            }
            if !installed(test, fs.1.split(' ').next().unwrap()) {
                continue;
            }
            let verdict = checked(&whichfs, name, fs, factor);
            wrong.extend(
                verdict
                    .err()
                    .map(|why| format!("{} on {name}: {why:?}", fs.0)),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_phase_that_is_six_percent_off_is_found() {
    let named = |phase, waits, here_s, busy| Row {
        phase,
        waits,
        here_s,
        lab_s: 1.0,
        busy,
    };
    let row = |waits, here_s, busy| named("direct", waits, here_s, busy);
    let fsync = named("fsync each", true, 0.98, 0.96);
    let good = [vec![fsync], vec![row(true, 1.04, 0.97); 3]].concat();
    assert_eq!(judge(&good), Ok(()));
    for planted in [row(true, 1.06, 0.96), row(true, 0.94, 0.99)] {
        let rows = [good.clone(), vec![planted]].concat();
        assert!(judge(&rows).is_err());
    }
    let ungated = [row(false, 3.0, 0.99), row(true, 2.0, 0.5)];
    assert_eq!(judge(&[good.clone(), ungated.to_vec()].concat()), Ok(()));
    assert!(judge(&good[..2]).is_err(), "too few to compare");
    assert!(judge(&good[1..]).is_err(), "no fsync to compare");
}
