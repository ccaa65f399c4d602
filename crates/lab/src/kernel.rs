//! The cached lab kernel.

use crate::error::LabError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A kernel image that exists.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The image.
    pub path: PathBuf,
    /// SHA-256 of the image, in hex.
    pub sha256: String,
    /// Release, for example `6.12.117`.
    pub release: String,
}

impl Kernel {
    /// The kernel at `path`; its release is read from the image.
    pub fn open(path: &Path) -> Result<Kernel, LabError> {
        let image = std::fs::read(path).map_err(|_| LabError::NoKernel {
            path: path.to_path_buf(),
        })?;
        Ok(Kernel {
            path: path.to_path_buf(),
            sha256: Sha256::digest(&image)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect(),
            release: release(&image).unwrap_or_else(|| "unknown".into()),
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
    fn a_missing_kernel_says_how_to_get_one() {
        let error = Kernel::open(Path::new("/nonexistent/linux")).expect_err("not there");
        assert!(error.to_string().contains("make kernel"), "{error}");
    }
}
