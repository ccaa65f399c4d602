//! Whole trees, read as GNU tar 1.34 reads and removed as `rm` of GNU coreutils 9.1 removes: with
//! the calls that strace shows of those of Debian 12, in the order in which the filesystem lists
//! each directory.

use super::Executor;
use crate::batch::{Batch, Failed, Opened};
use crate::error::AgentError;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::{Errno, retry_on_intr};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use whichfs_units::KIB;

/// Bytes of a call that lists a directory, as of glibc's readdir.
const LISTING: usize = 32 << 10;

/// Bytes of a block of a tar archive; headers take one, contents are filled up to one.
const BLOCK: u64 = 512;

/// Bytes that tar writes to its archive at a time; it reads no more than fit into the rest of them.
const RECORD: u64 = 10 * KIB;

/// Entries of a directory beyond which coreutils' fts sorts them by inode number.
const SORTED_BEYOND: usize = 10_000;

/// What tar opens with.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An entry of a directory as getdents gives it.
struct Listed {
    name: CString,
    kind: FileType,
    inode: u64,
}

impl Executor<'_> {
    /// Reads the directory `path` and all that is below it as `tar -c` does.
    pub(super) fn read_tree(&mut self, path: &str) -> Result<(), AgentError> {
        let mut tar = Tar {
            batch: Batch::default(),
            filled: 0,
            linked: BTreeSet::new(),
            bytes: 0,
            files: 0,
        };
        let root = self.open(".", OFlags::RDONLY | OFlags::DIRECTORY, None)?;
        let name = self.name(path)?;
        tar.directory(self, root.as_fd(), &name, path)?;
        self.counts.bytes += tar.bytes;
        self.counts.files += tar.files;
        Ok(())
    }

    /// Deletes `path` and all that is below it as `rm -r` does.
    pub(super) fn remove_tree(&mut self, path: &str) -> Result<(), AgentError> {
        self.forget(path);
        let name = self.name(path)?;
        let root = self.open(".", OFlags::RDONLY | OFlags::DIRECTORY, None)?;
        match self.kind_of(root.as_fd(), &name, path)? {
            FileType::Directory => self.remove_directory(root.as_fd(), &name, path, &mut false),
            _ => {
                rustix::fs::unlinkat(&root, &name, AtFlags::empty())
                    .map_err(|errno| self.error("delete", path, errno))?;
                self.counts.files += 1;
                Ok(())
            }
        }
    }

    fn remove_directory(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &str,
        asked: &mut bool,
    ) -> Result<(), AgentError> {
        let mut batch = Batch::default();
        // rm looks whether it is empty before fts opens it to list it.
        let look = self.open_directory(parent, name, path)?;
        if !self.listed(&look, path, 1)?.is_empty() {
            drop(look);
            let dir = self.open_directory(parent, name, path)?;
            self.ask_as_fts(&dir, path, asked)?;
            let mut entries = self.listed(&dir, path, usize::MAX)?;
            if entries.len() > SORTED_BEYOND {
                entries.sort_by_key(|entry| entry.inode);
            }
            for Listed { name, kind, .. } in entries {
                let inside = below(path, &name);
                let kind = match kind {
                    FileType::Directory | FileType::Unknown => {
                        self.settle_in(&mut batch, path)?;
                        self.kind_of(dir.as_fd(), &name, &inside)?
                    }
                    known => known,
                };
                if kind == FileType::Directory {
                    self.remove_directory(dir.as_fd(), &name, &inside, asked)?;
                    continue;
                }
                let planned = batch.unlink(&dir, name.to_bytes(), AtFlags::empty());
                planned.map_err(|failed| self.failed_in(path, &failed))?;
                self.counts.files += 1;
                if batch.is_full() {
                    self.settle_in(&mut batch, path)?;
                }
            }
            self.settle_in(&mut batch, path)?;
        }
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
            .map_err(|errno| self.error("delete directory", path, errno))
    }

    /// Asks for the type of the filesystem once, in the first directory whose links say that it
    /// has no other below it, as fts does (gnulib, `leaf_optimization`). vfat counts its free
    /// clusters then: it reads its whole table, once for each mount.
    fn ask_as_fts(&self, dir: &OwnedFd, path: &str, asked: &mut bool) -> Result<(), AgentError> {
        const LINKS_OF_A_LEAF: u64 = 2;
        let failed = |errno| self.error("stat", path, errno);
        if !*asked && rustix::fs::fstat(dir).map_err(failed)?.st_nlink as u64 == LINKS_OF_A_LEAF {
            *asked = true;
            rustix::fs::fstatfs(dir).map_err(failed)?;
        }
        Ok(())
    }

    fn settle_in(&self, batch: &mut Batch, dir: &str) -> Result<(), AgentError> {
        let done = batch.perform();
        done.map(drop)
            .map_err(|failed| self.failed_in(dir, &failed))
    }

    fn name(&self, path: &str) -> Result<CString, AgentError> {
        CString::new(path).map_err(|_| self.error("open", path, Errno::INVAL))
    }

    fn kind_of(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        path: &str,
    ) -> Result<FileType, AgentError> {
        rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| FileType::from_raw_mode(stat.st_mode))
            .map_err(|errno| self.error("stat", path, errno))
    }

    /// Opens a directory and asks for its attributes.
    fn open_directory(
        &self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &str,
    ) -> Result<OwnedFd, AgentError> {
        let flags = READ | OFlags::DIRECTORY;
        let dir = retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty()))
            .map_err(|errno| self.error("open", path, errno))?;
        rustix::fs::fstat(&dir).map_err(|errno| self.error("stat", path, errno))?;
        Ok(dir)
    }

    /// The first entries of `dir`, `most` of them, in the filesystem's order.
    fn listed(&self, dir: &OwnedFd, path: &str, most: usize) -> Result<Vec<Listed>, AgentError> {
        let mut buffer = vec![MaybeUninit::uninit(); LISTING];
        let mut entries = RawDir::new(dir, &mut buffer);
        let mut listed = Vec::new();
        while listed.len() < most
            && let Some(entry) = entries.next()
        {
            let entry = entry.map_err(|errno| self.error("list", path, errno))?;
            if [c".", c".."].contains(&entry.file_name()) {
                continue;
            }
            listed.push(Listed {
                name: entry.file_name().to_owned(),
                kind: entry.file_type(),
                inode: entry.ino(),
            });
        }
        Ok(listed)
    }
}

