//! House words: names and phrases that `docs/glossary.md` replaced do not come back.
//!
//! Names are whole identifiers of Rust. Phrases are looked for in all prose (comments, messages,
//! documents, data files), also over the end of a line. A line that needs one all the same says
//! why: `tidy: word: REASON`.

use crate::mask;
use crate::{RuleBreak, SourceFile, exception_in};

/// Names of types that are gone, and what the thing is called.
const NAMES: [(&str, &str); 11] = [
    ("Around", "Executor"),
    ("Doomed", "TargetDisk"),
    ("Errand", "SandboxedAgent"),
    ("Field", "PartitionLease"),
    ("Ground", "PartitionLease"),
    ("Keeper", "TrialCache or UndoLog"),
    ("NotHere", "PrepareError"),
    ("Noted", "DirtyRanges"),
    ("Odd", "UnsupportedMetadata"),
    ("Site", "DeviceExecutor"),
    ("Warm", "PrefaultedBuffer"),
];

/// Files that are gone, and what the module is called.
const FILES: [(&str, &str); 8] = [
    ("again.rs", "inspection_delta.rs"),
    ("charged.rs", "cpu_model_error.rs"),
    ("emitted.rs", "builder_files.rs"),
    ("keeper.rs", "trial_cache.rs or undo_log.rs"),
    ("otherwise.rs", "sensitivity.rs"),
    ("recycled.rs", "memory_pool.rs"),
    ("registers.rs", "syscall_abi32.rs"),
    ("rescue.rs", "undo_log_file.rs"),
];

/// Phrases in small letters, and what to say.
const PHRASES: [(&str, &str); 31] = [
    ("again and again between", "a reference trial is repeated"),
    (
        "again and again in between",
        "a reference trial is repeated",
    ),
    ("as often as it says", "calibrated; coverage"),
    ("as often as they say", "calibrated; coverage"),
    ("by it a change is seen", "to detect drift"),
    ("by it drift is seen", "to detect drift"),
    ("by which drift is seen", "to detect drift"),
    ("called so", "the name itself, or: of this name"),
    ("doings", "operations"),
    ("doomed", "target disk"),
    ("drawn card", "sample"),
    ("emitted", "builder files"),
    ("errand", "agent run"),
    ("host tools", "tools of this machine; sealed userland"),
    (
        "is there and not of whichfs",
        "already exists and was not created by whichfs",
    ),
    ("lose what is on", "erase the device"),
    ("memory in turn", "memory pool"),
    ("not done again", "requests are idempotent"),
    ("not read again", "skips it and reuses its digest"),
    ("one that takes part", "candidate"),
    ("read where it lies", "read from a mapping"),
    ("root image", "sealed userland"),
    ("seed's card", "sample"),
    ("store of known trials", "trial cache"),
    ("takes at least what the lab says", "lower bound"),
    ("the keeper", "trial cache; undo log"),
    ("they cannot see", "a probe cannot measure it"),
    ("what is asked again", "requests are idempotent"),
    ("what nobody wrote", "unchanged data"),
    ("what they lack", "missing tools"),
    ("who takes part", "candidates"),
];

/// Endings of files with prose.
const PROSE: [&str; 4] = [".rs", ".md", ".toml", ".html"];
/// The glossary and this file name the words; changes of past versions stay as they were written.
const FREE: [&str; 3] = [
    "CHANGELOG.md",
    "crates/tidy/src/words.rs",
    "docs/glossary.md",
];
/// Finds the words in one file.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    if FREE.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if file.is_rust() {
        check_path(file, &mut findings);
        check_names(file, &mut findings);
    }
    if PROSE.iter().any(|ending| file.path.ends_with(ending)) {
        check_phrases(file, &mut findings);
    }
    findings
}

fn check_path(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    if let Some((gone, instead)) = FILES.iter().find(|(gone, _)| *gone == name) {
        let message = format!("the file name {gone} is gone; instead: {instead}");
        findings.push(RuleBreak::new(&file.path, 0, message));
    }
}

