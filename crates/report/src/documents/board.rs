//! Boards: the computers around the card, how fast they are, and how that is known.

use crate::document::Document;
use crate::text::{folded, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_decide::ChargedWork;

/// A board in a line; `B` is what its speed is known from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardLine<B> {
    /// As `--board` takes it.
    pub name: String,
    /// Computer that it models, in words.
    pub title: String,
    /// Clock of its processor in MHz.
    pub clock_mhz: u64,
    /// Cores that it has; one is modelled.
    pub cores: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Time of an instruction of the kernel in picoseconds.
    pub instruction_ps: u64,
    /// The least that it may be, in picoseconds.
    pub instruction_ps_low: u64,
    /// The most that it may be, in picoseconds.
    pub instruction_ps_high: u64,
    /// What that is known from.
    pub basis: B,
    /// The same in words.
    #[serde(skip)]
    pub known_from: &'static str,
}

impl<B: Serialize + JsonSchema> Document for BoardLine<B> {
    const NAME: &'static str = "board list";
}

/// A board with every price of its processor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BoardShown<B> {
    /// What a line of a list says.
    #[serde(flatten)]
    pub line: BoardLine<B>,
    /// Prices by name; the unit is its end.
    pub prices: BTreeMap<&'static str, u64>,
    /// What is charged, by what a real kernel took.
    pub charged_by_real: &'static [ChargedWork],
    /// Where each figure is from.
    pub sources: BTreeMap<String, String>,
}

impl<B: Serialize + JsonSchema> Document for BoardShown<B> {
    const NAME: &'static str = "board show";
}

/// A table of boards, of at most `width` columns.
pub fn board_table<B>(lines: &[BoardLine<B>], width: usize) -> String {
    let rows = lines.iter().map(|line| {
        vec![
            line.name.clone(),
            line.title.clone(),
            format!("{} MiB", line.memory_mib),
            price(line),
            line.known_from.to_owned(),
        ]
    });
    let head = ["name", "board", "memory", "ns an instruction", "known from"];
    table(&head, rows.collect(), width)
}

/// Where boards that do not name it have the work of programs from.
const PROGRAM: &str = "what the agent does for each system call, measured (docs/boards.md)";

/// One board in lines of at most `width` columns: every price with its source. A file need name no
/// source for `usual_program` instructions of a program.
pub fn board_text<B>(board: &BoardShown<B>, usual_program: u64, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", board.line.name, board.line.title);
    let head = format!(
        "{} MHz, {} cores (one is modelled), {} MiB; a kernel instruction takes {} ns, {}",
        board.line.clock_mhz,
        board.line.cores,
        board.line.memory_mib,
        price(&board.line),
        board.line.known_from,
    );
    let _ = writeln!(text, "{}\n", folded(&head, 0, width));
    let rows = board.prices.iter().map(|(key, value)| {
        let source = board.sources.get(&format!("cpu.{key}"));
        let source = match source {
            // A file of the user's may have another, for which it need name no source.
            None if *key == "program_instructions" && *value == usual_program => PROGRAM,
            source => source.map_or("", String::as_str),
        };
        let words: Vec<&str> = source.split_whitespace().collect();
        vec![(*key).to_owned(), value.to_string(), words.join(" ")]
    });
    text.push_str(&table(&["price", "value", "source"], rows.collect(), width));
    let _ = write!(
        text,
        "\n\nWhat is charged, by what a real kernel took (docs/boards.md):\n{}",
        table(
            &["work", "charged by real", ""],
            board.charged_by_real.iter().map(truth).collect(),
            width
        )
    );
    text
}

/// A row of what is charged by what is real.
fn truth(work: &ChargedWork) -> Vec<String> {
    let ratio = match work.least == work.most {
        true => format!("{:.2}", work.least),
        false => format!("{:.2}–{:.2}", work.least, work.most),
    };
    let remark = match work.is_right() {
        true => "within 15 %",
        false => "not within 15 %",
    };
    vec![work.name.clone(), ratio, remark.to_owned()]
}

/// The price of an instruction with its interval, in ns.
fn price<B>(line: &BoardLine<B>) -> String {
    let ns = |picoseconds: u64| picoseconds as f64 / 1000.0;
    format!(
        "{:.1} ({:.1}–{:.1})",
        ns(line.instruction_ps),
        ns(line.instruction_ps_low),
        ns(line.instruction_ps_high)
    )
}
