//! Sizes and shape of a file: lines, columns, a purpose at the top, nothing left over.

use crate::{RuleBreak, SourceFile};

/// Lines a Rust file may have without a reason.
pub const FILE_LINES_MAX: usize = 600;
/// Pages that everybody reads first, and the lines that they may have: what is more has a page of
/// its own.
const FIRST_PAGES: [(&str, usize); 2] = [("README.md", 100), ("ARCHITECTURE.md", 200)];
/// Columns a line of Rust or Markdown may have.
pub const COLUMNS_MAX: usize = 100;
/// Documents that programs write, and the changes of past versions: their lines stay as they are.
const UNWRAPPED: [&str; 3] = ["CHANGELOG.md", "docs/fit.md", "docs/truth.md"];
/// Words that mark unfinished work. Written in parts, so that this file does not have them.
const LEFT_OVERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Applies the rules of this module to one file.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    let mut findings = Vec::new();
    if file.is_rust() {
        check_purpose(file, &mut findings);
        check_length(file, &mut findings);
        check_columns(file, &mut findings);
    } else if is_markdown(file) && !UNWRAPPED.contains(&file.path.as_str()) {
        check_columns(file, &mut findings);
    }
    check_first_page(file, &mut findings);
    check_left_overs(file, &mut findings);
    findings
}

fn check_purpose(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let first = file
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    if !first.starts_with("//!") {
        findings.push(RuleBreak::new(
            &file.path,
            1,
            "a file starts with //! and its purpose",
        ));
    }
}

fn check_length(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let count = file.text.lines().count();
    if count > FILE_LINES_MAX && file.exception("long").is_none() {
        let message = format!(
            "{count} lines, at most {FILE_LINES_MAX}: split the file, or say why it is long \
             in its first lines (tidy: long: REASON)"
        );
        findings.push(RuleBreak::new(&file.path, 0, message));
    }
}

fn check_first_page(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    let count = file.text.lines().count();
    for (path, most) in FIRST_PAGES {
        if file.path == path && count > most {
            let message = format!("{count} lines, at most {most}: move what not everybody needs");
            findings.push(RuleBreak::new(&file.path, 0, message));
        }
    }
}

fn is_markdown(file: &SourceFile) -> bool {
    file.path.ends_with(".md")
}

fn check_columns(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    if file.exception("wide").is_some() {
        return;
    }
    let may_have_tables = file.exception("tables").is_some();
    let mut is_code = false;
    for (index, line) in file.text.lines().enumerate() {
        let begin = line.trim_start();
        // Code in Markdown is as long as it is, and its fences are short.
        is_code ^= is_markdown(file) && begin.starts_with("```");
        let is_row = is_markdown(file) && begin.starts_with('|');
        let columns = line.chars().count();
        // An address cannot be broken.
        let is_free = is_code || (is_row && may_have_tables) || line.contains("://");
        if columns > COLUMNS_MAX && !is_free {
            let message = format!(
                "{columns} columns, at most {COLUMNS_MAX}: break the line; a file of tables says \
                 so in its first lines (tidy: {}: REASON)",
                if is_row { "tables" } else { "wide" }
            );
            findings.push(RuleBreak::new(&file.path, index + 1, message));
        }
    }
}

fn check_left_overs(file: &SourceFile, findings: &mut Vec<RuleBreak>) {
    // Prose may speak of them; the patches are the kernel's text.
    if file.path.ends_with(".md") || file.path.ends_with(".patch") {
        return;
    }
    for (index, line) in file.text.lines().enumerate() {
        for word in LEFT_OVERS {
            if line.contains(word) {
                let message = format!("{word} left over: do it, or write an issue");
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile::new(path, text))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_tidy_file_passes() {
        assert!(messages("a.rs", "//! Purpose.\n\nfn f() {}\n").is_empty());
    }

    #[test]
    fn a_file_without_purpose_is_found() {
        assert!(messages("a.rs", "fn f() {}\n")[0].contains("starts with //!"));
        assert!(messages("a.rs", "// Purpose, but no doc comment.\n")[0].contains("//!"));
    }

    #[test]
    fn an_overlong_file_is_found_unless_it_says_why() {
        let body = "//\n".repeat(FILE_LINES_MAX);
        assert!(messages("a.rs", &format!("//! Long.\n{body}"))[0].contains("601 lines"));
        let reason = "//! tidy: long: one table that belongs together\n";
        assert!(messages("a.rs", &format!("{reason}{body}")).is_empty());
        let no_reason = "//! tidy: long: yes\n";
        assert_eq!(messages("a.rs", &format!("{no_reason}{body}")).len(), 1);
        let longest = "//\n".repeat(FILE_LINES_MAX - 1);
        assert!(messages("a.rs", &format!("//! Just fits.\n{longest}")).is_empty());
    }

    #[test]
    fn a_first_page_that_has_grown_is_found() {
        let lines = |count| "A line.\n".repeat(count);
        assert!(messages("README.md", &lines(101))[0].contains("101 lines, at most 100"));
        assert!(messages("README.md", &lines(100)).is_empty());
        assert!(messages("crates/card/README.md", &lines(101)).is_empty());
    }

    #[test]
    fn a_wide_line_is_found_unless_the_file_is_a_table() {
        let wide = format!("// {}\n", "µ".repeat(COLUMNS_MAX - 2));
        let found = messages("a.rs", &format!("//! A.\n{wide}"));
        assert!(found[0].starts_with("a.rs:2: 101 columns"), "{found:?}");
        assert!(messages("a.rs", &format!("//! tidy: wide: rows of a table\n{wide}")).is_empty());
        let fits = format!("// {}\n", "µ".repeat(COLUMNS_MAX - 3));
        assert!(messages("a.rs", &format!("//! A.\n{fits}")).is_empty());
    }

    #[test]
    fn wide_prose_is_found_in_markdown_and_wide_rows_where_the_head_does_not_say_so() {
        let wide = "µ ".repeat(51);
        let (row, fence) = (format!("| {wide}|"), format!("```sh\n{wide}\n```"));
        let text = format!("# A\n{wide}\n{row}\n{fence}\nhttps://{wide}\n");
        let found = messages("docs/a.md", &text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("docs/a.md:2: 102 columns"),
            "{found:?}"
        );
        assert!(found[1].contains("tidy: tables"), "{found:?}");
        let tables = format!("<!-- tidy: tables: rows of figures -->\n{text}");
        assert_eq!(messages("docs/a.md", &tables).len(), 1);
        let all = format!("<!-- tidy: wide: what a command prints -->\n{text}");
        assert!(messages("docs/a.md", &all).is_empty());
        assert!(messages(UNWRAPPED[0], &text).is_empty());
    }

    #[test]
    fn left_over_work_is_found_in_code_and_data_but_not_in_prose() {
        for word in LEFT_OVERS {
            let text = format!("//! A.\n// {word}: later\n");
            assert_eq!(messages("a.rs", &text).len(), 1);
            assert_eq!(messages("a.toml", &text).len(), 1);
            assert!(messages("a.md", &text).is_empty());
        }
    }
}