fn check_names(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let code = mask::code(&file.text);
    for ((index, line), text) in code.lines().enumerate().zip(file.text.lines()) {
        let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        for name in names {
            let gone = NAMES.iter().find(|(gone, _)| *gone == name);
            if let Some((_, instead)) = gone
                && exception_in(text, "word").is_none()
            {
                let message = format!("the name {name} is gone; instead: {instead}");
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
    }
}

fn check_phrases(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let lines: Vec<&str> = file.text.lines().collect();
    let (prose, begins) = flowing(&lines);
    for (phrase, instead) in PHRASES {
        for (at, _) in prose.match_indices(phrase) {
            let index = begins.partition_point(|begin| *begin <= at) - 1;
            let is_whole = !is_letter(prose[..at].chars().next_back())
                && !is_letter(prose[at + phrase.len()..].chars().next());
            if is_whole && exception_in(lines[index], "word").is_none() {
                let message = format!("\"{phrase}\" is no word of the glossary; say: {instead}");
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
    }
}

fn is_letter(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// The lines as one text in small letters, without marks of comments and continued strings, and
/// where in it each line begins.
fn flowing(lines: &[&str]) -> (String, Vec<usize>) {
    let mut text = String::new();
    let mut begins = Vec::with_capacity(lines.len());
    for line in lines {
        begins.push(text.len());
        let line = line.trim().trim_start_matches(['/', '!', '#', '>']);
        text.push_str(&line.trim().trim_end_matches('\\').trim_end().to_lowercase());
        text.push(' ');
    }
    (text, begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&SourceFile::new(path, text));
        let mut lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        // A name may be a phrase too.
        lines.dedup();
        lines
    }

    #[test]
    fn each_name_is_found_in_code_and_not_in_longer_names_or_strings() {
        for (name, _) in NAMES {
            let path = "crates/lab/src/a.rs";
            assert_eq!(lines(path, &format!("//! A.\nlet a: {name} = b;\n")), [2]);
            let other = format!("fn f() {{ My{name}::g(); {name}s(\"a\"); }}\n");
            assert!(lines(path, &other).is_empty(), "{other}");
        }
        assert!(lines("crates/lab/src/a.rs", "let a = \"Odd\"; // Warm.\n").is_empty());
    }

    #[test]
    fn each_file_name_is_found() {
        for (name, _) in FILES {
            assert_eq!(lines(&format!("crates/lab/src/{name}"), "//! A.\n"), [0]);
            assert!(lines(&format!("crates/lab/src/not_{name}"), "//! A.\n").is_empty());
        }
    }

    #[test]
    fn each_phrase_is_found_in_comments_messages_and_documents() {
        for (phrase, _) in PHRASES {
            let begin = phrase[..1].to_uppercase();
            for (path, text) in [
                ("crates/lab/src/a.rs", format!("//! A.\n/// A {phrase}.\n")),
                ("crates/lab/src/a.rs", format!("\n    f(\"{phrase}\");\n")),
                ("docs/a.md", format!("# A\n{begin}{}: b\n", &phrase[1..])),
            ] {
                assert_eq!(lines(path, &text), [2], "{text}");
            }
            let longer = format!("# A\nun{phrase} {phrase}s\n");
            assert!(lines("docs/a.md", &longer).is_empty(), "{longer}");
        }
    }

    #[test]
    fn a_phrase_over_the_end_of_a_line_is_found_where_it_begins() {
        for text in [
            "\n/// By which\n/// drift is seen.\n",
            "\n\"by which \\\n drift is seen\"\n",
        ] {
            assert_eq!(lines("crates/lab/src/a.rs", text), [2], "{text}");
        }
    }

    #[test]
    fn a_reason_the_glossary_and_files_without_prose_are_free() {
        let reason = "/// Doomed. tidy: word: the title of a talk\n";
        assert!(lines("crates/lab/src/a.rs", reason).is_empty());
        for path in FREE.into_iter().chain(["kernel/lab.config"]) {
            assert!(lines(path, "doomed\n").is_empty(), "{path}");
        }
    }
}
