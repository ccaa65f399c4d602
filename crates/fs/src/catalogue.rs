//! All candidates, and the way to find one by name. Each file of the directory `catalogue` is a
//! filesystem with its candidates, and the build script lists the files.

use crate::model::Candidate;
use std::sync::LazyLock;

// `mod NAME;` of each file, and `FILES`: name of the file and its candidates, by name.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Every candidate, in the order in which reports list them.
static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
    let all = FILES.iter().flat_map(|(_, candidates)| *candidates);
    let mut all: Vec<Candidate> = all.copied().collect();
    all.sort_by_key(|candidate| candidate.rank);
    all
});

/// Names offered for an unknown one.
const SUGGESTIONS: usize = 3;
/// Similarity (Jaro-Winkler, 0 to 1) below which a name is no suggestion.
const SIMILAR_ENOUGH: f64 = 0.75;

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no filesystem is called `{name}`{}", self.hint())]
pub struct UnknownCandidate {
    /// The name that was asked for.
    pub name: String,
    /// The nearest names, best first; empty if none is near.
    pub nearest: Vec<&'static str>,
}

impl UnknownCandidate {
    fn hint(&self) -> String {
        if let Some(known) = crate::find_elsewhere(&self.name) {
            return format!(
                ": {} is no candidate; `whichfs fs why {}` says why, and what is instead",
                known.title,
                known
                    .names
                    .first()
                    .map_or(self.name.as_str(), String::as_str)
            );
        }
        if self.nearest.is_empty() {
            return "; `whichfs fs list` names all".to_owned();
        }
        format!("; did you mean {}?", self.nearest.join(", "))
    }
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
    let mut near: Vec<(f64, &'static str)> = CANDIDATES
        .iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&wanted, candidate.name),
                candidate.name,
            )
        })
        .filter(|(similarity, _)| *similarity >= SIMILAR_ENOUGH)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.truncate(SUGGESTIONS);
    Err(UnknownCandidate {
        name: name.to_owned(),
        nearest: near.into_iter().map(|(_, name)| name).collect(),
    })
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
        let said = find("ext5").unwrap_err().to_string();
        assert!(said.contains("did you mean ext"), "{said}");
        for (wrong, meant) in [("fat32", "vfat"), ("ntfs", "ntfs3"), ("btrf", "btrfs")] {
            let nearest = find(wrong).unwrap_err().nearest;
            assert_eq!(nearest.first(), Some(&meant), "{wrong}");
        }
        for far in ["foo", "fsck"] {
            let said = find(far).unwrap_err().to_string();
            assert!(said.contains("`whichfs fs list` names all"), "{said}");
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
        let check = |name: &str, first: &str| {
            assert_eq!(
                find(name).unwrap_err().nearest.first(),
                Some(&first),
                "{name}"
            );
        };
        check("ext44", "ext4");
        check("btfs", "btrfs");
        check("f2f", "f2fs");
        check("fat", "vfat");
        check("squashfs-xy", "squashfs-xz");
        let far = find("qqq").unwrap_err();
        assert!(far.nearest.is_empty());
        assert!(far.to_string().contains("whichfs fs list"), "{far}");
    }
}
