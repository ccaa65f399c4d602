//! The directory that trials run in within a mounted filesystem. It is removed at the end; what a
//! killed run left is found and removed by the next.
//!
//! The owner of the directory above may swap any name in it for a link at any moment. So nothing
//! here goes by a path: each name is resolved below an open directory and never through a link,
//! and before each trial the directory at the name must still be the one that was made.
//!
//! Its lock is held by this process and, inherited, by the agent: while one of them lives, nobody
//! else begins there. The agent's programs do not have it, because an open directory is a way out
//! of their sandbox; they end with the agent. A file in it says whose it is; without that file
//! only an empty directory is taken.

use crate::error::HereError;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, fchown, flock, fstat, mkdirat,
    openat2, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::fs::{self, File};
use std::io::{self, Read, Write};
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
    /// The directory that it is in.
    above: OwnedFd,
    /// The directory itself, with its lock.
    own: OwnedFd,
    /// Its path, for people.
    shown: String,
    /// Whether an interrupted run had left it.
    pub was_left: bool,
}

impl Scratch {
    /// Makes the directory of trials in the open directory `above`, which people know as `shown`,
    /// or takes over the one that an interrupted run left, and removes what is in it.
    ///
    /// # Errors
    /// Another's directory has the name; another run has it; it cannot be made.
    pub fn begin(above: OwnedFd, shown: &str) -> Result<Scratch, HereError> {
        let shown = format!("{}/{NAME}", shown.trim_end_matches('/'));
        let was_left = match mkdirat(&above, NAME, Mode::RWXU) {
            Ok(()) => false,
            Err(Errno::EXIST) => true,
            Err(errno) => return Err(failed(&shown, "it cannot be made", &errno.into())),
        };
        let own = lock(&above, &shown)?;
        if !is_ours(&own, &above) {
            return Err(HereError::NotOurs { path: shown });
        }
        let scratch = Scratch {
            above,
            own,
            shown,
            was_left,
        };
        scratch.mark()?;
        scratch.clear()?;
        Ok(scratch)
    }

