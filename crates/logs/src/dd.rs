//! What dd and hdparm print. dd speaks the user's language, so only figures, punctuation and
//! order are looked at: `41943040 bytes (42 MB, 40 MiB) copied, 10.7 s, 3.9 MB/s`.

use crate::command::{self, Dd};
use crate::text::{Line, excerpt};
use crate::units::{number, possible};
use crate::{Caveat, LogError, Operation, Problem, Rate, flash};
use std::collections::{BTreeSet, VecDeque};

/// What is known about the dd that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// From its command line or the heading above, the one whose result comes next first: a loop
    /// may run several in turns.
    commands: VecDeque<Dd>,
    /// No result of them came yet.
    waiting: bool,
    /// They stand one below the other, without results in between.
    listed: bool,
    /// Nothing but their lines came since.
    fresh: bool,
    /// Files that the page cache may hold.
    cached: BTreeSet<String>,
    /// Words above it.
    pub label: String,
    /// `10+0 records`: whole and partial blocks.
    records: Option<(u64, u64)>,
    /// What dd said went wrong.
    failed: Option<String>,
    /// A table `block size : transfer rate` is being printed.
    table: bool,
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Taken {
    /// A summary line with bytes, seconds and rate, and the device that it is of.
    Rate(Rate, Option<String>),
    /// The device whose figures follow.
    Device(String),
    /// Part of an output, without a figure of its own.
    Part,
    /// A result that cannot be used, and why.
    Useless(String),
}

/// Bytes, seconds and the printed rate of a summary line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    bytes: u64,
    seconds: f64,
    /// Number, and its unit in bytes a second where the unit is known.
    rate: (f64, Option<f64>),
}

impl State {
    /// Begins a new dd.
    pub fn begin(&mut self, command: Option<Dd>, label: &str) {
        *self = State {
            commands: command.into_iter().collect(),
            label: excerpt(label, 60),
            cached: std::mem::take(&mut self.cached),
            ..State::default()
        };
    }

    /// Begins a dd by its command, or adds it to those above it that have no result yet.
    pub fn command(&mut self, command: Dd, in_loop: bool) {
        if !self.waiting {
            self.begin(None, "");
        }
        let repeats = command.repeats || in_loop;
        let command = self.through_cache(command);
        self.commands.push_back(Dd { repeats, ..command });
        self.listed = !in_loop && self.commands.len() > 1;
        (self.waiting, self.fresh) = (true, true);
    }

    /// Notes the file of a buffered dd: who reads it later may read the page cache.
    fn through_cache(&mut self, mut command: Dd) -> Dd {
        let Some(file) = command.file.clone().filter(|_| !command.direct) else {
            return command;
        };
        let again = !self.cached.insert(file);
        if again && command.operation == Some(Operation::Read) {
            command.caveat = Some(Caveat::unknown(
                "a file that was written or read before: the page cache may answer",
            ));
        }
        command
    }

    /// Decides which of several commands the results are of, `results` of which come before the
    /// next command: the last of them if its output follows at once, else each in turn.
    fn choose(&mut self, results: usize) {
        if !std::mem::take(&mut self.listed) {
            return;
        }
        if self.fresh {
            self.commands.drain(..self.commands.len().saturating_sub(1));
        } else if results != self.commands.len() {
            self.commands.clear();
        }
    }

    /// The dd at hand is done: its command says nothing about the next, unless it is a loop or
    /// a heading over several.
    fn end(&mut self) {
        self.failed = None;
        self.waiting = false;
        let done = self.commands.pop_front();
        self.commands.extend(done.filter(|command| command.repeats));
    }

    /// A dd that failed may have no result, and then others of its loop are no longer in turn.
    fn fail(&mut self, text: &str) {
        self.failed = Some(excerpt(text, 60));
        self.waiting = false;
        if self.commands.len() > 1 {
            self.commands.clear();
        }
    }

