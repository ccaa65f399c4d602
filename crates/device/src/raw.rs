//! Timed direct I/O on a device or a file.

use crate::error::HereError;
use crate::guard::{Access, Target, TargetKind, identity, judge, open_error};
use crate::roots::Roots;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::Nanos;

/// Alignment of buffers: enough for any logical block size.
const ALIGN: usize = 4096;

/// Least size of a target in bytes: below it no card's structure shows.
const LEAST_BYTES: u64 = 16 << 20;

/// `_IO(0x12, 119)` of linux/fs.h: discard the range of two 64-bit numbers.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// An open device: each request goes to it directly, past the page cache, and returns when the
/// device says that it is done. A cache of the device works as it does under a filesystem.
pub struct Raw {
    fd: OwnedFd,
    is_disk: bool,
    capacity_bytes: u64,
    began: Instant,
    buffer: Vec<u8>,
}

impl Raw {
    /// Opens `target`; a disk exclusively, so that nothing can be mounted on it meanwhile. What
    /// is open is what was judged, and is judged once more.
    ///
    /// # Errors
    /// Another device by now, in use, no permission, read-only, no direct I/O, too small.
    pub fn open(target: &Target, access: Access, roots: &Roots) -> Result<Raw, HereError> {
        let is_disk = matches!(target.kind, TargetKind::Disk { .. });
        let mut flags = OFlags::DIRECT | OFlags::CLOEXEC;
        flags |= match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
        };
        if is_disk {
            flags |= OFlags::EXCL;
        }
        let fd = rustix::fs::open(&target.path, flags, Mode::empty())
            .map_err(|errno| open_error(target, errno))?;
        // The number alone does not tell a stick from the next one in the same place.
        let is_same = identity(&target.path, &target.kind, roots) == target.identity;
        if !is_of(&fd, &target.kind) || !is_same {
            let path = target.path.display().to_string();
            return Err(HereError::Replaced { path });
        }
        judge(target, access, roots)?;
        if !is_disk && lies_in_memory(&fd) {
            return Err(HereError::NoDirect {
                path: target.path.display().to_string(),
                reason: "it lies in memory, not on a device".to_owned(),
            });
        }
        let end = rustix::fs::seek(&fd, rustix::fs::SeekFrom::End(0))
            .map_err(|errno| open_error(target, errno))?;
        let capacity_bytes = end - end % 512;
        if capacity_bytes < LEAST_BYTES {
            return Err(HereError::TooSmall {
                path: target.path.display().to_string(),
                bytes: end,
                least: LEAST_BYTES,
            });
        }
        Ok(Raw {
            fd,
            is_disk,
            capacity_bytes,
            began: Instant::now(),
            buffer: Vec::new(),
        })
    }

    /// An aligned range of the buffer of `bytes` bytes: where it begins.
    fn aligned(&mut self, bytes: usize) -> usize {
        if self.buffer.len() < bytes + ALIGN {
            self.buffer = vec![0; bytes + ALIGN];
        }
        self.buffer.as_ptr().align_offset(ALIGN)
    }

    /// Says why `operation` failed: the device, or that it is no longer there.
    fn failed(
        &self,
        operation: &'static str,
        offset: u64,
        bytes: u64,
        errno: Errno,
    ) -> DeviceError {
        let gone = [Errno::NODEV, Errno::NXIO, Errno::NOMEDIUM, Errno::BADFD];
        // A device that was pulled answers EIO, but it has no size any more.
        let vanished = self.is_disk
            && rustix::fs::fstat(&self.fd)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
            && rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::End(0)) == Ok(0);
        if gone.contains(&errno) || vanished {
            return DeviceError::Gone(errno.to_string());
        }
        if errno == Errno::OPNOTSUPP {
            return DeviceError::Unsupported(operation);
        }
        DeviceError::Failed {
            operation,
            offset,
            bytes,
            reason: errno.to_string(),
        }
    }
}

/// Whether a file is on a filesystem that has no device, and still takes direct I/O.
fn lies_in_memory(fd: &OwnedFd) -> bool {
    // linux/magic.h: tmpfs, ramfs.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::fstatfs(fd).is_ok_and(|of| IN_MEMORY.contains(&(of.f_type as u64)))
}

/// Whether what is open is what was judged.
fn is_of(fd: &OwnedFd, kind: &TargetKind) -> bool {
    let Ok(stat) = rustix::fs::fstat(fd) else {
        return false;
    };
    match (FileType::from_raw_mode(stat.st_mode), kind) {
        (FileType::BlockDevice, TargetKind::Disk { number, .. }) => {
            let (major, minor) = (libc::major(stat.st_rdev), libc::minor(stat.st_rdev));
            *number == format!("{major}:{minor}")
        }
        (FileType::RegularFile, TargetKind::File { device, inode }) => {
            (stat.st_dev, stat.st_ino) == (*device, *inode)
        }
        _ => false,
    }
}

/// Runs `request` and returns what it gave and how long it took.
fn timed<T>(request: impl FnOnce() -> T) -> (T, Nanos) {
    let begin = Instant::now();
    let result = request();
    (result, nanos(begin.elapsed()))
}

fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

impl TimedDevice for Raw {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn elapsed(&self) -> Nanos {
        nanos(self.began.elapsed())
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let bytes = buffer.len();
        let at = self.aligned(bytes);
        let into = &mut self.buffer[at..at + bytes];
        let fd = self.fd.as_fd();
        let (result, spent) = timed(|| rustix::io::pread(fd, into, offset));
        match result {
            Ok(count) if count == bytes => {
                buffer.copy_from_slice(&self.buffer[at..at + bytes]);
                Ok(spent)
            }
            Ok(_) => Err(self.failed("read", offset, bytes as u64, Errno::IO)),
            Err(errno) => Err(self.failed("read", offset, bytes as u64, errno)),
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let at = self.aligned(data.len());
        self.buffer[at..at + data.len()].copy_from_slice(data);
        let from = &self.buffer[at..at + data.len()];
        let fd = self.fd.as_fd();
        let (result, spent) = timed(|| rustix::io::pwrite(fd, from, offset));
        match result {
            Ok(count) if count == data.len() => Ok(spent),
            Ok(_) => Err(self.failed("write", offset, data.len() as u64, Errno::NOSPC)),
            Err(errno) => Err(self.failed("write", offset, data.len() as u64, errno)),
        }
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        if !self.is_disk {
            return Err(DeviceError::Unsupported("discard"));
        }
        let range = [offset, bytes];
        let fd = self.fd.as_raw_fd();
        let (result, spent) = timed(|| {
            // SAFETY: the descriptor is open, and the kernel reads two 64-bit numbers.
            unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }
        });
        if result == 0 {
            return Ok(spent);
        }
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Err(self.failed("discard", offset, bytes, Errno::from_raw_os_error(errno)))
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        let fd = self.fd.as_fd();
        let (result, spent) = timed(|| rustix::fs::fsync(fd));
        result.map_err(|errno| self.failed("flush", 0, 0, errno))?;
        Ok(spent)
    }

    fn rest(&mut self, span: Nanos) {
        std::thread::sleep(Duration::from_nanos(span.0));
    }
}
