//! Readers of what people have measured: flashbench logs (`-a`, `-O`, `-f`), outputs of dd,
//! hdparm, iozone and fio (also its JSON), and the JSON form of [`Curves`]; and writers of
//! flashbench's form and of the JSON form.
//!
//! The form is told by the content. Logs of shells are noisy, so lines that no program here
//! prints are passed over, but each is listed in [`LogReading::skipped`]; what had to be mended
//! (a unit that flashbench's eight-byte fields cut off, noise of a terminal) is listed in
//! [`LogReading::mended`]. A line that begins as a measurement must be a whole and plausible
//! one, or the log is refused with [`LogError`]: nothing is guessed silently. Of dd, hdparm, iozone
//! and fio, a result that cannot be used is passed over too, so that it costs no curve of
//! flashbench.
//!
//! Runs are told apart by the card's identity (CID, capacity, device) and by flashbench's
//! erase size. A log whose runs are of different cards is refused unless
//! [`LogOptions::run`] names one; the JSON form is a collection and never refused for that.

mod bonnie;
mod command;
mod csv;
mod dd;
mod draft;
mod error;
mod fio;
mod fio_text;
mod flash;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz_input;
mod identity;
mod iozone;
mod join;
mod json;
mod remarks;
mod session;
mod tables;
mod text;
mod units;
mod write;

pub use error::{LogError, Problem};
pub use identity::LoggedIdentity;
pub use join::join;
pub use json::{NO_CURVES, json_text};
pub use units::BUS_RATE_MAX;
pub use write::{align_text, fat_text, flashbench_text, open_au_text};

use whichfs_curves::Curves;

/// Larger files are refused: the largest real log that we know has 1 MB.
const BYTES_MAX: usize = 64 << 20;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Declares data unused.
    Discard,
}

/// In which order requests walk over the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Each after the last.
    Sequential,
    /// Anywhere in the file or device.
    Random,
}

/// A measured rate that is none of flashbench's tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// What was done.
    pub operation: Operation,
    /// In which order.
    pub order: Order,
    /// Bytes of a request as the program issued it; none where the log does not tell or the
    /// program mixed sizes. Without `direct` the kernel may have split or merged requests.
    pub block_bytes: Option<u64>,
    /// The host's page cache was bypassed (O_DIRECT). Otherwise a read may come from memory.
    pub direct: bool,
    /// Requests in flight as asked for, over all jobs.
    pub queue_depth: u32,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Requests a second, where the program says.
    pub iops: Option<f64>,
    /// Completion latency, where the program says.
    pub latency: Option<CompletionLatency>,
    /// The program's or the log's own name for the measurement.
    pub label: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Why it may be another rate than the card's, where the log tells.
    pub caveat: Option<Caveat>,
}

/// Why a rate may be another than the card's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// In words.
    pub why: &'static str,
    /// The card is at least as fast.
    pub at_least: bool,
}

impl Caveat {
    /// Of a rate that may be faster than the card.
    const fn unknown(why: &'static str) -> Caveat {
        let at_least = false;
        Caveat { why, at_least }
    }

    /// Of a rate that something beside the card made slower.
    const fn at_least(why: &'static str) -> Caveat {
        let at_least = true;
        Caveat { why, at_least }
    }
}

/// Writes that end in the page cache.
const UNSYNCED: Caveat =
    Caveat::unknown("written without a sync at the end: part of it is in the page cache");
/// Synchronous small writes.
const SYNC_EACH: Caveat =
    Caveat::at_least("a sync after each write: the filesystem's and the card's flushes count too");

impl Rate {
    /// A sequential rate of one buffered request at a time; the caller changes what differs.
    fn plain(operation: Operation, bytes_per_s: f64, label: &str, line: usize) -> Rate {
        Rate {
            operation,
            order: Order::Sequential,
            block_bytes: None,
            direct: false,
            queue_depth: 1,
            bytes_per_s,
            iops: None,
            latency: None,
            label: label.to_owned(),
            line,
            caveat: None,
        }
    }
}

/// Completion latencies in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletionLatency {
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median, where percentiles were recorded.
    pub median_us: Option<f64>,
    /// 99th percentile, where percentiles were recorded.
    pub p99_us: Option<f64>,
    /// Largest of all requests.
    pub max_us: f64,
}

/// Measurements of one card under one geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRun {
    /// The JSON form's name, or the file's stem with `#2` and so on where there are several.
    pub name: String,
    /// Lines of the file from which it comes, counted from 1.
    pub lines: (usize, usize),
    /// What the log says about the card.
    pub card: LoggedIdentity,
    /// flashbench's `--erasesize` in bytes, where the form has it: of a session the largest block
    /// of `-O` and `-f`.
    pub erase_bytes: Option<u64>,
    /// flashbench's tests.
    pub curves: Curves,
    /// Everything else.
    pub rates: Vec<Rate>,
}

