//! All candidates, and the way to find one by name. Each file of the directory `catalogue` is a
//! filesystem with its candidates, and the build script lists the files.

use crate::model::Candidate;
use std::sync::LazyLock;
use whichfs_units::UnknownName;

// `mod NAME;` of each file, and `FILES`: name of the file and its candidates, by name.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Every candidate, in the order in which reports list them.
static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
    let all = FILES.iter().flat_map(|(_, candidates)| *candidates);
    let mut all: Vec<Candidate> = all.copied().collect();
    all.sort_by_key(|candidate| candidate.rank);
    all
});

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCandidate {
    /// A filesystem that is known and no candidate.
    #[error(
        "unknown filesystem '{name}': {title} is no candidate; `whichfs fs why {known}` says why, \
         and what is instead"
    )]
    Elsewhere {
        /// The name that was asked for.
        name: String,
        /// The name that is known.
        known: String,
        /// What it is, in one line.
        title: String,
    },
    /// Nothing that is known.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
}

/// Every filesystem of the catalogue.
pub fn candidates() -> &'static [Candidate] {
    &CANDIDATES
}

/// The candidate called `name`, whatever the case of its letters.
///
/// # Errors
/// [`UnknownCandidate`] with the nearest names.
pub fn find(name: &str) -> Result<&'static Candidate, UnknownCandidate> {
    let wanted = name.to_lowercase();
    if let Some(found) = CANDIDATES.iter().find(|candidate| candidate.name == wanted) {
        return Ok(found);
    }
    if let Some(found) = crate::find_elsewhere(name) {
        let known = found.names.first().map_or(name, String::as_str).to_owned();
        return Err(UnknownCandidate::Elsewhere {
            name: name.to_owned(),
            known,
            title: found.title.clone(),
        });
    }
    let names: Vec<&str> = CANDIDATES.iter().map(|candidate| candidate.name).collect();
    let listed = Some("`whichfs fs list`");
    Err(UnknownName::new("filesystem", name, &names, listed).into())
}

/// The candidate of a trial that calls it `name`, which may say what of it is on a second card:
/// `ext4` of `ext4+journal`.
///
/// # Errors
/// As [`find`].
pub fn find_of_trial(name: &str) -> Result<&'static Candidate, UnknownCandidate> {
    let own = name.split(Candidate::SECOND_CARD).next();
    find(own.unwrap_or(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_no_candidate_is_told_where_it_is_explained() {
        for name in ["zfs", "ZFS", "bcachefs"] {
            let said = find(name).unwrap_err().to_string();
            let why = format!("`whichfs fs why {}`", name.to_lowercase());
            assert!(
                said.contains(&why) && !said.contains("did you mean"),
                "{said}"
            );
        }
        for far in ["foo", "fsck"] {
            let said = find(far).unwrap_err().to_string();
            assert!(said.ends_with("; `whichfs fs list` lists all"), "{said}");
        }
    }

    #[test]
    fn names_are_unique_and_findable() {
        let names: BTreeSet<_> = candidates()
            .iter()
            .map(|candidate| candidate.name)
            .collect();
        assert_eq!(names.len(), candidates().len());
        let ranks: BTreeSet<_> = candidates().iter().map(|found| found.rank).collect();
        assert_eq!(ranks.len(), candidates().len());
        for name in names {
            assert_eq!(find(name).unwrap().name, name);
        }
        assert_eq!(find("EXT4").unwrap().name, "ext4");
    }

    #[test]
    fn unknown_names_offer_the_nearest() {
        for (wrong, meant) in [
            ("ext44", "ext4"),
            ("btfs", "btrfs"),
            ("btrf", "btrfs"),
            ("f2f", "f2fs"),
            ("fat", "vfat"),
            ("fat32", "vfat"),
            ("squashfs-xy", "squashfs-xz"),
        ] {
            let said = find(wrong).unwrap_err().to_string();
            assert!(
                said.contains(&format!("; did you mean '{meant}'")),
                "{said}"
            );
        }
    }
}
