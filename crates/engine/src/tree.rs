//! The user's own tree (`--tree`): its digest, which is part of a trial's identity.

use crate::digest::hex;
use crate::error::{Error, Outcome};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use whichfs_workload::{Listing, Workload};

/// The directory `tree` that the user named, by its whole path.
pub fn absolute(tree: &Path) -> Outcome<PathBuf> {
    let path = tree.canonicalize().map_err(|e| {
        let tree = tree.display();
        Error::input(format!(
            "tree {tree}: {e}; name a directory that can be read"
        ))
    })?;
    if !path.is_dir() {
        return Err(Error::input(format!(
            "tree {}: not a directory; name one",
            tree.display()
        )));
    }
    Ok(path)
}

/// Lists the tree at `root`, which `workload` must agree to, and digests names, kinds, sizes
/// and contents.
pub fn digest(root: &Path, workload: &dyn Workload) -> Outcome<String> {
    let listing: Listing = whichfs_agent::list_tree(root).map_err(Error::input)?;
    workload
        .check_tree(&listing)
        .map_err(|e| Error::input(format!("tree {}: {e}", root.display())))?;
    let mut hash = Sha256::new();
    for entry in &listing.entries {
        let line = format!("{entry:?}\n");
        hash.update(line.as_bytes());
        let path = root.join(&entry.path);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            content(&path, &mut hash)?;
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Says what of the tree at `root` trials do not write as it is there.
pub fn tell_odd(root: &Path) -> Outcome {
    let odd = whichfs_agent::unsupported_metadata(root).map_err(Error::input)?;
    for said in sentences(&odd) {
        log::warn!("note: tree {}: {said}", root.display());
    }
    Ok(())
}

fn sentences(odd: &whichfs_agent::UnsupportedMetadata) -> Vec<String> {
    let named = |what: &str, all: &[String]| {
        let (first, number) = (all.first()?, all.len());
        Some(match number {
            1 => format!("{what}: {first}"),
            _ => format!("{what}: {first} and {} more", number - 1),
        })
    };
    let special = named("left out, for it is a socket, pipe or device", &odd.special);
    let sparse = named("written whole, though it has holes", &odd.sparse);
    special.into_iter().chain(sparse).collect()
}

/// Checks that the tree at `root` still has `digest`: what was made of it meanwhile is worth
/// nothing otherwise.
///
/// # Errors
/// If it has changed, with the remedy.
pub fn check_unchanged(root: &Path, workload: &dyn Workload, digest: &str) -> Outcome {
    if self::digest(root, workload)? == digest {
        return Ok(());
    }
    Err(Error::input(format!(
        "tree {}: it has changed since the run began; let whatever writes to it end, then run \
         the same command again (finished trials of the same tree are kept)",
        root.display()
    )))
}

pub(crate) fn content(path: &Path, hash: &mut Sha256) -> Outcome {
    let cannot = |e| Error::input(format!("tree: cannot read {}: {e}", path.display()));
    let mut file = File::open(path).map_err(cannot)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(cannot)? {
            0 => return Ok(()),
            read => hash.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_not_written_as_it_is_there_is_named() {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect();
        let odd = whichfs_agent::UnsupportedMetadata {
            special: names(&["dev/console", "dev/null", "run/x"]),
            sparse: names(&["disk.img"]),
        };
        let said = sentences(&odd);
        assert!(
            said[0].ends_with("device: dev/console and 2 more"),
            "{said:?}"
        );
        assert!(said[1].ends_with("holes: disk.img"), "{said:?}");
        assert!(sentences(&whichfs_agent::UnsupportedMetadata::default()).is_empty());
    }

    #[test]
    fn one_changed_byte_changes_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "one").unwrap();
        let digest = |path: &Path| digest(path, whichfs_workload::find("rootfs").unwrap());
        let before = digest(dir.path()).unwrap();
        assert_eq!(before, digest(dir.path()).unwrap());
        let workload = whichfs_workload::find("rootfs").unwrap();
        check_unchanged(dir.path(), workload, &before).unwrap();
        std::fs::write(dir.path().join("a"), "two").unwrap();
        let failure = check_unchanged(dir.path(), workload, &before).unwrap_err();
        assert!(failure.message.contains("has changed"), "{failure}");
        assert_ne!(before, digest(dir.path()).unwrap());
        assert!(digest(&dir.path().join("none")).is_err());
        std::fs::create_dir(dir.path().join("whichfs-database")).unwrap();
        let refused = digest(dir.path()).unwrap_err();
        assert!(refused.message.contains("tree "), "{refused}");
    }
}
