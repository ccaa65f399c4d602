//! Library code does not panic on what it did not expect: errors are returned, and an invariant
//! is an `unreachable!` that says why it holds.

use crate::mask;
use crate::{RuleBreak, SourceFile};

/// What is banned outside tests, and what to write instead.
const BANNED: [(&str, &str); 4] = [
    (
        ".unwrap()",
        "return an error, or unreachable! with the reason",
    ),
    (
        ".expect(",
        "return an error, or unreachable! with the reason",
    ),
    ("unreachable!()", "say why it cannot be reached"),
    ("panic!()", "say what is wrong"),
];

/// How a file says that all of it is a test.
const TEST_FILE: &str = "#![allow(clippy::unwrap_used";

/// Finds them in the sources of all crates; tests are free.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
    if !is_source || !file.is_rust() || is_test(file) {
        return Vec::new();
    }
    let code = mask::without_tests(&mask::code(&file.text));
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for (banned, instead) in BANNED {
            if line.contains(banned) {
                let message = format!("{banned} outside of tests; instead: {instead}");
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

/// Whether the whole file is a test.
fn is_test(file: &SourceFile) -> bool {
    file.path.starts_with("crates/testkit/")
        || file.path.contains("/src/tests/")
        || file.path.ends_with("/tests.rs")
        || file.text.lines().any(|line| line.starts_with(TEST_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&SourceFile::new(path, text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_is_found_in_library_code() {
        for (banned, _) in BANNED {
            let text = format!("fn f() {{\n    x{banned}\n}}\n");
            assert_eq!(lines("crates/lab/src/disk.rs", &text), [2], "{banned}");
        }
    }

    #[test]
    fn tests_comments_and_reasons_are_free() {
        let text = "// x.unwrap()\nfn f() { unreachable!(\"tested above\") }\n\
                    #[cfg(test)]\nmod tests {\n    fn g() { x.unwrap() }\n}\n";
        assert!(lines("crates/lab/src/disk.rs", text).is_empty());
        let test = "//! Tests.\n#![allow(clippy::unwrap_used)]\nfn f() { x.unwrap() }\n";
        assert!(lines("crates/lab/src/engine_tests.rs", test).is_empty());
        assert!(lines("crates/lab/tests/a.rs", "fn f() { x.unwrap() }\n").is_empty());
    }
}
