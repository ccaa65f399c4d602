//! Standard output: JSON documents, text, and a closed pipe that is no error.

use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Prints one JSON document.
pub fn json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(Failure::environment)?;
    text_line(&text)
}

/// Prints text and a newline.
pub fn text_line(line: &str) -> Outcome {
    text(&format!("{line}\n"))
}

/// Prints text as it is.
pub fn text(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.or_else(|error| lost(&error))
}

/// Prints a sentence in lines as wide as the terminal; those after the first begin with so many
/// spaces.
pub fn paragraph(sentence: &str, indent: usize) -> Outcome {
    text_line(&folded(sentence, indent, width()))
}

/// Prints what a command is for, and the command: in one line if that fits, else the command in a
/// line of its own, which is never broken.
pub fn with_command(what: &str, command: &str) -> Outcome {
    text_line(&joined(what, command, width()))
}

fn joined(what: &str, command: &str, width: usize) -> String {
    let line = format!("{what} {command}");
    match line.chars().count() <= width {
        true => line,
        false => format!("{what}\n  {command}"),
    }
}

/// `sentence` in lines of at most `width` columns, where its words allow it. Spaces at its
/// beginning stay; those between words become one.
pub fn folded(sentence: &str, indent: usize, width: usize) -> String {
    let begin = sentence.len() - sentence.trim_start().len();
    let mut text = sentence[..begin].to_owned();
    let mut column = begin;
    for (number, word) in sentence.split_whitespace().enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > width {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

/// The same for a line of which the first `indent` columns are a word and blanks that stay.
pub fn folded_after(line: &str, indent: usize, width: usize) -> String {
    let Some((head, rest)) = line.split_at_checked(indent) else {
        return line.to_owned();
    };
    let blanks = " ".repeat(indent);
    let text = folded(&format!("{blanks}{}", rest.trim_start()), indent, width);
    format!("{head}{}", text.get(indent..).unwrap_or_default())
}

/// That standard output did not take something: a failure, unless it is a closed pipe.
pub fn lost(error: &io::Error) -> Outcome {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(Failure::environment(format!(
        "cannot write to standard output: {error}; make room where it goes"
    )))
}

/// Tells something on standard error. If nobody reads that, it is no reason to end.
pub fn note(text: std::fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Remarks of the engine, told on standard error as those of the command are.
struct Notes;

impl log::Log for Notes {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // Other libraries log what concerns their authors alone.
        metadata.target().starts_with("whichfs")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            note(format_args!("{}\n", record.args()));
        }
    }

    fn flush(&self) {}
}

/// Has remarks of the engine told on standard error from now on.
pub fn install_notes() {
    if log::set_logger(&Notes).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}

/// Tells a sentence on standard error in lines as wide as the terminal.
pub fn note_folded(sentence: &str) {
    note(format_args!("{}\n", folded(sentence, 2, width())));
}

/// Columns of output: those of the terminal; else what COLUMNS says; else 80.
pub fn width() -> usize {
    let terminal = rustix::termios::tcgetwinsize(io::stdout());
    let told = std::env::var("COLUMNS").ok();
    columns(terminal.ok().map(|size| size.ws_col), told.as_deref())
}

/// A terminal too narrow for a table is as good as none; one too wide makes lines that nobody
/// reads.
fn columns(terminal: Option<u16>, told: Option<&str>) -> usize {
    const LEAST: u16 = 40;
    const MOST: u16 = 200;
    let told = || told.and_then(|text| text.trim().parse().ok());
    let enough = |columns: &u16| *columns >= LEAST;
    let found = terminal.filter(enough).or_else(|| told().filter(enough));
    usize::from(found.unwrap_or(80).min(MOST))
}

/// Whether to use colour: on a terminal, and NO_COLOR is not set.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{columns, folded, folded_after, joined};

    #[test]
    fn columns_are_the_terminals_or_what_is_told() {
        assert_eq!(columns(Some(100), Some("160")), 100);
        assert_eq!(columns(None, Some("160")), 160);
        assert_eq!(columns(Some(0), Some(" 160 ")), 160);
        assert_eq!(columns(None, Some("5000")), 200);
        for told in [
            None,
            Some(""),
            Some("x"),
            Some("10"),
            Some("-1"),
            Some("99999"),
        ] {
            assert_eq!(columns(None, told), 80, "{told:?}");
        }
    }

    #[test]
    fn a_command_has_a_line_of_its_own_where_it_does_not_fit() {
        assert_eq!(joined("Show it:", "ls -l", 14), "Show it: ls -l");
        assert_eq!(joined("Show it:", "ls -l", 13), "Show it:\n  ls -l");
    }

    #[test]
    fn a_sentence_is_folded_between_words() {
        assert_eq!(folded("  one two three", 4, 10), "  one two\n    three");
        assert_eq!(folded("one two", 4, 7), "one two");
        assert_eq!(folded_after("a   one two", 4, 8), "a   one\n    two");
        assert_eq!(folded_after("a", 4, 8), "a");
        assert_eq!(folded("averylongword x", 2, 5), "averylongword\n  x");
        assert_eq!(folded("", 2, 5), "");
    }
}
