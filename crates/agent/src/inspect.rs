//! Reads everything below a directory and tells what is there.

use crate::error::Error;
use crate::sink::Sink;
use rustix::fs::{Mode, OFlags};
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
        for (name, kind) in names {
            let name = name.to_string_lossy();
            let path = match path {
                "" => name.into_owned(),
                _ => format!("{path}/{name}"),
            };
            if self.told < ENTRIES_MAX {
                match kind {
                    Some(kind) if kind.is_file() => self.file_entry(path)?,
                    _ => self.entry(path, depth)?,
                }
            }
        }
        Ok(())
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
            return self.file_entry(path);
        } else {
            Node::Other
        };
        self.tell(Found { path, node, mode })
    }

    fn file_entry(&mut self, path: String) -> Result<(), Error> {
        match self.file(&path) {
            Ok((node, mode)) => self.tell(Found { path, node, mode }),
            Err(Failure::Sink(error)) => Err(error),
            Err(Failure::Read(error)) => self.unreadable(path, "read", &error),
        }
    }

    /// Reads all of a file; its mode is told with it.
    fn file(&mut self, path: &str) -> Result<(Node, u32), Failure> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let fd =
            rustix::fs::open(self.root.join(path), flags, Mode::empty()).map_err(read_failure)?;
        let status = rustix::fs::fstat(&fd).map_err(read_failure)?;
        let length = u64::try_from(status.st_size).unwrap_or(0);
        let wanted = self.wanted.contains(path);
        let mut digest = ContentDigest::default();
        let mut digests = Vec::new();
        let (mut size, mut first) = (0_u64, 0_u64);
        loop {
            let filled = fill(&fd, &mut self.buffer, length.saturating_sub(size))?;
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
        Ok((Node::File { size, digest }, status.st_mode & 0o7777))
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

/// Why a file's node could not be told.
enum Failure {
    Read(std::io::Error),
    Sink(Error),
}

fn read_failure(errno: rustix::io::Errno) -> Failure {
    Failure::Read(errno.into())
}

/// Fills `buffer` as far as the file goes; returns the bytes read. `left` bytes are known to
/// come: the call that would only tell of the end is saved, since calls are what a small file
/// costs.
fn fill(fd: &rustix::fd::OwnedFd, buffer: &mut [u8], left: u64) -> Result<usize, Failure> {
    let mut filled = 0;
    while filled < buffer.len() {
        let count =
            retry_on_intr(|| rustix::io::read(fd, &mut buffer[filled..])).map_err(read_failure)?;
        if count == 0 {
            break;
        }
        filled += count;
        if filled as u64 == left {
            break;
        }
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
