//! What is particular to cards attached by ublk; skipped where the kernel has none.

use crate::common::{Direct, installed, options, ready, sh, skip, transport};
use rustix::io::{IoSlice, ReadWriteFlags, pwritev2};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use whichfs_attach::{AttachOptions, Driver, HostQueue, Speed, Transport, attach, clean};

/// A lock, where cards are attached by ublk.
fn by_ublk(test: &str) -> Option<impl Sized> {
    if transport() != Transport::Ublk {
        skip::skip(format!("{test}: for the virtual machine, see vm.rs"));
        return None;
    }
    ready(test)
}

#[test]
fn ublk_is_chosen_where_it_is_and_leaves_nothing() {
    let Some(_lock) = by_ublk("ublk_is_chosen") else {
        return;
    };
    let automatic = AttachOptions {
        transport: Transport::Auto,
        ..options("a1-32gb", 64, Speed::Max)
    };
    let attached = attach(automatic).unwrap();
    assert_eq!(attached.statistics().driver, Driver::Ublk);
    let device = attached.device();
    let server = PathBuf::from(device.display().to_string().replace("ublkb", "ublkc"));
    assert!(device.exists() && server.exists());
    attached.detach().unwrap();
    assert!(!device.exists() && !server.exists());
}

#[test]
fn ublk_requests_are_as_large_as_the_boards() {
    let Some(_lock) = by_ublk("ublk_requests_are_as_large") else {
        return;
    };
    let options = options("a1-32gb", 64, Speed::Max);
    let pandora = HostQueue {
        largest_request_kib: 1280,
        ..options.queue
    };
    let options = AttachOptions {
        queue: pandora,
        ..options
    };
    let attached = attach(options).unwrap();
    let mut device = Direct::open(&attached.device());
    device.write(0, &vec![3; 1280 << 10]);
    assert_eq!(device.read(0, 1280 << 10), vec![3; 1280 << 10]);
    drop(device);
    let statistics = attached.detach().unwrap();
    assert_eq!(statistics.largest_request_kib, 1280);
    let figures = statistics.figures;
    assert_eq!((figures.writes, figures.reads), (1, 1), "{figures:?}");
}

#[test]
fn ublk_forced_writes_need_no_flush_of_their_own() {
    let Some(_lock) = by_ublk("ublk_forced_writes") else {
        return;
    };
    let attached = attach(options("emmc-8gb", 64, Speed::Max)).unwrap();
    let mut open = std::fs::File::options();
    open.write(true).custom_flags(libc::O_DIRECT);
    let file = open.open(attached.device()).unwrap();
    let memory = vec![7_u8; 8192];
    let start = memory.as_ptr().align_offset(4096);
    let data = [IoSlice::new(&memory[start..start + 4096])];
    pwritev2(&file, &data, 0, ReadWriteFlags::DSYNC).unwrap();
    drop(file);
    // One flush is the kernel's for a synchronous write to any device; a device without FUA
    // would have one more for the write.
    let figures = attached.statistics().figures;
    assert_eq!((figures.writes, figures.flushes), (1, 1), "{figures:?}");
    attached.detach().unwrap();
}

#[test]
fn ublk_partitions_appear() {
    let test = "ublk_partitions_appear";
    let Some(_lock) = by_ublk(test).filter(|_| installed(test, "sfdisk")) else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    sh(&format!(
        "echo 4MiB, | sfdisk -q {device} && test -b {device}p1"
    ));
    attached.detach().unwrap();
}

#[test]
fn ublk_devices_of_others_are_not_cleaned() {
    let Some(_lock) = by_ublk("ublk_devices_of_others") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let name = attached.device().file_name().unwrap().to_owned();
    let name = name.to_str().unwrap();
    // A record of a dead process that names this device, as if a number was used again.
    let path = format!("/run/whichfs/attach/{name}.json");
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["start_time"] = 1.into();
    std::fs::write(&path, record.to_string()).unwrap();
    let left = clean().unwrap();
    assert!(left.iter().any(|one| one.taken), "{left:?}");
    assert!(!Path::new(&path).exists());
    Direct::open(&attached.device()).write(0, &[1; 512]);
    attached.detach().unwrap();
}

#[test]
fn ublk_completions_come_at_their_times() {
    let Some(_lock) = by_ublk("ublk_completions_come") else {
        return;
    };
    let attached = attach(options("class10-16gb", 64, Speed::REAL)).unwrap();
    let mut device = Direct::open(&attached.device());
    let begun = std::time::Instant::now();
    for n in 0..100 {
        device.write(n * 37 % 100 * 65536, &[1; 4096]);
    }
    let took = begun.elapsed().as_nanos() as u64;
    drop(device);
    let statistics = attached.detach().unwrap();
    let busy = statistics.figures.busy.0;
    assert_eq!(statistics.delivery.count, 100);
    assert!(took >= busy, "{took} ns for what the card does in {busy}");
    println!(
        "ublk: busy {busy} ns of {took}, way {} ns, late by {} ns (median), {} ns (p99)",
        statistics.way_ns, statistics.delivery.median_ns, statistics.delivery.p99_ns
    );
}
