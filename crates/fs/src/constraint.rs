//! What a need may demand of a filesystem, and why one does not meet it.

use crate::model::{Candidate, CrashClass, Unfit};
use whichfs_units::Bytes;

/// A hard constraint: who does not meet it is out, however fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Windows reads and writes it without added software.
    Windows,
    /// macOS reads it without added software.
    Macos,
    /// Owners, groups and modes are stored.
    UnixPermissions,
    /// Symbolic links are stored.
    Symlinks,
    /// Hard links are stored.
    HardLinks,
    /// Extended attributes are stored.
    Xattrs,
    /// `a` and `A` are two files.
    CaseSensitive,
    /// Files can be written in place.
    Writable,
    /// The system cannot change it.
    ReadOnly,
    /// Structure survives a power cut without fsck ([`CrashClass`] other than `None`).
    PowerLoss,
    /// Files can be stamped up to the end of this year.
    StampsUntil(u64),
    /// Files can have this many bytes.
    FileOf(u64),
}

impl Constraint {
    /// Whether `candidate` meets it.
    pub fn is_met_by(&self, candidate: &Candidate) -> bool {
        let facts = candidate.facts();
        match *self {
            Constraint::Windows => facts.windows,
            Constraint::Macos => facts.macos,
            Constraint::UnixPermissions => facts.unix_permissions,
            Constraint::Symlinks => facts.symlinks,
            Constraint::HardLinks => facts.hard_links,
            Constraint::Xattrs => facts.xattrs,
            Constraint::CaseSensitive => facts.case_sensitive,
            Constraint::Writable => !facts.read_only,
            Constraint::ReadOnly => facts.read_only,
            Constraint::PowerLoss => facts.crash_class != CrashClass::None,
            // The last year is not whole: 2038 ends in January.
            Constraint::StampsUntil(year) => year < facts.y2038,
            Constraint::FileOf(bytes) => bytes <= facts.max_file_bytes,
        }
    }

    /// What is missing, and the word by which its source is found.
    fn lack(&self, candidate: &Candidate) -> (String, &'static str) {
        let facts = candidate.facts();
        let (text, claim) = match *self {
            Constraint::Windows => ("Windows has no driver for it", "Windows"),
            Constraint::Macos => ("macOS has no driver for it", "macOS"),
            Constraint::UnixPermissions => ("it stores no owners and modes", "permissions"),
            Constraint::Symlinks => ("it stores no symbolic links", "links"),
            Constraint::HardLinks => ("it stores no hard links", "links"),
            Constraint::Xattrs => ("it stores no extended attributes", "xattrs"),
            Constraint::CaseSensitive => ("`a` and `A` are one file on it", "case"),
            Constraint::Writable => ("it is a read-only image", "crash class"),
            Constraint::ReadOnly => ("it is written by the system that uses it", "crash class"),
            Constraint::PowerLoss => (
                "a power cut can leave it inconsistent until fsck mends it",
                "crash class",
            ),
            Constraint::StampsUntil(year) => {
                return (
                    format!("its times end in {}, {year} is needed", facts.y2038),
                    "last year",
                );
            }
            Constraint::FileOf(bytes) => {
                return (
                    format!(
                        "its files have at most {}, {} are needed",
                        Bytes(facts.max_file_bytes),
                        Bytes(bytes)
                    ),
                    "largest file",
                );
            }
        };
        (text.to_owned(), claim)
    }

    /// Why `candidate` is out, with the source; `None` if it meets the constraint.
    pub fn excludes(&self, candidate: &Candidate) -> Option<Unfit> {
        if self.is_met_by(candidate) {
            return None;
        }
        let (lack, claim) = self.lack(candidate);
        Some(Unfit {
            reason: format!("{}: {lack}", candidate.name),
            source: candidate.source_of(claim),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{candidates, find};
    use whichfs_units::GIB;

    const ALL: [Constraint; 12] = [
        Constraint::Windows,
        Constraint::Macos,
        Constraint::UnixPermissions,
        Constraint::Symlinks,
        Constraint::HardLinks,
        Constraint::Xattrs,
        Constraint::CaseSensitive,
        Constraint::Writable,
        Constraint::ReadOnly,
        Constraint::PowerLoss,
        Constraint::StampsUntil(2100),
        Constraint::FileOf(5 * GIB),
    ];

    #[test]
    fn every_exclusion_has_a_reason_and_a_source() {
        for constraint in ALL {
            let excluded: Vec<Unfit> = candidates()
                .iter()
                .filter_map(|c| constraint.excludes(c))
                .collect();
            assert!(!excluded.is_empty(), "{constraint:?} excludes nobody");
            assert!(
                excluded.len() < candidates().len(),
                "{constraint:?} excludes all"
            );
            for unfit in excluded {
                assert!(
                    !unfit.source.is_empty(),
                    "{constraint:?}: {unfit} without a source"
                );
            }
        }
    }

    #[test]
    fn times_and_sizes_are_compared_with_the_limit() {
        let excludes = |constraint: Constraint, name| constraint.excludes(find(name).unwrap());
        let why = excludes(Constraint::StampsUntil(2038), "ext2").unwrap();
        assert!(
            why.reason.contains("2038") && why.source.contains("S32_MAX"),
            "{why}"
        );
        assert_eq!(excludes(Constraint::StampsUntil(2037), "ext2"), None);
        assert_eq!(excludes(Constraint::FileOf(4 * GIB - 1), "vfat"), None);
        let why = excludes(Constraint::FileOf(4 * GIB), "vfat").unwrap();
        assert!(why.reason.contains("4 GiB"), "{why}");
    }
}
