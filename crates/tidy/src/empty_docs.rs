//! No empty doc comments: a doc comment says what the name does not.
//!
//! The rule reads doc comments of one line with at most `WORDS_MAX` words; articles and the like
//! do not count, singular and plural are alike, code in backticks is content. Such a comment is
//! empty if
//! - it has one word, and that is neither number nor unit ("The workload.", "Why."), or
//! - all of its words stand in the line that it is about (name, type, arguments), or
//! - it is one of `VAGUE`, which say nothing of anything.

use std::collections::BTreeSet;

use crate::{RuleBreak, SourceFile};

/// A comment with more words than these says something.
const WORDS_MAX: usize = 3;
/// Words that add nothing to a name.
const SMALL: [&str; 12] = [
    "a", "an", "and", "each", "for", "is", "it", "its", "of", "that", "the", "this",
];
/// Single words that say enough.
const UNITS: [&str; 4] = ["nanoseconds", "microseconds", "milliseconds", "seconds"];
/// Whole comments of several words that say nothing; small words are left out.
const VAGUE: [&str; 4] = ["as given", "as above", "as said", "same as above"];
/// Finds the empty doc comments of a Rust file.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    if !file.is_rust() {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(said) = line.strip_prefix("/// ") else {
            continue;
        };
        let stands_alone = !is_doc(index.checked_sub(1).and_then(|at| lines.get(at)))
            && !is_doc(lines.get(index + 1));
        if stands_alone && is_empty(said, item(&lines[index + 1..])) {
            let message = format!(
                "\"{said}\" says no more than the name: write meaning, unit, range or source"
            );
            findings.push(RuleBreak::new(&file.path, index + 1, message));
        }
    }
    findings
}

fn is_doc(line: Option<&&str>) -> bool {
    line.is_some_and(|line| line.starts_with("///"))
}

/// The first line of the item that these lines begin with, without its attributes and its value.
fn item<'a>(lines: &[&'a str]) -> &'a str {
    let mut depth = 0_usize;
    for line in lines {
        if depth == 0 && !line.starts_with("#[") {
            return line.split(['=', ';', '{']).next().unwrap_or(line);
        }
        depth += line.matches('[').count();
        depth = depth.saturating_sub(line.matches(']').count());
    }
    ""
}

fn is_empty(said: &str, item: &str) -> bool {
    if said.contains('`') {
        return false;
    }
    let words: Vec<String> = words(said)
        .filter(|word| !SMALL.contains(&word.as_str()))
        .collect();
    if words.len() > WORDS_MAX {
        return false;
    }
    if let [word] = &words[..] {
        return !UNITS.contains(&word.as_str()) && !word.starts_with(|c: char| c.is_ascii_digit());
    }
    let in_item: BTreeSet<String> = parts(item).collect();
    VAGUE.contains(&words.join(" ").as_str())
        || words.iter().all(|word| in_item.contains(&singular(word)))
}

/// The words of a text in small letters.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// The words of the names in `text`, in the singular: `CardPlace` has two.
fn parts(text: &str) -> impl Iterator<Item = String> {
    let mut spread = String::with_capacity(2 * text.len());
    let mut was_small = false;
    for c in text.chars() {
        if was_small && c.is_uppercase() {
            spread.push(' ');
        }
        was_small = c.is_lowercase() || c.is_ascii_digit();
        spread.push(c);
    }
    let parts: Vec<String> = words(&spread).map(|word| singular(&word)).collect();
    parts.into_iter()
}

/// The word without the ending of a plural.
fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&SourceFile::new(path, text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comment_that_repeats_the_name_or_the_type_is_found() {
        for text in [
            "/// Its seed.\npub seed: u64,\n",
            "/// The cards.\npub cards: Vec<CardPlace>,\n",
            "/// Place of the card.\npub best: CardPlace,\n",
            "/// A directory.\nDirectory,\n",
            "/// The trial entry.\npub struct TrialEntries;\n",
            "/// The path.\n#[serde(\n    default,\n)]\n#[arg(long)]\npub path: PathBuf,\n",
            "/// Parses a path.\nfn parses(path: &str) {\n",
        ] {
            assert_eq!(lines("crates/x/src/a.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn a_comment_of_one_word_and_each_vague_one_is_found() {
        let single = [
            "Why.",
            "How.",
            "The bytes.",
            "Name.",
            "It is done.",
            "The workload.",
        ];
        let vague = VAGUE.map(|vague| format!("{vague}."));
        for said in single.into_iter().chain(vague.iter().map(String::as_str)) {
            let text = format!("struct A {{\n    /// {said}\n    x: u64,\n}}\n");
            assert_eq!(lines("crates/x/src/a.rs", &text), [2], "{said}");
        }
    }

    #[test]
    fn comments_with_content_pass() {
        for text in [
            "/// 80 %.\nWarning,\n",
            "/// In microseconds.\npub time: u64,\n",
            "/// Microseconds.\npub time: u64,\n",
            "/// Name of the card's profile.\npub name: String,\n",
            "/// `/proc`.\npub proc: PathBuf,\n",
            "/// Bytes of payload.\npub bytes: u64,\n",
            "/// Seed of the trial that failed first.\npub seed: u64,\n",
            "/// Seed.\n///\n/// # Errors\n/// None.\npub seed: u64,\n",
            "/// Not seen.\nlet seed = \"not seen\";\n",
            "// Its seed.\npub seed: u64,\n",
        ] {
            assert!(lines("crates/x/src/a.rs", text).is_empty(), "{text}");
        }
    }
}
