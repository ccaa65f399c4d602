//! The catalogue's facts as the verdict's rules read them: each with its source.

use whichfs_fs::{Candidate, CrashClass};
use whichfs_study::{CandidateFacts, Sourced};

/// The facts of `candidate`.
pub fn of(candidate: &Candidate) -> CandidateFacts {
    let facts = candidate.facts();
    let source = |claim: &str| candidate.source_of(claim).to_owned();
    let flag = |value: bool, claim: &str| Sourced::new(value, source(claim));
    CandidateFacts {
        name: candidate.name.to_owned(),
        title: candidate.title.to_owned(),
        unix_permissions: flag(facts.unix_permissions, "permissions"),
        symlinks: flag(facts.symlinks, "symlinks"),
        hard_links: flag(facts.hard_links, "hard links"),
        xattrs: flag(facts.xattrs, "attributes"),
        case_sensitive: flag(facts.case_sensitive, "case"),
        windows: flag(facts.windows, "Windows"),
        macos: flag(facts.macos, "macOS"),
        read_only: flag(facts.read_only, "read-only"),
        max_file_bytes: Sourced::new(facts.max_file_bytes, source("largest file")),
        min_bytes: Sourced::new(facts.min_bytes, source("minimum size")),
        last_year: Sourced::new(
            u32::try_from(facts.y2038).unwrap_or(u32::MAX),
            source("last year"),
        ),
        compression: flag(facts.compression, "compress"),
        snapshots: flag(facts.snapshots, "snapshot"),
        crash_class: Sourced::new(crash_class(facts.crash_class), source("crash")),
        in_current_linux: Sourced::new(facts.in_current_linux, source_of_presence(candidate)),
    }
}

/// Where it stands that a filesystem is, or is no longer, in the newest kernels.
fn source_of_presence(candidate: &Candidate) -> String {
    match candidate.source_of("current Linux") {
        "" => "the lab's kernel source has it, and no removal is announced there".to_owned(),
        source => source.to_owned(),
    }
}

fn crash_class(class: CrashClass) -> whichfs_study::CrashClass {
    match class {
        CrashClass::Journaled => whichfs_study::CrashClass::Journaled,
        CrashClass::Cow => whichfs_study::CrashClass::Cow,
        CrashClass::Log => whichfs_study::CrashClass::Log,
        CrashClass::None => whichfs_study::CrashClass::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_rules_ask_for_have_their_sources() {
        for candidate in whichfs_fs::candidates() {
            let facts = of(candidate);
            for (what, source) in [
                ("crash class", &facts.crash_class.source),
                ("largest file", &facts.max_file_bytes.source),
                ("minimum size", &facts.min_bytes.source),
                ("Windows", &facts.windows.source),
            ] {
                assert!(
                    !source.is_empty(),
                    "{}: no source for {what}",
                    candidate.name
                );
            }
        }
    }
}
