//! Where a guest's sockets and its memory are: private directories that do not outlive the engine.
//!
//! The directory with the sockets is removed as soon as the guest is connected, so nothing is left
//! even if the engine is killed.

use crate::error::LabError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prefix of a guest's directory; after it come the engine's process and a number.
const DIRECTORY_PREFIX: &str = "whichfs-guest-";

/// A private directory that is removed with this value, or earlier.
pub struct GuestDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

impl GuestDirectory {
    /// Makes a directory, after removing those that killed engines left behind.
    pub fn new() -> Result<GuestDirectory, LabError> {
        let parent = std::env::temp_dir();
        remove_stale(&parent);
        GuestDirectory::below(&parent)
    }

    /// Path of the directory on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory below `parent`, locked as long as this process lives: process numbers do not
    /// tell whose it is where containers share `parent`. Names that are taken are passed over.
    pub fn below(parent: &Path) -> Result<GuestDirectory, LabError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{DIRECTORY_PREFIX}{}-{number}", std::process::id());
            let path = parent.join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.map_err(LabError::io(format!(
                    "make {} (set TMPDIR elsewhere)",
                    path.display()
                )))?,
            }
            match locked(&path) {
                Ok(handle) if path.exists() => return Ok(GuestDirectory { path, handle }),
                // Another engine took it for stale before it was locked.
                Ok(_) | Err(Errno::WOULDBLOCK | Errno::NOENT) => {}
                Err(errno) => {
                    let what = format!("lock {} (set TMPDIR elsewhere)", path.display());
                    return Err(LabError::io(what)(errno.into()));
                }
            }
        }
    }

    /// Listens on socket `name` in the directory, however long its path is.
    pub fn listen(&self, name: &str) -> Result<UnixListener, LabError> {
        let short = format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd());
        UnixListener::bind(short).map_err(LabError::io(format!("listen on {name}")))
    }

    /// Removes the directory; later calls do nothing.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for GuestDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The directory, locked; `WOULDBLOCK` if another holds it.
fn locked(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive)?;
    Ok(handle)
}

/// Removes directories whose engine is gone: nobody holds their lock.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_guests = name
            .to_str()
            .is_some_and(|name| name.starts_with(DIRECTORY_PREFIX));
        if !is_guests {
            continue;
        }
        // Held until it is gone: an engine that has just made it must not take it meanwhile.
        if let Ok(_handle) = locked(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory for memory of guests: writable, mappable executable, with room for
/// `memory_mib`, which is that of all guests that run side by side, because a guest takes
/// its room only as it touches it.
///
/// Memory in a file on a `noexec` /dev/shm cannot hold the guest's kernel.
pub fn memory_directory(memory_mib: u64) -> Result<PathBuf, LabError> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let usual = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    let cache = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let mut reasons = Vec::new();
    let [shm, rest @ ..] = usual;
    for directory in [Some(shm), named, cache].into_iter().flatten().chain(rest) {
        match fit_for_memory(&directory, memory_mib) {
            Ok(()) => {
                remove_stale(&directory);
                return Ok(directory);
            }
            Err(why) => reasons.push(format!("{}: {why}", directory.display())),
        }
    }
    Err(LabError::NoTemporary(format!(
        "no directory for {memory_mib} MiB of guest memory ({}); \
         set TMPDIR to one that is not mounted noexec and has room",
        reasons.join("; ")
    )))
}

fn fit_for_memory(directory: &Path, memory_mib: u64) -> Result<(), String> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR | Mode::XUSR)
        .map_err(|e| e.to_string())?;
    let room = rustix::fs::fstatvfs(&file).map_err(|e| e.to_string())?;
    let free_mib = (room.f_bavail * room.f_frsize) >> 20;
    if free_mib < memory_mib {
        return Err(format!("{free_mib} MiB free"));
    }
    rustix::fs::ftruncate(&file, 4096).map_err(|e| e.to_string())?;
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a fresh mapping of our own file at an address of the kernel's choice.
    let mapped = unsafe {
        mmap(
            std::ptr::null_mut(),
            4096,
            protection,
            MapFlags::SHARED,
            &file,
            0,
        )
    };
    match mapped {
        Ok(address) => {
            // SAFETY: unmaps exactly what was just mapped.
            let _ = unsafe { munmap(address, 4096) };
            Ok(())
        }
        Err(_) => Err("mounted noexec".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_gone_with_its_value() {
        let directory = GuestDirectory::new().expect("a temporary directory");
        let path = directory.path.clone();
        directory.listen("c").expect("a socket");
        assert!(path.join("c").exists());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_engine_left_is_removed() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        // Its process number may be another's by now, or ours.
        let stale = [std::process::id(), 1, 4_194_999].map(|pid| {
            let path = parent.path().join(format!("{DIRECTORY_PREFIX}{pid}-x"));
            fs::create_dir(&path).expect("made");
            path
        });
        let own = GuestDirectory::below(parent.path()).expect("made");
        remove_stale(parent.path());
        assert!(stale.iter().all(|path| !path.exists()));
        assert!(own.path.exists(), "it is in use");
    }

    #[test]
    fn a_directory_is_not_taken_for_stale_while_it_is_made() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        remove_stale(parent.path());
                    }
                });
            }
            let lost = (0..2000).filter(|_| {
                let own = GuestDirectory::below(parent.path()).expect("made");
                std::thread::yield_now();
                own.listen("c").is_err() || !own.path.exists()
            });
            let lost = lost.count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0);
        });
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        for number in 0..64 {
            let name = format!("{DIRECTORY_PREFIX}{}-{number}", std::process::id());
            fs::create_dir(parent.path().join(name)).expect("made");
        }
        let one = GuestDirectory::below(parent.path()).expect("made");
        let other = GuestDirectory::below(parent.path()).expect("made");
        assert_ne!(one.path, other.path);
    }

    #[test]
    fn memory_needs_room() {
        assert!(memory_directory(1).is_ok());
        let error = memory_directory(u64::MAX >> 20).expect_err("no host has that");
        assert!(error.to_string().contains("TMPDIR"), "{error}");
    }
}
