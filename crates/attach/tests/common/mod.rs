//! What the tests with real devices share: whether they can run here, cards, direct I/O.
#![allow(dead_code, reason = "not every test file uses all of it")]

pub use whichfs_testkit::skip;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use whichfs_attach::{AttachOptions, BeginState, HostQueue, Speed, Transport};
use whichfs_card::{Profile, builtin};
use whichfs_units::{MIB, Nanos};

/// By which way cards are attached in these tests: `ublk`, or else `fuse`.
pub const TRANSPORT: &str = "WHICHFS_ATTACH_TEST_TRANSPORT";

/// Held by each test that attaches cards; alone by those that look at what dead processes left,
/// because each attaching removes that.
static TESTS: RwLock<()> = RwLock::new(());

/// A lock to hold while cards are attached, if this machine can; prints why not.
pub fn ready(test: &str) -> Option<RwLockReadGuard<'static, ()>> {
    can(test).then(|| TESTS.read())
}

/// The same for a test that must be alone.
pub fn alone(test: &str) -> Option<RwLockWriteGuard<'static, ()>> {
    can(test).then(|| TESTS.write())
}

pub fn transport() -> Transport {
    match std::env::var(TRANSPORT).as_deref() {
        Ok("ublk") => Transport::Ublk,
        _ => Transport::Fuse,
    }
}

/// Set where the machine is emulated, some fifty times slower.
pub const SLOW: &str = "WHICHFS_ATTACH_TEST_SLOW";

/// `operations`, or fewer on a slow machine.
pub fn scaled(operations: u32) -> u32 {
    match std::env::var_os(SLOW) {
        None => operations,
        Some(_) => operations / 20,
    }
}

fn can(test: &str) -> bool {
    let devices: &[&str] = match transport() {
        Transport::Ublk => &["/dev/ublk-control"],
        _ => &["/dev/fuse", "/dev/loop-control"],
    };
    let missing = match devices.iter().find(|device| !Path::new(device).exists()) {
        _ if !rustix::process::geteuid().is_root() => "not root".to_owned(),
        Some(device) => format!("no {device}"),
        None => return true,
    };
    skip::skip(format!("{test}: {missing}"));
    false
}

/// Whether `program` is installed; prints if not.
pub fn installed(test: &str, program: &str) -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let there = places.iter().any(|d| Path::new(d).join(program).is_file());
    if !there {
        skip::skip(format!("{test}: {program} is not installed"));
    }
    there
}

pub fn profile(name: &str, mib: u64) -> Profile {
    let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
    let whole = Profile::parse(name, text).unwrap();
    whole.with_capacity(mib * MIB).unwrap()
}

pub fn options(name: &str, mib: u64, speed: Speed) -> AttachOptions {
    AttachOptions {
        name: name.to_owned(),
        profile: profile(name, mib),
        state: BeginState::Used(1),
        speed,
        transport: transport(),
        queue: queue(),
        request_cost: Nanos::ZERO,
        memory_bytes: mib * MIB,
        directory: std::env::temp_dir(),
    }
}

pub fn queue() -> HostQueue {
    HostQueue {
        scheduler: "mq-deadline".into(),
        rotational: false,
        nr_requests: 128,
        read_ahead_kib: 128,
        largest_request_kib: 512,
    }
}

/// The device, past the page cache.
pub struct Direct {
    file: File,
    buffer: Vec<u8>,
}

impl Direct {
    pub fn open(device: &Path) -> Direct {
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        Direct {
            file: options.open(device).unwrap(),
            buffer: vec![0; (2 * MIB) as usize],
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let at = self.room(data.len());
        self.buffer[at..at + data.len()].copy_from_slice(data);
        let written = self
            .file
            .write_at(&self.buffer[at..at + data.len()], offset);
        assert_eq!(written.unwrap(), data.len());
    }

    pub fn read(&mut self, offset: u64, bytes: usize) -> &[u8] {
        let at = self.room(bytes);
        self.buffer[at..at + bytes].fill(0xEE);
        let read = self.file.read_at(&mut self.buffer[at..at + bytes], offset);
        assert_eq!(read.unwrap(), bytes);
        &self.buffer[at..at + bytes]
    }

    pub fn sync(&self) {
        self.file.sync_all().unwrap();
    }

    /// # Errors
    /// The kernel's.
    pub fn discard(&self, offset: u64, bytes: u64) -> std::io::Result<()> {
        const BLKDISCARD: libc::Ioctl = 0x1277;
        let range: [u64; 2] = [offset, bytes];
        // SAFETY: BLKDISCARD reads two u64 at the pointer.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), BLKDISCARD, &raw const range) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Index of a sector boundary in memory that is no page boundary: the hardest legal case.
    fn room(&self, bytes: usize) -> usize {
        let address = self.buffer.as_ptr() as usize;
        let at = address.next_multiple_of(4096) + 512 - address;
        assert!(at + bytes <= self.buffer.len());
        at
    }
}

/// Runs a program that must succeed and returns what it printed.
pub fn sh(command: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {text}{errors}");
    text
}
