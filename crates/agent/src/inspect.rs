//! Reads everything below a directory and tells what is there.

use crate::batch::{Batch, Number};
use crate::error::Error;
use crate::sink::Sink;
use rustix::fd::{BorrowedFd, RawFd};
use rustix::fs::{CWD, OFlags};
use rustix::io::retry_on_intr;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use whichfs_trial::{ContentDigest, Event, Found, Node, sector_digest};
use whichfs_units::{KIB, SECTOR};

/// Bytes of a read call.
const CHUNK: usize = 128 * KIB as usize;
/// Entries in one event: with paths of a few hundred bytes it fits into a record.
const ENTRIES: usize = 100;
/// Files that are opened together.
const TOGETHER: usize = 32;
/// Bytes of each that are asked for at once.
const AHEAD: u64 = 1 << 20;
/// Sector digests in one event.
const DIGESTS: usize = 8192;
/// Deepest directory: a damaged filesystem may have cycles.
const DEPTH_MAX: usize = 64;
/// Most entries that are told: a damaged directory may have no end.
const ENTRIES_MAX: usize = 1 << 20;

/// Tells `sink` all that is below `dir`, sorted by path within each directory, and the digests of
/// the sectors of the files `sectors`.
///
/// # Errors
/// Only where the sink fails: what cannot be read is told as such.
pub fn inspect(dir: &Path, sectors: &[String], sink: &mut dyn Sink) -> Result<(), Error> {
    let mut inspector = Inspector {
        root: dir,
        wanted: sectors.iter().map(String::as_str).collect(),
        entries: Vec::new(),
        told: 0,
        buffer: vec![0; CHUNK],
        batch: Batch::default(),
        sink,
    };
    inspector.directory("", 0)?;
    inspector.flush()
}

struct Inspector<'a> {
    root: &'a Path,
    wanted: BTreeSet<&'a str>,
    entries: Vec<Found>,
    told: usize,
    buffer: Vec<u8>,
    batch: Batch,
    sink: &'a mut dyn Sink,
}

impl Inspector<'_> {
    fn directory(&mut self, path: &str, depth: usize) -> Result<(), Error> {
        let mut names = Vec::new();
        let listed = fs::read_dir(self.root.join(path)).and_then(|entries| {
            for entry in entries.take(ENTRIES_MAX) {
                let entry = entry?;
                // Most filesystems say the kind along with the name: no call is needed for it.
                names.push((entry.file_name(), entry.file_type().ok()));
            }
            Ok(())
        });
        if let Err(error) = listed {
            let name = if path.is_empty() { "." } else { path };
            self.unreadable(name.to_owned(), "list", &error)?;
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut files = Vec::new();
        for (name, kind) in names {
            let name = name.to_string_lossy();
            let path = match path {
                "" => name.into_owned(),
                _ => format!("{path}/{name}"),
            };
            if self.told + files.len() >= ENTRIES_MAX {
                break;
            }
            match kind {
                Some(kind) if kind.is_file() => files.push(path),
                _ => {
                    self.files(&mut files)?;
                    self.entry(path, depth)?;
                }
            }
            if files.len() >= TOGETHER {
                self.files(&mut files)?;
            }
        }
        self.files(&mut files)
    }

    fn entry(&mut self, path: String, depth: usize) -> Result<(), Error> {
        let full = self.root.join(&path);
        let meta = match fs::symlink_metadata(&full) {
            Ok(meta) => meta,
            Err(error) => return self.unreadable(path, "stat", &error),
        };
        let mode = meta.mode() & 0o7777;
        let kind = meta.file_type();
        let node = if kind.is_dir() {
            let found = Found {
                path: path.clone(),
                node: Node::Directory,
                mode,
            };
            self.tell(found)?;
            if depth < DEPTH_MAX {
                return self.directory(&path, depth + 1);
            }
            return Ok(());
        } else if kind.is_symlink() {
            match fs::read_link(&full) {
                Ok(target) => Node::Symlink {
                    target: target.to_string_lossy().into_owned(),
                },
                Err(error) => return self.unreadable(path, "read link", &error),
            }
        } else if kind.is_file() {
            return self.files(&mut vec![path]);
        } else {
            Node::Other
        };
        self.tell(Found { path, node, mode })
    }

    /// Reads the files `paths`, of one directory, and forgets them.
    fn files(&mut self, paths: &mut Vec<String>) -> Result<(), Error> {
        let mut batch = std::mem::take(&mut self.batch);
        let opened = self.open(&mut batch, paths);
        let mut left = Vec::new();
        for (path, opened) in paths.drain(..).zip(opened) {
            let read = opened.map_err(Failure::Read).and_then(|opened| {
                let fd = batch.result(opened.file).map_err(read_failure)?;
                left.push(fd as RawFd);
                self.file(&path, fd as RawFd, &batch, &opened)
            });
            match read {
                Ok((node, mode)) => self.tell(Found { path, node, mode })?,
                Err(Failure::Sink(error)) => return Err(error),
                Err(Failure::Read(error)) => self.unreadable(path, "read", &error)?,
            }
        }
        batch.clear();
        for fd in left {
            // Memory that is used again costs the host less than more of it.
            batch.wont_need(fd);
            batch.close_left(fd);
        }
        batch.perform_each();
        batch.clear();
        self.batch = batch;
        Ok(())
    }

    /// Opens `paths`, asks for their attributes and reads the first bytes of each.
    fn open(&self, batch: &mut Batch, paths: &[String]) -> Vec<std::io::Result<Opened>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let files = paths.iter().map(|path| {
            let path = self.root.join(path);
            batch.open(CWD, &path.to_string_lossy(), flags, 0)
        });
        let files: Vec<_> = files.collect();
        // The card is asked for all of them before the first is waited for.
        for file in files.iter().flatten() {
            batch.will_need(*file, AHEAD);
        }
        let opened = files.into_iter().map(|file| {
            let file = file.map_err(|failed| std::io::Error::from(failed.errno))?;
            Ok(Opened {
                file,
                status: batch.stat_open(file),
                head: batch.read_head(file),
            })
        });
        let opened = opened.collect();
        batch.perform_each();
        opened
    }

    /// Reads what is left of a file; its mode is told with it.
    fn file(
        &mut self,
        path: &str,
        fd: RawFd,
        batch: &Batch,
        opened: &Opened,
    ) -> Result<(Node, u32), Failure> {
        // SAFETY: it was opened for this file and is closed after this function only.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let (length, mode) = batch.attributes(opened.status).map_err(read_failure)?;
        batch.result(opened.head).map_err(read_failure)?;
        let head = batch.head(opened.head);
        self.buffer[..head.len()].copy_from_slice(head);
        let mut before = head.len();
        let wanted = self.wanted.contains(path);
        let mut digest = ContentDigest::default();
        let mut digests = Vec::new();
        let (mut size, mut first) = (0_u64, 0_u64);
        loop {
            let left = length.saturating_sub(size);
            let filled = fill(fd, &mut self.buffer, std::mem::take(&mut before), left)?;
            let bytes = &self.buffer[..filled];
            digest.update(bytes);
            size += filled as u64;
            if wanted {
                digests.extend(bytes.chunks(SECTOR as usize).map(sector_digest));
            }
            let end = filled < CHUNK;
            if digests.len() >= DIGESTS || (end && !digests.is_empty()) {
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
        Ok((Node::File { size, digest }, mode & 0o7777))
    }

    fn unreadable(
        &mut self,
        path: String,
        operation: &str,
        error: &std::io::Error,
    ) -> Result<(), Error> {
        let error = Error::io(operation, "it", error).to_string();
        self.tell(Found {
            path,
            node: Node::Unreadable { error },
            mode: 0,
        })
    }

    fn tell(&mut self, found: Found) -> Result<(), Error> {
        self.entries.push(found);
        self.told += 1;
        if self.entries.len() >= ENTRIES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.entries);
        self.sink.send(&Event::Found { entries })
    }
}

