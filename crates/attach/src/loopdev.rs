//! Loop devices: the ioctls of `linux/loop.h` that util-linux's losetup uses too.

use crate::error::AttachError;
use crate::node::{Binding, Node};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_ADD: libc::Ioctl = 0x4C80;
const LOOP_CTL_REMOVE: libc::Ioctl = 0x4C81;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const PARTSCAN: u32 = 8;
const DIRECT_IO: u32 = 16;
/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Configuration {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const NO_INFO: Info = Info {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    sizelimit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_size: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// A loop device that is bound to a file.
///
/// It is not kept open. A process that has its own device open cannot die: closing the device
/// waits for dirty pages to be written, and who would take them is dying. (So it is not marked
/// to be detached at its last close either: there would be one after each use.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopDevice {
    pub number: u32,
    /// Whether it was made for us, and is to be removed.
    pub ours: bool,
}

/// What the kernel says of a bound loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The name that was given to it, at most 63 bytes.
    pub label: String,
    /// Whether it reads and writes its file past the page cache.
    pub direct: bool,
}

impl LoopDevice {
    /// A loop device on `backing`, in direct I/O, with sectors of 512 bytes. `label` is what
    /// `LOOP_GET_STATUS64` says of it.
    ///
    /// # Errors
    /// Where there is no loop driver, no free device, or one that cannot read past the page
    /// cache, with the remedy.
    pub fn bind(backing: BorrowedFd<'_>, label: &str) -> Result<LoopDevice, AttachError> {
        // Between finding a free device and binding it another process may take it.
        for _ in 0..64 {
            let (number, ours) = unbound()?;
            let found = LoopDevice { number, ours };
            match found.try_bind(backing, label) {
                Ok(true) => return Ok(found),
                Ok(false) => found.give_back(),
                Err(error) => {
                    found.give_back();
                    return Err(error);
                }
            }
        }
        Err(AttachError::io(
            "bind a loop device",
            io::Error::other("others took each one that was free"),
        ))
    }

    /// Whether it is bound to `backing` now; not if another process was first.
    fn try_bind(self, backing: BorrowedFd<'_>, label: &str) -> Result<bool, AttachError> {
        let device = open_device(self.number)
            .map_err(|e| AttachError::io(format!("open {}", path(self.number).display()), e))?;
        match configure(&device, backing, label) {
            Ok(()) => check(&device).map(|()| true),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && is_old_kernel() => {
                Err(AttachError::OldKernel("LOOP_CONFIGURE, Linux 5.8"))
            }
            Err(error) => Err(AttachError::io("bind a loop device", error)),
        }
    }

    /// Removes it, if it was made for us. It was never bound, or is no longer.
    fn give_back(self) {
        // What it was opened with may be closed a moment later.
        let removed = || !self.ours || remove(self.number).is_ok();
        let _ = crate::clock::within(Duration::from_secs(1), removed);
    }
}

/// The loop driver falls back to the page cache without a word: that would be another device
/// than the one asked for.
fn check(device: &OwnedFd) -> Result<(), AttachError> {
    let found = status(device);
    if matches!(&found, Ok(Some(bound)) if bound.direct) {
        return Ok(());
    }
    let _ = ioctl(device, LOOP_CLR_FD, 0);
    let why = format!("the kernel made {found:?}");
    let what = "bind a loop device in direct I/O";
    Err(AttachError::io(what, io::Error::other(why)))
}

/// Whether the kernel is older than Linux 5.8.
fn is_old_kernel() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(u32::MAX);
    (next(), next()) < (5, 8)
}

/// Whether loop device `number` is bound under `label`.
pub(crate) fn binding(number: u32, label: &str) -> Binding {
    if !is_bound(number) {
        return Binding::Free;
    }
    let found = open_device_readonly(number).and_then(|device| status(&device));
    match found {
        Ok(None) => Binding::Free,
        Ok(Some(bound)) if bound.label == label => Binding::Ours,
        Ok(Some(_)) => Binding::Others,
        // Its file was served by FUSE, and the server is dead: the kernel asks it for the
        // file's attributes before it tells what it knows itself. To clear such a device takes
        // nothing from anybody.
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Binding::Ours,
        Err(error) => Binding::Unknown(error.to_string()),
    }
}

/// Whether `/dev/loop-control` can be opened.
///
/// # Errors
/// Why not.
pub(crate) fn available() -> io::Result<()> {
    control().map(drop)
}

