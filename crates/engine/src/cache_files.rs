//! The cache as files: what it holds, and which entries go if it is too large.

use crate::error::{Error, Outcome};
use crate::places;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use whichfs_units::GIB;

/// Size up to which a clean-up keeps entries, where the user does not say.
pub const LIMIT_BYTES: u64 = 5 * GIB;

/// Entries younger than this may be of a run that has just begun to use them.
const KEPT: Duration = Duration::from_secs(3600);

/// Directories of the cache, what is in them, and whether it may be removed.
pub const KINDS: [(&str, &str, bool); 7] = [
    ("images", "images of read-only filesystems", true),
    ("trees", "generated trees that images are made of", true),
    (
        "posterior",
        "what is inferred of cards from what is known of them",
        true,
    ),
    ("plans", "cards and boards of planned trials", true),
    ("kernel", "lab kernels and what they are built of", false),
    ("userland", "sealed userlands", false),
    (
        "spill",
        "contents of modelled cards beyond memory (unlinked files)",
        false,
    ),
];

/// An entry of the cache: a file or a directory with the files beside it that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// Name of its kind in [`KINDS`].
    pub kind: &'static str,
    /// Its files and directories.
    pub paths: Vec<PathBuf>,
    /// Bytes that they take on disk.
    pub bytes: u64,
    /// When it was last written or read, as far as the filesystem says.
    pub used: SystemTime,
}

/// All entries of the cache in `directory`.
///
/// # Errors
/// It cannot be read.
pub fn entries(directory: &Path) -> Outcome<Vec<CacheEntry>> {
    let mut all = Vec::new();
    for (kind, ..) in KINDS {
        let place = directory.join(kind);
        let mut found: BTreeMap<String, CacheEntry> = BTreeMap::new();
        for path in list(&place)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let own = name.split('.').next().unwrap_or_default().to_owned();
            let (bytes, used) = measured(&path);
            let entry = found.entry(own).or_insert_with(|| CacheEntry {
                kind,
                paths: Vec::new(),
                bytes: 0,
                used,
            });
            entry.paths.push(path);
            entry.bytes += bytes;
            entry.used = entry.used.max(used);
        }
        all.extend(found.into_values());
    }
    Ok(all)
}

/// Removes entries that can be made again, the longest unused first, until the cache of this user
/// has at most `limit` bytes; gives those that it removed.
///
/// # Errors
/// The cache cannot be read, or an entry cannot be removed.
pub fn clean_up(limit: u64) -> Outcome<Vec<CacheEntry>> {
    let all = entries(&places::cache()?)?;
    let unwanted = unwanted(all, limit, SystemTime::now());
    for path in unwanted.iter().flat_map(|entry| &entry.paths) {
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        removed.map_err(|error| {
            let path = path.display();
            Error::environment(format!("cannot remove {path}: {error}; remove it yourself"))
        })?;
    }
    Ok(unwanted)
}

/// The entries that go so that the others have at most `limit` bytes, at the time `now`.
fn unwanted(all: Vec<CacheEntry>, limit: u64, now: SystemTime) -> Vec<CacheEntry> {
    let mut bytes: u64 = all.iter().map(|entry| entry.bytes).sum();
    let may_go = |entry: &CacheEntry| {
        let removable = KINDS
            .iter()
            .any(|(kind, _, removable)| *kind == entry.kind && *removable);
        removable && now.duration_since(entry.used).is_ok_and(|age| age >= KEPT)
    };
    let mut candidates: Vec<CacheEntry> = all.into_iter().filter(may_go).collect();
    candidates.sort_by_key(|entry| entry.used);
    let mut gone = Vec::new();
    for entry in candidates {
        if bytes <= limit {
            break;
        }
        bytes -= entry.bytes;
        gone.push(entry);
    }
    gone
}

/// What is in `directory`, by name; nothing if there is none.
fn list(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let fail = |error: std::io::Error| {
        let place = directory.display();
        Error::environment(format!("cannot read {place}: {error}; make it readable"))
    };
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(directory).map_err(fail)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|one| one.path())).collect();
    let mut paths = paths.map_err(fail)?;
    paths.sort();
    Ok(paths)
}

/// Bytes on disk of `path` and all below it, and when it was last used; what vanishes counts as
/// nothing.
fn measured(path: &Path) -> (u64, SystemTime) {
    /// Bytes of a block of `st_blocks`.
    const BLOCK: u64 = 512;
    let Ok(meta) = path.symlink_metadata() else {
        return (0, SystemTime::UNIX_EPOCH);
    };
    let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let used = meta.accessed().map_or(modified, |read| read.max(modified));
    let below = match meta.is_dir() {
        true => list(path).unwrap_or_default(),
        false => Vec::new(),
    };
    let inside: u64 = below.iter().map(|path| measured(path).0).sum();
    (meta.blocks() * BLOCK + inside, used)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(kind: &'static str, bytes: u64, hours_unused: u64) -> CacheEntry {
        let age = Duration::from_secs(3600 * hours_unused);
        CacheEntry {
            kind,
            paths: vec![PathBuf::from(format!("{kind}-{hours_unused}"))],
            bytes,
            used: SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30) - age,
        }
    }

    #[test]
    fn the_longest_unused_entries_go_until_the_limit_holds() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        let all = vec![
            entry("images", 10, 2),
            entry("images", 10, 9),
            entry("trees", 10, 5),
            entry("kernel", 10, 99),
            entry("images", 10, 0),
        ];
        let gone = |limit| {
            let gone = unwanted(all.clone(), limit, now);
            gone.iter()
                .map(|one| one.paths[0].display().to_string())
                .collect::<Vec<_>>()
        };
        assert!(gone(50).is_empty());
        assert_eq!(gone(49), ["images-9"]);
        assert_eq!(gone(30), ["images-9", "trees-5"]);
        // The kernel is dear, and the youngest may be in use.
        assert_eq!(gone(0), ["images-9", "trees-5", "images-2"]);
    }

    #[test]
    fn files_of_one_name_are_one_entry() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("images")).unwrap();
        for (name, bytes) in [("a.img", 9000), ("a.img.sha256", 64), ("b.img", 9000)] {
            std::fs::write(directory.path().join("images").join(name), vec![7; bytes]).unwrap();
        }
        let found = entries(directory.path()).unwrap();
        let files: Vec<usize> = found.iter().map(|entry| entry.paths.len()).collect();
        assert_eq!(files, [2, 1]);
        assert!(entries(&directory.path().join("none")).unwrap().is_empty());
    }
}
