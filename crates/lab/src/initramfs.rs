//! The guest's first root: a cpio archive (newc) with the agent as `/init`.
//!
//! The agent's path is the same in every guest, wherever it lies on the host: path
//! names of different length would cost different CPU time.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::fs::File;
use std::io::{self, Write};
use whichfs_trial::{SHARED_MAX, shared_descriptor};

const REGULAR: u32 = 0o100_755;
const DIRECTORY: u32 = 0o040_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// The archive in a file without a name, made once for all guests.
#[derive(Debug)]
pub struct Initramfs(OwnedFd);

impl Initramfs {
    /// The archive with the program `agent`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(agent: &[u8]) -> io::Result<Initramfs> {
        let mut file = File::from(memfd_create("whichfs-initramfs", MemfdFlags::CLOEXEC)?);
        file.write_all(&build(agent))?;
        // Above all places that descriptors are put at.
        let own = fcntl_dupfd_cloexec(&file, Initramfs::place() + 1);
        own.map(Initramfs).map_err(|errno| match errno {
            // The number is above the limit of open files.
            Errno::INVAL => Errno::MFILE.into(),
            errno => errno.into(),
        })
    }

    /// Its descriptor in the guest's process.
    fn place() -> i32 {
        shared_descriptor(SHARED_MAX)
    }

    /// Where the guest's process finds it.
    pub fn path() -> String {
        format!("/proc/self/fd/{}", Initramfs::place())
    }

    /// Its descriptor in this process.
    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Puts the descriptor `number` there. Runs in the child, after what is shared has been put in
    /// place.
    ///
    /// # Errors
    /// As dup2(2).
    pub fn put_in_place(number: i32) -> io::Result<()> {
        // SAFETY: a plain system call on numbers.
        if unsafe { libc::dup2(number, Initramfs::place()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// The archive: `/init`, `/dev/console` and the directories that the agent mounts on.
fn build(agent: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "sys", "host", "mnt", "tmp"] {
        archive.entry(directory, DIRECTORY, (0, 0), &[]);
    }
    archive.entry("dev/console", CHARACTER_DEVICE, (5, 1), &[]);
    archive.entry("init", REGULAR, (0, 0), agent);
    archive.entry("TRAILER!!!", 0, (0, 0), &[]);
    archive.bytes
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    /// Appends one entry; `device` is its major and minor number.
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0, // owner
            0, // group
            1, // links
            0, // modification time
            content.len() as u32,
            0, // device of the file itself
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // checksum, unused in newc
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_newc_with_the_agent_inside() {
        let archive = build(b"AGENT");
        assert!(archive.starts_with(b"070701"));
        assert_eq!(archive.len() % 4, 0);
        let text = String::from_utf8_lossy(&archive);
        let init = text.find("init\0").expect("init is there");
        assert!(text[init..].contains("AGENT"));
        assert!(text.contains("TRAILER!!!"));
    }
}