/// Calls that opened a file and looked at it.
struct Opened {
    file: Number,
    status: Number,
    head: Number,
}

/// Why a file's node could not be told.
enum Failure {
    Read(std::io::Error),
    Sink(Error),
}

fn read_failure(errno: rustix::io::Errno) -> Failure {
    Failure::Read(errno.into())
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
        let count =
            retry_on_intr(|| rustix::io::read(fd, &mut buffer[filled..])).map_err(read_failure)?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::content_digest;

    #[derive(Default)]
    struct Heard(Vec<Event>);

    impl Sink for Heard {
        fn send(&mut self, event: &Event) -> Result<(), Error> {
            self.0.push(event.clone());
            Ok(())
        }
    }

    fn entries(heard: &Heard) -> Vec<Found> {
        let found = heard.0.iter().filter_map(|event| match event {
            Event::Found { entries } => Some(entries.clone()),
            _ => None,
        });
        found.flatten().collect()
    }

    #[test]
    fn everything_is_told_with_its_content() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/a"), b"hello").unwrap();
        std::os::unix::fs::symlink("d/a", dir.path().join("l")).unwrap();
        let mut heard = Heard::default();
        inspect(dir.path(), &[], &mut heard).unwrap();
        let found = entries(&heard);
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, ["d", "d/a", "l"]);
        let digest = content_digest(b"hello");
        assert_eq!(found[1].node, Node::File { size: 5, digest });
        let target = "d/a".to_owned();
        assert_eq!(found[2].node, Node::Symlink { target });
    }

    #[test]
    fn sectors_are_told_where_they_are_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..300_000_u32).map(|n| (n / 512) as u8).collect();
        fs::write(dir.path().join("a"), &content).unwrap();
        fs::write(dir.path().join("b"), &content).unwrap();
        let mut heard = Heard::default();
        inspect(dir.path(), &["b".to_owned()], &mut heard).unwrap();
        let mut told = Vec::new();
        for event in &heard.0 {
            if let Event::Sectors {
                path,
                first,
                digests,
            } = event
            {
                assert_eq!((path.as_str(), *first), ("b", told.len() as u64));
                told.extend(digests.iter().copied());
            }
        }
        let right: Vec<u32> = content.chunks(512).map(sector_digest).collect();
        assert_eq!(told, right);
    }

    #[test]
    fn a_directory_that_is_gone_is_told() {
        let mut heard = Heard::default();
        inspect(Path::new("/nowhere/at/all"), &[], &mut heard).unwrap();
        let found = entries(&heard);
        assert!(
            matches!(found[0].node, Node::Unreadable { .. }),
            "{found:?}"
        );
    }
}
