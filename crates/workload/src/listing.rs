//! A tree as a list: every directory stands before what is in it.

use whichfs_trial::Content;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Its entries follow it in the list.
    Directory,
    /// A regular file.
    File {
        /// Size of the file in bytes.
        size: u64,
        /// What is in it.
        content: Content,
    },
    /// A symbolic link and what it points to.
    Symlink {
        /// Where it points.
        target: String,
    },
    /// Another name of an earlier file of the list.
    HardLink {
        /// Path of that file.
        existing: String,
    },
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeEntry {
    /// Path relative to the tree's root.
    pub path: String,
    /// Permissions (the lowest twelve bits of st_mode).
    pub mode: u32,
    /// Directory, file or link, with the content or target.
    pub kind: EntryKind,
}

/// The entries of a tree, without its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Each directory before its content; hard links after the file they name.
    pub entries: Vec<TreeEntry>,
}

impl Listing {
    /// Path and size of each file, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, &Content)> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::File { size, content } => Some((entry.path.as_str(), *size, content)),
            _ => None,
        })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|(_, size, _)| size).sum()
    }

    /// What a filesystem without permissions and links can hold of it.
    pub fn without_unix(mut self) -> Listing {
        self.entries
            .retain(|entry| matches!(entry.kind, EntryKind::Directory | EntryKind::File { .. }));
        self
    }
}
