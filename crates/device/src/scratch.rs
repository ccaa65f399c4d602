//! The directory that trials run in within a mounted filesystem. It is removed at the end; what a
//! killed run left is found and removed by the next.
//!
//! Its lock is held by this process and, inherited, by the agent: while one of them lives, nobody
//! else begins there. The agent's programs do not have it, because an open directory is a way out
//! of their sandbox; they end with the agent. A file in it says whose it is; without that file
//! only an empty directory is taken.

use crate::error::HereError;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the directory.
const NAME: &str = ".whichfs-trials";
/// The file in it that says whose it is.
const MARK: &str = "README";
/// What that file says.
const SAYS: &str =
    "whichfs made this directory for trials, and removes it with all that is in it.\n";
/// Where a trial works.
const TRIAL: &str = "trial";
/// How long programs of a killed run may take to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(50);

/// The directory of trials, which goes with this.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Whether an interrupted run had left it.
    pub was_left: bool,
    _lock: OwnedFd,
}

impl Scratch {
    /// Makes the directory of trials in `dir`, or takes over the one that an interrupted run left,
    /// and removes what is in it.
    ///
    /// # Errors
    /// Another's directory has the name; another run has it; it cannot be made.
    pub fn begin(dir: &Path) -> Result<Scratch, HereError> {
        let path = dir.join(NAME);
        let was_left = match fs::DirBuilder::new().create(&path) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
            Err(error) => return Err(failed(&path, "it cannot be made", &error)),
        };
        let lock = lock(&path)?;
        if !is_ours(&path, &lock, dir) {
            let path = path.display().to_string();
            return Err(HereError::NotOurs { path });
        }
        let scratch = Scratch {
            path,
            was_left,
            _lock: lock,
        };
        let mark = scratch.path.join(MARK);
        fs::write(mark, SAYS).map_err(|error| failed(&scratch.path, "write", &error))?;
        scratch.clear()?;
        Ok(scratch)
    }

    /// Where a trial works.
    pub fn trial(&self) -> PathBuf {
        self.path.join(TRIAL)
    }

    /// Where a trial in `dir` will work.
    pub fn trial_in(dir: &Path) -> PathBuf {
        dir.join(NAME).join(TRIAL)
    }

    /// Makes the place of a trial anew, with nothing in it.
    ///
    /// # Errors
    /// What was there cannot be removed, or nothing can be made.
    pub fn fresh(&self) -> Result<(), HereError> {
        self.clear()?;
        fs::create_dir(self.trial()).map_err(|error| failed(&self.path, "make", &error))
    }

    /// Removes what the last trial left.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn clear(&self) -> Result<(), HereError> {
        let begun = Instant::now();
        loop {
            match fs::remove_dir_all(self.trial()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                // A program of an agent that was just killed has made another file.
                Err(error)
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty
                        && begun.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(failed(&self.path, "remove", &error)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// It cannot be removed; the next run tries again.
    pub fn end(self) -> Result<(), HereError> {
        self.remove()
    }

    fn remove(&self) -> Result<(), HereError> {
        self.clear()?;
        let mark = self.path.join(MARK);
        let gone = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(failed(&self.path, "remove", &error)),
        };
        fs::remove_file(mark).or_else(gone)?;
        fs::remove_dir(&self.path).or_else(gone)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed the next run finds.
        let _ = self.remove();
    }
}

/// Whether the directory at `path` in `dir`, which is open as `lock`, is one that whichfs made:
/// with our file, or with nothing in it, and of the user who runs this.
fn is_ours(path: &Path, lock: &OwnedFd, dir: &Path) -> bool {
    let owner = fstat(lock).map(|stat| stat.st_uid);
    // Where a filesystem has no owners all is of the one that mounted it.
    let above = rustix::fs::stat(dir).map(|stat| stat.st_uid);
    let own = rustix::process::geteuid().as_raw();
    let is_owned = owner.is_ok_and(|owner| owner == own || above == Ok(owner));
    let says = fs::read_to_string(path.join(MARK)).is_ok_and(|text| text == SAYS);
    let is_empty = || fs::read_dir(path).is_ok_and(|mut all| all.next().is_none());
    is_owned && (says || is_empty())
}

/// Opens the directory at `path` and takes its lock. Programs inherit it.
fn lock(path: &Path) -> Result<OwnedFd, HereError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let not_ours = |_| HereError::NotOurs {
        path: path.display().to_string(),
    };
    let lock = open(path, flags, Mode::empty()).map_err(not_ours)?;
    let begun = Instant::now();
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            Err(_) => {
                return Err(HereError::Taken {
                    path: path.display().to_string(),
                });
            }
        }
    }
}

fn failed(path: &Path, what: &'static str, error: &io::Error) -> HereError {
    HereError::Scratch {
        path: path.display().to_string(),
        what,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_trial_begins_with_nothing_and_at_the_end_all_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::begin(dir.path()).unwrap();
        assert!(!scratch.was_left);
        assert_eq!(scratch.trial(), Scratch::trial_in(dir.path()));
        for _ in 0..2 {
            scratch.fresh().unwrap();
            assert_eq!(fs::read_dir(scratch.trial()).unwrap().count(), 0);
            fs::create_dir(scratch.trial().join("a")).unwrap();
            fs::write(scratch.trial().join("a/b"), "data").unwrap();
        }
        scratch.end().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let killed = Scratch::begin(dir.path()).unwrap();
        killed.fresh().unwrap();
        fs::write(killed.trial().join("left"), "data").unwrap();
        let path = killed.path.clone();
        // As a kill does: the lock goes, the directory stays.
        flock(&killed._lock, FlockOperation::Unlock).unwrap();
        std::mem::forget(killed);
        let next = Scratch::begin(dir.path()).unwrap();
        assert!(next.was_left && !next.trial().exists());
        drop(next);
        assert!(!path.exists());
        // One killed right after it made the directory, too.
        fs::create_dir(&path).unwrap();
        Scratch::begin(dir.path()).unwrap().end().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn another_directory_of_that_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(NAME);
        fs::create_dir_all(own.join(TRIAL)).unwrap();
        fs::write(own.join(TRIAL).join("mine"), "data").unwrap();
        let text = Scratch::begin(dir.path()).unwrap_err().to_string();
        assert!(text.contains("not of whichfs"), "{text}");
        assert!(own.join(TRIAL).join("mine").exists());
        fs::remove_dir_all(&own).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &own).unwrap();
        assert!(Scratch::begin(dir.path()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
