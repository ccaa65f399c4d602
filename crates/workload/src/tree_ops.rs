//! What is done with a whole tree: made, read, removed.

use crate::listing::{Entry, Kind, Listing};
use whichfs_trial::Op;

/// Makes everything in `tree`.
pub(crate) fn create(tree: &Listing, unix: bool) -> Vec<Op> {
    let make = |entry: &Entry| {
        let path = entry.path.clone();
        let mode = unix.then_some(entry.mode);
        match &entry.kind {
            Kind::Directory => Op::Mkdir { path, mode },
            Kind::File { size, content } => Op::Create {
                path,
                size: *size,
                content: content.clone(),
                mode,
            },
            Kind::Symlink { target } => {
                let target = target.clone();
                Op::Symlink { path, target }
            }
            Kind::HardLink { existing } => {
                let existing = existing.clone();
                Op::HardLink { path, existing }
            }
        }
    };
    tree.entries.iter().map(make).collect()
}

/// Reads everything in `tree`, in its order.
pub(crate) fn read(tree: &Listing) -> Vec<Op> {
    let root = Op::ReadDir {
        path: ".".to_owned(),
    };
    let look = |entry: &Entry| {
        let path = entry.path.clone();
        match &entry.kind {
            Kind::Directory => Op::ReadDir { path },
            Kind::File { .. } | Kind::HardLink { .. } => Op::Read { path },
            Kind::Symlink { .. } => Op::ReadLink { path },
        }
    };
    std::iter::once(root)
        .chain(tree.entries.iter().map(look))
        .collect()
}

/// Removes everything in `tree`: files and links in its order, then directories, inner ones first.
pub(crate) fn remove(tree: &Listing) -> impl Iterator<Item = Op> {
    let (directories, files): (Vec<&Entry>, Vec<&Entry>) = tree
        .entries
        .iter()
        .partition(|entry| entry.kind == Kind::Directory);
    let path = |entry: &Entry| entry.path.clone();
    let files: Vec<String> = files.into_iter().map(path).collect();
    let directories: Vec<String> = directories.into_iter().rev().map(path).collect();
    let unlink = files.into_iter().map(|path| Op::Unlink { path });
    unlink.chain(directories.into_iter().map(|path| Op::Rmdir { path }))
}
