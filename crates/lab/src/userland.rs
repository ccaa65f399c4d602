//! The sealed userland: the read-only image from which a guest runs programs, made of named
//! Debian packages by `userland/build`.
//!
//! A guest with this root sees no file of the host but those that its job names, so packages,
//! settings and libraries of the host cannot change a figure.

use crate::error::LabError;
use crate::image_disk::ImageDisk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    image: ImageDisk,
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
        let (image, sha256) = ImageDisk::open_hashed(&real).map_err(|e| refuse(e.to_string()))?;
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
            image,
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

    /// The image as a read-only disk of a guest.
    pub(crate) fn image(&self) -> ImageDisk {
        self.image.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

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
}
