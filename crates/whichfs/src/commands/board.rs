//! `whichfs board`: the computers around the card, how fast they are, and how that is known.

use super::table;
use crate::failure::Outcome;
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_engine::board::{self, Basis, Board, Cpu};
use whichfs_study::{ChargedWork, charged_works};

/// A line of `board list`.
#[derive(Serialize)]
struct Line {
    name: String,
    title: String,
    clock_mhz: u64,
    cores: u64,
    memory_mib: u64,
    instruction_ps: u64,
    instruction_ps_low: u64,
    instruction_ps_high: u64,
    basis: Basis,
}

/// The document of `board show`.
#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    line: Line,
    prices: BTreeMap<&'static str, u64>,
    charged_by_real: &'static [ChargedWork],
    sources: BTreeMap<String, String>,
}

/// All shipped boards, a line each.
pub fn list(json: bool) -> Outcome<u8> {
    let boards: Vec<Board> = board::names().map(Board::open).collect::<Outcome<_>>()?;
    let lines: Vec<Line> = boards.iter().map(line).collect();
    if json {
        output::json(&lines)?;
        return Ok(0);
    }
    let rows = lines.iter().map(|line| {
        vec![
            line.name.clone(),
            line.title.clone(),
            format!("{} MiB", line.memory_mib),
            price(line),
            line.basis.words().to_owned(),
        ]
    });
    output::text_line(&table::text(
        &["name", "board", "memory", "ns an instruction", "known from"],
        rows.collect(),
    ))?;
    Ok(0)
}

/// Where boards that do not name it have the work of programs from.
const PROGRAM: &str = "what the agent does for each system call, measured (docs/boards.md)";

/// One board: every price with its source.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let board = Board::open(name)?;
    let document = Document {
        line: line(&board),
        prices: prices(&board.file.cpu),
        charged_by_real: charged_works(),
        sources: board.file.sources.clone(),
    };
    if json {
        output::json(&document)?;
        return Ok(0);
    }
    let mut text = format!("{}: {}\n\n", document.line.name, document.line.title);
    let head = format!(
        "{} MHz, {} cores (one is modelled), {} MiB; a kernel instruction takes {} ns, {}",
        document.line.clock_mhz,
        document.line.cores,
        document.line.memory_mib,
        price(&document.line),
        document.line.basis.words(),
    );
    let _ = writeln!(text, "{}\n", output::folded(&head, 0, output::width()));
    let rows = document.prices.iter().map(|(key, value)| {
        let source = document.sources.get(&format!("cpu.{key}"));
        let source = match source {
            // A file of the user's may have another, for which it need name no source.
            None if *key == "program_instructions" && *value == board::PROGRAM_INSTRUCTIONS => {
                PROGRAM
            }
            source => source.map_or("", String::as_str),
        };
        let words: Vec<&str> = source.split_whitespace().collect();
        vec![(*key).to_owned(), value.to_string(), words.join(" ")]
    });
    text.push_str(&table::text(&["price", "value", "source"], rows.collect()));
    let _ = write!(
        text,
        "\n\nWhat is charged, by what a real kernel took (docs/boards.md):\n{}",
        table::text(
            &["work", "charged by real", ""],
            charged_works().iter().map(truth).collect()
        )
    );
    output::text_line(&text)?;
    Ok(0)
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

fn line(board: &Board) -> Line {
    let cpu = &board.file.cpu;
    Line {
        name: board.name.clone(),
        title: board.file.title.clone(),
        clock_mhz: cpu.clock_mhz,
        cores: cpu.cores,
        memory_mib: board.file.memory.mib,
        instruction_ps: cpu.instruction_ps,
        instruction_ps_low: cpu.instruction_ps_low,
        instruction_ps_high: cpu.instruction_ps_high,
        basis: cpu.basis,
    }
}

/// The price of an instruction with its interval, in ns.
fn price(line: &Line) -> String {
    let ns = |picoseconds: u64| picoseconds as f64 / 1000.0;
    format!(
        "{:.1} ({:.1}–{:.1})",
        ns(line.instruction_ps),
        ns(line.instruction_ps_low),
        ns(line.instruction_ps_high)
    )
}

fn prices(cpu: &Cpu) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("atomic_ps", cpu.atomic_ps),
        ("call_ps", cpu.call_ps),
        ("checksum_byte_ps", cpu.checksum_byte_ps),
        ("compression_branch_ps", cpu.compression_branch_ps),
        ("copy_byte_ps", cpu.copy_byte_ps),
        ("fault_ns", cpu.fault_ns),
        ("fill_byte_ps", cpu.fill_byte_ps),
        ("instruction_ps", cpu.instruction_ps),
        ("interrupt_ns", cpu.interrupt_ns),
        ("loop_instruction_ps", cpu.loop_instruction_ps),
        ("program_instructions", cpu.program_instructions),
        ("switch_ns", cpu.switch_ns),
        ("syscall_ns", cpu.syscall_ns),
    ])
}
