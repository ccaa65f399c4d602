//! Images of the partition as files of this machine.

use crate::error::{Error, Outcome};
use crate::places::WholeFile;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use whichfs_card::Contents;
use whichfs_units::MIB;

/// The file `path` that an image will be written to: that it can be is known before the run.
///
/// # Errors
/// A file that cannot be made, or what is none.
pub fn kept(path: &Path) -> Outcome<WholeFile> {
    let file = WholeFile::new(path).map_err(|failure| failure.about("image"))?;
    match file.is_file() {
        true => Ok(file),
        false => Err(Error::input(format!(
            "image {}: it is no file; name one",
            path.display()
        ))),
    }
}

/// Writes `bytes` of `contents` at `offset` to a file, sparsely.
///
/// # Errors
/// If the contents cannot be read or the file cannot be written.
pub fn write(mut contents: Contents, offset: u64, bytes: u64, to: WholeFile) -> Outcome {
    to.fill(|file| {
        let mut buffer = vec![0; MIB as usize];
        let mut at = 0;
        while at < bytes {
            let length = MIB.min(bytes - at) as usize;
            contents
                .read(offset + at, &mut buffer[..length])
                .map_err(std::io::Error::other)?;
            if buffer[..length].iter().any(|&byte| byte != 0) {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&buffer[..length])?;
            }
            at += length as u64;
        }
        file.set_len(bytes)
    })
}

/// An image of yours that is to be judged.
pub struct Given {
    file: File,
    /// As the user named it.
    name: String,
    bytes: u64,
}

impl Given {
    /// The file `path`.
    ///
    /// # Errors
    /// A file that cannot be read, or what is none.
    pub fn open(path: &Path) -> Outcome<Given> {
        let name = path.display().to_string();
        let wrong = |why: &dyn std::fmt::Display| {
            Error::input(format!(
                "image {name}: {why}; name a file with a whole partition, as this program writes it"
            ))
        };
        let mut file = File::open(path).map_err(|e| wrong(&e))?;
        let meta = file.metadata().map_err(|e| wrong(&e))?;
        if meta.is_dir() {
            return Err(wrong(&"it is a directory"));
        }
        let bytes = file.seek(SeekFrom::End(0)).map_err(|e| wrong(&e))?;
        Ok(Given { file, name, bytes })
    }

    /// Checks that it is a partition of so many bytes.
    ///
    /// # Errors
    /// If it has another length.
    pub fn has(&self, partition_bytes: u64) -> Outcome {
        match self.bytes == partition_bytes {
            true => Ok(()),
            false => Err(Error::input(format!(
                "image {}: it has {} bytes, and the partition {partition_bytes}; give the \
                 whole partition, or say its size",
                self.name, self.bytes
            ))),
        }
    }

    /// Reads all of it into `contents` at `offset`. The contents must be empty: zeros are not
    /// written.
    ///
    /// # Errors
    /// If it cannot be read, or the contents cannot be kept.
    pub fn read(mut self, contents: &mut Contents, offset: u64) -> Outcome {
        let name = self.name;
        let fail = |e: std::io::Error| Error::input(format!("image {name}: {e}"));
        self.file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut buffer = vec![0; MIB as usize];
        let mut at = 0;
        while at < self.bytes {
            let length = MIB.min(self.bytes - at) as usize;
            self.file.read_exact(&mut buffer[..length]).map_err(fail)?;
            contents
                .write(offset + at, &buffer[..length])
                .map_err(Error::environment)?;
            at += length as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_was_kept_is_read_again_and_another_length_is_refused() {
        const SIZE: u64 = 5 * MIB + 512;
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut contents = Contents::new(16 * MIB);
        for at in [MIB, 3 * MIB + 4096, MIB + SIZE - 512] {
            contents.write(at, &[at as u8 | 1; 512]).unwrap();
        }
        write(contents.clone(), MIB, SIZE, kept(file.path()).unwrap()).unwrap();
        let mut again = Contents::new(16 * MIB);
        let given = Given::open(file.path()).unwrap();
        let refused = given.has(SIZE + 512);
        assert!(refused.is_err_and(|e| e.to_string().contains("say its size")));
        given.has(SIZE).unwrap();
        given.read(&mut again, MIB).unwrap();
        let bytes = |contents: &mut Contents| {
            let mut bytes = vec![0; 16 << 20];
            contents.read(0, &mut bytes).unwrap();
            bytes
        };
        assert!(bytes(&mut again) == bytes(&mut contents));
    }

    #[test]
    fn what_is_no_image_or_no_place_for_one_is_refused_with_the_remedy() {
        for path in ["/no/such", "/tmp"] {
            let refused = Given::open(Path::new(path)).err().unwrap();
            assert_eq!(refused.kind, ErrorKind::Input);
            assert!(refused.message.contains("name a file"), "{refused}");
        }
        for path in ["/no/such/x", "/tmp", "/dev/null"] {
            let refused = kept(Path::new(path)).err().unwrap();
            assert_eq!(refused.kind, ErrorKind::Input);
            assert!(refused.message.contains("image"), "{refused}");
            assert!(refused.message.contains("name"), "{refused}");
        }
    }
}
