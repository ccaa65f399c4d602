//! A filesystem mounted for a moment: written, read back.
//!
//! It is mounted in a mount namespace of one thread: nobody else sees it, and a program that is
//! killed meanwhile leaves no mount behind.

use crate::error::FormatError;
use crate::program::{run, words};
use rustix::mount::{MountPropagationFlags, mount_change};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use whichfs_fs::Recipe;

/// Bytes that are written and read back.
const BYTES: usize = 1 << 20;
/// How long a mount may be busy.
const BUSY: Duration = Duration::from_secs(2);
/// Mounts so far: each has a directory of its own.
static MOUNTS: AtomicU32 = AtomicU32::new(0);
const NAME: &str = "whichfs-check";

/// A mount that ends with it.
struct Mounted {
    place: PathBuf,
}

impl Mounted {
    fn at(device: &str, kernel_fs: &str, options: &str) -> Result<Mounted, FormatError> {
        let (process, number) = (std::process::id(), MOUNTS.fetch_add(1, Ordering::Relaxed));
        let place = std::env::temp_dir().join(format!("whichfs-{process}-{number}"));
        let failed = |error: std::io::Error| FormatError::File {
            path: place.display().to_string(),
            reason: error.to_string(),
            remedy: "make it writable, or set TMPDIR",
        };
        std::fs::create_dir(&place).map_err(failed)?;
        let target = place.display().to_string();
        let mounted = run(&mount_of(device, kernel_fs, options, &target), "");
        if mounted.is_err() {
            let _ = std::fs::remove_dir(&place);
        }
        mounted.map(|_| Mounted { place })
    }

    /// Unmounts it; the directory is removed with it. Tried again while it is busy: a program that
    /// another thread starts holds the files of this process until it is executed.
    fn unmount(self) -> Result<(), FormatError> {
        let unmounting = words(&["umount", &self.place.display().to_string()]);
        let begun = Instant::now();
        loop {
            match run(&unmounting, "") {
                Err(_) if begun.elapsed() < BUSY => std::thread::sleep(BUSY / 20),
                done => return done.map(drop),
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Both fail where it was unmounted already, or is no more.
        let _ = rustix::mount::unmount(&self.place, rustix::mount::UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.place);
    }
}

/// The command that mounts the filesystem of `recipe` on `device` at `target`.
pub(crate) fn mounting(recipe: &Recipe, device: &str, target: &str) -> Vec<String> {
    mount_of(device, recipe.kernel_fs, &recipe.mount_options, target)
}

fn mount_of(device: &str, kernel_fs: &str, options: &str, target: &str) -> Vec<String> {
    let mut argv = words(&["mount", "-t", kernel_fs]);
    if !options.is_empty() {
        argv.extend(words(&["-o", options]));
    }
    argv.extend(words(&[device, target]));
    argv
}

/// Whether this kernel mounts `kernel_fs`; loads its module if there is one.
pub fn kernel_has(kernel_fs: &str) -> bool {
    let known = || {
        let text = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines()
            .any(|line| line.split_whitespace().last() == Some(kernel_fs))
    };
    known() || run(&words(&["modprobe", "-q", kernel_fs]), "").is_ok() && known()
}

/// Mounts `device`, writes a file, mounts it again, reads the file back and removes it.
///
/// # Errors
/// What failed.
pub(crate) fn exercise(device: &str, kernel_fs: &str, options: &str) -> Result<(), FormatError> {
    let alone = || {
        namespace()?;
        exercised(device, kernel_fs, options)
    };
    std::thread::scope(|scope| {
        let done = scope.spawn(alone).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives the calling thread a mount namespace of its own, whose mounts nobody else sees.
fn namespace() -> Result<(), FormatError> {
    let failed = |error: std::io::Error| FormatError::File {
        path: "a mount namespace".into(),
        reason: error.to_string(),
        remedy: "root is needed",
    };
    // SAFETY: unshare takes a number and changes only what this thread shares with others.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|errno| failed(errno.into()))
}

fn exercised(device: &str, kernel_fs: &str, options: &str) -> Result<(), FormatError> {
    let first = Mounted::at(device, kernel_fs, options)?;
    let path = first.place.join(NAME);
    // Each mount has a place of its own.
    write(&path).map_err(|error| failed(&path, &error))?;
    first.unmount()?;
    let second = Mounted::at(device, kernel_fs, options)?;
    let path = second.place.join(NAME);
    let read = read(&path).map_err(|error| failed(&path, &error))?;
    if read != pattern() {
        return Err(failed(
            &path,
            &std::io::Error::other("what was read is not what was written"),
        ));
    }
    std::fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
    second.unmount()
}

fn pattern() -> Vec<u8> {
    let words = (0..BYTES as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

fn write(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&pattern())?;
    file.sync_all()
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.read_to_end(&mut data)?;
    Ok(data)
}

fn failed(path: &Path, error: &std::io::Error) -> FormatError {
    FormatError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
        remedy: "the filesystem cannot be used: is the card sound? (whichfs probe --write)",
    }
}