/// All loop devices that are bound to a file, by number.
///
/// # Errors
/// Where `/sys/block` cannot be read.
pub(crate) fn bound() -> io::Result<Vec<(u32, Bound)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(number) else {
            continue;
        };
        if !entry.path().join("loop").is_dir() {
            continue;
        }
        // Gone in the meantime, without a node, or on a file that nobody serves: what the
        // kernel does not tell of one says nothing about the others.
        let told = open_device_readonly(number).and_then(|device| status(&device));
        if let Ok(Some(bound)) = told {
            found.push((number, bound));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

/// Whether loop device `number` is bound to a file.
pub(crate) fn is_bound(number: u32) -> bool {
    PathBuf::from(format!("/sys/block/loop{number}/loop")).is_dir()
}

/// Detaches loop device `number` from its file: now, or when its last user closes it.
///
/// # Errors
/// The kernel's.
pub(crate) fn clear(number: u32) -> io::Result<()> {
    let device = open_device_readonly(number)?;
    match ioctl(&device, LOOP_CLR_FD, 0) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes loop device `number`, which must be unbound.
///
/// # Errors
/// The kernel's; `EBUSY` while somebody has it open.
pub(crate) fn remove(number: u32) -> io::Result<()> {
    ioctl(&control()?, LOOP_CTL_REMOVE, number as libc::c_long).map(drop)
}

/// An unbound device: a new one, so that the settings of no other are changed, or else (no
/// right to make nodes, a fixed number of devices) any that is free.
fn unbound() -> Result<(u32, bool), AttachError> {
    let control = control().map_err(AttachError::no_loop)?;
    let any = -1;
    if let Ok(number) = ioctl(&control, LOOP_CTL_ADD, any) {
        if node_appears(number as u32) {
            return Ok((number as u32, true));
        }
        // No devtmpfs: a device that nobody can open.
        let _ = ioctl(&control, LOOP_CTL_REMOVE, number.into());
    }
    match ioctl(&control, LOOP_CTL_GET_FREE, 0) {
        Ok(number) => Ok((number as u32, false)),
        Err(error) => Err(AttachError::io("find a free loop device", error)),
    }
}

fn path(number: u32) -> PathBuf {
    Node::of_loop(number).path()
}

/// Number of the loop device that the kernel calls `name`.
fn number(name: &str) -> Option<u32> {
    let node = Node::parse(name)?;
    (node == Node::of_loop(node.number)).then_some(node.number)
}

/// devtmpfs makes the node before the call returns; a moment is given to those that do not.
fn node_appears(number: u32) -> bool {
    (0..20).any(|_| {
        let there = path(number).exists();
        if !there {
            std::thread::sleep(Duration::from_millis(5));
        }
        there
    })
}

fn control() -> io::Result<OwnedFd> {
    open_raw("/dev/loop-control".into(), OFlags::RDWR)
}

fn open_device(number: u32) -> io::Result<OwnedFd> {
    open_raw(path(number), OFlags::RDWR)
}

fn open_device_readonly(number: u32) -> io::Result<OwnedFd> {
    open_raw(path(number), OFlags::RDONLY)
}

fn open_raw(path: PathBuf, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(open(path, flags | OFlags::CLOEXEC, Mode::empty())?)
}

fn configure(device: &OwnedFd, backing: BorrowedFd<'_>, label: &str) -> io::Result<()> {
    let mut file_name = [0; 64];
    let length = label.len().min(63);
    file_name[..length].copy_from_slice(&label.as_bytes()[..length]);
    let configuration = Configuration {
        fd: backing.as_raw_fd() as u32,
        block_size: 512,
        info: Info {
            flags: PARTSCAN | DIRECT_IO,
            file_name,
            ..NO_INFO
        },
        reserved: [0; 8],
    };
    let pointer = std::ptr::from_ref(&configuration) as libc::c_long;
    ioctl(device, LOOP_CONFIGURE, pointer).map(drop)
}

fn status(device: &OwnedFd) -> io::Result<Option<Bound>> {
    let mut info = NO_INFO;
    let pointer = std::ptr::from_mut(&mut info) as libc::c_long;
    match ioctl(device, LOOP_GET_STATUS64, pointer) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(error) => return Err(error),
    }
    let end = info.file_name.iter().position(|b| *b == 0).unwrap_or(64);
    Ok(Some(Bound {
        label: String::from_utf8_lossy(&info.file_name[..end]).into_owned(),
        direct: info.flags & DIRECT_IO != 0,
    }))
}

fn ioctl(device: &OwnedFd, request: libc::Ioctl, argument: libc::c_long) -> io::Result<i32> {
    loop {
        // SAFETY: the argument is a number, or points to the structure that the request takes
        // and that the caller keeps alive.
        match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
            -1 if Errno::from_io_error(&io::Error::last_os_error()) == Some(Errno::INTR) => {}
            -1 => return Err(io::Error::last_os_error()),
            result => return Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<Info>(), 232);
        assert_eq!(size_of::<Configuration>(), 304);
    }

    #[test]
    fn loop_a_device_that_cannot_be_bound_is_not_left() {
        let null = open("/dev/null", OFlags::RDWR, Mode::empty());
        let Some(null) = null.ok().filter(|_| available().is_ok()) else {
            return;
        };
        let free = || {
            let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| number(name).is_some()).collect();
            names.retain(|name| number(name).is_some_and(|number| !is_bound(number)));
            names
        };
        // Others may make devices meanwhile, but not at every attempt.
        let leaves_nothing = (0..20).any(|_| {
            let before = free();
            let refused = LoopDevice::bind(null.as_fd(), "whichfs test").err();
            let text = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains("bind a loop device"), "{text}");
            free().iter().all(|name| before.contains(name))
        });
        assert!(leaves_nothing);
    }
}
