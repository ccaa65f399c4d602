//! The tree that a guest found on an image.

use crate::compared::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_trial::Node as FoundNode;

/// What was found: everything that could be listed, and digests of sectors where they were
/// asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundTree {
    /// Each path with what it is and its permission bits.
    pub entries: BTreeMap<String, (FoundNode, u32)>,
    /// Digests of all sectors of some files.
    pub sectors: BTreeMap<String, Vec<u32>>,
    /// Runs of sectors of zeros, first and number, of files whose sectors were not asked for.
    pub zeros: BTreeMap<String, Vec<(u64, u64)>>,
    /// Paths that a directory listed more than once.
    pub repeated: BTreeSet<String>,
}

impl FoundTree {
    /// The content of `path`, if it is a file that could be read.
    pub(crate) fn bytes(&self, path: &str) -> Option<Bytes<'_>> {
        let Some((FoundNode::File { size, digest }, _)) = self.entries.get(path) else {
            return None;
        };
        Some(Bytes {
            size: *size,
            digest: *digest,
            sectors: self.sectors.get(path).map(Vec::as_slice),
            zeros: self.zeros.get(path).map_or(&[], Vec::as_slice),
        })
    }
}