    /// Writes whose the directory is, unless it says so already.
    fn mark(&self) -> Result<(), HereError> {
        if says(&self.own) {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = below(&self.own, MARK, flags, Mode::RUSR | Mode::WUSR);
        let written = file.map_err(io::Error::from).and_then(|file| {
            let mut file = File::from(file);
            file.write_all(SAYS.as_bytes())
        });
        written.map_err(|error| failed(&self.shown, "write", &error))
    }

    /// Makes the place of a trial anew, with nothing in it, for the user and group `owner` if that
    /// is not the calling one.
    ///
    /// # Errors
    /// The directory at the name is another; what was there cannot be removed, or nothing made.
    pub fn fresh(&self, owner: Option<(u32, u32)>) -> Result<OwnedFd, HereError> {
        self.check()?;
        self.clear()?;
        let fail = |errno: Errno| failed(&self.shown, "make", &errno.into());
        mkdirat(&self.own, TRIAL, Mode::from_raw_mode(0o755)).map_err(fail)?;
        let trial = directory(&self.own, TRIAL).map_err(fail)?;
        if let Some((user, group)) = owner {
            fchown(
                &trial,
                Some(Uid::from_raw(user)),
                Some(Gid::from_raw(group)),
            )
            .map_err(fail)?;
        }
        Ok(trial)
    }

    /// Checks that the directory at the name is still the one that this has.
    ///
    /// # Errors
    /// It is another, a link, or gone.
    pub fn check(&self) -> Result<(), HereError> {
        match self.is_in_place() {
            true => Ok(()),
            false => Err(HereError::Swapped {
                path: self.shown.clone(),
            }),
        }
    }

    fn is_in_place(&self) -> bool {
        let identity = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
        let there = directory(&self.above, NAME).and_then(|fd| identity(fd.as_fd()));
        there.is_ok() && there == identity(self.own.as_fd())
    }

    /// Removes what the last trial left.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn clear(&self) -> Result<(), HereError> {
        let begun = Instant::now();
        // Below the open directory; remove_dir_all follows no link from there on.
        let trial = format!("/proc/self/fd/{}/{TRIAL}", self.own.as_raw_fd());
        loop {
            match fs::remove_dir_all(&trial) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                // A program of an agent that was just killed has made another file.
                Err(error)
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty
                        && begun.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(failed(&self.shown, "remove", &error)),
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
        let gone = |errno: Errno| match errno {
            Errno::NOENT => Ok(()),
            _ => Err(failed(&self.shown, "remove", &errno.into())),
        };
        unlinkat(&self.own, MARK, AtFlags::empty()).or_else(gone)?;
        // Only an empty directory is removed, so nobody loses anything by a swap just now.
        match self.is_in_place() {
            true => unlinkat(&self.above, NAME, AtFlags::REMOVEDIR).or_else(gone),
            false => self.check(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed the next run finds.
        let _ = self.remove();
    }
}

/// Opens `name` below `above`, through no link and into no other filesystem.
pub(crate) fn below(
    above: impl AsFd,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let stays = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    loop {
        // The kernel asks to try again when names were moved meanwhile.
        match openat2(&above, name, flags, mode, stays) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

fn directory(above: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    below(above, name, flags, Mode::empty())
}

/// Whether the directory `own` in `above` is one that whichfs made: with our file, or with nothing
/// in it, and of the user who runs this.
fn is_ours(own: &OwnedFd, above: &OwnedFd) -> bool {
    let owner = |fd: &OwnedFd| fstat(fd).map(|stat| stat.st_uid);
    // Where a filesystem has no owners all is of the one that mounted it.
    let caller = rustix::process::geteuid().as_raw();
    let is_owned = owner(own).is_ok_and(|user| user == caller || owner(above) == Ok(user));
    let path = format!("/proc/self/fd/{}", own.as_raw_fd());
    let is_empty = || fs::read_dir(&path).is_ok_and(|mut all| all.next().is_none());
    is_owned && (says(own) || is_empty())
}

/// Whether the directory `own` has our file.
fn says(own: &OwnedFd) -> bool {
    // A pipe of that name must not hold us.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let Ok(file) = below(own, MARK, flags, Mode::empty()) else {
        return false;
    };
    let kind = fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let mut text = Vec::new();
    let most = SAYS.len() as u64 + 1;
    let read = kind == Ok(FileType::RegularFile)
        && File::from(file).take(most).read_to_end(&mut text).is_ok();
    read && text == SAYS.as_bytes()
}

/// Opens the directory of trials in `above` and takes its lock. Programs inherit it.
fn lock(above: &OwnedFd, shown: &str) -> Result<OwnedFd, HereError> {
    let not_ours = |_| HereError::NotOurs {
        path: shown.to_owned(),
    };
    let lock = directory(above, NAME).map_err(not_ours)?;
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty()).map_err(not_ours)?;
    let begun = Instant::now();
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            Err(_) => {
                return Err(HereError::Taken {
                    path: shown.to_owned(),
                });
            }
        }
    }
}

fn failed(shown: &str, what: &'static str, error: &io::Error) -> HereError {
    HereError::Scratch {
        path: shown.to_owned(),
        what,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn begin(dir: &Path) -> Result<Scratch, HereError> {
        let above = OwnedFd::from(File::open(dir).unwrap());
        Scratch::begin(above, dir.to_str().unwrap())
    }

    #[test]
    fn each_trial_begins_with_nothing_and_at_the_end_all_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = begin(dir.path()).unwrap();
        assert!(!scratch.was_left);
        let trial = dir.path().join(NAME).join(TRIAL);
        for _ in 0..2 {
            drop(scratch.fresh(None).unwrap());
            assert_eq!(fs::read_dir(&trial).unwrap().count(), 0);
            fs::create_dir(trial.join("a")).unwrap();
            fs::write(trial.join("a/b"), "data").unwrap();
        }
        scratch.end().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let killed = begin(dir.path()).unwrap();
        drop(killed.fresh(None).unwrap());
        let path = dir.path().join(NAME);
        fs::write(path.join(TRIAL).join("left"), "data").unwrap();
        // As a kill does: the lock goes, the directory stays.
        flock(&killed.own, FlockOperation::Unlock).unwrap();
        std::mem::forget(killed);
        let next = begin(dir.path()).unwrap();
        assert!(next.was_left && !path.join(TRIAL).exists());
        drop(next);
        assert!(!path.exists());
        // One killed right after it made the directory, too.
        fs::create_dir(&path).unwrap();
        begin(dir.path()).unwrap().end().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn another_directory_of_that_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(NAME);
        fs::create_dir_all(own.join(TRIAL)).unwrap();
        fs::write(own.join(TRIAL).join("mine"), "data").unwrap();
        let text = begin(dir.path()).unwrap_err().to_string();
        assert!(text.contains("not created by whichfs"), "{text}");
        assert!(own.join(TRIAL).join("mine").exists());
        fs::remove_dir_all(&own).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), &own).unwrap();
        assert!(begin(dir.path()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    /// Somebody's files, in a directory with the name of a trial's.
    fn victim(root: &Path) -> std::path::PathBuf {
        let victim = root.join("victim");
        fs::create_dir_all(victim.join(TRIAL)).unwrap();
        fs::write(victim.join(TRIAL).join("precious"), "data").unwrap();
        fs::write(victim.join(MARK), SAYS).unwrap();
        victim
    }

    /// Swaps the directory of trials in `dir`, or the trial in it, for links to `victim` and back,
    /// until `over`.
    fn swap(dir: &Path, victim: &Path, over: &AtomicBool) {
        let (own, aside) = (dir.join(NAME), dir.join("aside"));
        let mut links = 0_u32;
        while !over.load(Ordering::Relaxed) {
            if fs::rename(&own, &aside).is_ok() && symlink(victim, &own).is_ok() {
                links += 1;
                std::thread::sleep(Duration::from_micros(50));
                let _ = fs::remove_file(&own);
                let _ = fs::rename(&aside, &own);
            }
            let (trial, other) = (own.join(TRIAL), own.join("other"));
            if fs::rename(&trial, &other).is_ok() {
                let _ = symlink(victim.join(TRIAL), &trial);
                std::thread::sleep(Duration::from_micros(50));
                let _ = fs::remove_file(&trial);
                let _ = fs::rename(&other, &trial);
            }
        }
        assert!(links > 0, "nothing was swapped");
    }

    /// Whether `victim` is whole after `time` of `work` with names swapped all the time.
    fn survives(time: Duration, work: impl Fn(&Path)) -> bool {
        let root = tempfile::tempdir().unwrap();
        let (dir, victim) = (root.path().join("dir"), victim(root.path()));
        fs::create_dir(&dir).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(&dir, &victim, &over));
            let begun = Instant::now();
            while begun.elapsed() < time && is_whole(&victim) {
                work(&dir);
            }
            over.store(true, Ordering::Relaxed);
        });
        is_whole(&victim)
    }

    fn is_whole(victim: &Path) -> bool {
        let names = |dir: &Path| {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        names(victim) == [MARK, TRIAL] && names(&victim.join(TRIAL)) == ["precious"]
    }

    #[test]
    fn attack_names_that_their_owner_swaps_lead_nowhere() {
        assert!(survives(Duration::from_secs(2), |dir| {
            // What somebody swaps is refused or works in our own directory.
            if let Ok(scratch) = begin(dir) {
                for _ in 0..20 {
                    let trial = scratch.fresh(None);
                    let file = trial.and_then(|trial| {
                        let flags = OFlags::WRONLY | OFlags::CREATE;
                        below(&trial, "data", flags, Mode::RUSR)
                            .map_err(|errno| failed("", "write", &errno.into()))
                    });
                    drop(file);
                }
            }
        }));
    }

    #[test]
    fn attack_planted_fault_paths_lead_to_the_victim() {
        assert!(!survives(Duration::from_secs(60), |dir| {
            let trial = dir.join(NAME).join(TRIAL);
            let _ = fs::create_dir_all(&trial);
            let _ = fs::write(trial.join("data"), "");
            let _ = fs::remove_dir_all(&trial);
        }));
    }
}
