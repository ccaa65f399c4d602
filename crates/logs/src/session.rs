//! A shell's log: sections of flashbench, dd, hdparm, iozone and fio in any order, with whatever
//! else was on the terminal.
//!
//! A section is opened by a heading (`======= AU=3, linear access =======`) or by the command
//! itself. flashbench does not print how many AUs `-O` had open, so a figure of `-O` outside
//! such a section is refused. Results of the other programs that cannot be used are passed over:
//! flashbench's curves do not depend on them.

use crate::command::{self, Flashbench};
use crate::draft::Drafts;
use crate::flash::{self, AlignRow, NO_ROWS, RateRow};
use crate::remarks::{UNUSABLE, push};
use crate::text::{self, Line, excerpt};
use crate::{
    Form, LogError, LogOptions, LogReading, Problem, Remark, bonnie, dd, fio_text, identity, iozone,
};
use whichfs_units::SECTOR;

/// flashbench prints three digits: figures this near to each other may be the same.
const ROUNDING: f64 = 0.006;

/// More AUs than any card can have in the range that flashbench uses.
const OPEN_AUS_MAX: u32 = 65_536;

const FOREIGN: &str = "not a line of flashbench, dd, hdparm, iozone, fio or bonnie++";
const FAT_RANDOM: &str = "find-fat with --random has no place in the curves";

/// Reads the log `text` of the file `name`.
pub(super) fn read(name: &str, text: &str, options: &LogOptions) -> Result<LogReading, LogError> {
    let lines = text::lines(text);
    let mut session = Session::new(&lines, options);
    for (i, line) in lines.iter().enumerate() {
        session.line(i, line)?;
    }
    session.finish(name)
}

/// What a section measures.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// Outside every section, or in one of a program that is not read.
    None,
    Align,
    Fat,
    OpenAu {
        random: bool,
        aus: u32,
    },
    /// By a command, which may run several tests.
    Command(Flashbench),
    /// dd, hdparm or fio.
    Other,
}

/// The section at hand.
#[derive(Clone, Debug)]
struct Section {
    test: Test,
    line: usize,
    title: String,
    rows: usize,
    /// Columns of `-f`.
    columns: Option<usize>,
    /// Of the row before.
    block: Option<u64>,
}

impl Section {
    fn new(test: Test, line: usize, title: &str) -> Section {
        Section {
            test,
            line,
            title: excerpt(title, 60),
            rows: 0,
            columns: None,
            block: None,
        }
    }
}

struct Session<'a> {
    lines: &'a [Line],
    options: &'a LogOptions,
    drafts: Drafts,
    section: Section,
    /// `Linear access` or `Random access` above the headings of sections.
    random: Option<bool>,
    dd: dd::State,
    iozone: iozone::Table,
    fio: fio_text::State,
    skipped: Vec<Remark>,
    mended: Vec<Remark>,
    /// Sections of `-O` that had rows: line, title, smallest block.
    ended: Vec<(usize, String, u64)>,
}

