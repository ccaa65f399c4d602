//! What a hard rule may ask of a candidate, each fact with its source.

use crate::need::Condition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use whichfs_fs::{Can, Care, CrashClass, Matter};

/// A fact and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sourced<T> {
    /// What the source states.
    pub value: T,
    /// Document, manual page or source file that says so.
    pub source: String,
}

impl<T> Sourced<T> {
    /// `value` as `source` states it.
    pub fn new(value: T, source: impl Into<String>) -> Sourced<T> {
        Sourced {
            value,
            source: source.into(),
        }
    }
}

/// In how much memory a filesystem was seen to work, and to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenMemory {
    /// Smallest memory in which it was seen to work, in bytes.
    pub works: u64,
    /// Largest memory in which it was seen to fail, in bytes; none if it never was.
    pub fails: Option<u64>,
}

impl SeenMemory {
    /// Whether it works in `bytes`; none where nobody tried that.
    pub fn works_in(self, bytes: u64) -> Option<bool> {
        match self.fails {
            Some(fails) if bytes <= fails => Some(false),
            _ if bytes >= self.works => Some(true),
            _ => None,
        }
    }
}

/// What is known of a candidate before any trial; the command fills it from the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateFacts {
    /// Candidate name, for example `ext4-nojournal`.
    pub name: String,
    /// Title for people, for example `ext4 without journal`.
    pub title: String,
    /// Keeps owners and permission bits.
    pub unix_permissions: Sourced<bool>,
    /// Keeps symbolic links.
    pub symlinks: Sourced<bool>,
    /// Keeps hard links.
    pub hard_links: Sourced<bool>,
    /// Keeps extended attributes.
    pub xattrs: Sourced<bool>,
    /// `a` and `A` are two files.
    pub case_sensitive: Sourced<bool>,
    /// Windows reads and writes it without added software.
    pub windows: Sourced<bool>,
    /// macOS reads it without added software.
    pub macos: Sourced<bool>,
    /// It can only be mounted read-only: its content is built beforehand.
    pub read_only: Sourced<bool>,
    /// Largest file in bytes.
    pub max_file_bytes: Sourced<u64>,
    /// Smallest partition it can be made on, in bytes.
    pub min_bytes: Sourced<u64>,
    /// Last year whose dates it can store.
    pub last_year: Sourced<u32>,
    /// Compresses content.
    pub compression: Sourced<bool>,
    /// Takes snapshots.
    pub snapshots: Sourced<bool>,
    /// What survives a power cut.
    pub crash_class: Sourced<CrashClass>,
    /// After a power cut it is mounted for writing without a repair before.
    pub mounts_after_cut: Sourced<bool>,
    /// The newest kernels still have it.
    pub in_current_linux: Sourced<bool>,
    /// Kernel options without which it cannot be mounted (`CONFIG_…`).
    pub kernel_options: Sourced<Vec<String>>,
    /// Kernel options that it needs where the need asks for extended attributes.
    pub xattr_options: Vec<String>,
    /// In how much memory it works and fails, as far as that was tried.
    pub memory: Sourced<SeenMemory>,
    /// SPDX identifiers of the licences of its driver and tools.
    pub licences: Sourced<Vec<String>>,
    /// What can be done with it over its life.
    pub care: BTreeMap<Matter, Care>,
}

/// A fact that a rule can test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields of CandidateFacts say it")]
pub enum Fact {
    UnixPermissions,
    Symlinks,
    HardLinks,
    Xattrs,
    CaseSensitive,
    Windows,
    Macos,
    ReadOnly,
    MaxFileBytes,
    MinBytes,
    LastYear,
    Compression,
    Snapshots,
    CrashClass,
    MountsAfterCut,
    InCurrentLinux,
    KernelOptions,
    MemoryBytes,
    /// What one does with a filesystem over its life, and what must know it.
    Care(Matter),
}

/// The value of a fact, whatever its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Flag(bool),
    Number(u64),
    Class(CrashClass),
    Options(&'a [String]),
    Can(Can),
    Memory(SeenMemory),
}

impl Fact {
    /// Facts that are no matter of care.
    const OWN: [Fact; 18] = [
        Fact::UnixPermissions,
        Fact::Symlinks,
        Fact::HardLinks,
        Fact::Xattrs,
        Fact::CaseSensitive,
        Fact::Windows,
        Fact::Macos,
        Fact::ReadOnly,
        Fact::MaxFileBytes,
        Fact::MinBytes,
        Fact::LastYear,
        Fact::Compression,
        Fact::Snapshots,
        Fact::CrashClass,
        Fact::MountsAfterCut,
        Fact::InCurrentLinux,
        Fact::KernelOptions,
        Fact::MemoryBytes,
    ];

