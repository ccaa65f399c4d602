//! Contents that do not fit in memory: an unlinked file, gone with its owner.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use whichfs_card::{CHUNK_BYTES, Spill};

/// Slots of [`CHUNK_BYTES`] in a file without a name.
pub(crate) struct SpillFile {
    file: File,
}

impl SpillFile {
    /// A file in `directory`.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn new(directory: &Path) -> io::Result<SpillFile> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(SpillFile { file: file.into() }),
            // Some filesystems know no files without names: the name goes at once.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let path = directory.join(format!("whichfs-attach-{}", std::process::id()));
                let mut options = File::options();
                let file = options
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(&path)?;
                std::fs::remove_file(&path)?;
                Ok(SpillFile { file })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Spill for SpillFile {
    fn write_slot(&mut self, slot: u64, chunk: &[u8]) -> io::Result<()> {
        self.file.write_all_at(chunk, slot * CHUNK_BYTES)
    }

    fn read_slot(&mut self, slot: u64, chunk: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(chunk, slot * CHUNK_BYTES)
    }
}

/// Bytes that files in `directory` may still take.
///
/// # Errors
/// If the filesystem does not say.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let state = rustix::fs::statvfs(directory)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn slots_keep_their_chunks_and_the_file_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = SpillFile::new(directory.path()).unwrap();
        for slot in [3_u64, 0] {
            let chunk = vec![slot as u8 + 1; CHUNK_BYTES as usize];
            spill.write_slot(slot, &chunk).unwrap();
        }
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        spill.read_slot(3, &mut chunk).unwrap();
        assert!(chunk.iter().all(|&b| b == 4));
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        assert!(free_bytes(directory.path()).unwrap() > 0);
    }
}
