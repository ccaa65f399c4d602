//! What is done with a whole tree: made and removed. Reading it is [`Op::ReadTree`].

use crate::listing::{Entry, Kind, Listing};
use whichfs_trial::Op;

/// Makes everything in `tree`, in its order.
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
    top.map(|Entry { path, .. }| Op::RemoveTree { path: path.clone() })
}
