//! iozone's table: `kB reclen write rewrite read reread …`, one row for each file size and
//! record size, blank where a test was not run.

use crate::text::{Line, excerpt};
use crate::units;
use crate::{Caveat, LogError, Operation, Order, Problem, Rate, UNSYNCED, flash};

/// What a column measures, and its name among the labels.
type Access = (Operation, Order, &'static str);

/// The columns in the order in which iozone prints them, with what they are as a rate; none
/// for accesses that have no place in [`Rate`].
const COLUMNS: [(&str, Option<Access>); 15] = [
    ("kb", None),
    ("reclen", None),
    (
        "write",
        Some((Operation::Write, Order::Sequential, "write")),
    ),
    (
        "rewrite",
        Some((Operation::Write, Order::Sequential, "rewrite")),
    ),
    ("read", Some((Operation::Read, Order::Sequential, "read"))),
    (
        "reread",
        Some((Operation::Read, Order::Sequential, "reread")),
    ),
    (
        "read",
        Some((Operation::Read, Order::Random, "random read")),
    ),
    (
        "write",
        Some((Operation::Write, Order::Random, "random write")),
    ),
    ("read", None),
    ("rewrite", None),
    ("read", None),
    ("fwrite", None),
    ("frewrite", None),
    ("fread", None),
    ("freread", None),
];

/// How far the last digit of a figure may stand from the last letter of its heading.
const SHIFT: usize = 3;

/// What the figures are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    /// `Output is in kBytes/sec`, the default. iozone's kB are 1024 bytes.
    #[default]
    KiBytesPerSecond,
    /// `-O`.
    OperationsPerSecond,
    /// `-N`.
    MicrosecondsPerOperation,
}

