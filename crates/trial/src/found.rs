//! What is found on a filesystem when everything on it is read.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Path relative to the directory inspected. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Kind of the entry, with size and digest of a file or target of a link.
    pub node: Node,
    /// Permission bits.
    pub mode: u32,
    /// [`sector_digest`] of each sector, if they were asked for and are not told by events of their
    /// own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sectors: Vec<u32>,
    /// Runs of sectors that hold zeros only, first and number, at most [`ZERO_RUNS`] of them, where
    /// the sectors are not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zeros: Vec<(u64, u64)>,
}

/// Most runs of sectors of zeros that are told of a file.
pub const ZERO_RUNS: usize = 64;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Node {
    /// Its entries are listed on their own.
    Directory,
    /// A regular file that was read to its end.
    File {
        /// Size of the file in bytes.
        size: u64,
        /// [`content_digest`] of all of it.
        digest: u64,
    },
    /// A symbolic link.
    Symlink {
        /// What it points to.
        target: String,
    },
    /// A device, pipe or socket.
    Other,
    /// It could not be listed, asked or read.
    Unreadable {
        /// The call and the system's reason.
        error: String,
    },
}

/// Digest of the content of a file: XXH3, 64 bits. It tells damage, not forgery.
pub fn content_digest(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// A digest of a content that comes in pieces; equal to [`content_digest`] of the whole.
#[derive(Clone, Default)]
pub struct ContentDigest(xxhash_rust::xxh3::Xxh3);

impl ContentDigest {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// Digest of one sector, or of what a file has of its last: 32 bits, so that one in
/// 4 × 10^9 damaged sectors passes for another.
pub fn sector_digest(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_in_pieces_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..5000_u32).map(|n| n as u8).collect();
        for cut in [0, 1, 512, 4999] {
            let mut digest = ContentDigest::default();
            digest.update(&bytes[..cut]);
            digest.update(&bytes[cut..]);
            assert_eq!(digest.finish(), content_digest(&bytes));
        }
    }

    #[test]
    fn one_bit_changes_a_digest() {
        let mut bytes = [7; 512];
        let before = (content_digest(&bytes), sector_digest(&bytes));
        bytes[511] ^= 1;
        assert_ne!(before.0, content_digest(&bytes));
        assert_ne!(before.1, sector_digest(&bytes));
    }
}
