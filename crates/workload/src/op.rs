//! One operation on a filesystem. Paths are relative to the directory under test.

/// What is written: generated, or a file of the user's tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Bytes of a compressibility level, from a seed (see [`crate::generated_bytes`]).
    Generated {
        /// Index into [`crate::levels`].
        level: u8,
        /// Which bytes of that level.
        seed: u64,
    },
    /// The bytes of this file below the user's tree, from the same offset on.
    File {
        /// Path relative to the user's tree.
        path: String,
    },
}

/// One operation. Where nothing else is said, it counts as one operation and is
/// neither timed nor made durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Makes a directory.
    Mkdir {
        /// Path of the new directory; its parent exists.
        path: String,
        /// Permissions; `None` where the filesystem has none.
        mode: Option<u32>,
    },
    /// Makes a file, which does not exist yet, and writes its content.
    Create {
        /// Path of the new file.
        path: String,
        /// Bytes.
        size: u64,
        /// What is in it.
        content: Content,
        /// Permissions; `None` where the filesystem has none.
        mode: Option<u32>,
    },
    /// Makes a symbolic link.
    Symlink {
        /// Path of the new link.
        path: String,
        /// What it points to; need not exist.
        target: String,
    },
    /// Makes another name of a file.
    HardLink {
        /// The new name.
        path: String,
        /// The file that exists.
        existing: String,
    },
    /// Lists a directory and asks for the attributes of every entry.
    ReadDir {
        /// Path of the directory.
        path: String,
    },
    /// Reads every byte of a file.
    Read {
        /// Path of the file.
        path: String,
    },
    /// Reads where a symbolic link points.
    ReadLink {
        /// Path of the link.
        path: String,
    },
    /// Overwrites bytes inside a file.
    Overwrite {
        /// Path of the file.
        path: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// What is written.
        content: Content,
    },
    /// Overwrites bytes inside a file, then fsync; timed, the file stays open.
    Update {
        /// Path of the file.
        path: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// What is written.
        content: Content,
    },
    /// Appends to a file, which is made if missing; timed, the file stays open.
    Append {
        /// Path of the file.
        path: String,
        /// Bytes.
        len: u64,
        /// What is written.
        content: Content,
        /// fdatasync afterwards.
        sync: bool,
    },
    /// Renames a file.
    Rename {
        /// Old path.
        from: String,
        /// New path, which does not exist.
        to: String,
    },
    /// Deletes a file or link.
    Unlink {
        /// Its path.
        path: String,
    },
    /// Deletes an empty directory.
    Rmdir {
        /// Its path.
        path: String,
    },
    /// Makes everything on the filesystem durable (syncfs).
    SyncFs,
}
