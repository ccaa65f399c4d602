//! Standard output: JSON documents, text, and a closed pipe that is no error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use whichfs_engine::{Error as Failure, ErrorKind as Kind, Outcome};
use whichfs_report::documents::error::ErrorDocument;
pub use whichfs_report::folded;
use whichfs_report::{Document, Lines, document_json, line_json, list_json, one_line};
use whichfs_units::{printable_json, printable_lines};

/// Whether standard output has something.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Prints the document of an error, unless standard output already has a document: it has one at
/// most. A failure to print it is ignored, because standard error already has the message.
pub fn error(error: &ErrorDocument) {
    if !BEGUN.load(Ordering::Relaxed) {
        let _ = document(error);
    }
}

/// Prints one JSON document.
pub fn document(document: &impl Document) -> Outcome {
    text_line(&printable_json(
        &document_json(document).map_err(Failure::environment)?,
    ))
}

/// Prints `told` as JSON, or as `text` tells it and where its report is.
pub fn answer<D: Document>(
    json: bool,
    told: &D,
    text: impl Fn(&D, usize) -> String,
    report: &std::path::Path,
) -> Outcome {
    match json {
        true => document(told),
        false => self::text(&format!(
            "{}\nReport: {}\n",
            text(told, width()),
            report.display()
        )),
    }
}

/// Prints a JSON list of documents.
pub fn list<D: Document>(documents: &[D]) -> Outcome {
    text_line(&printable_json(
        &list_json(documents).map_err(Failure::environment)?,
    ))
}

/// Prints one JSON document in a line of its own.
///
/// # Errors
/// It cannot be written, also since the reader has gone: what follows is of no use then.
pub fn json_line(document: &impl Document) -> Outcome {
    let line = printable_json(&line_json(document).map_err(Failure::environment)?);
    BEGUN.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.or_else(|error| {
        lost(&error)?;
        let gone = "whoever reads standard output has ended: nothing more is made for it";
        Err(Failure::new(Kind::Interrupted, gone))
    })
}

/// Prints text and a newline.
pub fn text_line(line: &str) -> Outcome {
    text(&format!("{line}\n"))
}

/// Prints text; what a terminal would obey in it is replaced.
pub fn text(text: &str) -> Outcome {
    styled(&printable_lines(text))
}

/// Prints text that may have colours, of which nothing is from outside.
pub fn styled(text: &str) -> Outcome {
    BEGUN.store(true, Ordering::Relaxed);
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
    let mut lines = Lines::new(width());
    lines.with_command(what, command);
    text(&lines.text())
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

/// What standard error has beside errors and questions: 0 nothing, 1 one line of progress and one
/// line for each note, 2 a line for each trial and notes as a whole.
static LEVEL: AtomicU8 = AtomicU8::new(1);

/// Tells less or more from now on.
pub fn set_level(quiet: bool, verbose: bool) {
    LEVEL.store(1 + u8::from(verbose) - u8::from(quiet), Ordering::Relaxed);
}

/// Whether --quiet is given.
pub fn is_quiet() -> bool {
    LEVEL.load(Ordering::Relaxed) == 0
}

/// Whether --verbose is given.
pub fn is_verbose() -> bool {
    LEVEL.load(Ordering::Relaxed) == 2
}

/// The line of progress at the bottom of the terminal, if there is one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Renews the line of progress; false where there is no terminal, or nothing is to be told.
pub fn progress(done: u64, total: u64, told: String) -> bool {
    let shown = io::stderr().is_terminal() && !is_quiet();
    if shown {
        let mut bar = BAR.lock();
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The template is a constant; a wrong one falls back to the plain style.
            let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(told);
    }
    shown
}

/// Takes the line of progress away.
pub fn clear_bar() {
    if let Some(bar) = BAR.lock().take() {
        bar.finish_and_clear();
    }
}

/// Tells a remark on standard error, unless --quiet is given.
pub fn note(text: std::fmt::Arguments<'_>) {
    if !is_quiet() {
        alert(text);
    }
}

/// Tells something on standard error; what a terminal would obey in it is replaced. If nobody reads
/// that, it is no reason to end.
pub fn alert(text: std::fmt::Arguments<'_>) {
    let text = printable_lines(&text.to_string());
    let write = || drop(io::stderr().lock().write_all(text.as_bytes()));
    match &*BAR.lock() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
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
            note_folded(&record.args().to_string());
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

/// Tells a sentence on standard error: in one line, of which the end may lack; with --verbose all
/// of it, in lines as wide as the terminal.
pub fn note_folded(sentence: &str) {
    let told = match is_verbose() {
        true => folded(sentence, 2, width()),
        false => one_line(sentence, width()),
    };
    note(format_args!("{told}\n"));
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
    use super::columns;

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
}
