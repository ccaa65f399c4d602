//! What a capacity check overwrites, in a file until it is put back.
//!
//! The file has a line of JSON (`Head`), then blocks: offset (8 bytes, little endian) and
//! contents (4 KiB). A block is on disk before it is overwritten on the card, and the marks on
//! the card are known by the seed in the file, so only what is overwritten is ever put back:
//! a block that is cut off at the file's end was not, and what somebody wrote since stays. The
//! marks also tell whose file it is where the device goes by another name or is in another
//! reader. While a check goes on its file is locked, and nobody else takes it for left.

use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::places;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use whichfs_probe::{Blocks, UndoLog};

/// Bytes of a block.
const BLOCK: usize = 4096;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// As the device was named.
    device: String,
    /// What tells it from others.
    identity: String,
    /// Seed of the marks.
    seed: u64,
}

/// The file of a check that is going on.
pub struct UndoLogFile {
    path: PathBuf,
    file: File,
}

impl UndoLogFile {
    /// A file for a check of the device of that `identity`, called `device`, with marks of
    /// `seed`.
    pub fn create(device: &str, identity: &str, seed: u64) -> Outcome<UndoLogFile> {
        let directory = places::put_back()?;
        places::make(&directory)?;
        let path = directory.join(format!("{}-{seed:016x}", stem(identity)));
        let head = Head {
            device: device.to_owned(),
            identity: identity.to_owned(),
            seed,
        };
        let file = begin(&path, &head).map_err(|error| {
            Error::environment(format!(
                "cannot write {}, where what is on the card is to be kept: {error}; make room \
                 there, set XDG_DATA_HOME, or give up the data on the card",
                path.display()
            ))
        })?;
        Ok(UndoLogFile { path, file })
    }

    /// Path of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: all is put back.
    pub fn remove(self) {
        // One that stays does no harm: no mark stands on the card any more.
        let _ = fs::remove_file(&self.path);
    }
}

fn begin(path: &Path, head: &Head) -> io::Result<File> {
    // What is on a card is for nobody else to read.
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    // Where there are no locks (some network filesystems) it goes without.
    let _ = file.try_lock();
    writeln!(file, "{}", serde_json::to_string(head)?)?;
    file.sync_all()?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

impl UndoLog for UndoLogFile {
    fn keep(&mut self, blocks: &Blocks) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(blocks.len() * (8 + BLOCK));
        for (at, data) in blocks {
            bytes.extend(at.to_le_bytes());
            bytes.extend(data);
        }
        let kept = self.file.write_all(&bytes);
        kept.and_then(|()| self.file.sync_all()).map_err(|error| {
            format!(
                "what is on the card cannot be kept in {}: {error}; make room there or set \
                 XDG_DATA_HOME",
                self.path.display()
            )
        })
    }
}

/// What an interrupted check left.
pub struct InterruptedCheck {
    /// Where the undo log is on this machine.
    pub path: PathBuf,
    /// Seed of the marks.
    pub seed: u64,
    /// What was on the card.
    pub blocks: Blocks,
}

impl InterruptedCheck {
    /// Removes the file.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What interrupted checks left, by file: those of the device of that `identity`, and those
/// whose marks it `bears`, whatever it was called then.
pub fn left(
    identity: &str,
    bears: &mut dyn FnMut(&InterruptedCheck) -> bool,
) -> Outcome<Vec<InterruptedCheck>> {
    let directory = places::put_back()?;
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Error::environment(format!(
            "{}, where interrupted checks keep what was on the card, cannot be read: {error}; make \
             it readable, or remove it if nobody needs that",
            path.display()
        ))
    };
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(&directory, &error))?,
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_namesake = name.split('-').next() == Some(&stem(identity));
        let path = entry.path();
        let (head, blocks) = match read(&path) {
            Ok(Some(whole)) => whole,
            Err(error) if is_namesake => return Err(failed(&path, &error)),
            // Another device's, perhaps another user's.
            Ok(None) | Err(_) => continue,
        };
        let seed = head.seed;
        let left = InterruptedCheck { path, seed, blocks };
        if head.identity == identity || bears(&left) {
            found.push(left);
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn stem(identity: &str) -> String {
    sha256(identity.as_bytes())[..16].to_owned()
}

/// What is in a file; nothing if a check is going on with it, or if its first line is not whole:
/// that is on disk before anything is overwritten.
fn read(path: &Path) -> io::Result<Option<(Head, Blocks)>> {
    let file = File::open(path)?;
    if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    file.read_until(b'\n', &mut line)?;
    let Ok(head) = serde_json::from_slice(&line) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut blocks = Blocks::new();
    for record in bytes.chunks_exact(8 + BLOCK) {
        let (at, data) = record.split_at(8);
        let at = at
            .iter()
            .rev()
            .fold(0, |at, byte| at << 8 | u64::from(*byte));
        blocks.insert(at, data.to_vec());
    }
    Ok(Some((head, blocks)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_a_torn_end_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        let head = Head {
            device: "/dev/sdz".into(),
            identity: "serial 7".into(),
            seed: u64::MAX,
        };
        let file = begin(&path, &head).unwrap();
        let mut rescue = UndoLogFile {
            path: path.clone(),
            file,
        };
        let blocks: Blocks = [(1 << 20, vec![7; BLOCK]), (1 << 40, vec![9; BLOCK])].into();
        rescue.keep(&blocks).unwrap();
        rescue.keep(&[(4096, vec![1; BLOCK])].into()).unwrap();
        assert_eq!(read(&path).unwrap(), None, "a check that goes on");
        drop(rescue);
        let path = path.as_path();
        assert_eq!(read(path).unwrap().unwrap().1.len(), 3);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "nobody else reads it");
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(read(path).unwrap().unwrap(), (head.clone(), blocks));
        assert!(
            begin(path, &head).is_err(),
            "another check is not overwritten"
        );
        fs::write(path, &bytes[..10]).unwrap();
        assert_eq!(read(path).unwrap(), None);
    }
}
