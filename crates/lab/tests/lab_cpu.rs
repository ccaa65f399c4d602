//! What the guest's kernel counts in a phase, at the board's prices.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Trial, command, mount, one_at_a_time, prices, shell, unmount};
use whichfs_trial::{CpuCounts, Event, Step};
use whichfs_units::Nanos;

/// Bytes that `write` writes: they compress to a third.
const WRITE: &str = "seq 1 1500000 | head -c 8M > /mnt/test/x; sync";

/// Price of an instruction in picoseconds.
const INSTRUCTION: u64 = 4000;

/// CpuCounts and duration of each phase of a guest that writes on btrfs with `options`.
fn phases(options: &str) -> Option<Vec<(String, CpuCounts, Nanos)>> {
    let Step::Run {
        argv,
        env,
        dir,
        stdin,
        show,
        any_status,
        ..
    } = shell(WRITE)
    else {
        unreachable!("a shell is a program")
    };
    let write = Step::Run {
        phase: Some("write".into()),
        argv,
        env,
        dir,
        stdin,
        show,
        any_status,
        keeps_rights: false,
    };
    let memory = Step::Mount {
        phase: Some("memory".into()),
        source: "none".into(),
        target: "/mnt/memory".into(),
        kernel_fs: "tmpfs".into(),
        options: String::new(),
    };
    let make = command(&["mkfs.btrfs", "-q", "-f", "/dev/vda"]);
    let steps = vec![make, mount("btrfs", options), write, unmount(), memory];
    let mut trial = Trial::new(7, steps)?;
    trial.cpu = prices(INSTRUCTION);
    trial.counts_work = true;
    let life = trial.run();
    life.result.as_ref().unwrap();
    let mut begun = Nanos(0);
    let mut took = Nanos(0);
    let mut found = Vec::new();
    for stamped in &life.events {
        match &stamped.event {
            Event::PhaseBegin { .. } => begun = stamped.at,
            Event::PhaseEnd { .. } => took = stamped.at.saturating_sub(begun),
            Event::Work { phase, work } => found.push((phase.clone(), *work, took)),
            _ => {}
        }
    }
    Some(found)
}

#[test]
fn lab_compression_takes_cpu_time_and_the_same_again() {
    let _one = one_at_a_time();
    let Some(plain) = phases("noatime") else {
        return;
    };
    let packed = phases("noatime,compress-force=zstd").unwrap();
    assert_eq!(packed, phases("noatime,compress-force=zstd").unwrap());
    let names: Vec<&str> = plain.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["mount", "write", "memory"]);
    let time = |work: &CpuCounts| prices(INSTRUCTION).time(work).unwrap();
    for (name, work, took) in plain.iter().chain(&packed) {
        println!("{name}: {} of {took}", time(work));
    }
    let ((_, plain_work, _), (_, packed_work, _)) = (&plain[1], &packed[1]);
    assert!(packed_work.compression > 0 && plain_work.compression == 0);
    assert!(
        time(packed_work).0 * 2 > time(plain_work).0 * 3,
        "{packed_work:?}"
    );
    // A mount of tmpfs waits for nothing: all of its time is the CPU's, and what is beyond it are
    // the two events.
    let (_, work, took) = &plain[2];
    let events = time(work).saturating_sub(*took);
    assert!(
        time(work) >= *took && events < Nanos::from_micros(1000),
        "{events} of {took}"
    );
}

#[test]
fn lab_where_the_cpu_is_free_work_has_no_time() {
    let _one = one_at_a_time();
    let Some(mut trial) = Trial::new(8, vec![]) else {
        return;
    };
    trial.steps = vec![Step::Mount {
        phase: Some("memory".into()),
        source: "none".into(),
        target: "/mnt/memory".into(),
        kernel_fs: "tmpfs".into(),
        options: String::new(),
    }];
    trial.counts_work = true;
    let cpu = trial.cpu;
    let life = trial.run();
    life.result.as_ref().unwrap();
    let work = life.events.iter().find_map(|stamped| match &stamped.event {
        Event::Work { work, .. } => Some(*work),
        _ => None,
    });
    let work = work.unwrap();
    assert!(work.code > 0 && work.syscall > 0);
    assert_eq!(cpu.time(&work), None);
}
