//! Files that the user names: read whole, and never more than fits in memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use whichfs_units::{Bytes, MIB};

/// Largest file that is read whole. Logs of hours and drawn traces are below 10 MB.
pub const INPUT_BYTES: u64 = 64 * MIB;

/// The bytes of the file, pipe or device at `path`.
///
/// # Errors
/// It cannot be read, or has more than [`INPUT_BYTES`] (`/dev/zero` has).
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(INPUT_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > INPUT_BYTES {
        true => Err(io::Error::other(format!(
            "it is larger than {}, too large for such a file",
            Bytes(INPUT_BYTES)
        ))),
        false => Ok(bytes),
    }
}

/// The text of the file, pipe or device at `path`.
///
/// # Errors
/// As [`read`], or it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)");
    String::from_utf8(read(path)?).map_err(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        let error = read("/dev/zero").unwrap_err();
        assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
        assert_eq!(read_text("/dev/null").unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
        let error = read_text(file.path()).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}