/// The path of `name` in the directory `dir`, for messages.
fn below(dir: &str, name: &CStr) -> String {
    format!("{dir}/{}", name.to_string_lossy())
}

/// What `tar -c` has read.
struct Tar {
    /// Calls on one directory that are not made yet.
    batch: Batch,
    /// Bytes of the archive's record that are filled.
    filled: u64,
    /// Device and inode of files that have several names.
    linked: BTreeSet<(u64, u64)>,
    bytes: u64,
    files: u64,
}

impl Tar {
    fn directory(
        &mut self,
        executor: &Executor<'_>,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &str,
    ) -> Result<(), AgentError> {
        let dir = executor.open_directory(parent, name, path)?;
        self.fill(BLOCK);
        for Listed { name, .. } in executor.listed(&dir, path, usize::MAX)? {
            let kind = self.entry(&dir, &name);
            let kind = kind.map_err(|failed| executor.failed_in(path, &failed))?;
            if kind == FileType::Directory {
                self.directory(executor, dir.as_fd(), &name, &below(path, &name))?;
            }
        }
        self.batch.stat_open(dir.as_raw_fd());
        let last = self.perform(|_| ());
        last.map_err(|failed| executor.failed_in(path, &failed))
    }

    /// Makes the calls that are planned and asks for the attributes of `name`; plans to read it if
    /// it is no directory.
    fn entry(&mut self, dir: &OwnedFd, name: &CStr) -> Result<FileType, Failed> {
        let asked = self.batch.stat(dir, name.to_bytes())?;
        let stat = self.perform(|batch| batch.stat_of(asked).copied())?;
        let stat = stat.map_err(|errno| Failed {
            what: "stat",
            path: name.to_string_lossy().into_owned(),
            errno,
        })?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return Ok(kind);
        }
        self.fill(BLOCK);
        if kind == FileType::Symlink {
            self.batch.read_link(dir, name.to_bytes())?;
        } else if kind == FileType::RegularFile {
            let seen = stat.st_nlink > 1 && !self.linked.insert((stat.st_dev, stat.st_ino));
            self.files += u64::from(!seen);
            match u64::try_from(stat.st_size) {
                Ok(0) | Err(_) => drop(self.batch.stat(dir, name.to_bytes())?),
                Ok(size) => self.file(dir, name, if seen { 0 } else { size })?,
            }
        }
        Ok(kind)
    }

    /// Plans to open a file and to read `size` bytes, and makes calls where there are many.
    fn file(&mut self, dir: &OwnedFd, name: &CStr, size: u64) -> Result<(), Failed> {
        let mut file: Opened = self.batch.open(dir, name.to_bytes(), READ, 0)?.into();
        self.batch.stat_open(file);
        let mut left = size;
        while left > 0 {
            let len = left.min(RECORD - self.filled);
            self.batch.read_next(file, len);
            self.fill(len);
            left -= len;
            if self.batch.is_full() {
                file = self.perform(|batch| batch.left_open(file))?;
            }
        }
        self.fill(size.next_multiple_of(BLOCK) - size);
        if size > 0 {
            self.batch.stat_open(file);
        }
        self.batch.close(file);
        Ok(())
    }

    fn perform<T>(&mut self, look: impl FnOnce(&Batch) -> T) -> Result<T, Failed> {
        let (bytes, seen) = self.batch.perform_and(look)?;
        self.bytes += bytes;
        Ok(seen)
    }

    fn fill(&mut self, bytes: u64) {
        self.filled = (self.filled + bytes) % RECORD;
    }
}
