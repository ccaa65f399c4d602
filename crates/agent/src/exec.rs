//! Performs the operations of a workload in a directory, of any Linux.

mod blocks;
mod entries;
mod manner;
mod time;
mod trees;

pub use manner::Manner;
pub use time::Time;

use crate::aligned::Aligned;
use crate::batch::{Batch, Failed, Number};
use crate::error::AgentError;
use entries::{stat_entry, unlink_entry};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use time::{Watch, is_about_time};
use whichfs_trial::{Counts, LatencyHistogram, Pieces, RETURNED};
use whichfs_units::KIB;
use whichfs_workload::{Content, Op, generated_bytes};

/// Bytes of a read or write call: what coreutils' cp takes at a time.
const CHUNK: u64 = 128 * KIB;

/// Files that are kept open between timed operations.
const OPEN_MAX: usize = 64;

/// Performs `ops` in `dir`, in order. `tree` is the directory that `Content::File` is
/// relative to; `time` is asked around timed operations and by those about time only. `promised`
/// hears of each call that returned with data durable: its name, its path if it is about one
/// file or directory, and the operations done so far; and, if `manner` says so, of each operation
/// that changed something ([`RETURNED`]).
///
/// # Errors
/// The first operation that fails: what it was, its path, the system's reason.
pub fn operate(
    ops: impl Iterator<Item = Op>,
    dir: &Path,
    tree: Option<&Path>,
    time: &Time<'_>,
    manner: Manner,
    promised: &mut dyn FnMut(&str, &str, u64) -> Result<(), AgentError>,
) -> Result<(Counts, LatencyHistogram), AgentError> {
    let mut executor = Executor::new(dir, tree)?;
    let mut latency = LatencyHistogram::default();
    let mut watch = Watch::default();
    for op in ops {
        if let Some(op) = &manner.does(&op) {
            if is_timed(op) {
                executor.settle()?;
                let begin = (time.now)();
                executor.perform(op)?;
                latency.record((time.now)().saturating_sub(begin));
            } else if is_about_time(op) {
                executor.settle()?;
                watch.perform(op, time, &mut latency);
            } else if !executor.plan(op)? {
                executor.settle()?;
                executor.perform(op)?;
            }
        }
        executor.counts.operations += 1;
        if manner.returns || executor.planned.is_full() {
            executor.settle()?;
        }
        if let Some((call, path)) = promise(&op) {
            promised(call, path, executor.counts.operations)?;
        }
        if manner.returns && op.changes() {
            promised(RETURNED, "", executor.counts.operations)?;
        }
    }
    executor.settle()?;
    Ok((executor.counts, latency))
}

/// Whether the latency of `op` is taken.
fn is_timed(op: &Op) -> bool {
    matches!(
        op,
        Op::Update { .. }
            | Op::Append { .. }
            | Op::SyncFile { .. }
            | Op::SyncDir { .. }
            | Op::WriteSync { .. }
            | Op::ReadAt { .. }
            | Op::WriteAt { .. }
            | Op::Rewrite { .. }
    )
}

/// The call with which `op` makes data durable, and the file or directory that it is about.
fn promise(op: &Op) -> Option<(&'static str, &str)> {
    match op {
        Op::Update { path, .. } | Op::SyncFile { path } | Op::SyncDir { path } => {
            Some(("fsync", path))
        }
        Op::SyncClose { path } | Op::Save { path, .. } => Some(("fsync", path)),
        Op::WriteSync { path, .. } => Some(("O_SYNC", path)),
        Op::Append {
            path, sync: true, ..
        } => Some(("fdatasync", path)),
        Op::SyncFs => Some(("syncfs", "")),
        _ => None,
    }
}

