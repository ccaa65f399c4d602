//! Card contents that do not fit in memory: an unlinked file that dies with its owner.

use crate::error::LabError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use whichfs_card::{CHUNK_BYTES, Spill};

/// Slots of [`CHUNK_BYTES`] in a file without a name.
pub struct SpillFile {
    file: File,
}

impl SpillFile {
    /// A file in `directory`.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn new(directory: &Path) -> Result<SpillFile, LabError> {
        use rustix::fs::{Mode, OFlags};
        let cannot =
            |e: std::io::Error| LabError::io(format!("make a file in {}", directory.display()))(e);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(SpillFile { file: file.into() }),
            // Some filesystems know no files without names: the name goes at once.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let path = directory.join(format!("spill-{}", std::process::id()));
                let file = File::options()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(&path);
                let file = file.map_err(cannot)?;
                std::fs::remove_file(&path).map_err(cannot)?;
                Ok(SpillFile { file })
            }
            Err(e) => Err(cannot(e.into())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_chunks_and_the_file_has_no_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut spill = SpillFile::new(directory.path()).expect("a file");
        for slot in [3, 0] {
            spill
                .write_slot(slot, &vec![slot as u8 + 1; CHUNK_BYTES as usize])
                .expect("written");
        }
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        spill.read_slot(3, &mut chunk).expect("read");
        assert!(chunk.iter().all(|&b| b == 4));
        assert_eq!(directory.path().read_dir().expect("listed").count(), 0);
    }
}
