//! What `rsync -r` (3.2.7) does with a tree: copies it to the filesystem, and reads it from there.
//!
//! The names in a directory are sorted, files before directories. The directories in a directory
//! are made before anything is put into the first of them. A file is written under a temporary name
//! and renamed; another name of a file is a file of its own; symbolic links are passed over.

use crate::listing::{EntryKind, Listing, TreeEntry};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use whichfs_trial::{Op, Pieces};
use whichfs_units::KIB;

/// Bytes that rsync gathers of a file before it writes them (`fileio.c`, eight times 32 KiB).
const BUFFER: NonZeroU64 = NonZeroU64::MIN.saturating_add(256 * KIB - 1);

/// Copies `tree` to the top of the filesystem.
pub(crate) fn copy(tree: &Listing, unix: bool) -> Vec<Op> {
    let mut made = Vec::new();
    Sorted::of(tree).visit("", &mut |_, files, directories| {
        for (name, entry) in files {
            made.extend(write(tree, name, entry, unix).into_iter().flatten());
        }
        made.extend(directories.iter().map(|entry| Op::Mkdir {
            path: entry.path.clone(),
            mode: unix.then_some(entry.mode),
        }));
    });
    made
}

/// Reads `tree` from the filesystem.
pub(crate) fn read(tree: &Listing) -> Vec<Op> {
    let mut done = Vec::new();
    Sorted::of(tree).visit("", &mut |directory, files, _| {
        let path = if directory.is_empty() { "." } else { directory };
        done.push(Op::StatAll { path: path.into() });
        done.extend(files.values().map(|entry| Op::Read {
            path: entry.path.clone(),
        }));
    });
    done
}

/// Writes the file `name`, which is `entry` of `tree`.
fn write(tree: &Listing, name: &str, entry: &TreeEntry, unix: bool) -> Option<[Op; 2]> {
    let of = match &entry.kind {
        EntryKind::HardLink { existing } => tree.files().find(|(path, ..)| path == existing)?,
        EntryKind::File { size, content } => (entry.path.as_str(), *size, content),
        EntryKind::Directory | EntryKind::Symlink { .. } => return None,
    };
    let (_, size, content) = of;
    let directory = entry.path.strip_suffix(name).unwrap_or_default();
    // rsync draws six characters; these differ from file to file all the same.
    let temporary = format!("{directory}.{name}.Ns7wQx");
    let pieces = (size > BUFFER.get()).then_some(Pieces {
        first: BUFFER,
        each: BUFFER,
    });
    let create = Op::Create {
        path: temporary.clone(),
        size,
        content: content.clone(),
        mode: unix.then_some(entry.mode),
        pieces,
    };
    let to = entry.path.clone();
    Some([
        create,
        Op::Rename {
            from: temporary,
            to,
        },
    ])
}

/// The entries of each directory by their names: files, then directories.
#[derive(Default)]
struct Sorted<'a>(BTreeMap<&'a str, [BTreeMap<&'a str, &'a TreeEntry>; 2]>);

impl<'a> Sorted<'a> {
    fn of(tree: &'a Listing) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for entry in &tree.entries {
            let (directory, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
            let kind = match entry.kind {
                EntryKind::Symlink { .. } => continue,
                EntryKind::Directory => 1,
                EntryKind::File { .. } | EntryKind::HardLink { .. } => 0,
            };
            sorted.0.entry(directory).or_default()[kind].insert(name, entry);
        }
        sorted
    }

    /// Calls `each` with `directory` and what is in it, then goes into its directories.
    fn visit<'b>(
        &'b self,
        directory: &'b str,
        each: &mut impl FnMut(&'b str, &'b BTreeMap<&'a str, &'a TreeEntry>, &[&'b TreeEntry]),
    ) {
        const EMPTY: &[BTreeMap<&str, &TreeEntry>; 2] = &[BTreeMap::new(), BTreeMap::new()];
        let [files, directories] = self.0.get(directory).unwrap_or(EMPTY);
        let below: Vec<&TreeEntry> = directories.values().copied().collect();
        each(directory, files, &below);
        for entry in below {
            self.visit(&entry.path, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::generated;

    fn tree() -> Listing {
        let entry = |path: &str, kind| TreeEntry {
            path: path.to_owned(),
            mode: 0o644,
            kind,
        };
        let file = |size| EntryKind::File {
            size,
            content: generated(0, 1),
        };
        let (target, existing) = ("z".to_owned(), "b/a".to_owned());
        Listing {
            entries: vec![
                entry("b", EntryKind::Directory),
                entry("b/a", file(300 << 10)),
                entry("a", EntryKind::Directory),
                entry("a/link", EntryKind::Symlink { target }),
                entry("a/other", EntryKind::HardLink { existing }),
                entry("z", file(1)),
            ],
        }
    }

    #[test]
    fn files_come_before_directories_and_are_renamed_when_they_are_whole() {
        let told: Vec<String> = copy(&tree(), true)
            .iter()
            .map(|op| match op {
                Op::Mkdir { path, .. } => format!("mkdir {path}"),
                Op::Create {
                    path, size, pieces, ..
                } => format!("create {path} {size} {}", pieces.is_some()),
                Op::Rename { from, to } => format!("rename {from} {to}"),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "create .z.Ns7wQx 1 false",
            "rename .z.Ns7wQx z",
            "mkdir a",
            "mkdir b",
            "create a/.other.Ns7wQx 307200 true",
            "rename a/.other.Ns7wQx a/other",
            "create b/.a.Ns7wQx 307200 true",
            "rename b/.a.Ns7wQx b/a",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_directory_is_listed_and_then_its_files_are_read_by_name() {
        let told: Vec<String> = read(&tree())
            .iter()
            .map(|op| match op {
                Op::StatAll { path } => format!("list {path}"),
                Op::Read { path } => format!("read {path}"),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "list .",
            "read z",
            "list a",
            "read a/other",
            "list b",
            "read b/a",
        ];
        assert_eq!(told, expected);
    }
}