/// An iozone run as it is printed.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    direct: bool,
    /// `-e`: writes end with a sync.
    synced: bool,
    unit: Unit,
    /// Where each column's heading ends; empty outside a table.
    ends: Vec<usize>,
    /// Where the figures of the row before end.
    row_ends: Vec<usize>,
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Taken {
    /// Rates of a row, and the columns that were left out.
    Row(Vec<Rate>, Vec<&'static str>),
    /// Part of the output, without a figure of its own.
    Part,
}

impl Table {
    /// Takes a line of iozone's output.
    pub fn take(&mut self, line: &Line) -> Result<Option<Taken>, LogError> {
        let text = expand(&line.text);
        let trimmed = text.trim();
        if trimmed.starts_with("Iozone: Performance Test") {
            *self = Table::default();
            return Ok(Some(Taken::Part));
        }
        if trimmed.starts_with("O_DIRECT feature enabled") {
            self.direct = true;
            return Ok(Some(Taken::Part));
        }
        self.synced |= trimmed.starts_with("Include fsync in write timing");
        if let Some(command) = command(trimmed) {
            self.direct |= command.split_whitespace().any(|word| word == "-I");
            self.synced |= command.split_whitespace().any(|word| word == "-e");
            self.ends.clear();
            return Ok(Some(Taken::Part));
        }
        if let Some(unit) = trimmed.strip_prefix("Output is in ") {
            self.unit = match unit {
                "kBytes/sec" | "Kbytes/sec" => Unit::KiBytesPerSecond,
                "ops/sec" | "operations per second" => Unit::OperationsPerSecond,
                _ if unit.starts_with("microseconds") => Unit::MicrosecondsPerOperation,
                _ => return Err(self.unknown_unit(line)),
            };
            return Ok(Some(Taken::Part));
        }
        if let Some(ends) = heading(&text) {
            self.ends = ends;
            self.row_ends.clear();
            return Ok(Some(Taken::Part));
        }
        if self.ends.is_empty() {
            return Ok(None);
        }
        let words = words(&text);
        let numeric = |word: &&(usize, &str)| word.1.bytes().all(|b| b.is_ascii_digit());
        match words.iter().take(2).filter(numeric).count() {
            2 => self.row(line, &words).map(Some),
            _ => {
                self.ends.clear();
                Ok(None)
            }
        }
    }

    fn row(&mut self, line: &Line, words: &[(usize, &str)]) -> Result<Taken, LogError> {
        if words
            .iter()
            .any(|(_, word)| !word.bytes().all(|b| b.is_ascii_digit()))
        {
            return Err(flash::cut(line, true).expected("only figures in a row of iozone's table"));
        }
        let ends: Vec<usize> = words.iter().map(|&(end, _)| end).collect();
        // Figures are set to the right: a row that ends elsewhere than the one before it, and
        // without a line end, has lost digits or columns.
        let whole = line.ended || ends == self.row_ends;
        if !whole || words.len() < 3 {
            return Err(flash::cut(line, true).expected("figures in the columns of the heading"));
        }
        let columns = self.columns(&ends).ok_or_else(|| {
            LogError::new(Problem::Malformed, Some(line.number), &line.text)
                .expected("figures under the headings of iozone's columns")
                .remedy("keep the blanks of iozone's table: they tell which test was not run")
        })?;
        self.row_ends = ends;
        let figure = |i: usize| words[i].1.parse::<u64>().ok();
        let record = figure(1).and_then(|kib| kib.checked_mul(1024));
        let Some(record) = record.filter(|&bytes| bytes > 0 && bytes < 1 << 40) else {
            return Err(flash::absurd(line, "a record size in kB"));
        };
        let mut rates = Vec::new();
        let mut left_out = Vec::new();
        for (i, &column) in columns.iter().enumerate().skip(2) {
            let value = figure(i).unwrap_or(u64::MAX);
            let Some((operation, order, label)) = COLUMNS[column].1 else {
                left_out.push(COLUMNS[column].0);
                continue;
            };
            if value == 0 {
                left_out.push(label); // iozone prints 0 for a pass that it did not do (-+n)
                continue;
            }
            let bytes_per_s = self.bytes_per_s(value, record);
            units::possible(bytes_per_s, self.direct)
                .map_err(|expected| flash::absurd(line, expected))?;
            rates.push(Rate {
                order,
                block_bytes: Some(record),
                direct: self.direct,
                caveat: self.caveat(operation),
                ..Rate::plain(
                    operation,
                    bytes_per_s,
                    &format!("iozone {label}"),
                    line.number,
                )
            });
        }
        Ok(Taken::Row(rates, left_out))
    }

    /// Without O_DIRECT reads are of the file that was just written.
    fn caveat(&self, operation: Operation) -> Option<Caveat> {
        match operation {
            _ if self.direct => None,
            Operation::Read => Some(Caveat::unknown(
                "a file that was just written, without O_DIRECT (-I)",
            )),
            _ => Some(UNSYNCED).filter(|_| !self.synced),
        }
    }

    fn bytes_per_s(&self, value: u64, record: u64) -> f64 {
        let value = value as f64;
        match self.unit {
            Unit::KiBytesPerSecond => value * 1024.0,
            Unit::OperationsPerSecond => value * record as f64,
            Unit::MicrosecondsPerOperation => record as f64 / value * 1e6,
        }
    }

    /// The column of each figure: in order where all are there, by place where some are not.
    fn columns(&self, ends: &[usize]) -> Option<Vec<usize>> {
        if ends.len() == self.ends.len() {
            return Some((0..ends.len()).collect());
        }
        let mut columns = Vec::with_capacity(ends.len());
        for &end in ends {
            let near = |column: &usize| self.ends[*column].abs_diff(end) <= SHIFT;
            let column = (0..self.ends.len()).find(near)?;
            if columns.last().is_some_and(|&last| last >= column) {
                return None;
            }
            columns.push(column);
        }
        columns.starts_with(&[0, 1]).then_some(columns)
    }

    fn unknown_unit(&self, line: &Line) -> LogError {
        let found = excerpt(&line.text, 60);
        LogError::new(Problem::MixedUnits, Some(line.number), &found)
            .expected("kBytes/sec, ops/sec or microseconds per operation")
            .remedy("run iozone without options that change its unit")
    }
}

/// The command line that iozone repeats, or that a shell shows.
fn command(text: &str) -> Option<&str> {
    let text = text
        .strip_prefix("Command line used:")
        .unwrap_or(text)
        .trim();
    let text = text.trim_start_matches(['$', '#', ' ', '`']);
    let text = text.strip_prefix("sudo ").unwrap_or(text);
    let program = text.split_whitespace().next()?;
    let found = program.rsplit('/').next() == Some("iozone") && text.contains(" -");
    found.then_some(text)
}

/// Where the columns of the line of headings end.
fn heading(text: &str) -> Option<Vec<usize>> {
    let words = words(text);
    let known = words.len() >= 3
        && words.len() <= COLUMNS.len()
        && words
            .iter()
            .zip(COLUMNS)
            .all(|((_, word), column)| word.eq_ignore_ascii_case(column.0));
    known.then(|| words.into_iter().map(|(end, _)| end).collect())
}

/// Words with the column in which each ends.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut column = 0;
    for part in text.split(' ') {
        column += part.chars().count();
        if !part.is_empty() {
            words.push((column, part));
        }
        column += 1;
    }
    words
}

