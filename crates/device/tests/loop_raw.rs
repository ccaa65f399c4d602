//! Direct I/O on loop devices (root) and on files.
#![allow(clippy::unwrap_used)]

use whichfs_testkit::skip;

use skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_device::{Access, HereError, Raw, Roots, TargetKind, target};
use whichfs_units::Nanos;

const BYTES: u64 = 32 << 20;

/// A loop device on a file in a directory that vanishes; `None` where there can be none.
struct Loop {
    device: PathBuf,
    _directory: tempfile::TempDir,
}

impl Loop {
    fn new(read_only: bool) -> Option<Loop> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = directory.path().join("card");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(BYTES)
            .unwrap();
        let mut command = Command::new("losetup");
        command.args(["--find", "--show"]);
        if read_only {
            command.arg("--read-only");
        }
        let output = command.arg(&file).output().ok()?;
        if !output.status.success() {
            skip("no loop device can be made here (root and loop are needed)");
            return None;
        }
        let device = String::from_utf8(output.stdout).unwrap().trim().into();
        Some(Loop {
            device,
            _directory: directory,
        })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
    }
}

fn open(path: &Path, access: Access) -> Result<Raw, HereError> {
    let target = target(path, access, &Roots::default())?;
    Raw::open(&target, access, &Roots::default())
}

fn round_trip(raw: &mut Raw) {
    assert_eq!(raw.capacity_bytes(), BYTES);
    let data: Vec<u8> = (0..8192_u32).map(|at| (at % 251) as u8).collect();
    assert!(raw.write(4096, &data).unwrap() > Nanos::ZERO);
    let mut back = vec![0; 8192];
    assert!(raw.read(4096, &mut back).unwrap() > Nanos::ZERO);
    assert!(back == data);
    raw.flush().unwrap();
    let beyond = raw.read(BYTES, &mut [0; 512]);
    assert!(
        matches!(beyond, Err(DeviceError::Failed { .. })),
        "{beyond:?}"
    );
}

#[test]
fn a_file_is_read_and_written_directly() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("card");
    std::fs::File::create(&file)
        .unwrap()
        .set_len(BYTES)
        .unwrap();
    let mut raw = match open(&file, Access::Write) {
        // Build directories on tmpfs and the like have no direct I/O; that is told.
        Err(HereError::NoDirect { .. }) => return skip("no direct I/O here"),
        opened => opened.unwrap(),
    };
    round_trip(&mut raw);
    assert_eq!(
        raw.discard(0, 4096),
        Err(DeviceError::Unsupported("discard"))
    );
}

