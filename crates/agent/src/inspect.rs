//! Reads everything below a directory and tells what is there.

use crate::batch::{Batch, Number};
use crate::dirents::{Kind, entries};
use crate::error::AgentError;
use crate::prefaulted_buffer::PrefaultedBuffer;
use crate::sink::Sink;
use rustix::fd::{BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};
use rustix::io::{Errno, retry_on_intr};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use whichfs_trial::{
    ContentDigest, DirectoryEntry, Event, Node, ZERO_RUNS, content_digest, sector_digest,
};
use whichfs_units::{KIB, SECTOR};

/// Bytes of a read call: few calls for a large file, in a buffer that the host's caches hold.
const CHUNK: usize = 512 * KIB as usize;
/// Entries in one event: with paths of a few hundred bytes it fits into a record.
const ENTRIES: usize = 100;
/// Directories, files or links that are looked at together.
const TOGETHER: usize = 16;
/// Bytes of each file that are asked for at once.
const AHEAD: u64 = 1 << 20;
/// Sector digests in one event.
const DIGESTS: usize = 8192;
/// Deepest directory: a damaged filesystem may have cycles.
const DEPTH_MAX: usize = 64;
/// Most entries that are told: a damaged directory may have no end.
const ENTRIES_MAX: usize = 1 << 20;

const OPEN: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK);

/// Tells `sink` all that is below `dir`, and the digests of the sectors of the files `sectors`.
///
/// # Errors
/// Only where the sink fails: what cannot be read is told as such.
pub fn inspect(
    dir: &Path,
    sectors: &[String],
    room: &mut Room,
    sink: &mut dyn Sink,
) -> Result<(), AgentError> {
    let flags = OPEN | OFlags::DIRECTORY | OFlags::PATH;
    let root = match rustix::fs::open(dir, flags, Mode::empty()) {
        Ok(root) => root,
        Err(errno) => {
            let entries = vec![unreadable(".".to_owned(), "open", errno)];
            return sink.send(&Event::Found { entries });
        }
    };
    let mut inspector = Inspector {
        root,
        wanted: sectors.iter().map(String::as_str).collect(),
        directories: VecDeque::from([Directory::default()]),
        files: Vec::new(),
        links: Vec::new(),
        known: 0,
        entries: Vec::new(),
        digests: 0,
        left: Vec::new(),
        room,
        sink,
    };
    let done = inspector.all().and_then(|()| inspector.flush());
    inspector.close_left();
    done
}

/// Memory that inspections use one after the other.
pub struct Room {
    buffer: PrefaultedBuffer,
    batch: Batch,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            buffer: PrefaultedBuffer::new(CHUNK),
            batch: Batch::default(),
        }
    }
}

/// A directory that is to be listed; the one inspected has no path.
#[derive(Default)]
struct Directory {
    path: String,
    depth: usize,
}

struct Inspector<'a> {
    /// What is inspected. Paths begin here: above it lies what the host answers, call by call.
    root: OwnedFd,
    wanted: BTreeSet<&'a str>,
    /// What has been listed and is not looked at yet.
    directories: VecDeque<Directory>,
    files: Vec<String>,
    links: Vec<String>,
    /// Entries that were listed.
    known: usize,
    /// What has been found and is not told yet, with so many digests.
    entries: Vec<DirectoryEntry>,
    digests: usize,
    /// Files and directories that were looked at and are open.
    left: Vec<RawFd>,
    room: &'a mut Room,
    sink: &'a mut dyn Sink,
}

/// Calls that opened a file or directory and looked at it.
struct Opened {
    file: Number,
    status: Number,
    /// Its first bytes or entries, and the next.
    heads: [Option<Number>; 2],
}

