//! Writes an image to a device as a product's installer does: direct, 1 MiB at a time.

use crate::aligned::Aligned;
use crate::error::AgentError;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, pwrite};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use whichfs_trial::Counts;
use whichfs_units::{MIB, SECTOR};

/// Copies `image` to the beginning of `device` and flushes the device.
pub fn deploy(image: &Path, device: &Path) -> Result<Counts, AgentError> {
    let mut source =
        File::open(image).map_err(|error| AgentError::io("open image", image.display(), &error))?;
    let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let target = rustix::fs::open(device, flags, Mode::empty())
        .map_err(|errno| AgentError::system("open device", device.display(), errno))?;
    let mut buffer = Aligned::new(MIB as usize);
    let mut counts = Counts {
        files: 1,
        ..Counts::default()
    };
    loop {
        let got = fill(&mut source, buffer.bytes_mut())
            .map_err(|error| AgentError::io("read image", image.display(), &error))?;
        if got == 0 {
            break;
        }
        // The last piece is padded with zeros to whole sectors.
        let whole = got.next_multiple_of(SECTOR as usize);
        buffer.bytes_mut()[got..whole].fill(0);
        write_all(&target, &buffer.bytes()[..whole], counts.bytes, device)?;
        counts.bytes += got as u64;
        counts.operations += 1;
    }
    rustix::fs::fsync(&target)
        .map_err(|errno| AgentError::system("flush device", device.display(), errno))?;
    Ok(counts)
}

/// Reads until `buffer` is full or the file ends.
fn fill(source: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn write_all(target: &OwnedFd, bytes: &[u8], offset: u64, device: &Path) -> Result<(), AgentError> {
    let mut done = 0;
    while done < bytes.len() {
        match pwrite(target, &bytes[done..], offset + done as u64) {
            Ok(0) => {
                let at = offset + done as u64;
                let path = device.display();
                return Err(AgentError::new(format!(
                    "write device {path}: it ends at {at}"
                )));
            }
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(AgentError::system("write device", device.display(), errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_image_arrives_whole_and_padded() {
        let dir = tempfile::tempdir().unwrap();
        let (image, device) = (dir.path().join("image"), dir.path().join("device"));
        let content: Vec<u8> = (0..MIB + 700).map(|at| (at % 251) as u8).collect();
        std::fs::write(&image, &content).unwrap();
        std::fs::write(&device, vec![0xff; 4 << 20]).unwrap();
        let counts = deploy(&image, &device).unwrap();
        assert_eq!((counts.bytes, counts.operations), (MIB + 700, 2));
        let written = std::fs::read(&device).unwrap();
        assert!(written[..content.len()] == content[..]);
        let end = content.len().next_multiple_of(512);
        assert!(written[content.len()..end].iter().all(|&byte| byte == 0));
        assert!(written[end..].iter().all(|&byte| byte == 0xff));
    }

    #[test]
    fn a_missing_image_is_named() {
        let error = deploy(Path::new("/no/image"), Path::new("/no/device")).unwrap_err();
        assert!(
            error.to_string().contains("open image /no/image"),
            "{error}"
        );
    }
}