#[test]
fn what_was_changed_for_another_between_looking_and_opening_is_refused() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("card");
    std::fs::write(&file, [0; 4096]).unwrap();
    let roots = Roots::default();
    let mut seen = target(&file, Access::Read, &roots).unwrap();
    seen.identity = "serial 7, 1024 sectors".into();
    match Raw::open(&seen, Access::Read, &roots) {
        Err(HereError::Replaced { .. } | HereError::NoDirect { .. }) => {}
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn a_small_file_is_refused() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("card");
    std::fs::write(&file, [0; 4096]).unwrap();
    match open(&file, Access::Read) {
        Err(HereError::TooSmall { bytes: 4096, .. } | HereError::NoDirect { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a file of 4 KiB was taken"),
    }
}

#[test]
fn loop_device_round_trip_and_discard() {
    let Some(device) = Loop::new(false) else {
        return;
    };
    let found = target(&device.device, Access::Write, &Roots::default()).unwrap();
    assert!(matches!(found.kind, TargetKind::Disk { .. }));
    let mut raw = Raw::open(&found, Access::Write, &Roots::default()).unwrap();
    round_trip(&mut raw);
    raw.discard(0, 1 << 20).unwrap();
    let mut back = vec![1; 8192];
    raw.read(4096, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 0), "discarded");
}

#[test]
fn loop_device_that_is_open_elsewhere_or_mounted_is_refused() {
    let Some(device) = Loop::new(false) else {
        return;
    };
    let first = open(&device.device, Access::Read).unwrap();
    match open(&device.device, Access::Read) {
        Err(HereError::Busy { .. }) => {}
        other => panic!("opened twice: {:?}", other.err()),
    }
    drop(first);
    let mkfs = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(&device.device)
        .status();
    let place = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .arg(&device.device)
        .arg(place.path())
        .status();
    if !(mkfs.is_ok_and(|s| s.success()) && mount.is_ok_and(|s| s.success())) {
        return skip("ext4 cannot be mounted here");
    }
    let refused = open(&device.device, Access::Read);
    let _ = Command::new("umount").arg(place.path()).status();
    match refused {
        Err(HereError::Mounted { .. }) => {}
        other => panic!("mounted, yet {:?}", other.err()),
    }
}

#[test]
fn loop_device_that_is_read_only_is_not_written() {
    let Some(device) = Loop::new(true) else {
        return;
    };
    assert!(open(&device.device, Access::Read).is_ok());
    match open(&device.device, Access::Write) {
        Err(HereError::ReadOnly { .. }) => {}
        other => panic!("read-only, yet {:?}", other.err()),
    }
}

#[test]
fn loop_device_under_another_loop_device_is_refused() {
    let Some(device) = Loop::new(false) else {
        return;
    };
    // It shows a part only, as one mounted with an offset does.
    let upper = Command::new("losetup")
        .args(["--find", "--show", "-o", "4M"])
        .arg(&device.device)
        .output()
        .unwrap();
    let upper = String::from_utf8(upper.stdout).unwrap();
    let refused = [Access::Read, Access::Write].map(|access| open(&device.device, access).err());
    let below = std::fs::read_to_string(format!(
        "/sys/block/{}/loop/backing_file",
        device.device.file_name().unwrap().to_str().unwrap()
    ));
    let of_file = open(Path::new(below.unwrap().trim()), Access::Write).err();
    let _ = Command::new("losetup").arg("-d").arg(upper.trim()).status();
    for refused in refused.into_iter().chain([of_file]) {
        match refused {
            Some(HereError::Held { holder, .. }) => assert!(holder.starts_with("/dev/loop")),
            other => panic!("{upper} shows it, yet {other:?}"),
        }
    }
}

#[test]
fn loop_device_or_file_that_another_process_writes_is_not_written() {
    let Some(device) = Loop::new(false) else {
        return;
    };
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(BYTES).unwrap();
    // By another name than the one that is asked for.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for path in [&*device.device, file.path()] {
        let link = directory.path().join("link");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(path, &link).unwrap();
        let writer = std::fs::File::options().append(true).open(&link).unwrap();
        let mut writer = Command::new("sleep")
            .arg("60")
            .stdout(writer)
            .spawn()
            .unwrap();
        let refused = open(path, Access::Write).err();
        let read = open(path, Access::Read).err();
        writer.kill().unwrap();
        writer.wait().unwrap();
        match refused {
            Some(HereError::Open { pid, name, .. }) => {
                assert_eq!((pid, name.as_str()), (writer.id(), "sleep"));
            }
            other => panic!("{path:?} is being written, yet {other:?}"),
        }
        assert!(
            matches!(read, None | Some(HereError::NoDirect { .. })),
            "{read:?}"
        );
    }
}

#[test]
fn loop_device_that_is_another_one_when_it_is_opened_is_refused() {
    let (Some(first), Some(second)) = (Loop::new(false), Loop::new(false)) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("by-id");
    let point = |at: &Path| {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(at, &link).unwrap();
    };
    point(&first.device);
    let judged = target(&link, Access::Write, &Roots::default()).unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    for other in [&second.device, &file] {
        point(other);
        let opened = Raw::open(&judged, Access::Write, &Roots::default());
        assert!(
            matches!(
                opened,
                Err(HereError::Replaced { .. } | HereError::NoDirect { .. })
            ),
            "{:?}",
            opened.err()
        );
    }
    point(&first.device);
    Raw::open(&judged, Access::Write, &Roots::default()).unwrap();
}