/// Something about lines of the file that the user should be able to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// First and last line, counted from 1.
    pub lines: (usize, usize),
    /// Why, in words.
    pub why: String,
    /// The beginning of the first of the lines.
    pub text: String,
}

/// The form that a file was found to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text of a shell: flashbench, dd, hdparm, iozone, fio.
    Session,
    /// `{NAME: {"al", "lin", "rnd", "fat"}}`.
    Json,
    /// `fio --output-format=json`.
    Fio,
    /// Columns `align_bytes,pre_us,on_us,post_us,diff_us`.
    Csv,
}

/// What was read from a file, and what was not.
#[derive(Clone, Debug, PartialEq)]
pub struct LogReading {
    /// The form of the file.
    pub form: Form,
    /// Its runs, at least one, each with at least one measurement.
    pub runs: Vec<LoggedRun>,
    /// Lines that are no measurement, or none that has a place in a [`LoggedRun`].
    pub skipped: Vec<Remark>,
    /// Measurements whose text had to be mended.
    pub mended: Vec<Remark>,
}

/// What the caller knows better than the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Only this run, by name.
    pub run: Option<String>,
}

/// Reads the runs of a log; `name` is its file name, for messages and names of runs.
///
/// # Errors
/// The text is no log, is cut off, contradicts itself, or mixes cards: see [`Problem`].
pub fn read(name: &str, text: impl AsRef<[u8]>) -> Result<Vec<LoggedRun>, LogError> {
    read_with(name, text, &LogOptions::default()).map(|reading| reading.runs)
}

/// Reads a log with what the caller knows about it, and says what was passed over.
///
/// # Errors
/// As [`read`]; also when [`LogOptions::run`] names no run of the file.
pub fn read_with(
    name: &str,
    text: impl AsRef<[u8]>,
    options: &LogOptions,
) -> Result<LogReading, LogError> {
    let reading = read_any(name, text.as_ref(), options);
    let mut reading = reading.map_err(|error| error.in_file(name))?;
    if let Some(wanted) = &options.run {
        let names: Vec<String> = reading.runs.iter().map(|run| run.name.clone()).collect();
        reading.runs.retain(|run| run.name == *wanted);
        if reading.runs.is_empty() {
            return Err(LogError::new(Problem::NoSuchRun, None, wanted)
                .expected(format!("one of {}", list(&names)))
                .remedy("name one of them")
                .in_file(name));
        }
    }
    Ok(reading)
}

fn read_any(name: &str, bytes: &[u8], options: &LogOptions) -> Result<LogReading, LogError> {
    if bytes.len() > BYTES_MAX {
        return Err(LogError::new(Problem::TooLarge, None, "")
            .found(format!("{} bytes", bytes.len()))
            .expected(format!("at most {BYTES_MAX} bytes"))
            .remedy("cut the measurements out of it"));
    }
    let text = text::decode(bytes);
    let begin = text.trim_start();
    let fio_at = fio::document(&text);
    let reading = if let Some(at) = fio_at {
        fio::read(name, &text, at)
    } else if begin.starts_with('{') {
        json::read(&text)
    } else if begin.starts_with(csv::HEADER_BEGIN) {
        csv::read(name, &text)
    } else {
        session::read(name, &text, options)
    }?;
    if reading.runs.is_empty() {
        return Err(nothing(&text, &reading));
    }
    Ok(reading)
}

/// The error of a file without any measurement.
fn nothing(text: &str, reading: &LogReading) -> LogError {
    let unusable = |remark: &&Remark| remark.why.starts_with(remarks::UNUSABLE);
    if let Some(remark) = reading.skipped.iter().find(unusable) {
        return LogError::new(Problem::Empty, Some(remark.lines.0), &remark.text)
            .expected(format!("a figure that can be used ({})", remark.why))
            .remedy("restore that line as the program printed it, with its command above it");
    }
    let first = text.lines().position(|line| !line.trim().is_empty());
    let line = first.and_then(|at| text.lines().nth(at)).unwrap_or("");
    let known = reading
        .skipped
        .iter()
        .any(|skipped| skipped.why == flash::NO_ROWS);
    let (problem, remedy) = if known || reading.form != Form::Session {
        (
            Problem::Empty,
            "run the test again and keep its whole output",
        )
    } else {
        (Problem::Foreign, "give a log of one of these programs")
    };
    let error = LogError::new(problem, first.map(|at| at + 1), line);
    let error = if first.is_none() {
        error.found("an empty file")
    } else {
        error
    };
    error
        .expected(
            "output of flashbench (`align 4194304 pre …`, `4MiB 6.28M/s`), dd, hdparm, iozone or \
             fio, or {NAME: {\"al\", \"lin\", \"rnd\", \"fat\"}}",
        )
        .remedy(remedy)
}

/// The file's name without folders and extension.
fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    }
}

/// At most a dozen names for a message.
fn list(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(12)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = names.len().saturating_sub(shown.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}
