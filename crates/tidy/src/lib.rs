//! The house rules, checked by a test over the whole tree (`tests/house_rules.rs`).
//!
//! A rule is a pure function of a file's path and text; `tree` alone reads the disk. Each rule has a
//! planted fault beside it that it must find. Exceptions are written in the file they concern:
//! - `tidy: long: REASON` in the first lines: the file may have more lines;
//! - `tidy: wide: REASON` in the first lines: its lines may be longer (tables);
//! - `tidy: tables: REASON` in the first lines of Markdown: rows of its tables may be longer;
//! - `tidy: path: REASON` on a line: the absolute path on it is meant;
//! - `tidy: word: REASON` on a line: the word on it is meant, though the glossary has another.

pub mod calls;
pub mod circles;
pub mod data;
pub mod edges;
pub mod empty_docs;
pub mod leaks;
pub mod lines;
pub mod mask;
pub mod panics;
pub mod public_names;
pub mod tree;
pub mod words;

use std::fmt;

/// A file of the repository: its path below the root, with `/`, and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path below the repository's root.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// A file with this path and text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// True for Rust sources.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The reason given with the exception `name` in the first lines, if there is one.
    pub fn exception(&self, name: &str) -> Option<&str> {
        self.text
            .lines()
            .take(HEAD_LINES)
            .find_map(|line| exception_in(line, name))
    }
}

/// How far from the top an exception for the whole file may stand.
const HEAD_LINES: usize = 15;
/// A reason shorter than this explains nothing.
const REASON_CHARS_MIN: usize = 10;

/// The reason of the exception `name` on this line, if it has one that says something.
pub(crate) fn exception_in<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let marker = format!("tidy: {name}:");
    let (_, reason) = line.split_once(&marker)?;
    let reason = reason.trim();
    (reason.chars().count() >= REASON_CHARS_MIN).then_some(reason)
}

/// A place where a rule is broken, with what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleBreak {
    /// Path below the repository's root.
    pub path: String,
    /// Line, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// What is wrong and what is expected.
    pub message: String,
}

impl RuleBreak {
    /// A finding at a line (0: the whole file).
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for RuleBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Applies every rule to a tree.
pub fn check(files: &[SourceFile]) -> Vec<RuleBreak> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(lines::check(file));
        findings.extend(calls::check(file));
        findings.extend(panics::check(file));
        findings.extend(leaks::check(file));
        findings.extend(data::check(file));
        findings.extend(empty_docs::check(file));
        findings.extend(words::check(file));
    }
    findings.extend(edges::check(files));
    findings.extend(circles::check(files));
    findings.extend(public_names::check(files));
    findings.extend(data::check_msrv(files));
    findings
}
