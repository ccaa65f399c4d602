//! What is done with a whole tree: made and removed. Reading it is [`Op::ReadTree`].

use crate::listing::{EntryKind, Listing, TreeEntry};
use std::num::NonZeroU64;
use whichfs_trial::{Op, Pieces};
use whichfs_units::KIB;

/// Program that makes a tree, which hands content to the kernel in its own pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// `tar -x` of an archive of the tree (GNU tar 1.34): what is left of the record in which a
    /// file begins, then record by record.
    Tar,
    /// `cp -a` (coreutils 9.1): 128 KiB at a time.
    Copy,
    /// dpkg 1.21: 32 KiB at a time (`lib/dpkg/buffer.c`).
    Dpkg,
}

/// Bytes of a block of an archive, to which headers and content are padded.
const TAR_BLOCK: u64 = 512;
/// Bytes that tar reads of an archive at a time: 20 blocks.
const TAR_RECORD: NonZeroU64 = NonZeroU64::MIN.saturating_add(20 * TAR_BLOCK - 1);
/// Bytes of a name or link target that fit into a header; a longer one has blocks of its own.
const TAR_NAME: usize = 100;
/// Bytes that dpkg hands over at a time.
const DPKG_BUFFER: NonZeroU64 = NonZeroU64::MIN.saturating_add(32 * KIB - 1);

/// Makes everything in `tree`, in its order, as `writer` does.
pub(crate) fn create(tree: &Listing, unix: bool, writer: Writer) -> Vec<Op> {
    // Where the next entry begins in the archive, after that of `./`.
    let mut position = TAR_BLOCK;
    let make = |entry: &TreeEntry| {
        let path = entry.path.clone();
        let mode = unix.then_some(entry.mode);
        position += header(entry);
        match &entry.kind {
            EntryKind::Directory => Op::Mkdir { path, mode },
            EntryKind::File { size, content } => {
                let pieces =
                    match writer {
                        Writer::Copy => None,
                        Writer::Dpkg => Some(Pieces {
                            first: DPKG_BUFFER,
                            each: DPKG_BUFFER,
                        }),
                        Writer::Tar => NonZeroU64::new(TAR_RECORD.get() - position % TAR_RECORD)
                            .map(|first| Pieces {
                                first,
                                each: TAR_RECORD,
                            }),
                    };
                position += size.next_multiple_of(TAR_BLOCK);
                Op::Create {
                    path,
                    size: *size,
                    content: content.clone(),
                    mode,
                    // One call writes a small file whatever the writer.
                    pieces: pieces.filter(|pieces| pieces.first.get() < *size),
                }
            }
            EntryKind::Symlink { target } => {
                let target = target.clone();
                Op::Symlink { path, target }
            }
            EntryKind::HardLink { existing } => {
                let existing = existing.clone();
                Op::HardLink { path, existing }
            }
        }
    };
    tree.entries.iter().map(make).collect()
}

/// Bytes of what GNU tar writes into an archive before the content of `entry`, whose name there
/// begins with `./`.
fn header(entry: &TreeEntry) -> u64 {
    let long = |bytes: usize| match bytes > TAR_NAME {
        // A header of its own and the text, which a zero ends.
        true => TAR_BLOCK + (bytes as u64 + 1).next_multiple_of(TAR_BLOCK),
        false => 0,
    };
    let name = 2 + entry.path.len() + usize::from(entry.kind == EntryKind::Directory);
    let target = match &entry.kind {
        EntryKind::Symlink { target } => target.len(),
        EntryKind::HardLink { existing } => 2 + existing.len(),
        EntryKind::Directory | EntryKind::File { .. } => 0,
    };
    long(name) + long(target) + TAR_BLOCK
}

/// Reads all that is there, as a backup does.
pub(crate) fn read() -> Op {
    Op::ReadTree {
        path: ".".to_owned(),
    }
}

/// Removes everything in `tree`: `rm -r` of what is at its top, in its order. Other things at the
/// top (`lost+found`) stay.
pub(crate) fn remove(tree: &Listing) -> impl Iterator<Item = Op> {
    let top = tree
        .entries
        .iter()
        .filter(|entry| !entry.path.contains('/'));
    top.map(|TreeEntry { path, .. }| Op::RemoveTree { path: path.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::generated;

    fn pieces(writer: Writer) -> Vec<Option<(u64, u64)>> {
        let file = |path: &str, size| TreeEntry {
            path: path.to_owned(),
            mode: 0o644,
            kind: EntryKind::File {
                size,
                content: generated(0, 1),
            },
        };
        let long = "n".repeat(99);
        let entries = vec![file("a", 100), file("b", 40_000), file(&long, 9_000)];
        let operations = create(&Listing { entries }, true, writer).into_iter();
        let pieces = operations.map(|op| match op {
            Op::Create { pieces, .. } => pieces.map(|p| (p.first.get(), p.each.get())),
            _ => None,
        });
        pieces.collect()
    }

    /// An archive of `./`, `a`, `b` and the name of 101 bytes: `a` is at 1,024, `b` at 2,048, the
    /// last one at 42,496 + 1,024 for its name + 512.
    #[test]
    fn tar_writes_what_is_left_of_its_record_and_then_records() {
        let expected = [
            None,
            Some((10_240 - 2_048, 10_240)),
            Some((10_240 - 3_072, 10_240)),
        ];
        assert_eq!(pieces(Writer::Tar), expected);
    }

    #[test]
    fn cp_and_dpkg_write_as_much_as_their_buffers_hold() {
        assert_eq!(pieces(Writer::Copy), [None; 3]);
        assert_eq!(pieces(Writer::Dpkg), [None, Some((32_768, 32_768)), None]);
    }
}
