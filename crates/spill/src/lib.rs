//! Card contents that do not fit in memory: an unlinked file that dies with its owner.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use whichfs_card::{CHUNK_BYTES, Spill};

/// Slots of [`CHUNK_BYTES`] in a file without a name.
pub struct SpillFile {
    file: File,
    /// Where it is, for messages.
    directory: PathBuf,
}

impl SpillFile {
    /// A file in `directory`.
    ///
    /// # Errors
    /// If no file can be made there; the error names the directory.
    pub fn new(directory: &Path) -> io::Result<SpillFile> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(file.into()),
            // Some filesystems know no files without names.
            Err(rustix::io::Errno::OPNOTSUPP) => unlinked(directory),
            Err(errno) => Err(errno.into()),
        };
        Ok(SpillFile {
            file: file.map_err(|error| in_directory(directory, &error))?,
            directory: directory.to_path_buf(),
        })
    }
}

/// A file whose name is removed at once. A name that is taken, by another thread or by a killed
/// process with our number, is passed over.
fn unlinked(directory: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("spill-{}-{number}", std::process::id()));
        let mut options = File::options();
        match options.read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// `error` with where it happened and the remedy.
fn in_directory(directory: &Path, error: &io::Error) -> io::Error {
    let text = format!(
        "a file in {}: {error}; free room there",
        directory.display()
    );
    io::Error::new(error.kind(), text)
}

impl Spill for SpillFile {
    fn write_slot(&self, slot: u64, chunk: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(chunk, slot * CHUNK_BYTES);
        written.map_err(|error| in_directory(&self.directory, &error))
    }

    fn read_slot(&self, slot: u64, start: usize, out: &mut [u8]) -> io::Result<()> {
        let at = slot * CHUNK_BYTES + start as u64;
        let read = self.file.read_exact_at(out, at);
        read.map_err(|error| in_directory(&self.directory, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(byte: u8) -> Vec<u8> {
        vec![byte; CHUNK_BYTES as usize]
    }

    #[test]
    fn slots_keep_their_chunks_and_the_file_has_no_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spill = SpillFile::new(directory.path()).expect("a file");
        for slot in [3, 0] {
            spill
                .write_slot(slot, &chunk(slot as u8 + 1))
                .expect("written");
        }
        let mut read = chunk(0);
        spill.read_slot(3, 0, &mut read).expect("read");
        assert!(read.iter().all(|&b| b == 4));
        assert_eq!(directory.path().read_dir().expect("listed").count(), 0);
    }

    #[test]
    fn names_that_are_taken_are_passed_over() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for number in 0..3 {
            let name = format!("spill-{}-{number}", std::process::id());
            std::fs::write(directory.path().join(name), "left behind").expect("written");
        }
        let files = [(); 2].map(|()| unlinked(directory.path()).expect("a file"));
        files[0].write_all_at(b"one", 0).expect("written");
        assert_eq!(files[1].metadata().expect("known").len(), 0, "two files");
        assert_eq!(directory.path().read_dir().expect("listed").count(), 3);
    }

    #[test]
    fn what_fails_names_the_directory() {
        let error = SpillFile::new(Path::new("/no/such")).err();
        assert!(error.is_some_and(|error| error.to_string().contains("/no/such")));
        let full = File::options().write(true).open("/dev/full");
        let spill = SpillFile {
            file: full.expect("Linux has it"),
            directory: "/srv/cache/spill".into(),
        };
        let error = spill.write_slot(0, &chunk(1)).expect_err("it is full");
        let text = error.to_string();
        assert!(text.contains("/srv/cache/spill: No space"), "{text}");
        assert!(text.contains("free room there"), "{text}");
    }
}
