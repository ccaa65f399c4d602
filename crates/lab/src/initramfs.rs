//! The guest's first root: a cpio archive (newc) with the agent as `/init`.
//!
//! The agent's path is the same in every guest, wherever it lies on the host: path
//! names of different length would cost different CPU time.

const REGULAR: u32 = 0o100_755;
const DIRECTORY: u32 = 0o040_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// The archive: `/init`, `/dev/console` and the directories that the agent mounts on.
pub fn build(agent: &[u8]) -> Vec<u8> {
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
