//! Lists a tree of the user, sorted, so that every trial sees the same order.

use crate::error::AgentError;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use whichfs_workload::{Content, EntryKind, Listing, TreeEntry};

/// Bytes of a block as `stat` counts them.
const SECTOR: u64 = 512;
/// Bytes that a file lacks at least on the disk to be told as one with holes.
const HOLE: u64 = 1 << 20;

/// Lists what is below `root`: directories, files, links. Sockets, pipes and devices are
/// left out.
///
/// # Errors
/// The first directory or file that cannot be read, or whose name is not UTF-8.
pub fn list_tree(root: &Path) -> Result<Listing, AgentError> {
    Ok(walked(root)?.0)
}

/// What is below `root` that a trial does not write as it is there.
///
/// # Errors
/// As [`list_tree`].
pub fn unsupported_metadata(root: &Path) -> Result<UnsupportedMetadata, AgentError> {
    Ok(walked(root)?.1)
}

/// Paths of files that are not written as they are, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedMetadata {
    /// Sockets, pipes and devices: left out.
    pub special: Vec<String>,
    /// Files with holes: written whole.
    pub sparse: Vec<String>,
}

fn walked(root: &Path) -> Result<(Listing, UnsupportedMetadata), AgentError> {
    let mut walk = Walk {
        root,
        entries: Vec::new(),
        linked: BTreeMap::new(),
        odd: UnsupportedMetadata::default(),
    };
    walk.directory("")?;
    let entries = walk.entries;
    Ok((Listing { entries }, walk.odd))
}

struct Walk<'a> {
    root: &'a Path,
    entries: Vec<TreeEntry>,
    /// First path of each file that has several, by device and inode.
    linked: BTreeMap<(u64, u64), String>,
    odd: UnsupportedMetadata,
}

impl Walk<'_> {
    /// Appends what is below `dir`, each directory before its content.
    fn directory(&mut self, dir: &str) -> Result<(), AgentError> {
        let full = self.root.join(dir);
        let fail = |error: &std::io::Error| AgentError::io("list", full.display(), error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&full).map_err(|error| fail(&error))? {
            let name = entry.map_err(|error| fail(&error))?.file_name();
            let name = name.into_string().map_err(|name| {
                let path = full.join(&name);
                AgentError::new(format!("{}: the name is not UTF-8", path.display()))
            })?;
            names.push(name);
        }
        names.sort_unstable();
        for name in names {
            let path = match dir {
                "" => name,
                _ => format!("{dir}/{name}"),
            };
            self.entry(path)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: String) -> Result<(), AgentError> {
        let full = self.root.join(&path);
        let meta = fs::symlink_metadata(&full)
            .map_err(|error| AgentError::io("stat", full.display(), &error))?;
        let mode = meta.mode() & 0o7777;
        let kind = if meta.is_dir() {
            let kind = EntryKind::Directory;
            self.entries.push(TreeEntry {
                path: path.clone(),
                mode,
                kind,
            });
            return self.directory(&path);
        } else if meta.is_symlink() {
            let target = fs::read_link(&full)
                .map_err(|error| AgentError::io("read link", full.display(), &error))?;
            let target = target.into_os_string().into_string().map_err(|_| {
                AgentError::new(format!("{}: its target is not UTF-8", full.display()))
            })?;
            EntryKind::Symlink { target }
        } else if meta.is_file() {
            self.file(&path, &full, &meta)?
        } else {
            self.odd.special.push(path);
            return Ok(());
        };
        self.entries.push(TreeEntry { path, mode, kind });
        Ok(())
    }

    fn file(&mut self, path: &str, full: &Path, meta: &Metadata) -> Result<EntryKind, AgentError> {
        rustix::fs::access(full, rustix::fs::Access::READ_OK)
            .map_err(|errno| AgentError::system("read", full.display(), errno))?;
        if meta.nlink() > 1 {
            let identity = (meta.dev(), meta.ino());
            if let Some(existing) = self.linked.get(&identity) {
                let existing = existing.clone();
                return Ok(EntryKind::HardLink { existing });
            }
            self.linked.insert(identity, path.to_owned());
        }
        // Small ones may lie in their inode, and some filesystems compress: a hole is more.
        if meta.blocks() * SECTOR + HOLE < meta.len() {
            self.odd.sparse.push(path.to_owned());
        }
        Ok(EntryKind::File {
            size: meta.len(),
            content: Content::File {
                path: path.to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_tree_is_listed_sorted_and_without_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("b")).unwrap();
        fs::write(at("b/two"), "22").unwrap();
        fs::write(at("b/one"), "1").unwrap();
        fs::hard_link(at("b/one"), at("c")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("a")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let listing = list_tree(dir.path()).unwrap();
        let text: Vec<String> = listing
            .entries
            .iter()
            .map(|entry| match &entry.kind {
                EntryKind::Directory => format!("{}/", entry.path),
                EntryKind::File { size, .. } => format!("{}={size}", entry.path),
                EntryKind::Symlink { target } => format!("{}->{target}", entry.path),
                EntryKind::HardLink { existing } => format!("{}=={existing}", entry.path),
            })
            .collect();
        assert_eq!(text, ["a->nowhere", "b/", "b/one=1", "b/two=2", "c==b/one"]);
        fs::File::create(at("b/holes"))
            .unwrap()
            .set_len(HOLE * 3)
            .unwrap();
        let odd = unsupported_metadata(dir.path()).unwrap();
        assert_eq!(
            (odd.special, odd.sparse),
            (vec!["socket".into()], vec!["b/holes".into()])
        );
    }

    #[test]
    fn a_missing_tree_is_named() {
        let error = list_tree(Path::new("/no/tree")).unwrap_err().to_string();
        assert!(error.contains("list /no/tree"), "{error}");
    }
}
