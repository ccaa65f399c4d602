//! The sealed userland: the read-only image from which a guest runs programs, made of named
//! Debian packages by `userland/build`.
//!
//! A guest with this root sees no file of the host but those that its job names, so packages,
//! settings and libraries of the host cannot change a figure. Reading the image takes no virtual
//! time on the device and is no request of the trial.

use crate::block::{BlockGeometry, BlockOperation, BlockRequest, BlockStatus};
use crate::error::LabError;
use crate::memory::GuestMemory;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whichfs_units::SECTOR;

/// Bytes that are hashed at a time.
const CHUNK: usize = 1 << 20;

/// The sealed userland, opened and hashed.
#[derive(Clone, Debug)]
pub struct Userland {
    /// The image: absolute, no link, so that it stays the one that was hashed.
    pub path: PathBuf,
    /// SHA-256 of the image, in hex.
    pub sha256: String,
    /// Packages and their versions, by name.
    pub packages: Vec<(String, String)>,
    /// Programs, by path.
    programs: BTreeSet<String>,
    image: Arc<Image>,
}

/// The open image.
#[derive(Debug)]
pub(crate) struct Image {
    file: File,
    bytes: u64,
}

impl Userland {
    /// The image at `path`, with the lists that `userland/build` put beside it.
    ///
    /// # Errors
    /// If a file is missing or the image is not the one that was built.
    pub fn open(path: &Path) -> Result<Userland, LabError> {
        let refuse = |why: String| LabError::NoUserland {
            path: path.to_path_buf(),
            why,
        };
        let real = path.canonicalize().map_err(|e| refuse(e.to_string()))?;
        let (image, sha256) = Image::open(&real).map_err(|e| refuse(e.to_string()))?;
        let beside = |name: &str| {
            std::fs::read_to_string(real.with_file_name(name))
                .map_err(|e| refuse(format!("{name} beside it: {e}")))
        };
        let built = beside("sha256")?;
        if built.trim() != sha256 {
            return Err(refuse("it is damaged: its SHA-256 is another".into()));
        }
        let package = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            fields.next().zip(fields.next())
        };
        let packages = beside("packages")?.lines().filter_map(package).collect();
        let programs = beside("programs")?.lines().map(str::to_owned).collect();
        Ok(Userland {
            path: real,
            sha256,
            packages,
            programs,
            image: Arc::new(image),
        })
    }

    /// Whether it has the program `name`: a path, or a name in one of the directories of `path`,
    /// which are separated by colons.
    pub fn has(&self, name: &str, path: &str) -> bool {
        let is_program = |path: &str| {
            let path = path.trim_start_matches('/');
            // /usr is merged: /bin and /sbin are links.
            self.programs.contains(path) || self.programs.contains(&format!("usr/{path}"))
        };
        match name.contains('/') {
            true => is_program(name),
            false => {
                let mut directories = path.split(':');
                directories.any(|directory| is_program(&format!("{directory}/{name}")))
            }
        }
    }

    /// Its disk.
    pub(crate) fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image)
    }
}

impl Image {
    /// The image at `path` and its SHA-256 in hex.
    fn open(path: &Path) -> std::io::Result<(Image, String)> {
        let mut file = File::open(path)?;
        let (mut digest, mut chunk, mut bytes) = (Sha256::new(), vec![0; CHUNK], 0);
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            digest.update(&chunk[..read]);
            bytes += read as u64;
        }
        let digest = digest.finalize();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Image { file, bytes }, sha256))
    }

    /// How the disk presents itself.
    pub fn geometry(&self) -> BlockGeometry {
        BlockGeometry {
            bytes: self.bytes / SECTOR * SECTOR,
            segments_max: 254,
            write_cache: false,
            discard_bytes: None,
        }
    }

    /// Serves one request: reads only. The status and the bytes for the guest.
    pub fn serve(
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
            self.file
                .read_exact_at(out, at)
                .map_err(LabError::io("read the sealed userland"))?;
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

    /// An image of two sectors, the second of which is full of sevens, with its lists.
    fn built(directory: &Path) -> PathBuf {
        let image = directory.join("image");
        let bytes = [vec![0; 512], vec![7; 512]].concat();
        let sha256: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let packages = "dash\t0.5\tdigest\nfio\t3.33\tdigest\n";
        let files = [
            ("image", bytes),
            ("sha256", format!("{sha256}\n").into_bytes()),
            ("packages", packages.as_bytes().to_vec()),
            ("programs", b"usr/bin/dash\nusr/sbin/mkfs.ext4\n".to_vec()),
        ];
        for (name, content) in files {
            std::fs::write(directory.join(name), content).expect("written");
        }
        image
    }

    #[test]
    fn programs_are_found_as_a_guest_finds_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let userland = Userland::open(&built(directory.path())).expect("whole");
        assert_eq!(userland.packages[1], ("fio".into(), "3.33".into()));
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        for name in ["dash", "/bin/dash", "/usr/bin/dash", "mkfs.ext4"] {
            assert!(userland.has(name, path), "{name}");
        }
        for name in ["mkfs.ext4", "/bin/mkfs.ext4"] {
            assert!(!userland.has(name, "/usr/bin:/bin"), "{name}");
        }
    }

    #[test]
    fn a_damaged_or_missing_image_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = built(directory.path());
        std::fs::write(&path, "another").expect("written");
        for path in [path, directory.path().join("none")] {
            let error = Userland::open(&path).expect_err("refused").to_string();
            assert!(error.contains("make userland"), "{error}");
        }
    }

    #[test]
    fn the_disk_is_read_and_never_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let userland = Userland::open(&built(directory.path())).expect("whole");
        let image = userland.image();
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
            (status, memory.slice(1024, 1).expect("in memory")[0])
        };
        assert_eq!(serve(BlockOperation::Read, 512), (BlockStatus::Ok, 7));
        assert_eq!(serve(BlockOperation::Read, 1024).0, BlockStatus::IoError);
        for operation in [BlockOperation::Write, BlockOperation::Discard] {
            assert_eq!(serve(operation, 0).0, BlockStatus::Unsupported);
        }
    }
}
