//! One operation on a filesystem. Paths are relative to the directory under test. In JSON an
//! operation is an object whose `op` says which: `{"op":"sync_dir","path":"etc"}`.

use serde::{Deserialize, Serialize};

/// What is written: generated, or a file of the user's tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Bytes of a compressibility level, from a seed (`whichfs_workload::generated_bytes`).
    Generated {
        /// Index into `whichfs_workload::levels`.
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
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
    /// Renames a file or directory.
    Rename {
        /// Old path.
        from: String,
        /// New path; a file that is there is replaced.
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
    /// Makes a file durable (fsync); timed, the file stays open.
    SyncFile {
        /// Its path.
        path: String,
    },
    /// Makes the names in a directory durable (fsync of the directory); timed.
    SyncDir {
        /// Its path; `.` is the directory under test.
        path: String,
    },
    /// Writes bytes of a file that is open with O_SYNC, also beyond its end; timed, the file
    /// stays open.
    WriteSync {
        /// Path of the file.
        path: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// What is written.
        content: Content,
    },
}

impl Op {
    /// Whether it changes the filesystem.
    pub fn changes(&self) -> bool {
        match self {
            Op::ReadDir { .. } | Op::Read { .. } | Op::ReadLink { .. } => false,
            Op::SyncFs | Op::SyncFile { .. } | Op::SyncDir { .. } => false,
            Op::Mkdir { .. }
            | Op::Create { .. }
            | Op::Symlink { .. }
            | Op::HardLink { .. }
            | Op::Overwrite { .. }
            | Op::Update { .. }
            | Op::Append { .. }
            | Op::Rename { .. }
            | Op::Unlink { .. }
            | Op::Rmdir { .. }
            | Op::WriteSync { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_operation_is_an_object_that_says_which() {
        let op = Op::WriteSync {
            path: "db-journal".into(),
            offset: 512,
            len: 100,
            content: Content::Generated { level: 4, seed: 9 },
        };
        let text = serde_json::to_string(&op).unwrap();
        let expected = concat!(
            r#"{"op":"write_sync","path":"db-journal","offset":512,"len":100,"#,
            r#""content":{"generated":{"level":4,"seed":9}}}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Op>(&text).unwrap(), op);
        assert_eq!(
            serde_json::from_str::<Op>(r#"{"op":"mkdir","path":"d"}"#).unwrap(),
            Op::Mkdir {
                path: "d".into(),
                mode: None
            }
        );
        assert!(serde_json::from_str::<Op>(r#"{"op":"unlink","path":"d","mode":1}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Op>(r#"{"op":"sync_fs"}"#).unwrap(),
            Op::SyncFs
        );
    }
}
