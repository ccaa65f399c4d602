//! Every reason against losing a disk's data: told clearly, and the disk untouched.
#![allow(clippy::unwrap_used)]

mod cases;
mod machine;
use whichfs_testkit::skip;

use cases::{Case, changes, kinds, mounts, paths, uses, words};
use machine::{BYTES, CID, Loop, Machine};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use whichfs_device::{DestroyLimits, TargetDisk};

/// What the guards say; empty if they say nothing. Then the disk is lost, as a command that they
/// let go would do it.
fn said(case: &Case, machine: &Machine) -> String {
    let path = match case.path {
        "" => machine.device.as_path(),
        path => Path::new(path),
    };
    let judged =
        TargetDisk::find(path, &case.limits, &machine.roots).and_then(|mut target_disk| {
            (case.then)(machine);
            target_disk.confirm(case.destroy, &machine.roots)
        });
    judged
        .map(|()| overwrite(&machine.device))
        .err()
        .map_or(String::new(), |error| error.to_string())
}

fn overwrite(device: &Path) {
    let mut disk = File::options().write(true).open(device).unwrap();
    disk.write_all(&[0xa5; 1 << 16]).unwrap();
    disk.sync_all().unwrap();
}

#[test]
fn loop_attack_every_reason_is_told_and_the_disk_is_untouched() {
    let Some(device) = Loop::new() else { return };
    let before = device.hash();
    let all = [paths(), mounts(), uses(), kinds(), words(), changes()].concat_cases();
    let names: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
    assert!(names.len() >= 75, "{} cases", names.len());
    for case in &all {
        let machine = Machine::new(&device);
        (case.set)(&machine);
        let told = said(case, &machine);
        for words in case.says {
            assert!(
                told.contains(words),
                "{}: {words:?} is not in {told:?}",
                case.name
            );
        }
        assert!(
            told.contains("; ") || told.contains(": "),
            "{}: no remedy: {told}",
            case.name
        );
        assert_eq!(device.hash(), before, "{}: written to", case.name);
        drop(machine.root);
    }
}

trait Concat {
    fn concat_cases(self) -> Vec<Case>;
}

impl<const N: usize> Concat for [Vec<Case>; N] {
    fn concat_cases(self) -> Vec<Case> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn loop_a_free_card_that_is_confirmed_by_either_name_is_let_go() {
    let Some(device) = Loop::new() else { return };
    for destroy in [CID, &format!("device/cid {CID}, 16384 sectors")] {
        let machine = Machine::new(&device);
        let mut target_disk =
            TargetDisk::find(&device.path, &DestroyLimits::default(), &machine.roots).unwrap();
        assert_eq!((target_disk.bytes, target_disk.name()), (BYTES, "sdz"));
        target_disk.confirm(Some(destroy), &machine.roots).unwrap();
        target_disk.check(&machine.roots).unwrap();
    }
    let before = device.hash();
    overwrite(&device.path);
    assert_ne!(device.hash(), before, "what is let go is written to");
    let machine = Machine::new(&device);
    machine.disk("pci0/ata1/sda");
    let limits = DestroyLimits {
        internal: true,
        ..DestroyLimits::default()
    };
    TargetDisk::find(&device.path, &limits, &machine.roots).unwrap();
}

#[test]
fn loop_attack_who_claims_or_locks_it_without_a_trace_is_respected() {
    let Some(device) = Loop::new() else { return };
    let before = device.hash();
    let machine = Machine::new(&device);
    let refused = || {
        let mut target_disk =
            TargetDisk::find(&device.path, &DestroyLimits::default(), &machine.roots).unwrap();
        target_disk
            .confirm(Some(CID), &machine.roots)
            .unwrap_err()
            .to_string()
    };
    // A pool, or a mount in a namespace that cannot be seen: neither sysfs nor proc tells.
    let exclusive = open(&device.path, OFlags::RDONLY | OFlags::EXCL, Mode::empty()).unwrap();
    assert!(
        refused().contains("in use by another program"),
        "{}",
        refused()
    );
    drop(exclusive);
    let locked = open(&device.path, OFlags::RDONLY, Mode::empty()).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    assert!(
        refused().contains("in use by another program"),
        "{}",
        refused()
    );
    drop(locked);
    assert_eq!(device.hash(), before);
}

#[test]
fn loop_a_link_to_the_device_is_the_device() {
    let Some(device) = Loop::new() else { return };
    let machine = Machine::new(&device);
    let link = machine.root.path().join("usb-Generic_Card_Reader-0:0");
    symlink(&device.path, &link).unwrap();
    machine.mount("259:77", "/", "/dev/root");
    let refused = TargetDisk::find(&link, &DestroyLimits::default(), &machine.roots).unwrap_err();
    assert!(refused.to_string().contains("of this system"), "{refused}");
}