/// Where operations take place, and what has been done.
struct Executor<'a> {
    dir: &'a Path,
    root: OwnedFd,
    tree: Option<&'a Path>,
    /// Bits that the system takes away from the mode of a new file.
    umask: u32,
    /// Files that timed operations use, by path and the flags that they were opened with.
    open: BTreeMap<(String, u32), OwnedFd>,
    /// Calls of operations that need not be done yet.
    planned: Batch,
    buffer: Vec<u8>,
    /// For calls that go past the page cache or are larger than [`CHUNK`].
    aligned: Option<Aligned>,
    counts: Counts,
}

impl<'a> Executor<'a> {
    fn new(dir: &'a Path, tree: Option<&'a Path>) -> Result<Executor<'a>, AgentError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, Mode::empty())
            .map_err(|errno| AgentError::system("open directory", dir.display(), errno))?;
        Ok(Executor {
            dir,
            root,
            tree,
            umask: umask(),
            open: BTreeMap::new(),
            planned: Batch::default(),
            buffer: vec![0; CHUNK as usize],
            aligned: None,
            counts: Counts::default(),
        })
    }

    /// The error of `operation` on `path`.
    fn error(&self, operation: &str, path: &str, errno: Errno) -> AgentError {
        AgentError::system(operation, self.dir.join(path).display(), errno)
    }

    /// Adds `op` to the calls that are to be made together; `false` if it must be performed alone.
    fn plan(&mut self, op: &Op) -> Result<bool, AgentError> {
        let planned = self.try_plan(op);
        planned.map_err(|failed| self.failed(&failed))
    }

    fn try_plan(&mut self, op: &Op) -> Result<bool, Failed> {
        const CAREFUL: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);
        match op {
            Op::Mkdir { path, mode } => {
                let wanted = mode.unwrap_or(0o755);
                self.planned.mkdir(&self.root, path, wanted)?;
                if mode.is_some_and(|mode| self.needs_chmod(mode)) {
                    self.planned.chmod(&self.root, path, wanted)?;
                }
            }
            Op::Create {
                path,
                size,
                content: Content::Generated { level, seed },
                mode,
                pieces,
            } => {
                let flags = CAREFUL | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let wanted = mode.unwrap_or(0o644);
                let file = self.planned.open(&self.root, path, flags, wanted)?;
                self.plan_write(file, (*level, *seed), (0, *size), *pieces);
                if mode.is_some_and(|mode| self.needs_chmod(mode)) {
                    self.planned.chmod_open(file, wanted);
                }
                self.planned.close(file);
                self.counts.files += 1;
            }
            Op::Overwrite {
                path,
                offset,
                len,
                content: Content::Generated { level, seed },
            } => {
                let flags = CAREFUL | OFlags::WRONLY;
                let file = self.planned.open(&self.root, path, flags, 0o644)?;
                self.plan_write(file, (*level, *seed), (*offset, *len), None);
                self.planned.close(file);
                self.counts.files += 1;
            }
            Op::Read { path } => {
                let flags = CAREFUL | OFlags::RDONLY;
                let file = self.planned.open(&self.root, path, flags, 0o644)?;
                self.planned.read_all(file);
                self.planned.close(file);
                self.counts.files += 1;
            }
            Op::Unlink { path } if self.open.is_empty() => {
                self.planned.unlink(&self.root, path, AtFlags::empty())?;
                self.counts.files += 1;
            }
            Op::Rmdir { path } => {
                self.planned.unlink(&self.root, path, AtFlags::REMOVEDIR)?;
            }
            Op::Stat { path } => {
                self.planned.stat(&self.root, path)?;
                self.counts.files += 1;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Plans to write `len` bytes of a level and seed to `file` at `offset`, in `pieces`.
    fn plan_write(
        &mut self,
        file: Number,
        (level, seed): (u8, u64),
        (offset, len): (u64, u64),
        pieces: Option<Pieces>,
    ) {
        let mut done = 0;
        while done < len {
            let bytes = generated_bytes(level, seed, done, piece(pieces, done, len));
            self.planned.write(file, bytes, offset + done);
            done += bytes.len() as u64;
        }
        self.counts.bytes += len;
    }

    /// Does what is planned.
    fn settle(&mut self) -> Result<(), AgentError> {
        if self.planned.is_empty() {
            return Ok(());
        }
        let read = self.planned.perform();
        self.counts.bytes += read.map_err(|failed| self.failed(&failed))?;
        Ok(())
    }

    fn failed(&self, failed: &Failed) -> AgentError {
        self.error(failed.what, &failed.path, failed.errno)
    }

    /// Performs an operation that is never planned.
    fn perform(&mut self, op: &Op) -> Result<(), AgentError> {
        match op {
            Op::Create {
                path,
                size,
                content,
                mode,
                pieces,
            } => self
                .create(path, (*size, *pieces), content, *mode)
                .map(drop),
            Op::Save {
                path,
                size,
                content,
                mode,
            } => {
                let fd = self.create(path, (*size, None), content, *mode)?;
                self.fsync(&fd, path)
            }
            Op::Symlink { path, target } => rustix::fs::symlinkat(target, &self.root, path)
                .map_err(|errno| self.error("make symbolic link", path, errno)),
            Op::HardLink { path, existing } => {
                let root = self.root.as_fd();
                rustix::fs::linkat(root, existing, root, path, AtFlags::empty())
                    .map_err(|errno| self.error("make hard link", path, errno))
            }
            Op::ReadDir { path } => self.each_entry(path, stat_entry).map(drop),
            Op::StatAll { path } => {
                self.counts.files += self.each_entry(path, stat_entry)?;
                Ok(())
            }
            Op::Clear { path } => {
                self.forget(path);
                self.counts.files += self.each_entry(path, unlink_entry)?;
                Ok(())
            }
            Op::ReadTree { path } => self.read_tree(path),
            Op::RemoveTree { path } => self.remove_tree(path),
            Op::ReadLink { path } => rustix::fs::readlinkat(&self.root, path, Vec::new())
                .map(drop)
                .map_err(|errno| self.error("read link", path, errno)),
            Op::Overwrite {
                path,
                offset,
                len,
                content,
            } => {
                let fd = self.open(path, OFlags::WRONLY, None)?;
                self.write(&fd, path, *offset, *len, content)?;
                self.counts.files += 1;
                Ok(())
            }
            Op::Update { .. } | Op::Append { .. } | Op::WriteSync { .. } | Op::SyncFile { .. } => {
                self.perform_timed(op)
            }
            Op::Rename { from, to } => {
                self.forget(from);
                self.forget(to);
                rustix::fs::renameat(&self.root, from, &self.root, to)
                    .map_err(|errno| self.error("rename", from, errno))
            }
            Op::Unlink { path } => {
                self.forget(path);
                rustix::fs::unlinkat(&self.root, path, AtFlags::empty())
                    .map_err(|errno| self.error("delete", path, errno))?;
                self.counts.files += 1;
                Ok(())
            }
            Op::ReadAt { .. } | Op::WriteAt { .. } | Op::Rewrite { .. } => self.perform_blocks(op),
            Op::WillRead { path, offset, len } => {
                self.with_open(path, OFlags::RDONLY, |executor, fd| {
                    let len = NonZeroU64::new(*len);
                    rustix::fs::fadvise(fd, *offset, len, Advice::WillNeed)
                        .map_err(|errno| executor.error("read ahead in", path, errno))
                })
            }
            Op::Mkdir { .. } | Op::Read { .. } | Op::Rmdir { .. } | Op::Stat { .. } => {
                unreachable!("planned: {op:?}")
            }
            Op::Lap | Op::Pause { .. } | Op::WaitUntil { .. } => {
                unreachable!("about time: {op:?}")
            }
            Op::SyncClose { path } => self.sync_close(path),
            Op::WriteBack { path, wait } => {
                let fd = self.open(path, OFlags::WRONLY, None)?;
                let flags = match wait {
                    true => libc::SYNC_FILE_RANGE_WAIT_BEFORE,
                    false => libc::SYNC_FILE_RANGE_WRITE,
                };
                // SAFETY: the descriptor is open, and the rest are numbers.
                let result = unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, flags) };
                let errno = Errno::from_io_error(&std::io::Error::last_os_error());
                match result {
                    0 => Ok(()),
                    _ => Err(self.error("sync_file_range", path, errno.unwrap_or(Errno::IO))),
                }
            }
            Op::SyncFs => {
                rustix::fs::syncfs(&self.root).map_err(|errno| self.error("syncfs", "", errno))
            }
            Op::SyncDir { path } => {
                let fd = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, None)?;
                self.fsync(&fd, path)
            }
        }
    }

    /// What is done on a file that stays open.
    fn perform_timed(&mut self, op: &Op) -> Result<(), AgentError> {
        match op {
            Op::Update {
                path,
                offset,
                len,
                content,
            } => self.with_open(path, OFlags::WRONLY, |executor, fd| {
                executor.write(fd, path, *offset, *len, content)?;
                executor.fsync(fd, path)
            }),
            Op::WriteSync {
                path,
                offset,
                len,
                content,
            } => self.with_open(path, OFlags::WRONLY | OFlags::SYNC, |executor, fd| {
                executor.write(fd, path, *offset, *len, content)
            }),
            Op::SyncFile { path } => self.with_open(path, OFlags::WRONLY, |executor, fd| {
                executor.fsync(fd, path)
            }),
            Op::Append {
                path,
                len,
                content,
                sync,
            } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
                self.with_open(path, flags, |executor, fd| {
                    executor.write(fd, path, 0, *len, content)?;
                    match sync {
                        true => retry_on_intr(|| rustix::fs::fdatasync(fd))
                            .map_err(|errno| executor.error("fdatasync", path, errno)),
                        false => Ok(()),
                    }
                })
            }
            other => unreachable!("not done on an open file: {other:?}"),
        }
    }

    /// Calls `act` on `path`, opened with `flags`, and keeps it open.
    fn with_open(
        &mut self,
        path: &str,
        flags: OFlags,
        act: impl FnOnce(&mut Self, &OwnedFd) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let key = (path.to_owned(), flags.bits());
        let fd = match self.open.remove(&key) {
            Some(fd) => fd,
            None => self.open(path, flags, None)?,
        };
        act(self, &fd)?;
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        self.open.insert(key, fd);
        Ok(())
    }

    /// Closes what is open at `path` or below it: the name goes to another file, or away.
    fn forget(&mut self, path: &str) {
        let below = |name: &str| {
            let rest = name.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.open.retain(|(name, _), _| !below(name));
    }

    /// fsync of what is open at `path`, or of what is there, then closes it.
    fn sync_close(&mut self, path: &str) -> Result<(), AgentError> {
        let mut open = self.open.iter().filter(|((name, _), _)| name == path);
        match open.next() {
            Some((_, fd)) => self.fsync(fd, path)?,
            None => self.fsync(&self.open(path, OFlags::RDONLY, None)?, path)?,
        }
        self.open.retain(|(name, _), _| name != path);
        Ok(())
    }

    fn fsync(&self, fd: &OwnedFd, path: &str) -> Result<(), AgentError> {
        retry_on_intr(|| rustix::fs::fsync(fd)).map_err(|errno| self.error("fsync", path, errno))
    }

    fn open(&self, path: &str, flags: OFlags, mode: Option<u32>) -> Result<OwnedFd, AgentError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode.unwrap_or(0o644));
        retry_on_intr(|| rustix::fs::openat(&self.root, path, flags, mode))
            .map_err(|errno| self.error("open", path, errno))
    }

    /// Whether a new file of `mode` needs a chmod: the system took bits away.
    fn needs_chmod(&self, mode: u32) -> bool {
        mode & self.umask != 0 || mode & 0o7000 != 0
    }

    fn create(
        &mut self,
        path: &str,
        (size, pieces): (u64, Option<Pieces>),
        content: &Content,
        mode: Option<u32>,
    ) -> Result<OwnedFd, AgentError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = self.open(path, flags, mode)?;
        self.write_in_pieces(&fd, path, (0, size), content, pieces)?;
        if let Some(mode) = mode.filter(|&mode| self.needs_chmod(mode)) {
            rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))
                .map_err(|errno| self.error("set mode of", path, errno))?;
        }
        self.counts.files += 1;
        Ok(fd)
    }

    /// Writes `len` bytes of `content` to `fd` at `offset` (at the end if it appends).
    fn write(
        &mut self,
        fd: &OwnedFd,
        path: &str,
        offset: u64,
        len: u64,
        content: &Content,
    ) -> Result<(), AgentError> {
        self.write_in_pieces(fd, path, (offset, len), content, None)
    }

    /// The same in `pieces`.
    fn write_in_pieces(
        &mut self,
        fd: &OwnedFd,
        path: &str,
        (offset, len): (u64, u64),
        content: &Content,
        pieces: Option<Pieces>,
    ) -> Result<(), AgentError> {
        match content {
            Content::Generated { level, seed } => {
                let mut done = 0;
                while done < len {
                    let bytes = generated_bytes(*level, *seed, done, piece(pieces, done, len));
                    self.write_all(fd.as_fd(), path, offset + done, bytes)?;
                    done += bytes.len() as u64;
                }
            }
            Content::File { path: source } => {
                self.copy(fd, path, (offset, len), source, pieces)?;
            }
        }
        self.counts.bytes += len;
        Ok(())
    }

    /// Copies `len` bytes of the user's file `source`, from the same offset on, in `pieces`.
    fn copy(
        &mut self,
        fd: &OwnedFd,
        path: &str,
        (offset, len): (u64, u64),
        source: &str,
        pieces: Option<Pieces>,
    ) -> Result<(), AgentError> {
        let Some(tree) = self.tree else {
            let text = format!("{path} is to be copied from {source}, but no tree is given");
            return Err(AgentError::new(text));
        };
        let source = tree.join(source);
        let fail = |operation, errno| AgentError::system(operation, source.display(), errno);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let from =
            rustix::fs::open(&source, flags, Mode::empty()).map_err(|errno| fail("open", errno))?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut done = 0;
        while done < len {
            let room = piece(pieces, done, len).min(CHUNK) as usize;
            let at = offset + done;
            let count = retry_on_intr(|| rustix::io::pread(&from, &mut buffer[..room], at))
                .map_err(|errno| fail("read", errno))?;
            if count == 0 {
                let text = format!("{}: it has become shorter than it was", source.display());
                return Err(AgentError::new(text));
            }
            self.write_all(fd.as_fd(), path, at, &buffer[..count])?;
            done += count as u64;
        }
        self.buffer = buffer;
        Ok(())
    }

    fn write_all(
        &self,
        fd: BorrowedFd<'_>,
        path: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), AgentError> {
        let mut done = 0;
        while done < bytes.len() {
            // With O_APPEND the kernel takes the file's end instead of the offset.
            let at = offset + done as u64;
            match retry_on_intr(|| rustix::io::pwrite(fd, &bytes[done..], at)) {
                Ok(0) => return Err(self.error("write", path, Errno::NOSPC)),
                Ok(count) => done += count,
                Err(errno) => return Err(self.error("write", path, errno)),
            }
        }
        Ok(())
    }
}

/// Bytes of the next call that writes `len` bytes of which `done` are written.
fn piece(pieces: Option<Pieces>, done: u64, len: u64) -> u64 {
    pieces
        .map_or(u64::MAX, |pieces| pieces.at(done))
        .min(len - done)
}

/// The umask of this process; the usual one if /proc does not tell.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .unwrap_or(0o022)
}
