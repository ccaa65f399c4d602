//! Forgets what the page cache has of a directory that stays mounted.

use crate::error::AgentError;
use rustix::fs::{Advice, AtFlags, FileType, Mode, OFlags, fadvise, openat, statat};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the kernel takes the word to drop its caches.
const DROP: &str = "/proc/sys/vm/drop_caches";

/// Writes everything to the devices, then forgets all that is cached.
///
/// # Errors
/// The kernel does not take the word.
pub fn drop_caches() -> Result<(), AgentError> {
    rustix::fs::sync();
    fs::write(DROP, "3").map_err(|error| AgentError::io("write 3 to", DROP, &error))
}

/// Writes to the device what the filesystem of `dir` keeps back.
///
/// # Errors
/// It cannot be opened or written.
pub fn write_back(dir: &str) -> Result<(), AgentError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|errno| AgentError::system("open directory", dir, errno))?;
    rustix::fs::syncfs(&fd).map_err(|errno| AgentError::system("syncfs", dir, errno))
}

/// Forgets what is cached of the files below `dir`, and all caches where the kernel lets that be
/// done (in a container it may not). What the filesystem itself keeps while it is mounted stays.
///
/// # Errors
/// What is there cannot be written or listed.
pub fn forget(dir: &str) -> Result<(), AgentError> {
    write_back(dir)?;
    forget_below(Path::new(dir))?;
    // Whether it may be written was said before the trial.
    let _ = drop_caches();
    Ok(())
}

/// Tells the kernel that nobody needs what it has of the files below `dir`.
fn forget_below(dir: &Path) -> Result<(), AgentError> {
    let fail = |errno| AgentError::system("forget what is in", dir.display(), errno);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::open(dir, flags | OFlags::DIRECTORY, Mode::empty()).map_err(fail)?;
    let entries =
        fs::read_dir(dir).map_err(|error| AgentError::io("list", dir.display(), &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| AgentError::io("list", dir.display(), &error))?;
        let name = entry.file_name();
        let name = name.as_bytes();
        let stat = statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => forget_below(&entry.path())?,
            FileType::RegularFile => {
                let file = openat(&fd, name, flags, Mode::empty()).map_err(fail)?;
                // Some filesystems have no page cache to speak of.
                let _ = fadvise(&file, 0, None, Advice::DontNeed);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Pages of `path` that are cached, of how many.
    fn cached(path: &Path) -> (usize, usize) {
        use std::os::fd::AsRawFd;
        let file = fs::File::open(path).unwrap();
        let bytes = file.metadata().unwrap().len() as usize;
        let mut pages = vec![0_u8; bytes.div_ceil(4096)];
        // SAFETY: a fresh private mapping of the whole file, unmapped below.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(map, libc::MAP_FAILED);
        // SAFETY: the mapping has `bytes`, the vector a byte for each of its pages.
        let failed = unsafe { libc::mincore(map, bytes, pages.as_mut_ptr()) };
        // SAFETY: mapped above, used by nobody else.
        unsafe { libc::munmap(map, bytes) };
        assert_eq!(failed, 0);
        (
            pages.iter().filter(|page| **page & 1 == 1).count(),
            pages.len(),
        )
    }

    #[test]
    fn what_was_written_is_not_cached_any_more() {
        // /tmp may be a tmpfs, which has nothing but its cache.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let below = dir.path().join("a");
        fs::create_dir(&below).unwrap();
        let file = below.join("b");
        fs::write(&file, vec![7_u8; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", below.join("link")).unwrap();
        assert_eq!(cached(&file), (256, 256), "it was just written");
        write_back(dir.path().to_str().unwrap()).unwrap();
        forget_below(dir.path()).unwrap();
        // The kernel may keep a few pages that it is just using.
        assert!(cached(&file).0 < 32, "{:?}", cached(&file));
    }

    #[test]
    fn a_directory_that_is_not_there_is_told() {
        let error = forget("/no/such/directory").unwrap_err().to_string();
        assert!(error.contains("/no/such/directory"), "{error}");
    }
}
