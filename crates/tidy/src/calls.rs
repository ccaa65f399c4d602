//! Calls that the pure crates do not make, and what to use instead.

use crate::mask;
use crate::{RuleBreak, SourceFile};

/// Crates without clock, entropy, files, processes or environment: the same input gives
/// the same bytes.
pub const PURE_CRATES: [&str; 16] = [
    "crash",
    "units",
    "trial",
    "card",
    "blockdev",
    "curves",
    "logs",
    "fit",
    "posterior",
    "probe",
    "fs",
    "layout",
    "workload",
    "decide",
    "study",
    "report",
];

/// What is banned, as a path or a name, and what to use instead.
const BANNED: [(&str, &str); 19] = [
    ("Instant", "time is an argument (Nanos)"),
    ("SystemTime", "time is an argument (Nanos)"),
    ("HashMap", "BTreeMap: its order is the same in every run"),
    ("HashSet", "BTreeSet: its order is the same in every run"),
    ("RandomState", "the seeded generator of whichfs-units"),
    ("std::thread", "the caller decides what runs side by side"),
    ("thread::sleep", "time is an argument (Nanos)"),
    ("thread::spawn", "the caller decides what runs side by side"),
    (
        "std::env",
        "an argument; only whichfs reads the environment",
    ),
    (
        "std::fs",
        "text or bytes as an argument; whichfs, lab and agent read files",
    ),
    ("std::process", "only lab and agent start processes"),
    ("std::net", "only lab talks to others"),
    ("io::stdin", "text or bytes as an argument"),
    ("io::stdout", "return a String; whichfs prints"),
    ("io::stderr", "return an error; whichfs prints"),
    ("print!", "return a String; whichfs prints"),
    ("println!", "return a String; whichfs prints"),
    ("eprint!", "return an error; whichfs prints"),
    ("eprintln!", "return an error; whichfs prints"),
];

/// Finds banned calls in the sources of the pure crates; their tests are free.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    if !is_pure_source(&file.path) {
        return Vec::new();
    }
    let code = mask::without_tests(&mask::code(&file.text));
    let mut findings = Vec::new();
    for (index, line) in spread_groups(&code).lines().enumerate() {
        for (banned, instead) in BANNED {
            if has_word(line, banned) {
                let message = format!("{banned} in a pure crate; instead: {instead}");
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

fn is_pure_source(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts.next().is_some_and(|name| PURE_CRATES.contains(&name))
        && parts.next() == Some("src")
        && path.ends_with(".rs")
        && !path.ends_with("/tests.rs")
        && !path.contains("/tests/")
}

/// True if `word` stands in `line` and is not part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Writes `std::{env, fs::File}` as `std::{std::env, std::fs::File}`, so that a group hides
/// nothing.
fn spread_groups(code: &str) -> String {
    const GROUP: &str = "std::{";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(GROUP) {
        let (head, tail) = rest.split_at(at + GROUP.len());
        out.push_str(head);
        let mut depth = 1_usize;
        let mut at_start = true;
        let mut end = tail.len();
        for (offset, c) in tail.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = offset;
                break;
            }
            if at_start && c.is_alphabetic() {
                out.push_str("std::");
                at_start = false;
            }
            if c == ',' && depth == 1 {
                at_start = true;
            }
            out.push(c);
        }
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn each_banned_call_is_found_in_each_pure_crate() {
        for name in PURE_CRATES {
            for (banned, _) in BANNED {
                let text = format!("//! A.\nfn f() {{ {banned}(); }}\n");
                let found = lines(&format!("crates/{name}/src/a.rs"), &text);
                assert!(found.contains(&2), "{banned} in {name}");
            }
        }
    }

    #[test]
    fn a_group_of_imports_hides_nothing() {
        let path = "crates/card/src/a.rs";
        assert_eq!(lines(path, "use std::{fmt, env};"), [1]);
        assert_eq!(
            lines(path, "use std::{\n    fmt,\n    fs::{self, File},\n};"),
            [3]
        );
        assert_eq!(lines(path, "use std::time::{Duration, Instant};"), [1]);
        assert_eq!(
            lines(path, "use std::collections::{BTreeMap, HashMap};"),
            [1]
        );
    }

    #[test]
    fn other_crates_tests_comments_and_longer_names_are_free() {
        assert!(lines("crates/lab/src/a.rs", "use std::fs;").is_empty());
        assert!(lines("crates/card/tests/a.rs", "use std::fs;").is_empty());
        let path = "crates/card/src/a.rs";
        assert!(lines(path, "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n").is_empty());
        assert!(
            lines(
                path,
                "// Instant and std::env are banned.\nlet a = \"HashMap\";"
            )
            .is_empty()
        );
        assert!(lines(path, "use crate::fs;\nstruct InstantNoodle;\nwriteln!(f)?;").is_empty());
        assert!(lines(path, "let v = env!(\"CARGO_PKG_VERSION\");").is_empty());
    }

    #[test]
    fn code_after_a_test_module_is_still_seen() {
        let text = "#[cfg(test)]\nmod tests {}\nfn f() { std::env::args(); }\n";
        assert_eq!(lines("crates/fs/src/a.rs", text), [3]);
    }
}
