//! The cached lab kernel.

use crate::error::LabError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Name of the filesystem of the sealed userland, as a kernel that has it knows it.
const ISO: &[u8] = b"iso9660\0";

/// A kernel image that exists.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The image itself: absolute, no link, so that it stays the one that was hashed when a
    /// link to the newest kernel moves, and wherever the guest is started.
    pub path: PathBuf,
    /// SHA-256 of the image, in hex.
    pub sha256: String,
    /// Release, for example `6.12.117`.
    pub release: String,
    /// It mounts the sealed userland: it was built by this version's `kernel/build` or a later one.
    pub mounts_userland: bool,
    /// Further words of its command line, for example `seccomp=off`.
    pub arguments: Vec<String>,
}

impl Kernel {
    /// Checks that it mounts the sealed userland.
    ///
    /// # Errors
    /// It does not, with the remedy.
    pub fn for_userland(self) -> Result<Kernel, LabError> {
        match self.mounts_userland {
            true => Ok(self),
            false => Err(LabError::OldKernel { path: self.path }),
        }
    }

    /// The kernel at `path`; its release is read from the image.
    pub fn open(path: &Path) -> Result<Kernel, LabError> {
        let none = |_| LabError::NoKernel {
            path: path.to_path_buf(),
        };
        let path = path.canonicalize().map_err(none)?;
        let image = std::fs::read(&path).map_err(none)?;
        Ok(Kernel {
            path,
            sha256: Sha256::digest(&image)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect(),
            release: release(&image).unwrap_or_else(|| "unknown".into()),
            mounts_userland: image.windows(ISO.len()).any(|window| window == ISO),
            arguments: Vec::new(),
        })
    }
}

/// The release in the kernel's banner, "Linux version X (…".
fn release(image: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    image
        .windows(BANNER.len())
        .enumerate()
        .filter(|(_, window)| *window == BANNER)
        .find_map(|(at, _)| {
            let rest = &image[at + BANNER.len()..];
            let end = rest.iter().take(64).position(|&b| b == b' ')?;
            let text = std::str::from_utf8(&rest[..end]).ok()?;
            text.starts_with(|c: char| c.is_ascii_digit())
                .then(|| text.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_banners() {
        let image = b"xx Linux version %s (%s)\0yy Linux version 6.12.117 (user@host) ...";
        assert_eq!(release(image).as_deref(), Some("6.12.117"));
        assert_eq!(release(b"nothing here"), None);
    }

    #[test]
    fn a_kernel_without_the_filesystem_of_the_userland_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let open = |image: &str| {
            let path = directory.path().join("linux");
            std::fs::write(&path, image).expect("written");
            Kernel::open(&path).expect("there").for_userland()
        };
        assert!(open("x iso9660\0").is_ok());
        let refused = open("x ext4\0").expect_err("old").to_string();
        assert!(refused.contains("make kernel"), "{refused}");
    }

    #[test]
    fn a_link_that_moves_later_does_not_change_the_kernel() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [old, new, link] = ["old", "new", "link"].map(|name| directory.path().join(name));
        std::fs::write(&old, "old").expect("written");
        std::fs::write(&new, "new").expect("written");
        std::os::unix::fs::symlink(&old, &link).expect("linked");
        let kernel = Kernel::open(&link).expect("there");
        std::fs::remove_file(&link).expect("removed");
        std::os::unix::fs::symlink(&new, &link).expect("linked");
        assert_eq!(std::fs::read(&kernel.path).expect("there"), b"old");
    }

    #[test]
    fn a_relative_path_is_made_absolute() {
        // Tests run in the directory of their crate.
        let kernel = Kernel::open(Path::new("Cargo.toml")).expect("there");
        assert!(kernel.path.is_absolute(), "{}", kernel.path.display());
    }

    #[test]
    fn a_missing_kernel_says_how_to_get_one() {
        let error = Kernel::open(Path::new("/nonexistent/linux")).expect_err("not there");
        assert!(error.to_string().contains("make kernel"), "{error}");
    }
}
