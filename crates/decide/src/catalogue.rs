//! The catalogue's facts as the verdict's rules read them: each with its source.

use crate::facts::{CandidateFacts, SeenMemory, Sourced};
use whichfs_fs::{Candidate, Matter};

/// The facts of the candidates of these names; of all, if none is named. One with a second card
/// (`ext4+journal`) has those of its filesystem.
pub fn of_those(wanted: &[String]) -> Vec<CandidateFacts> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let all = whichfs_fs::candidates().iter();
    let with_second_card = wanted.iter().filter_map(|name| {
        let candidate = whichfs_fs::find_of_trial(name).ok()?;
        (candidate.name != name).then(|| CandidateFacts {
            name: name.clone(),
            ..of(candidate)
        })
    });
    all.filter(|candidate| is_wanted(candidate.name))
        .map(of)
        .chain(with_second_card)
        .collect()
}

/// The facts of `candidate`.
pub fn of(candidate: &Candidate) -> CandidateFacts {
    let facts = candidate.facts();
    let source = |claim: &str| source_of(candidate, claim);
    let flag = |value: bool, claim: &str| Sourced::new(value, source(claim));
    CandidateFacts {
        name: candidate.name.to_owned(),
        title: candidate.title.to_owned(),
        unix_permissions: flag(facts.unix_permissions, "permissions"),
        symlinks: flag(facts.symlinks, "links"),
        hard_links: flag(facts.hard_links, "links"),
        xattrs: flag(facts.xattrs, "xattrs"),
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
        crash_class: Sourced::new(facts.crash_class, source("crash")),
        mounts_after_cut: flag(facts.mounts_after_cut, "after a power cut"),
        in_current_linux: Sourced::new(facts.in_current_linux, source("current Linux")),
        // Access control lists are no matter of any rule: a kernel without them will do.
        kernel_options: Sourced::new(
            facts.needed_options().map(str::to_owned).collect(),
            KERNEL_OPTIONS_SOURCE,
        ),
        xattr_options: facts.xattr_options().map(str::to_owned).collect(),
        memory: Sourced::new(MEMORY, MEMORY_SOURCE),
        licences: licences(candidate.name),
        care: whichfs_fs::care(candidate.name).clone(),
    }
}

/// Where the kernel options of all candidates are from.
pub const KERNEL_OPTIONS_SOURCE: &str = "Linux 6.12 fs/Kconfig and those that it includes";

/// Every candidate was seen to work in the memory of the smallest board that the lab models.
const MEMORY: SeenMemory = SeenMemory {
    works: 64 << 20,
    fails: None,
};
const MEMORY_SOURCE: &str = "whichfs choose --board FILE with memory.mib = 64: no trial of \
     exchange or rootfs-readonly failed";

/// The licences of the candidate's driver and tools, where they are told.
fn licences(name: &str) -> Sourced<Vec<String>> {
    let all = whichfs_fs::licences(name).into_iter().map(str::to_owned);
    let told = whichfs_fs::care(name).get(&Matter::Licence);
    Sourced::new(all.collect(), told.map_or("", |care| care.source.as_str()))
}

/// The source of a claim: the candidate's own, or what holds for all that name none.
fn source_of(candidate: &Candidate, claim: &str) -> String {
    let own = candidate.source_of(claim);
    if !own.is_empty() {
        return own.to_owned();
    }
    let usual = USUAL_SOURCES.iter().find(|(usual, _)| *usual == claim);
    usual.map_or_else(String::new, |(_, source)| (*source).to_owned())
}

/// Claims that most candidates share, and where they are from.
const USUAL_SOURCES: [(&str, &str); 6] = [
    (
        "case",
        "Linux 6.12 fs/dcache.c: names are compared byte by byte unless the filesystem does it",
    ),
    (
        "read-only",
        "the lab's kernel mounts and writes it in every trial",
    ),
    ("compress", "none among its mkfs and mount options"),
    ("snapshot", "none among its tools and mount options"),
    (
        "after a power cut",
        "whichfs crash run: the lab's kernel mounts it after every cut",
    ),
    (
        "current Linux",
        "the lab's kernel source has it, and no removal is announced there",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;

    #[test]
    fn every_fact_that_a_rule_may_ask_for_has_its_source() {
        for candidate in whichfs_fs::candidates() {
            let facts = of(candidate);
            for fact in Fact::all() {
                let source = fact.source(&facts);
                let what = fact.name();
                assert!(
                    !source.is_empty(),
                    "{}: no source for {what}",
                    candidate.name
                );
            }
        }
    }
}
