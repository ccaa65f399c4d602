//! Images of the partition as files of this machine.

use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use whichfs_card::Contents;
use whichfs_units::MIB;

/// Writes `bytes` of `contents` at `offset` to a file, sparsely.
///
/// # Errors
/// If the contents cannot be read or the file cannot be written; named after `--keep`.
pub fn write(mut contents: Contents, offset: u64, bytes: u64, path: &Path) -> Outcome {
    let fail = |e: std::io::Error| Failure::environment(format!("--keep {}: {e}", path.display()));
    let mut file = File::create(path).map_err(fail)?;
    let mut buffer = vec![0; MIB as usize];
    let mut at = 0;
    while at < bytes {
        let length = MIB.min(bytes - at) as usize;
        contents
            .read(offset + at, &mut buffer[..length])
            .map_err(Failure::environment)?;
        if buffer[..length].iter().any(|&byte| byte != 0) {
            file.seek(SeekFrom::Start(at))
                .and_then(|_| file.write_all(&buffer[..length]))
                .map_err(fail)?;
        }
        at += length as u64;
    }
    file.set_len(bytes).map_err(fail)
}

/// Reads a file of `bytes` into `contents` at `offset`. The contents must be empty: zeros are
/// not written.
///
/// # Errors
/// If the file cannot be read or has another length, or the contents cannot be kept; named after
/// `--image`.
pub fn read(contents: &mut Contents, offset: u64, bytes: u64, path: &Path) -> Outcome {
    let name = path.display();
    let fail = |e: std::io::Error| Failure::input(format!("--image {name}: {e}"));
    let mut file = File::open(path).map_err(fail)?;
    let found = file.seek(SeekFrom::End(0)).map_err(fail)?;
    if found != bytes {
        return Err(Failure::input(format!(
            "--image {name}: it has {found} bytes, and the partition {bytes}; give the whole \
             partition, or its size with --partition"
        )));
    }
    file.seek(SeekFrom::Start(0)).map_err(fail)?;
    let mut buffer = vec![0; MIB as usize];
    let mut at = 0;
    while at < bytes {
        let length = MIB.min(bytes - at) as usize;
        file.read_exact(&mut buffer[..length]).map_err(fail)?;
        contents
            .write(offset + at, &buffer[..length])
            .map_err(Failure::environment)?;
        at += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_kept_is_read_again_and_another_length_is_refused() {
        const SIZE: u64 = 5 * MIB + 512;
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut contents = Contents::new(16 * MIB);
        for at in [MIB, 3 * MIB + 4096, MIB + SIZE - 512] {
            contents.write(at, &[at as u8 | 1; 512]).unwrap();
        }
        write(contents.clone(), MIB, SIZE, file.path()).unwrap();
        let mut again = Contents::new(16 * MIB);
        read(&mut again, MIB, SIZE, file.path()).unwrap();
        let bytes = |contents: &mut Contents| {
            let mut bytes = vec![0; 16 << 20];
            contents.read(0, &mut bytes).unwrap();
            bytes
        };
        assert!(bytes(&mut again) == bytes(&mut contents));
        let refused = read(&mut again, MIB, SIZE + 512, file.path());
        assert!(refused.is_err_and(|e| e.to_string().contains("--partition")));
    }
}
