//! One operation on a filesystem. Paths are relative to the directory under test. In JSON an
//! operation is an object whose `op` says which: `{"op":"sync_dir","path":"etc"}`.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// What is written: generated, or a file of the user's tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema, Deserialize)]
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

/// How a program hands the content of a new file to the kernel. Filesystems that decide at the end
/// of each call, f2fs above all, make other requests of many small calls than of few large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// Bytes of the first call.
    pub first: NonZeroU64,
    /// Bytes of each call after it; the last one writes what is left.
    pub each: NonZeroU64,
}

impl Pieces {
    /// Bytes that the call writes which begins `done` bytes into the file, if there are so many.
    pub fn at(self, done: u64) -> u64 {
        match self.first.get().checked_sub(done) {
            Some(left @ 1..) => left,
            _ => self.each.get() - (done - self.first.get()) % self.each,
        }
    }
}

/// One operation. Where nothing else is said, it counts as one operation and is
/// neither timed nor made durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema, Deserialize)]
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
        /// Size of the file in bytes.
        size: u64,
        /// What is in it.
        content: Content,
        /// Permissions; `None` where the filesystem has none.
        mode: Option<u32>,
        /// How much each call writes; `None`: 128 KiB, as `cp` does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pieces: Option<Pieces>,
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
        /// Number of bytes.
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
        /// Number of bytes.
        len: u64,
        /// What is written.
        content: Content,
    },
    /// Appends to a file, which is made if missing; timed, the file stays open.
    Append {
        /// Path of the file.
        path: String,
        /// Number of bytes.
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
        /// What loses its name.
        path: String,
    },
    /// Deletes an empty directory.
    Rmdir {
        /// The directory to delete.
        path: String,
    },
    /// Makes everything on the filesystem durable (syncfs).
    SyncFs,
    /// Makes a file durable (fsync); timed, the file stays open.
    SyncFile {
        /// The file to make durable.
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
        /// Number of bytes.
        len: u64,
        /// What is written.
        content: Content,
    },
    /// Reads bytes of a file, a call for each `block` of them; timed as one, the file stays open.
    ReadAt {
        /// Path of the file; where it ends before, what it has is read.
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Bytes of a call; the last may have less.
        block: u64,
        /// Past the page cache (O_DIRECT): offsets and lengths are multiples of the device's
        /// logical block.
        #[serde(default)]
        direct: bool,
    },
    /// Says that bytes of a file will be read (POSIX_FADV_WILLNEED): the system begins to read them
    /// and does not wait; the file stays open.
    WillRead {
        /// Path of the file.
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Writes bytes of a file, which is made if missing, also beyond its end, a call for each
    /// `block` of them; timed as one, the file stays open.
    WriteAt {
        /// Path of the file.
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Bytes of a call; the last may have less.
        block: u64,
        /// Past the page cache, as for `read_at`.
        #[serde(default)]
        direct: bool,
        /// What is written; generated.
        content: Content,
    },
    /// Reads each block of a file and overwrites it before the next, in a call each; bytes count
    /// once; timed as one, the file stays open.
    Rewrite {
        /// Path of the file; where it ends before, what it has is read.
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Bytes of a block; the last may have less.
        block: u64,
        /// What is written; generated.
        content: Content,
    },
    /// Makes a file durable (fsync) and closes it.
    SyncClose {
        /// The file to make durable.
        path: String,
    },
    /// Has the kernel begin to write a file (`sync_file_range`), or waits until what has begun is
    /// written; neither makes it durable.
    WriteBack {
        /// The file whose dirty pages are written.
        path: String,
        /// Wait (`SYNC_FILE_RANGE_WAIT_BEFORE`) instead of begin (`SYNC_FILE_RANGE_WRITE`).
        wait: bool,
    },
    /// Makes a file, which does not exist yet, writes its content, makes it durable (fsync) and
    /// closes it.
    Save {
        /// Path of the new file.
        path: String,
        /// Size of the file in bytes.
        size: u64,
        /// What is in it.
        content: Content,
        /// Permissions; `None` where the filesystem has none.
        mode: Option<u32>,
    },
    /// Asks for the attributes of a file or directory.
    Stat {
        /// The file or directory that is asked about; a link is not followed.
        path: String,
    },
    /// Lists a directory and asks for the attributes of every entry, each of which counts as a
    /// file.
    StatAll {
        /// Path of the directory.
        path: String,
    },
    /// Deletes every file in a directory, in the order in which it lists them.
    Clear {
        /// Path of the directory, in which no directory is.
        path: String,
    },
    /// Reads all that is below a directory as `tar -c` of GNU tar 1.34 does: depth first, in the
    /// order in which the filesystem lists each directory; attributes of every entry, each symbolic
    /// link's target, and every byte of every file once, whatever names it has. Each file counts.
    ReadTree {
        /// Path of the directory; `.` is the directory under test.
        path: String,
    },
    /// Deletes a file, or a directory with all that is below it, as `rm -r` of GNU coreutils 9.1
    /// does: depth first, in the order in which the filesystem lists each directory, or in that of
    /// inode numbers where a directory has more than 10,000 entries. Each file and link counts.
    RemoveTree {
        /// Root of the tree, which is removed, too.
        path: String,
    },
    /// Records the time since the last `lap`, `pause` or `wait_until` as the latency of one
    /// operation. The first of these in a phase starts the watch.
    Lap,
    /// Does nothing for so long.
    Pause {
        /// How long.
        nanoseconds: u64,
    },
    /// Does nothing until so long after the watch was started; goes on at once if that is past.
    WaitUntil {
        /// How long after the watch was started.
        nanoseconds: u64,
    },
}

