//! `whichfs board`: the computers around the card, how fast they are, and how that is known.

use super::table;
use crate::board::{self, Basis, Board, Cpu};
use crate::failure::Outcome;
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A line of `board list`.
#[derive(Serialize)]
struct Line {
    name: String,
    title: String,
    clock_mhz: u64,
    cores: u64,
    memory_mib: u64,
    block_ps: u64,
    block_ps_low: u64,
    block_ps_high: u64,
    basis: Basis,
}

/// The document of `board show`.
#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    line: Line,
    prices: BTreeMap<&'static str, u64>,
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
        &["name", "board", "memory", "ns a block", "known from"],
        rows.collect(),
    ))?;
    Ok(0)
}

/// One board: every price with its source.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let board = Board::open(name)?;
    let document = Document {
        line: line(&board),
        prices: prices(&board.file.cpu),
        sources: board.file.sources.clone(),
    };
    if json {
        output::json(&document)?;
        return Ok(0);
    }
    let mut text = format!("{}: {}\n\n", document.line.name, document.line.title);
    let _ = writeln!(
        text,
        "{} MHz, {} cores (one is modelled), {} MiB; a basic block of the kernel takes {} ns, {}\n",
        document.line.clock_mhz,
        document.line.cores,
        document.line.memory_mib,
        price(&document.line),
        document.line.basis.words(),
    );
    let rows = document.prices.iter().map(|(key, value)| {
        let source = document.sources.get(&format!("cpu.{key}"));
        let source = source.map_or("", String::as_str);
        let words: Vec<&str> = source.split_whitespace().collect();
        vec![(*key).to_owned(), value.to_string(), words.join(" ")]
    });
    text.push_str(&table::text(&["price", "value", "source"], rows.collect()));
    output::text_line(&text)?;
    Ok(0)
}

fn line(board: &Board) -> Line {
    let cpu = &board.file.cpu;
    Line {
        name: board.name.clone(),
        title: board.file.title.clone(),
        clock_mhz: cpu.clock_mhz,
        cores: cpu.cores,
        memory_mib: board.file.memory.mib,
        block_ps: cpu.block_ps,
        block_ps_low: cpu.block_ps_low,
        block_ps_high: cpu.block_ps_high,
        basis: cpu.basis,
    }
}

/// The price of a block with its interval, in ns.
fn price(line: &Line) -> String {
    let ns = |picoseconds: u64| picoseconds as f64 / 1000.0;
    format!(
        "{:.1} ({:.1}–{:.1})",
        ns(line.block_ps),
        ns(line.block_ps_low),
        ns(line.block_ps_high)
    )
}

fn prices(cpu: &Cpu) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("block_ps", cpu.block_ps),
        ("checksum_byte_ps", cpu.checksum_byte_ps),
        ("compression_block_ps", cpu.compression_block_ps),
        ("copy_byte_ps", cpu.copy_byte_ps),
        ("fault_ns", cpu.fault_ns),
        ("fill_byte_ps", cpu.fill_byte_ps),
        ("interrupt_ns", cpu.interrupt_ns),
        ("switch_ns", cpu.switch_ns),
        ("syscall_ns", cpu.syscall_ns),
    ])
}
