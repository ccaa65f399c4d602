//! Memory that guests use one after the other.
//!
//! The host finds, clears, maps and gives back every page that a guest touches. For one that looks
//! at an image for a fifth of a second that is a sixth of the time, and the next needs nearly
//! the same pages. Such guests take one file in turn (`kernel/patches/0011-given-memory.patch`).
//! As on any board, memory is then not zero when a kernel starts; a guest whose card is kept byte
//! by byte gets memory of its own, so that what it writes never depends on those before it.

use crate::error::LabError;
use crate::initramfs::Initramfs;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use whichfs_units::MIB;

/// A file for the memory of guests, of which one lives at a time.
#[derive(Debug)]
pub struct PooledMemory {
    file: OwnedFd,
    bytes: u64,
    /// Held by the guest that uses it.
    user: Mutex<()>,
}

impl PooledMemory {
    /// A file of `mib` MiB in `directory` ([`crate::memory_directory`]).
    ///
    /// # Errors
    /// If it cannot be made there.
    pub fn new(directory: &Path, mib: u64) -> Result<PooledMemory, LabError> {
        let make = || -> Result<OwnedFd, Errno> {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::open(directory, flags, Mode::RWXU)?;
            rustix::fs::ftruncate(&file, mib * MIB)?;
            // Above all places that descriptors are put at.
            fcntl_dupfd_cloexec(&file, place() + 1)
        };
        let what = || format!("make a guest's memory in {}", directory.display());
        Ok(PooledMemory {
            file: make().map_err(|errno| LabError::io(what())(errno.into()))?,
            bytes: mib * MIB,
            user: Mutex::new(()),
        })
    }

    /// Fills all of it, for tests: a guest must not see what it starts from.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn fill(&self, byte: u8) -> std::io::Result<()> {
        let piece = vec![byte; MIB as usize];
        (0..self.bytes).step_by(piece.len()).try_for_each(|at| {
            let written = rustix::io::pwrite(&self.file, &piece, at)?;
            match written == piece.len() {
                true => Ok(()),
                false => Err(std::io::ErrorKind::WriteZero.into()),
            }
        })
    }

    /// Whether a guest with `mib` MiB can use it.
    pub(crate) fn fits(&self, mib: u64) -> bool {
        self.bytes == mib * MIB
    }

    /// Its descriptor in this process.
    pub(crate) fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The lock on it: who has that is its only user.
    pub(crate) fn user(&self) -> &Mutex<()> {
        &self.user
    }
}

/// Its descriptor in the guest's process.
fn place() -> RawFd {
    Initramfs::place() + 1
}

/// What tells the guest's kernel of it, as a variable of its environment.
pub(crate) fn variable() -> (&'static str, OsString) {
    ("UM_MEMORY", place().to_string().into())
}

/// Puts the descriptor `number` where the guest's kernel looks for it. Runs in the child, after
/// all others have been put in place.
///
/// # Errors
/// As dup2(2).
pub(crate) fn put_in_place(number: RawFd) -> std::io::Result<()> {
    // SAFETY: a plain system call on numbers.
    if unsafe { libc::dup2(number, place()) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_size_of_the_guests_memory_and_no_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let memory = PooledMemory::new(directory.path(), 3).expect("a file");
        let stat = rustix::fs::fstat(&memory.file).expect("open");
        assert_eq!(stat.st_size, 3 << 20);
        assert!(memory.fits(3) && !memory.fits(4));
        assert!(memory.number() > place());
        let entries = std::fs::read_dir(directory.path()).expect("there");
        assert_eq!(entries.count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_have_it_is_named() {
        let none = Path::new("/proc/nothing");
        let error = PooledMemory::new(none, 1).expect_err("no such directory");
        assert!(error.to_string().contains("/proc/nothing"), "{error}");
    }
}
