//! A file of the host as a read-only disk of a guest: the sealed userland, the image that a trial
//! puts on the card.
//!
//! The guest learns nothing of the file but its bytes: not its path, its owner or its times.
//! Reading takes no virtual time on the device and is no request of the trial.

use crate::block::{BlockGeometry, BlockOperation, BlockRequest, BlockStatus};
use crate::error::LabError;
use crate::memory::GuestMemory;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use whichfs_units::SECTOR;

/// Bytes that are hashed at a time.
const CHUNK: usize = 1 << 20;

/// An open file as a disk; clones share the file.
#[derive(Clone, Debug)]
pub struct ImageDisk {
    file: Arc<File>,
    bytes: u64,
}

impl ImageDisk {
    /// The file at `path`. Zeros fill its last sector.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> std::io::Result<ImageDisk> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(ImageDisk {
            file: Arc::new(file),
            bytes,
        })
    }

    /// The same with the SHA-256 of its bytes in hex.
    pub(crate) fn open_hashed(path: &Path) -> std::io::Result<(ImageDisk, String)> {
        let disk = ImageDisk::open(path)?;
        let (mut digest, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
        let mut file = &*disk.file;
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            digest.update(&chunk[..read]);
        }
        let digest = digest.finalize();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((disk, sha256))
    }

    /// How the disk presents itself.
    pub(crate) fn geometry(&self) -> BlockGeometry {
        BlockGeometry {
            bytes: self.bytes.next_multiple_of(SECTOR),
            segments_max: 254,
            write_cache: false,
            discard_bytes: None,
        }
    }

    /// Serves one request: reads only. The status and the bytes for the guest.
    pub(crate) fn serve(
        &self,
        request: &BlockRequest,
        memory: &mut GuestMemory,
    ) -> Result<(BlockStatus, u32), LabError> {
        let end = request.offset.checked_add(request.bytes());
        if request.operation != BlockOperation::Read {
            return Ok((BlockStatus::Unsupported, 0));
        }
        if end.is_none_or(|end| end > self.geometry().bytes) {
            return Ok((BlockStatus::IoError, 0));
        }
        let mut at = request.offset;
        for segment in request.data {
            let out = memory.slice_mut(segment.address, segment.bytes as usize)?;
            let there = self.bytes.saturating_sub(at).min(out.len() as u64) as usize;
            self.file
                .read_exact_at(&mut out[..there], at)
                .map_err(LabError::io("read an image of the guest"))?;
            out[there..].fill(0);
            at += out.len() as u64;
        }
        Ok((BlockStatus::Ok, request.bytes() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::memory;
    use crate::ring::Segment;

    #[test]
    fn the_disk_is_read_to_whole_sectors_and_never_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("image");
        std::fs::write(&path, [vec![1; 512], vec![7; 10]].concat()).expect("written");
        let image = ImageDisk::open(&path).expect("there");
        assert_eq!(image.geometry().bytes, 1024);
        let mut memory = memory(0, 4096);
        let mut serve = |operation, offset| {
            let data = [Segment {
                address: 1024,
                bytes: 512,
                device_writes: operation == BlockOperation::Read,
            }];
            let request = BlockRequest {
                operation,
                offset,
                data: &data,
                status_at: 0,
            };
            let (status, _) = image.serve(&request, &mut memory).expect("served");
            (status, memory.slice(1024, 11).expect("in memory").to_vec())
        };
        let (status, read) = serve(BlockOperation::Read, 512);
        assert_eq!(status, BlockStatus::Ok);
        assert_eq!(read, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
        assert_eq!(serve(BlockOperation::Read, 1024).0, BlockStatus::IoError);
        for operation in [BlockOperation::Write, BlockOperation::Discard] {
            assert_eq!(serve(operation, 0).0, BlockStatus::Unsupported);
        }
    }
}