impl Inspector<'_> {
    fn all(&mut self) -> Result<(), AgentError> {
        while !self.directories.is_empty() {
            let count = self.directories.len().min(TOGETHER);
            let some: Vec<Directory> = self.directories.drain(..count).collect();
            self.list(&some)?;
            while self.files.len() >= TOGETHER {
                self.read_files()?;
            }
            while self.links.len() >= TOGETHER {
                self.read_links()?;
            }
        }
        while !self.files.is_empty() {
            self.read_files()?;
        }
        while !self.links.is_empty() {
            self.read_links()?;
        }
        Ok(())
    }

    /// Lists directories, and tells of them.
    fn list(&mut self, directories: &[Directory]) -> Result<(), AgentError> {
        let mut batch = self.next_batch();
        let paths = directories.iter().map(|directory| &directory.path);
        let opened = self.open(&mut batch, paths, OFlags::DIRECTORY);
        for (directory, opened) in directories.iter().zip(opened) {
            let name = match directory.path.as_str() {
                "" => ".".to_owned(),
                path => path.to_owned(),
            };
            let fd = opened.and_then(|opened| {
                let fd = batch.result(opened.file)? as RawFd;
                self.left.push(fd);
                let mode = batch.attributes(opened.status)?.1;
                Ok((fd, mode & 0o7777, opened))
            });
            let (fd, mode, opened) = match fd {
                Ok(opened) => opened,
                Err(errno) => {
                    self.unreadable(name, "list", errno)?;
                    continue;
                }
            };
            let mut names = Vec::new();
            match self.names(fd, &batch, &opened, &mut names) {
                Ok(()) if directory.path.is_empty() => {}
                Ok(()) => self.tell(name, Node::Directory, mode)?,
                Err(errno) => self.unreadable(name, "list", errno)?,
            }
            names.sort_unstable();
            self.sort_in(directory, names)?;
        }
        self.room.batch = batch;
        Ok(())
    }

    /// Adds all names in a directory with their kinds to `names`, those that have been listed and
    /// the rest, as far as they can be read.
    fn names(
        &self,
        fd: RawFd,
        batch: &Batch,
        opened: &Opened,
        names: &mut Vec<(String, Kind)>,
    ) -> Result<(), Errno> {
        let take = |names: &mut Vec<(String, Kind)>, bytes: &[u8]| {
            let new = entries(bytes).map(|(name, kind)| (name.to_string_lossy().into(), kind));
            names.extend(new);
        };
        for head in opened.heads.into_iter().flatten() {
            if batch.result(head)? == 0 {
                return Ok(());
            }
            take(names, batch.head(head));
        }
        let mut more = Batch::default();
        while self.known + names.len() < ENTRIES_MAX {
            let next = more.list(fd);
            more.perform_each();
            if more.result(next)? == 0 {
                break;
            }
            take(names, more.head(next));
            more.clear();
        }
        Ok(())
    }

    /// Notes what is in `directory`, to be looked at later.
    fn sort_in(
        &mut self,
        directory: &Directory,
        names: Vec<(String, Kind)>,
    ) -> Result<(), AgentError> {
        for (name, kind) in names {
            if self.known >= ENTRIES_MAX {
                break;
            }
            self.known += 1;
            let path = match directory.path.as_str() {
                "" => name,
                above => format!("{above}/{name}"),
            };
            match kind {
                Kind::File => self.files.push(path),
                Kind::Symlink => self.links.push(path),
                Kind::Directory => self.go_into(path, directory.depth + 1)?,
                Kind::Other => self.other(path, directory.depth + 1)?,
            }
        }
        Ok(())
    }

    fn go_into(&mut self, path: String, depth: usize) -> Result<(), AgentError> {
        if depth > DEPTH_MAX {
            return self.unreadable(path, "list", Errno::LOOP);
        }
        self.directories.push_back(Directory { path, depth });
        Ok(())
    }

    /// An entry of which the name alone is known.
    fn other(&mut self, path: String, depth: usize) -> Result<(), AgentError> {
        let mode = match statat(&self.root, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat.st_mode,
            Err(errno) => return self.unreadable(path, "stat", errno),
        };
        match FileType::from_raw_mode(mode) {
            FileType::Directory => return self.go_into(path, depth),
            FileType::RegularFile => self.files.push(path),
            FileType::Symlink => self.links.push(path),
            _ => self.tell(path, Node::Other, mode & 0o7777)?,
        }
        Ok(())
    }

    /// Reads and tells some of the links.
    fn read_links(&mut self) -> Result<(), AgentError> {
        let mut batch = self.next_batch();
        let count = self.links.len().min(TOGETHER);
        let links: Vec<String> = self.links.drain(..count).collect();
        let read: Vec<Result<Number, Errno>> = (links.iter())
            .map(|path| {
                let read = batch.read_link(&self.root, path);
                read.map_err(|failed| failed.errno)
            })
            .collect();
        batch.perform_each();
        for (path, read) in links.into_iter().zip(read) {
            match read.and_then(|number| batch.result(number).map(|_| number)) {
                Ok(number) => {
                    let target = String::from_utf8_lossy(batch.target(number)).into_owned();
                    // Linux gives each of them this mode.
                    self.tell(path, Node::Symlink { target }, 0o777)?;
                }
                Err(errno) => self.unreadable(path, "read link", errno)?,
            }
        }
        self.room.batch = batch;
        Ok(())
    }

    /// Reads and tells some of the files.
    fn read_files(&mut self) -> Result<(), AgentError> {
        let mut batch = self.next_batch();
        let count = self.files.len().min(TOGETHER);
        let files: Vec<String> = self.files.drain(..count).collect();
        let opened = self.open(&mut batch, files.iter(), OFlags::RDONLY);
        for (path, opened) in files.into_iter().zip(opened) {
            let read = opened.map_err(Failure::Read).and_then(|opened| {
                let fd = batch.result(opened.file).map_err(Failure::Read)? as RawFd;
                self.left.push(fd);
                self.file(&path, fd, &batch, &opened)
            });
            match read {
                Ok(found) => self.add(found)?,
                Err(Failure::Sink(error)) => return Err(error),
                Err(Failure::Read(errno)) => self.unreadable(path, "read", errno)?,
            }
        }
        self.room.batch = batch;
        Ok(())
    }

    /// Opens `paths`, asks for their attributes and reads the first bytes of each file, or lists
    /// each directory.
    fn open<'p>(
        &self,
        batch: &mut Batch,
        paths: impl Iterator<Item = &'p String>,
        flags: OFlags,
    ) -> Vec<Result<Opened, Errno>> {
        let lists = flags.contains(OFlags::DIRECTORY);
        let files = paths.map(|path| {
            let path = if path.is_empty() { "." } else { path };
            batch.open(&self.root, path, OPEN | flags, 0)
        });
        let files: Vec<_> = files.collect();
        if !lists {
            // The card is asked for all of them before the first is waited for.
            for file in files.iter().flatten() {
                batch.will_need(*file, AHEAD);
            }
        }
        let opened = files.into_iter().map(|file| {
            let file = file.map_err(|failed| failed.errno)?;
            let status = batch.stat_open(file);
            let heads = match lists {
                true => [Some(batch.list(file)), Some(batch.list(file))],
                false => [Some(batch.read_head(file)), None],
            };
            Ok(Opened {
                file,
                status,
                heads,
            })
        });
        let opened = opened.collect();
        batch.perform_each();
        opened
    }

    /// A batch that begins with closing what was looked at.
    fn next_batch(&mut self) -> Batch {
        let mut batch = std::mem::take(&mut self.room.batch);
        batch.clear();
        for fd in self.left.drain(..) {
            // Memory that is used again costs the host less than more of it.
            batch.wont_need(fd);
            batch.close(fd);
        }
        batch
    }

    /// Closes what is open.
    fn close_left(&mut self) {
        let mut batch = self.next_batch();
        batch.perform_each();
        batch.clear();
        self.room.batch = batch;
    }

    /// Reads what is left of a file.
    fn file(
        &mut self,
        path: &str,
        fd: RawFd,
        batch: &Batch,
        opened: &Opened,
    ) -> Result<DirectoryEntry, Failure> {
        // SAFETY: it was opened for this file and is closed after this function only.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let (length, mode) = batch.attributes(opened.status).map_err(Failure::Read)?;
        let mut head: &[u8] = &[];
        if let Some(number) = opened.heads[0] {
            batch.result(number).map_err(Failure::Read)?;
            head = batch.head(number);
        }
        let wanted = self.wanted.contains(path);
        if !wanted && opened.heads[0].is_some() && head.len() as u64 == length {
            return Ok(whole(path, mode, head));
        }
        let mut before = head.len();
        self.room.buffer[..before].copy_from_slice(head);
        let mut digest = ContentDigest::default();
        let (mut digests, mut zeros) = (Vec::new(), Vec::new());
        let (mut size, mut first) = (0_u64, 0_u64);
        loop {
            let left = length.saturating_sub(size);
            let filled = std::mem::take(&mut before);
            let filled = fill(fd, &mut self.room.buffer, filled, left)?;
            let bytes = &self.room.buffer[..filled];
            digest.update(bytes);
            if wanted {
                digests.extend(bytes.chunks(SECTOR as usize).map(sector_digest));
            } else {
                note_zeros(&mut zeros, size / SECTOR, bytes);
            }
            size += filled as u64;
            let end = filled < CHUNK;
            if digests.len() >= DIGESTS || (end && first > 0 && !digests.is_empty()) {
                let digests = std::mem::take(&mut digests);
                let count = digests.len() as u64;
                let event = Event::Sectors {
                    path: path.to_owned(),
                    first,
                    digests,
                };
                self.sink.send(&event).map_err(Failure::Sink)?;
                first += count;
            }
            if end {
                break;
            }
        }
        let digest = digest.finish();
        Ok(DirectoryEntry {
            path: path.to_owned(),
            node: Node::File { size, digest },
            mode: mode & 0o7777,
            sectors: digests,
            zeros,
        })
    }

    fn unreadable(
        &mut self,
        path: String,
        operation: &str,
        errno: Errno,
    ) -> Result<(), AgentError> {
        self.add(unreadable(path, operation, errno))
    }

    fn tell(&mut self, path: String, node: Node, mode: u32) -> Result<(), AgentError> {
        self.add(found(path, node, mode))
    }

    fn add(&mut self, found: DirectoryEntry) -> Result<(), AgentError> {
        let digests = found.sectors.len() + 2 * found.zeros.len();
        if self.entries.len() >= ENTRIES || self.digests + digests > DIGESTS {
            self.flush()?;
        }
        self.digests += digests;
        self.entries.push(found);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AgentError> {
        self.digests = 0;
        if self.entries.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.entries);
        self.sink.send(&Event::Found { entries })
    }
}