    /// All of them, in the order in which rules are reported.
    pub fn all() -> impl Iterator<Item = Fact> {
        let care = Matter::ALL.into_iter().map(Fact::Care);
        Fact::OWN.into_iter().chain(care)
    }

    /// The fact called `name`.
    pub fn from_name(name: &str) -> Option<Fact> {
        Fact::all().find(|fact| fact.name() == name)
    }

    /// The name as in need files and after `--need`.
    pub fn name(self) -> &'static str {
        match self {
            Fact::UnixPermissions => "unix_permissions",
            Fact::Symlinks => "symlinks",
            Fact::HardLinks => "hard_links",
            Fact::Xattrs => "xattrs",
            Fact::CaseSensitive => "case_sensitive",
            Fact::Windows => "windows",
            Fact::Macos => "macos",
            Fact::ReadOnly => "read_only",
            Fact::MaxFileBytes => "max_file_bytes",
            Fact::MinBytes => "min_bytes",
            Fact::LastYear => "last_year",
            Fact::Compression => "compression",
            Fact::Snapshots => "snapshots",
            Fact::CrashClass => "crash_class",
            Fact::MountsAfterCut => "mounts_after_cut",
            Fact::InCurrentLinux => "in_current_linux",
            Fact::KernelOptions => "kernel_options",
            Fact::MemoryBytes => "memory_bytes",
            Fact::Care(matter) => matter.name(),
        }
    }

    /// True for facts that are yes or no.
    pub(crate) fn is_flag(self) -> bool {
        !self.is_number() && !self.is_list() && self != Fact::CrashClass
    }

    /// True for what can be done mounted, unmounted or not at all.
    pub(crate) fn is_care(self) -> bool {
        matches!(self, Fact::Care(_)) && !self.is_list()
    }

    /// True for what is a list, of which a rule says what may be in it.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Fact::KernelOptions | Fact::Care(Matter::Licence))
    }

    /// True for facts that are counts.
    pub(crate) fn is_number(self) -> bool {
        self.is_at_most() || matches!(self, Fact::MaxFileBytes | Fact::LastYear)
    }

    /// True for counts of which less is better.
    pub(crate) fn is_at_most(self) -> bool {
        matches!(self, Fact::MinBytes | Fact::MemoryBytes)
    }

    /// Where the candidate's value comes from.
    pub fn source(self, facts: &CandidateFacts) -> &str {
        self.of(facts).1
    }

    /// The candidate's value and its source. What nobody stated cannot be done.
    pub(crate) fn of(self, facts: &CandidateFacts) -> (Value<'_>, &str) {
        let flag = |f: &'_ Sourced<bool>| Value::Flag(f.value);
        match self {
            Fact::UnixPermissions => (
                flag(&facts.unix_permissions),
                &facts.unix_permissions.source,
            ),
            Fact::Symlinks => (flag(&facts.symlinks), &facts.symlinks.source),
            Fact::HardLinks => (flag(&facts.hard_links), &facts.hard_links.source),
            Fact::Xattrs => (flag(&facts.xattrs), &facts.xattrs.source),
            Fact::CaseSensitive => (flag(&facts.case_sensitive), &facts.case_sensitive.source),
            Fact::Windows => (flag(&facts.windows), &facts.windows.source),
            Fact::Macos => (flag(&facts.macos), &facts.macos.source),
            Fact::ReadOnly => (flag(&facts.read_only), &facts.read_only.source),
            Fact::Compression => (flag(&facts.compression), &facts.compression.source),
            Fact::Snapshots => (flag(&facts.snapshots), &facts.snapshots.source),
            Fact::MountsAfterCut => (
                flag(&facts.mounts_after_cut),
                &facts.mounts_after_cut.source,
            ),
            Fact::InCurrentLinux => (
                flag(&facts.in_current_linux),
                &facts.in_current_linux.source,
            ),
            Fact::MaxFileBytes => (
                Value::Number(facts.max_file_bytes.value),
                &facts.max_file_bytes.source,
            ),
            Fact::MinBytes => (
                Value::Number(facts.min_bytes.value),
                &facts.min_bytes.source,
            ),
            Fact::MemoryBytes => (Value::Memory(facts.memory.value), &facts.memory.source),
            Fact::LastYear => (
                Value::Number(u64::from(facts.last_year.value)),
                &facts.last_year.source,
            ),
            Fact::CrashClass => (
                Value::Class(facts.crash_class.value),
                &facts.crash_class.source,
            ),
            Fact::KernelOptions => (
                Value::Options(&facts.kernel_options.value),
                &facts.kernel_options.source,
            ),
            Fact::Care(Matter::Licence) => (
                Value::Options(&facts.licences.value),
                &facts.licences.source,
            ),
            Fact::Care(matter) => match facts.care.get(&matter) {
                Some(care) => (Value::Can(care.can), &care.source),
                None => (Value::Can(Can::No), ""),
            },
        }
    }

    /// What a candidate for which this fact is true, or is not, is like.
    fn phrases(self) -> (&'static str, &'static str) {
        match self {
            Fact::UnixPermissions => ("keeps Unix permissions", "keeps no Unix permissions"),
            Fact::Symlinks => ("keeps symbolic links", "keeps no symbolic links"),
            Fact::HardLinks => ("keeps hard links", "keeps no hard links"),
            Fact::Xattrs => ("keeps extended attributes", "keeps no extended attributes"),
            Fact::CaseSensitive => (
                "tells upper from lower case",
                "does not tell upper from lower case",
            ),
            Fact::Windows => ("is read by Windows", "is not read by Windows"),
            Fact::Macos => ("is read by macOS", "is not read by macOS"),
            Fact::ReadOnly => ("can only be read", "can be written"),
            Fact::Compression => ("compresses", "does not compress"),
            Fact::Snapshots => ("takes snapshots", "takes no snapshots"),
            Fact::MountsAfterCut => (
                "mounts after a power cut",
                "does not mount after a power cut until it is repaired",
            ),
            Fact::InCurrentLinux => (
                "is in the newest kernels",
                "is no longer in the newest kernels",
            ),
            Fact::Care(matter) => matter.phrases(),
            Fact::MaxFileBytes
            | Fact::MinBytes
            | Fact::LastYear
            | Fact::CrashClass
            | Fact::KernelOptions
            | Fact::MemoryBytes => ("", ""),
        }
    }

    /// What a candidate with this value is like, for the sentence "vfat …".
    pub(crate) fn phrase(self, value: Value<'_>) -> String {
        let (yes, no) = self.phrases();
        match value {
            Value::Flag(true) | Value::Can(Can::Yes) => yes.to_owned(),
            Value::Flag(false) | Value::Can(Can::No) => no.to_owned(),
            Value::Can(Can::Online) => format!("{yes} while it is mounted"),
            Value::Can(Can::Offline) => format!("{yes} only while it is not mounted"),
            Value::Class(CrashClass::None) => {
                "does not protect itself against power cuts".to_owned()
            }
            Value::Class(class) => format!("is of the crash class {}", class.word()),
            Value::Options(options) => match self {
                Fact::KernelOptions => format!("needs {}", options.join(" and ")),
                _ => format!("is under {}", options.join(" and ")),
            },
            Value::Memory(memory) => match memory.fails {
                Some(fails) => format!("fails in a memory of {}", whichfs_units::Bytes(fails)),
                None => format!(
                    "works in a memory of {}",
                    whichfs_units::Bytes(memory.works)
                ),
            },
            Value::Number(n) => match self {
                Fact::LastYear => format!("stores dates up to {n} only"),
                Fact::MinBytes => format!("needs a partition of {}", whichfs_units::Bytes(n)),
                _ => format!("holds files up to {} only", whichfs_units::Bytes(n)),
            },
        }
    }

    /// What a rule with this condition wants, as what a candidate must be like.
    pub(crate) fn wanted(self, condition: &Condition) -> String {
        let (yes, no) = self.phrases();
        match condition {
            Condition::Is(true) => yes.to_owned(),
            Condition::Is(false) => no.to_owned(),
            Condition::Online => format!("{yes} while it is mounted"),
            Condition::Not(CrashClass::None) => "protects itself against power cuts".to_owned(),
            Condition::Not(class) => format!("is not of the crash class {}", class.word()),
            Condition::Among(options) if self != Fact::KernelOptions => {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                format!("is under no licence but {}", options.join(", "))
            }
            Condition::Among(options) => format!(
                "needs none but the {} there",
                whichfs_units::counted(options.len(), "kernel option")
            ),
            Condition::AtLeast(n) | Condition::AtMost(n) => match self {
                Fact::LastYear => format!("stores dates up to {n} at least"),
                Fact::MinBytes => format!("fits into {}", whichfs_units::Bytes(*n)),
                Fact::MemoryBytes => format!("works in {} of memory", whichfs_units::Bytes(*n)),
                _ => format!("holds files of {}", whichfs_units::Bytes(*n)),
            },
        }
    }
}
