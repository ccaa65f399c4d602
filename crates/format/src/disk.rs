//! Reading what is on a device or image.

use crate::error::FormatError;
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use whichfs_layout::superblock::{self, Superblock};
use whichfs_layout::{Table, backup_damage, read_table};
use whichfs_units::SECTOR;

/// A device or image that is read.
#[derive(Debug)]
pub struct OpenDisk {
    path: PathBuf,
    file: File,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its logical sector in bytes; 512 of an image.
    sector_bytes: u64,
}

impl OpenDisk {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> Result<OpenDisk, FormatError> {
        let failed = |error: std::io::Error| FormatError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
            remedy: "name a device or an image that can be read (sudo for a device)",
        };
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            // A pipe would wait for somebody who writes.
            return Err(FormatError::File {
                path: path.display().to_string(),
                reason: "it is neither a device nor a file".to_owned(),
                remedy: "name a device (lsblk lists them) or an image",
            });
        }
        let file = File::open(path).map_err(failed)?;
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
        let sector = rustix::fs::ioctl_blksszget(&file).map_or(SECTOR, u64::from);
        Ok(OpenDisk {
            sector_bytes: sector,
            path: path.to_owned(),
            bytes: bytes.map_err(|errno| failed(errno.into()))?,
            file,
        })
    }

    /// Its partition table; `None` without one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn table(&self) -> Result<Option<Table>, FormatError> {
        read_table(&mut |at, bytes| self.at(at, bytes), self.sector_bytes)
            .map_err(|reason| self.failed(reason))
    }

    /// What is wrong with the second copy of its GPT; `None` if nothing is, or if it has none.
    pub fn backup_damage(&self) -> Option<String> {
        let read = &mut |at, bytes| self.at(at, bytes);
        backup_damage(read, self.bytes, self.sector_bytes)
    }

    /// The filesystem that begins at `offset`; `None` if none is known.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn superblock(&self, offset: u64) -> Result<Option<Superblock>, FormatError> {
        let found = superblock::read(&mut |at, bytes| self.at(at, bytes), offset);
        found.map_err(|reason| self.failed(reason))
    }

    fn at(&self, at: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut data = vec![0; bytes];
        let mut done = 0;
        while done < bytes {
            match self.file.read_at(&mut data[done..], at + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) => return Err(format!("reading at {at}: {error}")),
            }
        }
        data.truncate(done);
        Ok(data)
    }

    fn failed(&self, reason: String) -> FormatError {
        FormatError::File {
            path: self.path.display().to_string(),
            reason,
            remedy: "is it a card or an image of one?",
        }
    }
}