    /// Takes a line of dd's output; `rest` are the lines after it.
    pub fn take(&mut self, line: &Line, rest: &[Line]) -> Result<Option<Taken>, LogError> {
        let text = line.text.trim();
        if ["drop_caches", "umount", "reboot"]
            .iter()
            .any(|word| text.contains(word))
        {
            self.cached.clear();
        }
        let results = |lines: &[Line]| {
            let until = lines
                .iter()
                .take_while(|line| command::dd(&line.text).is_none());
            until
                .filter(|line| summary(line.text.trim()).is_some())
                .count()
        };
        let result = summary(text).is_some();
        if self.listed && (result || records(text).is_some()) {
            self.choose(usize::from(result) + results(rest));
        }
        if let Some((whole, partial)) = records(text) {
            self.records = Some((whole, partial));
            return Ok(Some(Taken::Part));
        }
        if text.starts_with("dd:") {
            self.fail(text);
            return Ok(Some(Taken::Useless("dd reports a failure".to_owned())));
        }
        if text.starts_with("block size : transfer rate") {
            self.table = true;
            return Ok(Some(Taken::Part));
        }
        if self.table
            && let Some((block, rate)) = table_row(text)
        {
            return self.table_rate(line, block, rate).map(Some);
        }
        let Some(summary) = summary(text) else {
            self.fresh = false;
            return Ok(None);
        };
        let next = rest.iter().find(|line| !line.text.trim().is_empty());
        let told = self.commands.front().is_some_and(|dd| dd.progress);
        let follows = next.is_some_and(|next| records(next.text.trim()).is_some());
        let progress = self.records.is_none() && (told || follows);
        if progress {
            return Ok(Some(Taken::Useless(
                "dd's progress, not its result".to_owned(),
            )));
        }
        let records = self.records.take();
        let of = self.clone();
        self.end();
        if let Some(failed) = of.failed {
            return Ok(Some(Taken::Useless(format!("a dd that failed: {failed}"))));
        }
        if summary.bytes == 0 {
            return Ok(Some(Taken::Useless("a dd that copied nothing".to_owned())));
        }
        of.result(line, summary, records).map(Some)
    }

    fn result(
        &self,
        line: &Line,
        summary: Summary,
        records: Option<(u64, u64)>,
    ) -> Result<Taken, LogError> {
        let bytes_per_s = summary.bytes as f64 / summary.seconds;
        possible(bytes_per_s, self.direct()).map_err(|expected| flash::absurd(line, expected))?;
        if let (printed, Some(unit)) = summary.rate {
            // dd rounds to two or three digits; busybox and BSD print binary units.
            let ratio = bytes_per_s / (printed * unit);
            let whole = printed >= 1.0 && !(0.9..=1.15).contains(&ratio);
            if whole {
                return Err(
                    LogError::new(Problem::MixedUnits, Some(line.number), &line.text)
                        .expected(format!(
                            "bytes / seconds = the rate, here {:.3} MB/s",
                            bytes_per_s / 1e6
                        ))
                        .remedy("restore the line as dd printed it"),
                );
            }
        }
        let Some(operation) = self.operation() else {
            return Err(self.no_direction(line));
        };
        let exact = |(whole, partial): (u64, u64)| {
            let fits = partial == 0 && whole > 0 && summary.bytes.is_multiple_of(whole);
            fits.then(|| summary.bytes / whole)
        };
        let command = self.commands.front();
        let told = command.and_then(|command| command.block_bytes);
        let label = if self.label.is_empty() {
            "dd"
        } else {
            &self.label
        };
        let rate = Rate {
            block_bytes: records.and_then(exact).or(told),
            direct: self.direct(),
            caveat: command.and_then(|command| command.caveat),
            ..Rate::plain(operation, bytes_per_s, label, line.number)
        };
        let device = command.and_then(|command| command.device.clone());
        Ok(Taken::Rate(rate, device))
    }

    fn direct(&self) -> bool {
        let command = self.commands.front();
        command.is_some_and(|command| command.direct)
    }

    fn operation(&self) -> Option<Operation> {
        self.commands.front().and_then(|dd| dd.operation)
    }

    fn no_direction(&self, line: &Line) -> LogError {
        LogError::new(Problem::NoContext, Some(line.number), &line.text)
            .expected("above it the dd command, or a heading with `dd` and `read` or `write`")
            .remedy("put the command into the log")
    }