/// An entry of which no sectors are told.
fn found(path: String, node: Node, mode: u32) -> DirectoryEntry {
    DirectoryEntry {
        path,
        node,
        mode,
        sectors: Vec::new(),
        zeros: Vec::new(),
    }
}

/// A file whose content is `bytes`, all of it.
fn whole(path: &str, mode: u32, bytes: &[u8]) -> DirectoryEntry {
    let node = Node::File {
        size: bytes.len() as u64,
        digest: content_digest(bytes),
    };
    let mut found = found(path.to_owned(), node, mode & 0o7777);
    note_zeros(&mut found.zeros, 0, bytes);
    found
}

/// An entry of which nothing else is known.
fn unreadable(path: String, operation: &str, errno: Errno) -> DirectoryEntry {
    let error = AgentError::system(operation, "it", errno).to_string();
    found(path, Node::Unreadable { error }, 0)
}

/// Why a file could not be told.
enum Failure {
    Read(Errno),
    Sink(AgentError),
}

/// Adds the sectors of `bytes` that hold zeros only to `runs`; the first sector is number `first`.
fn note_zeros(runs: &mut Vec<(u64, u64)>, first: u64, bytes: &[u8]) {
    const ZEROS: [u8; SECTOR as usize] = [0; SECTOR as usize];
    for (at, sector) in (first..).zip(bytes.chunks(ZEROS.len())) {
        if *sector != ZEROS[..sector.len()] {
            continue;
        }
        let room = runs.len() < ZERO_RUNS;
        match runs.last_mut() {
            Some((begin, count)) if *begin + *count == at => *count += 1,
            _ if room => runs.push((at, 1)),
            _ => return,
        }
    }
}

/// Fills `buffer`, of which the first `filled` bytes are there, as far as the file goes; returns
/// the bytes in it. `left` bytes are known to come: the call that would only tell of the end is
/// saved, since calls are what a small file costs.
fn fill(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    mut filled: usize,
    left: u64,
) -> Result<usize, Failure> {
    while filled < buffer.len() && (filled == 0 || filled as u64 != left) {
        match retry_on_intr(|| rustix::io::read(fd, &mut buffer[filled..])) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(errno) => return Err(Failure::Read(errno)),
        }
    }
    Ok(filled)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
