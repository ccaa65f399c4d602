//! A plan written to a disk: a loop device of this machine (root).
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_format::{Check, Disk, FormatError, Left, Outcome, format_disk};
use whichfs_here::{Doomed, Limits, Roots};
use whichfs_layout::{Layout, Medium, Plan, TableKind, Unit};
use whichfs_units::MIB;

/// A loop device with partitions, detached when it goes.
struct Loop {
    path: PathBuf,
    file: PathBuf,
    _home: tempfile::TempDir,
}

impl Loop {
    fn new(bytes: u64) -> Option<Loop> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-P", "-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        Some(Loop {
            path: String::from_utf8_lossy(&output.stdout).trim().into(),
            file,
            _home: home,
        })
    }

    fn doomed(&self) -> Doomed {
        let roots = Roots::default();
        let mut doomed = Doomed::find(&self.path, &Limits::default(), &roots).unwrap();
        let id = doomed.id.clone();
        assert_eq!(Path::new(&id), self.file);
        doomed.confirm(Some(&id), &roots).unwrap();
        doomed
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("partx").arg("-d").arg(&self.path).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

const LAYOUT: &str = r#"
[[partition]]
name = "boot"
role = "boot"
fs = "ext2"
size = "32M"
mount = "/boot"
[[partition]]
name = "data"
role = "data"
size = "rest"
mount = "/data"
"#;

fn plan(bytes: u64, unit_mib: u64, table: TableKind, fs: &str) -> Plan {
    let layout = Layout {
        table,
        ..Layout::parse("layout", LAYOUT).unwrap()
    };
    let medium = Medium::of_unit(bytes, Unit::new(unit_mib * MIB, "given").unwrap(), true);
    Plan::new(&layout, &medium, Some(fs), 3).unwrap()
}

fn format(
    device: &Loop,
    plan: &Plan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Check>, FormatError> {
    let journals = device.file.with_file_name("journals");
    format_disk(
        &device.doomed(),
        plan,
        &Roots::default(),
        &journals,
        stop,
        tell,
    )
}

fn left(device: &Loop) -> Left {
    let id = device.file.display().to_string();
    Left::read(&device.file.with_file_name("journals"), &id).unwrap()
}

#[test]
fn loop_a_disk_is_formatted_mounted_written_read_and_checked() {
    const BYTES: u64 = 640 << 20;
    for (table, unit, fs) in [
        (TableKind::Gpt, 4, "ext4"),
        (TableKind::Mbr, 12, "btrfs"),
        (TableKind::Gpt, 3, "xfs"),
        (TableKind::Gpt, 4, "f2fs"),
    ] {
        let Some(device) = Loop::new(BYTES) else {
            return;
        };
        let plan = plan(BYTES, unit, table, fs);
        let never = AtomicBool::new(false);
        let checks = format(&device, &plan, &never, &mut |_| ()).unwrap();
        assert!(!checks.iter().any(Check::is_bad), "{fs}: {checks:#?}");
        let mounted = |check: &&Check| {
            check.what.contains("mount") && matches!(check.outcome, Outcome::Good(_))
        };
        // The kernel of this machine may lack some, but it has ext2.
        assert!(
            checks.iter().filter(mounted).count() >= 1,
            "{fs}: {checks:#?}"
        );
        assert_eq!(left(&device).state(), "all steps were done");
        let table = Disk::open(&device.file).unwrap().table().unwrap().unwrap();
        assert_eq!(table.entries.len(), 2);
        // A second time over what is there now.
        format(&device, &plan, &never, &mut |_| ()).unwrap();
    }
}

#[test]
fn loop_an_interrupt_ends_it_between_steps_and_the_journal_tells() {
    const BYTES: u64 = 256 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let stop = AtomicBool::new(false);
    let error = format(&device, &plan, &stop, &mut |step| {
        stop.store(step.starts_with("ext2"), Ordering::Relaxed);
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("interrupted after step 2 of 3"), "{error}");
    let state = left(&device).state();
    assert!(
        state.contains("done: gpt") && state.contains("not begun: ext4 on data"),
        "{state}"
    );
}

#[test]
fn loop_a_card_that_is_mounted_in_between_stops_everything() {
    const BYTES: u64 = 256 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let place = device.file.with_file_name("mnt");
    std::fs::create_dir(&place).unwrap();
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let never = AtomicBool::new(false);
    format(&device, &plan, &never, &mut |_| ()).unwrap();
    let before = std::fs::read(&device.file).unwrap();
    // Somebody's automounter takes it while the table is about to be written.
    let partition = format!("{}p1", device.path.display());
    let mount = || {
        Command::new("mount")
            .args(["-o", "ro"])
            .arg(&partition)
            .arg(&place)
            .status()
    };
    assert!(mount().unwrap().success());
    let doomed = Doomed::find(&device.path, &Limits::default(), &Roots::default());
    let refused = doomed.unwrap_err().to_string();
    assert!(
        Command::new("umount")
            .arg(&place)
            .status()
            .unwrap()
            .success()
    );
    assert!(refused.contains("is mounted"), "{refused}");
    assert!(std::fs::read(&device.file).unwrap() == before, "written to");
    // The same after it was let go, before the first step.
    let doomed = device.doomed();
    assert!(mount().unwrap().success());
    let journals = device.file.with_file_name("journals");
    let made = format_disk(
        &doomed,
        &plan,
        &Roots::default(),
        &journals,
        &never,
        &mut |_| (),
    );
    assert!(
        Command::new("umount")
            .arg(&place)
            .status()
            .unwrap()
            .success()
    );
    assert!(made.unwrap_err().to_string().contains("is mounted"));
    assert!(std::fs::read(&device.file).unwrap() == before, "written to");
    assert!(
        left(&device).state().contains("the card is as it was"),
        "{}",
        left(&device).state()
    );
}

#[test]
fn loop_a_file_that_grew_under_its_device_is_another_device() {
    const BYTES: u64 = 256 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let never = AtomicBool::new(false);
    let mut steps = 0;
    let made = format(&device, &plan, &never, &mut |_| {
        steps += 1;
        if steps == 1 {
            let file = std::fs::File::options()
                .write(true)
                .open(&device.file)
                .unwrap();
            file.set_len(2 * BYTES).unwrap();
            assert!(
                Command::new("losetup")
                    .arg("-c")
                    .arg(&device.path)
                    .status()
                    .unwrap()
                    .success()
            );
        }
    });
    assert!(made.unwrap_err().to_string().contains("another device"));
    assert_eq!(steps, 1, "the filesystems were not made");
    assert!(left(&device).state().contains("not begun: ext2 on boot"));
}