    fn table_rate(&self, line: &Line, block: u64, bytes_per_s: f64) -> Result<Taken, LogError> {
        possible(bytes_per_s, self.direct()).map_err(|expected| flash::absurd(line, expected))?;
        let operation = self.operation().ok_or_else(|| self.no_direction(line))?;
        let rate = Rate {
            block_bytes: Some(block),
            direct: self.direct(),
            ..Rate::plain(operation, bytes_per_s, "dd table", line.number)
        };
        Ok(Taken::Rate(rate, None))
    }
}

/// `10+0 records in`.
fn records(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace();
    let (whole, partial) = words.next()?.split_once('+')?;
    words.next()?;
    Some((whole.parse().ok()?, partial.parse().ok()?))
}

/// `1048576 : 17.8 MB/s` of the scripts that try dd's block sizes.
fn table_row(text: &str) -> Option<(u64, f64)> {
    let (block, rate) = text.split_once(':')?;
    let block = block.trim().parse().ok().filter(|&bytes: &u64| bytes > 0)?;
    let (value, unit) = printed_rate(rate)?;
    Some((block, value * unit?))
}

/// A heading above dd's output: `Linear write speed (dd, 64kb block, seek 1024)`.
pub(super) fn heading(text: &str) -> Option<Dd> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    if !words.contains(&"dd") || text.contains(" if=") || text.contains(" of=") {
        return None;
    }
    let operation = match (words.contains(&"read"), words.contains(&"write")) {
        (true, false) => Operation::Read,
        (false, true) => Operation::Write,
        _ => return None,
    };
    // People write 64kb and mean dd's bs=64K, so the letter alone counts.
    let size = words.windows(2).find(|pair| pair[1] == "block")?[0];
    Some(Dd {
        operation: Some(operation),
        block_bytes: command::dd_number(size.trim_end_matches('b')),
        direct: words.contains(&"direct"),
        repeats: true,
        ..Dd::default()
    })
}

fn summary(text: &str) -> Option<Summary> {
    if let Some(summary) = bsd(text) {
        return Some(summary);
    }
    // Chinese and Japanese translations have commas and brackets of their own.
    let text = text.replace(['，', '、'], ", ").replace('（', " (");
    // A decimal comma is not followed by a blank.
    let mut parts = text.rsplit(", ");
    let rate = printed_rate(parts.next()?)?;
    let seconds = parts.next()?.trim();
    let seconds_end = seconds.find(char::is_whitespace)?;
    let unit = seconds[seconds_end..].trim();
    let seconds = decimal(&seconds[..seconds_end])
        .filter(|(_, rest)| rest.is_empty())?
        .0;
    if !unit.chars().all(|c| c.is_alphabetic() || c == '.') || unit.chars().count() > 8 {
        return None;
    }
    let head = parts.last()?;
    let digits = |word: &str| word.trim_end_matches(|c: char| !c.is_ascii()).parse().ok();
    let bytes = head.split_whitespace().find_map(digits)?;
    head.contains('(').then_some(Summary {
        bytes,
        seconds,
        rate,
    })
}

/// `41943040 bytes transferred in 10.5 secs (3994575 bytes/sec)`.
fn bsd(text: &str) -> Option<Summary> {
    let (head, tail) = text.split_once(" bytes transferred in ")?;
    let mut words = tail.split_whitespace();
    let seconds = decimal(words.next()?)?.0;
    let rate = words.nth(1)?.strip_prefix('(')?;
    Some(Summary {
        bytes: head.trim().parse().ok()?,
        seconds,
        rate: (decimal(rate)?.0, Some(1.0)),
    })
}

/// A number with a decimal point or comma, and what follows.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let Some((before, after)) = text.split_once(',') else {
        return number(text);
    };
    let pointed = format!("{before}.{after}");
    let (value, rest) = number(&pointed)?;
    Some((value, &text[text.len() - rest.len()..]))
}

/// `3.9 MB/s`, `3,9 MB/c`, `3.8MB/s`; the unit is none in alphabets that we do not read.
fn printed_rate(text: &str) -> Option<(f64, Option<f64>)> {
    let (value, rest) = decimal(text.trim())?;
    let (unit, per) = rest.trim().split_once('/')?;
    let per = per.split_whitespace().next()?;
    if per.chars().count() > 4 || !per.chars().all(char::is_alphabetic) {
        return None;
    }
    let scale = match unit.trim() {
        "B" | "bytes" => Some(1.0),
        "kB" | "KB" => Some(1e3),
        "MB" => Some(1e6),
        "GB" => Some(1e9),
        "TB" => Some(1e12),
        "KiB" => Some(1024.0),
        "MiB" => Some(1_048_576.0),
        "GiB" => Some(1_073_741_824.0),
        other if other.is_ascii() => return None,
        _ => None,
    };
    Some((value, scale))
}