/// Tabs as the blanks that a terminal shows.
fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        if c == '\t' {
            let blanks = 8 - column % 8;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HEAD: &str = "              kB  reclen    write  rewrite    read    reread    read     \
                        write     read   rewrite      read   fwrite frewrite    fread  freread";

    fn line(text: &str, ended: bool) -> Line {
        Line {
            number: 9,
            text: text.to_owned(),
            cleaned: false,
            ended,
        }
    }

    fn table(lines: &[&str]) -> Result<Vec<Rate>, LogError> {
        let mut table = Table::default();
        let mut rates = Vec::new();
        for text in lines {
            if let Some(Taken::Row(row, _)) = table.take(&line(text, true))? {
                rates.extend(row);
            }
        }
        Ok(rates)
    }

    #[test]
    fn rows_of_three_tests_and_of_two() {
        let rates = table(&[
            "\tO_DIRECT feature enabled",
            HEAD,
            "          102400       4     2604     2666    12185    12207     9959     2652",
        ])
        .unwrap();
        assert_eq!(rates.len(), 6);
        assert!(
            rates
                .iter()
                .all(|rate| rate.direct && rate.block_bytes == Some(4096))
        );
        assert_eq!(rates[5].bytes_per_s, 2652.0 * 1024.0);
        assert_eq!(
            (rates[5].operation, rates[5].order),
            (Operation::Write, Order::Random)
        );
        // -i 0 -i 2: read and reread were not run.
        let rates = table(&[
            HEAD,
            "          102400    1024   388250   392446                     290025   392099",
        ])
        .unwrap();
        let labels: Vec<&str> = rates.iter().map(|rate| rate.label.as_str()).collect();
        let expected = ["write", "rewrite", "random read", "random write"];
        assert_eq!(labels, expected.map(|label| format!("iozone {label}")));
    }

    #[test]
    fn units_are_iozones() {
        let row = "          102400       4      100      100";
        let head = "              kB  reclen    write  rewrite";
        let rates = table(&["Output is in ops/sec", head, row]).unwrap();
        assert_eq!(rates[0].bytes_per_s, 409_600.0);
        let rates = table(&["Output is in microseconds per operation", head, row]).unwrap();
        assert_eq!(rates[0].bytes_per_s, 40_960_000.0);
        let error = table(&["Output is in furlongs", head, row]).unwrap_err();
        assert_eq!(error.problem, Problem::MixedUnits);
    }

    #[test]
    fn rows_that_are_not_whole_are_refused() {
        let mut at_end = Table::default();
        at_end.take(&line(HEAD, true)).unwrap();
        let cut = "          102400       4     2604     2666    12185    12207     9959     26";
        let error = at_end.take(&line(cut, false)).unwrap_err();
        assert_eq!(error.problem, Problem::Truncated);
        let broken = "          102400       4     2604     26[ 86.73 error]";
        assert_eq!(
            table(&[HEAD, broken]).unwrap_err().problem,
            Problem::Malformed
        );
        let squeezed = "102400 4 2604 2666";
        assert_eq!(
            table(&[HEAD, squeezed]).unwrap_err().problem,
            Problem::Malformed
        );
        let absurd = "          102400       4     2604 999999999999";
        let head = "              kB  reclen    write  rewrite";
        assert_eq!(table(&[head, absurd]).unwrap_err().problem, Problem::Absurd);
        assert_eq!(table(&[HEAD, "iozone test complete."]).unwrap(), []);
    }
}