impl Op {
    /// Bytes of content that it writes into a file.
    pub fn written(&self) -> u64 {
        match self {
            Op::Create { size, .. } | Op::Save { size, .. } => *size,
            Op::Overwrite { len, .. }
            | Op::Update { len, .. }
            | Op::Append { len, .. }
            | Op::WriteSync { len, .. }
            | Op::WriteAt { len, .. }
            | Op::Rewrite { len, .. } => *len,
            _ => 0,
        }
    }

    /// Whether it makes something durable.
    pub fn syncs(&self) -> bool {
        match self {
            Op::Append { sync, .. } => *sync,
            Op::Update { .. }
            | Op::SyncFs
            | Op::SyncFile { .. }
            | Op::SyncDir { .. }
            | Op::WriteSync { .. }
            | Op::SyncClose { .. }
            | Op::Save { .. } => true,
            _ => false,
        }
    }

    /// Whether it changes the filesystem.
    pub fn changes(&self) -> bool {
        match self {
            Op::ReadDir { .. } | Op::Read { .. } | Op::ReadLink { .. } => false,
            Op::ReadAt { .. } | Op::WillRead { .. } => false,
            Op::Stat { .. } | Op::StatAll { .. } | Op::ReadTree { .. } => false,
            Op::SyncFs | Op::SyncFile { .. } | Op::SyncDir { .. } | Op::SyncClose { .. } => false,
            Op::WriteBack { .. } => false,
            Op::Lap | Op::Pause { .. } | Op::WaitUntil { .. } => false,
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
            | Op::WriteSync { .. }
            | Op::WriteAt { .. }
            | Op::Rewrite { .. }
            | Op::Save { .. }
            | Op::Clear { .. }
            | Op::RemoveTree { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_has_content_that_is_written_says_how_much() {
        let content = Content::Generated { level: 0, seed: 1 };
        let path = || "f".to_owned();
        let create = Op::Create {
            path: path(),
            size: 7,
            content: content.clone(),
            mode: None,
            pieces: None,
        };
        let append = Op::Append {
            path: path(),
            len: 5,
            content,
            sync: true,
        };
        assert_eq!(
            [create, append, Op::SyncFs].map(|op| op.written()),
            [7, 5, 0]
        );
    }

    #[test]
    fn content_is_handed_over_in_pieces() {
        let pieces: Pieces = serde_json::from_str(r#"{"first":512,"each":100}"#).unwrap();
        assert!(serde_json::from_str::<Pieces>(r#"{"first":512,"each":0}"#).is_err());
        assert_eq!(
            [0, 500, 512, 550, 612].map(|done| pieces.at(done)),
            [512, 12, 100, 62, 100]
        );
    }

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
    #[test]
    fn operations_in_blocks_and_in_time_are_objects_too() {
        let cases = [
            (
                r#"{"op":"read_at","path":"f","offset":0,"len":9,"block":4,"direct":false}"#,
                Op::ReadAt {
                    path: "f".into(),
                    offset: 0,
                    len: 9,
                    block: 4,
                    direct: false,
                },
            ),
            (r#"{"op":"lap"}"#, Op::Lap),
            (
                r#"{"op":"wait_until","nanoseconds":5}"#,
                Op::WaitUntil { nanoseconds: 5 },
            ),
            (
                r#"{"op":"sync_close","path":"f"}"#,
                Op::SyncClose { path: "f".into() },
            ),
        ];
        for (text, op) in cases {
            assert_eq!(serde_json::to_string(&op).unwrap(), text);
            assert_eq!(serde_json::from_str::<Op>(text).unwrap(), op);
        }
        let short = r#"{"op":"read_at","path":"f","offset":0,"len":9,"block":4}"#;
        let buffered = serde_json::from_str::<Op>(short).unwrap();
        assert!(matches!(buffered, Op::ReadAt { direct: false, .. }));
        assert!(serde_json::from_str::<Op>(r#"{"op":"pause","path":"f"}"#).is_err());
    }
}