/// `Timing buffered disk reads:  92 MB in  3.17 seconds =  29.05 MB/sec`. hdparm's MB are
/// MiB, it reads 2 MiB at a time (`time_device` of hdparm.c), without O_DIRECT unless it
/// says so, after flushing the page cache.
pub(super) fn hdparm(line: &Line) -> Result<Option<Taken>, LogError> {
    let text = line.text.trim();
    let device = text.strip_suffix(':').and_then(command::whole_disk);
    if let Some(device) = device.filter(|device| !device.contains(' ')) {
        return Ok(Some(Taken::Device(device)));
    }
    let Some(rest) = text.strip_prefix("Timing ") else {
        return Ok(None);
    };
    if rest.starts_with("cached reads") || rest.starts_with("O_DIRECT cached reads") {
        return Ok(Some(Taken::Useless(
            "reads of the host's memory".to_owned(),
        )));
    }
    let direct = rest.starts_with("O_DIRECT disk reads");
    if !direct && !rest.starts_with("buffered disk reads") {
        return Ok(None);
    }
    const WHOLE: &str = "`Timing buffered disk reads: N MB in N seconds = N MB/sec`";
    let figures = || -> Option<f64> {
        let (amount, rate) = rest.split_once(':')?.1.split_once('=')?;
        let mut words = amount.split_whitespace();
        let amount = number(words.next()?)?.0;
        let unit = mebi(words.next()?)?;
        let seconds = number(words.nth(1)?)?.0;
        let mut words = rate.split_whitespace();
        let printed = number(words.next()?)?.0;
        let printed_unit = mebi(words.next()?.strip_suffix("/sec")?)?;
        let rate = amount * unit / seconds;
        let agrees = (rate / (printed * printed_unit) - 1.0).abs() < 0.1;
        agrees.then_some(rate)
    };
    let Some(bytes_per_s) = figures() else {
        return Err(flash::cut(line, true).expected(WHOLE));
    };
    possible(bytes_per_s, direct).map_err(|expected| flash::absurd(line, expected))?;
    let rate = Rate {
        block_bytes: Some(2 << 20),
        direct,
        ..Rate::plain(Operation::Read, bytes_per_s, "hdparm", line.number)
    };
    Ok(Some(Taken::Rate(rate, None)))
}