impl<'a> Session<'a> {
    fn new(lines: &'a [Line], options: &'a LogOptions) -> Session<'a> {
        Session {
            lines,
            options,
            drafts: Drafts::new(),
            section: Section::new(Test::None, 1, ""),
            random: None,
            dd: dd::State::default(),
            iozone: iozone::Table::default(),
            fio: fio_text::State::default(),
            skipped: Vec::new(),
            mended: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn line(&mut self, i: usize, line: &Line) -> Result<(), LogError> {
        let text = line.text.trim();
        if text.is_empty() {
            let last = self.skipped.last_mut().filter(|last| last.why == FOREIGN);
            if let Some(last) = last.filter(|last| last.lines.1 + 1 == line.number) {
                last.lines.1 = line.number;
            }
            return Ok(());
        }
        if let Some(row) = flash::align(line)? {
            return self.align(line, row);
        }
        let expected = !matches!(self.section.test, Test::None | Test::Other);
        if let Some(row) = flash::rates(line, expected)? {
            return self.rates(line, row);
        }
        let other = match self.other_programs(i, line) {
            Ok(other) => other,
            Err(error) if error.problem == Problem::Truncated => return Err(error),
            Err(error) => {
                self.skip(line, &format!("{UNUSABLE}{}", error.reason()));
                true
            }
        };
        if other || self.context(i, line)? {
            return Ok(());
        }
        self.skip(line, FOREIGN);
        Ok(())
    }

    fn align(&mut self, line: &Line, row: AlignRow) -> Result<(), LogError> {
        if let Some(why) = row.mended {
            self.mend(line, why);
        }
        self.note_noise(line);
        let draft = self.drafts.current();
        draft.tables.row(line, row.boundary, row.us)?;
        draft
            .curves
            .align
            .entry(row.boundary)
            .or_default()
            .push(row.us);
        draft.extend(line.number);
        self.section.rows += 1;
        Ok(())
    }

    /// A row of `-O` or `-f`.
    fn rates(&mut self, line: &Line, row: RateRow) -> Result<(), LogError> {
        if row.rates.is_empty() {
            self.skip(line, "a block size without rates: interrupted");
            return Ok(());
        }
        self.note_noise(line);
        let single = row.rates.len() == 1;
        match self.section.test.clone() {
            Test::OpenAu { .. } if !single => Err(several(line, &row)),
            Test::OpenAu { random, aus } => self.open_au(line, &row, random, aus),
            Test::Command(c) if single && c.open_au => {
                self.open_au(line, &row, c.random, c.open_aus)
            }
            Test::Command(c) if c.fat && c.random => {
                self.skip(line, FAT_RANDOM);
                self.section.rows += 1;
                Ok(())
            }
            Test::Command(c) if c.fat => self.fat(line, &row, Some(c.fat_aus)),
            Test::Fat => self.fat(line, &row, None),
            _ if single => Err(no_open_aus(line)),
            _ => self.fat(line, &row, None),
        }
    }

    fn open_au(
        &mut self,
        line: &Line,
        row: &RateRow,
        random: bool,
        aus: u32,
    ) -> Result<(), LogError> {
        if aus == 0 {
            return Err(no_open_aus(line));
        }
        if aus > OPEN_AUS_MAX {
            return Err(flash::absurd(line, "at most 65536 open AUs"));
        }
        let block = self.block(line, row.block);
        let rate = row.rates[0];
        let draft = self.drafts.current();
        draft.extend(line.number);
        let key = (random, aus, block);
        let rates = if random {
            &mut draft.curves.random
        } else {
            &mut draft.curves.linear
        };
        let rates = rates.entry(aus).or_default();
        match (
            rates.get(&block).copied(),
            draft.open_lines.get(&key).copied(),
        ) {
            (Some(before), Some(at)) if before != rate => {
                return Err(
                    LogError::new(Problem::Duplicate, Some(line.number), &line.text)
                        .expected(format!(
                            "each block size once for {aus} open AUs; it is in line {at} too"
                        ))
                        .remedy("keep one of the two sections, or put each into its own file"),
                );
            }
            (Some(_), Some(_)) => self.skip(line, "the same figure a second time"),
            _ => {
                rates.insert(block, rate);
                draft.open_lines.insert(key, line.number);
            }
        }
        self.section.rows += 1;
        Ok(())
    }

    fn fat(&mut self, line: &Line, row: &RateRow, told: Option<u32>) -> Result<(), LogError> {
        let given = row.rates.len();
        let told = told.filter(|&n| n > 0).map(|n| n as usize);
        let mut columns = self.section.columns.or(told);
        if columns.is_none() && !line.ended {
            // The first row of a section, and the file ends in it: sections before it tell.
            let fat = &self.drafts.current().curves.fat;
            let before = fat.values().flatten().map(Vec::len).next();
            columns = Some(before.unwrap_or(given + 1));
        }
        if let Some(columns) = columns.filter(|&columns| columns != given) {
            return Err(flash::cut(line, given < columns)
                .expected(format!("{columns} rates in this row, and a line end")));
        }
        self.section.columns = Some(row.rates.len());
        let block = self.block(line, row.block);
        let draft = self.drafts.current();
        draft
            .curves
            .fat
            .entry(block)
            .or_default()
            .push(row.rates.clone());
        draft.extend(line.number);
        self.section.rows += 1;
        Ok(())
    }

    /// The block size that was meant, which decides at the head of a section to which erase
    /// size, and so to which run, it belongs.
    fn block(&mut self, line: &Line, printed: f64) -> u64 {
        let near = |bytes: &u64| (*bytes as f64 / printed - 1.0).abs() <= ROUNDING;
        let told = match &self.section.test {
            Test::Command(command) => command.erase_bytes,
            _ => None,
        };
        let erase = told.filter(near);
        let exact =
            Some(printed as u64).filter(|&b| b as f64 == printed && b.is_multiple_of(SECTOR));
        let half = self.section.block.map(|block| block / 2).filter(near);
        let block = exact.or(half).or(erase).unwrap_or_else(|| {
            self.mend(
                line,
                "a block size of three digits, rounded to whole sectors",
            );
            ((printed / SECTOR as f64).round() as u64).max(1) * SECTOR
        });
        if self.section.block.is_none_or(|before| block >= before) {
            // The first block is the erase size, unless the head of the section is missing.
            self.drafts.erase(told.unwrap_or(block).max(block));
        }
        self.section.block = Some(block);
        block
    }

    /// dd, hdparm, iozone, fio, bonnie++.
    fn other_programs(&mut self, i: usize, line: &Line) -> Result<bool, LogError> {
        if let Some(taken) = self.iozone.take(line)? {
            if let iozone::Taken::Row(rates, left_out) = taken {
                self.note_noise(line);
                let draft = self.drafts.current();
                draft.rates.extend(rates);
                draft.extend(line.number);
                if !left_out.is_empty() {
                    self.skip(line, &format!("iozone's columns {}", left_out.join(", ")));
                }
            }
            return Ok(true);
        }
        if self.fio.take(line.number, line.text.trim()) {
            return Ok(true);
        }
        if let Some(rates) = bonnie::rates(line) {
            let draft = self.drafts.current();
            draft.rates.extend(rates);
            draft.extend(line.number);
            return Ok(true);
        }
        let taken = match self.dd.take(line, &self.lines[i + 1..])? {
            Some(taken) => Some(taken),
            None => dd::hdparm(line)?,
        };
        if let Some(dd::Taken::Device(_) | dd::Taken::Rate(..)) = &taken {
            self.fio.flush(&mut self.drafts, &mut self.skipped);
        }
        match taken {
            None => return Ok(false),
            Some(dd::Taken::Part) => {}
            Some(dd::Taken::Useless(why)) => self.skip(line, &why),
            Some(dd::Taken::Device(device)) => self.drafts.command_device(line.number, &device),
            Some(dd::Taken::Rate(rate, device)) => {
                self.note_noise(line);
                if let Some(device) = device {
                    self.drafts.command_device(line.number, &device);
                }
                let draft = self.drafts.current();
                draft.rates.push(rate);
                draft.extend(line.number);
            }
        }
        self.section.rows += 1;
        Ok(true)
    }

    /// Lines that say what comes next: the card, a command, a heading.
    fn context(&mut self, i: usize, line: &Line) -> Result<bool, LogError> {
        let text = line.text.trim();
        if let Some(told) = identity::told(text) {
            self.drafts.told(line.number, told);
            return Ok(true);
        }
        let whole = self.continued(i);
        if let Some(command) = command::flashbench(&whole) {
            if let Some(expected) = command.wrong_size() {
                return Err(flash::absurd(line, expected));
            }
            if let Some(device) = command.device.as_deref().filter(|d| d.starts_with("/dev/")) {
                self.drafts.command_device(line.number, device);
            }
            self.open(Section::new(Test::Command(command), line.number, text));
            return Ok(true);
        }
        if self.fio.command(&whole) {
            self.fio.flush(&mut self.drafts, &mut self.skipped);
            self.open(Section::new(Test::Other, line.number, text));
            return Ok(true);
        }
        if let Some(command) = command::dd(&whole) {
            self.dd.command(command, command::in_loop(&self.lines[..i]));
            self.open(Section::new(Test::Other, line.number, text));
            return Ok(true);
        }
        Ok(self.heading(line))
    }

    fn heading(&mut self, line: &Line) -> bool {
        let marks: &[char] = &['=', '-', '#', '*', ' ', '\t'];
        let title = line.text.trim_matches(marks);
        let lower = title.to_lowercase();
        let ruled = line.text.trim_start().starts_with("====");
        if lower == "linear access" || lower == "random access" {
            self.random = Some(lower.starts_with("random"));
            self.open(Section::new(Test::None, line.number, title));
            return true;
        }
        if ruled && !lower.is_empty() && lower.bytes().all(|byte| byte.is_ascii_digit()) {
            return true; // the next of several repeats
        }
        let aus = lower.strip_prefix("au=").and_then(|rest| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            rest[..digits].parse::<u32>().ok()
        });
        let said = match (lower.contains("random"), lower.contains("linear")) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => self.random,
        };
        let test = if let Some((aus, random)) = aus.zip(said) {
            Test::OpenAu { random, aus }
        } else if lower.starts_with("align test") {
            Test::Align
        } else if lower.starts_with("find fat") {
            Test::Fat
        } else if let Some(command) = dd::heading(title) {
            self.dd.begin(Some(command), title);
            Test::Other
        } else if ruled {
            self.dd.begin(None, "");
            Test::None
        } else {
            return false;
        };
        self.open(Section::new(test, line.number, title));
        true
    }

    /// A line with those that follow a backslash at its end.
    fn continued(&self, i: usize) -> String {
        const LINES_MAX: usize = 16;
        let mut whole = String::new();
        for line in self.lines[i..].iter().take(LINES_MAX) {
            let text = line.text.trim();
            let Some(begin) = text.strip_suffix('\\') else {
                whole.push_str(text);
                break;
            };
            whole.push_str(begin);
            whole.push(' ');
        }
        whole
    }

    /// Closes the section at hand and opens `next`.
    fn open(&mut self, next: Section) {
        let closed = std::mem::replace(&mut self.section, next);
        // `Align test` above `Align test: 1` holds nothing itself.
        let group = !closed.title.bytes().any(|byte| byte.is_ascii_digit());
        if closed.rows == 0 && !matches!(closed.test, Test::None | Test::Other) && !group {
            self.remark(closed.line, NO_ROWS, &closed.title);
        }
        let open_au = match &closed.test {
            Test::OpenAu { .. } => true,
            Test::Command(command) => command.open_au,
            _ => false,
        };
        if let Some(block) = closed.block.filter(|_| open_au) {
            self.ended.push((closed.line, closed.title, block));
        }
    }

    fn finish(mut self, name: &str) -> Result<LogReading, LogError> {
        self.open(Section::new(Test::None, self.lines.len() + 2, ""));
        self.fio.flush(&mut self.drafts, &mut self.skipped);
        let smallest = self.ended.iter().map(|(_, _, block)| *block).min();
        for (line, title, block) in std::mem::take(&mut self.ended) {
            if smallest.is_some_and(|smallest| smallest < block) {
                let why = format!("ends at blocks of {block} bytes, others go on: interrupted");
                self.remark(line, &why, &title);
            }
        }
        self.skipped.sort_by_key(|remark| remark.lines);
        let runs = self.drafts.finish(name, self.options, &mut self.mended)?;
        Ok(LogReading {
            form: Form::Session,
            runs,
            skipped: self.skipped,
            mended: self.mended,
        })
    }

    fn note_noise(&mut self, line: &Line) {
        if line.cleaned {
            self.mend(line, "noise of the terminal was taken away");
        }
    }

    fn mend(&mut self, line: &Line, why: &str) {
        push(&mut self.mended, line.number, why, &line.text);
    }

    fn skip(&mut self, line: &Line, why: &str) {
        push(&mut self.skipped, line.number, why, &line.text);
    }

    fn remark(&mut self, line: usize, why: &str, text: &str) {
        push(&mut self.skipped, line, why, text);
    }
}

fn no_open_aus(line: &Line) -> LogError {
    LogError::new(Problem::NoContext, Some(line.number), &line.text)
        .expected(
            "above it `flashbench -O --open-au-nr=N` or `AU=N, linear access`: flashbench \
             itself does not print the number of open AUs",
        )
        .remedy("put the command into the log as a line `# flashbench -O --open-au-nr=3 …`")
}

fn several(line: &Line, row: &RateRow) -> LogError {
    LogError::new(Problem::Malformed, Some(line.number), &line.text)
        .expected(format!(
            "one rate in a test of open AUs, not {} as `-f` prints",
            row.rates.len()
        ))
        .remedy("put the heading or the command of the test above its lines")
}
