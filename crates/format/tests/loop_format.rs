//! A plan written to a disk: a loop device of this machine (root).
#![allow(clippy::unwrap_used)]

use whichfs_testkit::skip;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_device::{DestroyLimits, Roots, TargetDisk};
use whichfs_format::{Check, FormatError, InterruptedFormat, OpenDisk, Outcome, format_disk};
use whichfs_layout::{DiskPlan, Layout, Medium, TableKind, Unit};
use whichfs_units::MIB;

/// A loop device with partitions, detached when it goes.
struct Loop {
    path: PathBuf,
    file: PathBuf,
    _home: tempfile::TempDir,
}

impl Loop {
    fn new(bytes: u64) -> Option<Loop> {
        Loop::within(&std::env::temp_dir(), bytes)
    }

    /// One whose file is in `place`.
    fn within(place: &Path, bytes: u64) -> Option<Loop> {
        Loop::with_sectors(place, bytes, 512)
    }

    /// One with logical sectors of `sector` bytes.
    fn with_sectors(place: &Path, bytes: u64, sector: u64) -> Option<Loop> {
        let home = tempfile::tempdir_in(place).unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-P", "-f", "--show", "-b", &sector.to_string()])
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

    fn target_disk(&self) -> TargetDisk {
        let roots = Roots::default();
        let mut target_disk =
            TargetDisk::find(&self.path, &DestroyLimits::default(), &roots).unwrap();
        let id = target_disk.id.clone();
        assert_eq!(Path::new(&id), self.file);
        target_disk.confirm(Some(&id), &roots).unwrap();
        target_disk
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // One that was detached before may be another test's by now.
        let name = self.path.file_name().unwrap();
        let sys = Path::new("/sys/block").join(name).join("loop/backing_file");
        let shows = std::fs::read_to_string(sys).unwrap_or_default();
        if Path::new(shows.trim_end()) != self.file {
            return;
        }
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

fn plan(bytes: u64, unit_mib: u64, table: TableKind, fs: &str) -> DiskPlan {
    let layout = Layout {
        table,
        ..Layout::parse("layout", LAYOUT).unwrap()
    };
    let medium = Medium::of_unit(bytes, Unit::new(unit_mib * MIB, "given").unwrap(), true);
    DiskPlan::new(&layout, &medium, Some(fs), 3).unwrap()
}

fn format(
    device: &Loop,
    plan: &DiskPlan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Check>, FormatError> {
    let journals = device.file.with_file_name("journals");
    format_disk(
        &device.target_disk(),
        plan,
        &Roots::default(),
        &journals,
        stop,
        tell,
    )
}

fn left(device: &Loop) -> InterruptedFormat {
    let id = device.file.display().to_string();
    InterruptedFormat::read(&device.file.with_file_name("journals"), &id).unwrap()
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
        let table = OpenDisk::open(&device.file)
            .unwrap()
            .table()
            .unwrap()
            .unwrap();
        assert_eq!(table.entries.len(), 2);
        // A second time over what is there now.
        format(&device, &plan, &never, &mut |_| ()).unwrap();
    }
}

/// Disks with sectors of 4,096 bytes count in these: a table in sectors of 512 would put partitions
/// eight times as far.
#[test]
fn loop_a_disk_with_large_sectors_is_laid_out_in_its_own_unit() {
    const BYTES: u64 = 640 << 20;
    for (table, fs) in [(TableKind::Gpt, "ext4"), (TableKind::Mbr, "xfs")] {
        let Some(device) = Loop::with_sectors(&std::env::temp_dir(), BYTES, 4096) else {
            return;
        };
        let plan = plan(BYTES, 4, table, fs);
        let disk = device.target_disk();
        assert_eq!(disk.sector_bytes, 4096);
        drop(disk);
        let plan = DiskPlan {
            medium: plan.medium.clone().with_sectors(4096),
            ..plan
        };
        let never = AtomicBool::new(false);
        let checks = format(&device, &plan, &never, &mut |_| ()).unwrap();
        assert!(!checks.iter().any(Check::is_bad), "{fs}: {checks:#?}");
        let name = device.path.file_name().unwrap().to_str().unwrap();
        let table = OpenDisk::open(&device.path)
            .unwrap()
            .table()
            .unwrap()
            .unwrap();
        for (entry, planned) in table.entries.iter().zip(&plan.partitions) {
            let start = format!("/sys/class/block/{name}p{}/start", entry.number);
            let start = std::fs::read_to_string(start).unwrap();
            let start: u64 = start.trim().parse().unwrap();
            assert_eq!((entry.start, start * 512), (planned.start, planned.start));
            assert_eq!(entry.bytes, planned.bytes);
        }
        let backup = OpenDisk::open(&device.path).unwrap().backup_damage();
        assert_eq!(backup, None);
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
    let target_disk = TargetDisk::find(&device.path, &DestroyLimits::default(), &Roots::default());
    let refused = target_disk.unwrap_err().to_string();
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
    let target_disk = device.target_disk();
    assert!(mount().unwrap().success());
    let journals = device.file.with_file_name("journals");
    let made = format_disk(
        &target_disk,
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

/// A node in `/dev` that is removed when it goes.
struct Node(PathBuf);

impl Node {
    /// `path` as a node of the device that `of` leads to.
    fn new(path: PathBuf, of: &Path) -> Node {
        let device = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata(of).unwrap());
        let _ = std::fs::remove_file(&path);
        let (major, minor) = (libc::major(device), libc::minor(device));
        let made = Command::new("mknod")
            .arg(&path)
            .args(["b", &major.to_string(), &minor.to_string()])
            .status();
        assert!(made.unwrap().success());
        Node(path)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn loop_a_node_that_was_left_of_another_device_is_not_written_through() {
    const BYTES: u64 = 256 << 20;
    let (Some(device), Some(victim)) = (Loop::new(BYTES), Loop::new(BYTES)) else {
        return;
    };
    // What a container keeps in its own /dev: the partition's name, another device's number.
    let node = PathBuf::from(format!("{}p1", device.path.display()));
    let stale = Node::new(node, &victim.path);
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let never = AtomicBool::new(false);
    let told = format(&device, &plan, &never, &mut |_| ()).unwrap_err();
    drop(stale);
    let told = told.to_string();
    for words in ["is another device", "remove that node", "not begun: ext2"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let victim = std::fs::read(&victim.file).unwrap();
    assert!(victim.iter().all(|&byte| byte == 0), "written to");
}

#[test]
fn loop_what_a_loop_device_shows_is_guarded_as_the_device_is() {
    const BYTES: u64 = 64 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let find = |path: &Path| TargetDisk::find(path, &DestroyLimits::default(), &Roots::default());
    let again = |of: &Path| {
        let output = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(of)
            .output()
            .unwrap();
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    };
    // The same file a second time, as a copy of an automounter would take it.
    let second = again(&device.file);
    let refused = [find(&second), find(&device.path)].map(|found| found.err());
    let _ = Command::new("losetup").arg("-d").arg(&second).status();
    for refused in refused {
        let told = refused.unwrap().to_string();
        assert!(told.contains("losetup -d"), "{told}");
    }
    // A device in place of a file: what is mounted there is its own.
    let made = Command::new("mke2fs").arg("-q").arg(&device.path).status();
    let place = device.file.with_file_name("mnt");
    std::fs::create_dir(&place).unwrap();
    let above = again(&device.path);
    let free = find(&above).err();
    let mount = Command::new("mount")
        .args(["-o", "ro"])
        .args([&device.path, &place])
        .status();
    let mounted = find(&above).err();
    let _ = Command::new("umount").arg(&place).status();
    let _ = Command::new("losetup").arg("-d").arg(&above).status();
    assert!(made.unwrap().success() && mount.unwrap().success());
    let free = free.unwrap().to_string();
    assert!(free.contains("name the disk itself"), "{free}");
    let mounted = mounted.unwrap().to_string();
    assert!(mounted.contains("umount /"), "{mounted}");
}

/// A filesystem in memory, unmounted when it goes.
struct Memory(tempfile::TempDir);

impl Memory {
    fn new(mib: u64) -> Option<Memory> {
        let place = tempfile::tempdir().unwrap();
        let size = format!("size={mib}M");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(place.path())
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Memory(place));
        }
        skip::skip("tmpfs cannot be mounted");
        None
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn loop_errors_of_the_device_are_told_with_the_state_it_is_in_and_once_more_later() {
    const BYTES: u64 = 256 << 20;
    // Room for a table, and no more: the loop device answers with I/O errors.
    let Some(memory) = Memory::new(1) else { return };
    let Some(device) = Loop::within(memory.0.path(), BYTES) else {
        return;
    };
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let journals = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    let made = format_disk(
        &device.target_disk(),
        &plan,
        &Roots::default(),
        journals.path(),
        &never,
        &mut |_| (),
    );
    let told = made.unwrap_err().to_string();
    for words in [
        "mke2fs",
        "done: gpt",
        "half done: ext2 on boot",
        "format it again",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let id = device.file.display().to_string();
    let left = InterruptedFormat::read(journals.path(), &id)
        .unwrap()
        .told()
        .unwrap();
    assert!(
        left.starts_with("failed: ") && left.contains("half done: ext2 on boot"),
        "{left}"
    );
}

#[test]
fn loop_a_card_that_is_locked_in_the_middle_is_told_with_its_state() {
    const BYTES: u64 = 256 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let switch = |flag: &str| {
        let done = Command::new("blockdev")
            .arg(flag)
            .arg(&device.path)
            .status();
        assert!(done.unwrap().success());
    };
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let never = AtomicBool::new(false);
    let made = format(&device, &plan, &never, &mut |step| {
        if step.starts_with("ext4") {
            switch("--setro");
        }
    });
    // The switch stays with a loop device when its file goes.
    switch("--setrw");
    let told = made.unwrap_err().to_string();
    for words in [
        "mke2fs",
        "; ext2 on boot",
        "half done: ext4 on data",
        "again",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let told = left(&device).told().unwrap();
    assert!(told.contains("half done: ext4 on data"), "{told}");
}

#[test]
fn loop_a_card_that_is_detached_in_the_middle_lives_until_it_is_written() {
    const BYTES: u64 = 256 << 20;
    let Some(device) = Loop::new(BYTES) else {
        return;
    };
    let plan = plan(BYTES, 4, TableKind::Gpt, "ext4");
    let never = AtomicBool::new(false);
    let checks = format(&device, &plan, &never, &mut |step| {
        if step.starts_with("ext2") {
            let detach = Command::new("losetup").arg("-d").arg(&device.path).status();
            assert!(detach.unwrap().success());
        }
    });
    let checks = checks.unwrap();
    assert!(!checks.iter().any(Check::is_bad), "{checks:#?}");
    assert_eq!(left(&device).told(), None);
}
