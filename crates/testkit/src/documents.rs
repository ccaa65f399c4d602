//! The documents of the project, and the calls of the program in them.
use std::path::{Path, PathBuf};

/// The documents that people read, and where they are.
pub fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = ["docs", "docs/guides"].map(|dir| std::fs::read_dir(root.join(dir)).unwrap());
    let docs = docs.into_iter().flatten();
    let mut all: Vec<PathBuf> = docs
        .map(|entry| entry.unwrap().path())
        .chain(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)))
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"))
        .collect();
    all.sort();
    all
}

/// The calls of `whichfs` in a document: lines of code blocks, examples of help texts, and code
/// within sentences.
pub fn calls(text: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let mut block = None;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some(language.to_owned()),
            };
        } else if block.as_deref() == Some("sh") {
            calls.extend(call(trimmed));
        } else if block.as_deref() == Some("text") {
            // Examples of the help texts: what they do stands beside them.
            calls.extend(call(trimmed.split("  ").next().unwrap_or_default()));
        } else if block.is_none() {
            calls.extend(line.split('`').skip(1).step_by(2).filter_map(call));
        }
    }
    calls
}

/// The arguments of `code` if it calls the program, without what the shell takes.
fn call(code: &str) -> Option<String> {
    let code = code.strip_prefix("sudo ").unwrap_or(code);
    let code = code.strip_prefix("target/release/").unwrap_or(code);
    let rest = code.strip_prefix("whichfs ")?;
    let end = [
        "  #", " | ", " > ", " 2>", " && ", " || ", "; ", " & ", " < ",
    ]
    .iter()
    .filter_map(|stop| rest.find(stop))
    .min();
    Some(rest[..end.unwrap_or(rest.len())].trim().to_owned())
}

/// The words of a call; quotes hold one together.
pub fn words(call: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in call.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_blocks_and_sentences() {
        let text = "Say `whichfs fs list` or `ls`.\n```sh\nsudo whichfs card attach a1 \\\n  \
                    --size 64  # root\nwhichfs fs list --json | jq .\n```\n\
                    ```text\nwhichfs: no such\nExamples:\n  whichfs choose    the verdict\n```\n";
        let found = [
            "fs list",
            "card attach a1    --size 64",
            "fs list --json",
            "choose",
        ];
        assert_eq!(calls(text), found);
        assert_eq!(words("a 'b c' \"d\"  e"), ["a", "b c", "d", "e"]);
    }
}
