//! Lists a tree of the user, sorted, so that every trial sees the same order.

use crate::error::Error;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use whichfs_workload::{Content, Entry, Kind, Listing};

/// Bytes of a block as `stat` counts them.
const SECTOR: u64 = 512;
/// Bytes that a file lacks at least on the disk to be told as one with holes.
const HOLE: u64 = 1 << 20;

/// Lists what is below `root`: directories, files, links. Sockets, pipes and devices are
/// left out.
///
/// # Errors
/// The first directory or file that cannot be read, or whose name is not UTF-8.
pub fn list_tree(root: &Path) -> Result<Listing, Error> {
    Ok(walked(root)?.0)
}

/// What is below `root` that a trial does not write as it is there.
///
/// # Errors
/// As [`list_tree`].
pub fn unsupported_metadata(root: &Path) -> Result<UnsupportedMetadata, Error> {
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

fn walked(root: &Path) -> Result<(Listing, UnsupportedMetadata), Error> {
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
    entries: Vec<Entry>,
    /// First path of each file that has several, by device and inode.
    linked: BTreeMap<(u64, u64), String>,
    odd: UnsupportedMetadata,
}

impl Walk<'_> {
    /// Appends what is below `dir`, each directory before its content.
    fn directory(&mut self, dir: &str) -> Result<(), Error> {
        let full = self.root.join(dir);
        let fail = |error: &std::io::Error| Error::io("list", full.display(), error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&full).map_err(|error| fail(&error))? {
            let name = entry.map_err(|error| fail(&error))?.file_name();
            let name = name.into_string().map_err(|name| {
                let path = full.join(&name);
                Error::new(format!("{}: the name is not UTF-8", path.display()))
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

    fn entry(&mut self, path: String) -> Result<(), Error> {
        let full = self.root.join(&path);
        let meta = fs::symlink_metadata(&full)
            .map_err(|error| Error::io("stat", full.display(), &error))?;
        let mode = meta.mode() & 0o7777;
        let kind = if meta.is_dir() {
            let kind = Kind::Directory;
            self.entries.push(Entry {
                path: path.clone(),
                mode,
                kind,
            });
            return self.directory(&path);
        } else if meta.is_symlink() {
            let target = fs::read_link(&full)
                .map_err(|error| Error::io("read link", full.display(), &error))?;
            let target = target
                .into_os_string()
                .into_string()
                .map_err(|_| Error::new(format!("{}: its target is not UTF-8", full.display())))?;
            Kind::Symlink { target }
        } else if meta.is_file() {
            self.file(&path, &full, &meta)?
        } else {
            self.odd.special.push(path);
            return Ok(());
        };
        self.entries.push(Entry { path, mode, kind });
        Ok(())
    }

    fn file(&mut self, path: &str, full: &Path, meta: &Metadata) -> Result<Kind, Error> {
        rustix::fs::access(full, rustix::fs::Access::READ_OK)
            .map_err(|errno| Error::system("read", full.display(), errno))?;
        if meta.nlink() > 1 {
            let identity = (meta.dev(), meta.ino());
            if let Some(existing) = self.linked.get(&identity) {
                let existing = existing.clone();
                return Ok(Kind::HardLink { existing });
            }
            self.linked.insert(identity, path.to_owned());
        }
        // Small ones may lie in their inode, and some filesystems compress: a hole is more.
        if meta.blocks() * SECTOR + HOLE < meta.len() {
            self.odd.sparse.push(path.to_owned());
        }
        Ok(Kind::File {
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
                Kind::Directory => format!("{}/", entry.path),
                Kind::File { size, .. } => format!("{}={size}", entry.path),
                Kind::Symlink { target } => format!("{}->{target}", entry.path),
                Kind::HardLink { existing } => format!("{}=={existing}", entry.path),
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