fn mebi(unit: &str) -> Option<f64> {
    match unit {
        "kB" => Some(1024.0),
        "MB" => Some(1_048_576.0),
        "GB" => Some(1_073_741_824.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(text: &str) -> Line {
        Line {
            number: 3,
            text: text.to_owned(),
            cleaned: false,
            ended: true,
        }
    }

    fn state(operation: Operation) -> State {
        let mut state = State::default();
        let command = Dd {
            operation: Some(operation),
            ..Dd::default()
        };
        state.begin(Some(command), "");
        state
    }

    fn rate_of(text: &str) -> Rate {
        let taken = state(Operation::Read).take(&line(text), &[]);
        match taken.unwrap() {
            Some(Taken::Rate(rate, _)) => rate,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn dd_is_understood_in_every_language_and_make() {
        for text in [
            "41943040 bytes (42 MB, 40 MiB) copied, 10.4858 s, 4.0 MB/s",
            "41943040 bytes (42 MB) copied, 10,4858 s, 4,0 MB/s",
            "скопировано 41943040 байт (42 MB), 10.4858 c, 4.0 MB/c",
            "41943040 Bytes (42 MB, 40 MiB) kopiert, 10,4858 s, 4,0 MB/s",
            "41943040 octets (42 MB, 40 MiB) copiés, 10,4858 s, 4,0 MB/s",
            "41943040 bytes (40.0MB) copied, 10.4858 seconds, 3.8MB/s",
            "41943040 bytes transferred in 10.4858 secs (4000000 bytes/sec)",
            "скопировано 41943040 байт (42 МБ), 10.4858 с, 4.0 МБ/с",
        ] {
            let rate = rate_of(text).bytes_per_s;
            assert!((rate - 4e6).abs() < 1e3, "{text}: {rate}");
        }
        for text in [
            "I copied 3 files, 2 s, ok",
            "(3 of 4), 3 s, 4 MB",
            "a, b, c",
        ] {
            assert_eq!(
                state(Operation::Read).take(&line(text), &[]),
                Ok(None),
                "{text}"
            );
        }
    }

    #[test]
    fn records_tell_the_block_size() {
        let mut dd = state(Operation::Write);
        dd.take(&line("512+0 records in"), &[]).unwrap();
        let text = "33554432 bytes (34 MB, 32 MiB) copied, 8 s, 4.2 MB/s";
        let Some(Taken::Rate(rate, _)) = dd.take(&line(text), &[]).unwrap() else {
            panic!("no rate");
        };
        assert_eq!(rate.block_bytes, Some(65536));
        let told = heading("Linear read speed (dd, 64kb block, skip 1024)").unwrap();
        assert_eq!(told.block_bytes, Some(65536));
        assert_eq!(told.operation, Some(Operation::Read));
    }

    #[test]
    fn progress_and_failures_are_no_results() {
        let text = "20971520 bytes (21 MB, 20 MiB) copied, 5 s, 4.2 MB/s";
        let next = line("10+0 records in");
        let taken = state(Operation::Read).take(&line(text), &[next]);
        assert!(matches!(taken, Ok(Some(Taken::Useless(_)))), "{taken:?}");
        let mut dd = state(Operation::Write);
        dd.take(&line("dd: fdatasync failed: Input/output error"), &[])
            .unwrap();
        let taken = dd.take(&line(text), &[]);
        assert!(matches!(taken, Ok(Some(Taken::Useless(_)))), "{taken:?}");
    }

    #[test]
    fn a_command_tells_of_one_result_a_heading_of_several() {
        let text = "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s";
        let take = |state: &mut State| state.take(&line(text), &[]);
        let of = |command: Option<Dd>| {
            let mut state = State::default();
            state.begin(command, "");
            [take(&mut state), take(&mut state)]
                .map(|taken| matches!(taken, Ok(Some(Taken::Rate(..)))))
        };
        let write = "dd if=/dev/zero of=test bs=1M";
        assert_eq!(of(command::dd(write)), [true, false]);
        let many = format!("for i in 1 2; do {write}; done");
        assert_eq!(of(command::dd(&many)), [true, true]);
        assert_eq!(of(heading("Linear read speed (dd, 64K block)")), [true; 2]);
    }

    #[test]
    fn a_rate_that_is_not_bytes_by_seconds_is_refused() {
        let text = "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 kB/s";
        let error = state(Operation::Read).take(&line(text), &[]).unwrap_err();
        assert_eq!((error.problem, error.line), (Problem::MixedUnits, Some(3)));
        let text = "41943040 bytes (42 MB) copied, 0 s, 4.0 MB/s";
        let error = state(Operation::Read).take(&line(text), &[]).unwrap_err();
        assert_eq!(error.problem, Problem::Absurd);
        let text = "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s";
        let error = State::default().take(&line(text), &[]).unwrap_err();
        assert_eq!(error.problem, Problem::NoContext);
    }

    #[test]
    fn hdparm_and_tables() {
        let text = " Timing buffered disk reads:  92 MB in  3.17 seconds =  29.05 MB/sec";
        let Ok(Some(Taken::Rate(rate, _))) = hdparm(&line(text)) else {
            panic!("no rate");
        };
        assert!((rate.bytes_per_s / (29.02 * 1_048_576.0) - 1.0).abs() < 1e-3);
        let error = hdparm(&line(" Timing buffered disk reads:  92 MB in")).unwrap_err();
        assert_eq!(error.problem, Problem::Malformed);
        let mut dd = state(Operation::Write);
        dd.take(&line("block size : transfer rate"), &[]).unwrap();
        let taken = dd.take(&line("   65536 : 17.8 MB/s"), &[]).unwrap();
        let Some(Taken::Rate(rate, _)) = taken else {
            panic!("no rate");
        };
        assert_eq!((rate.block_bytes, rate.bytes_per_s), (Some(65536), 17.8e6));
    }
}
