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
    charged_by_real: [Truth; TRUTH.len()],
    sources: BTreeMap<String, String>,
}

/// Charged time by a real kernel's after one factor for the machine, least and greatest of the
/// filesystems (docs/results/virtual-cpu-2026-11-22.md).
#[derive(Clone, Copy, Serialize)]
struct Truth {
    work: &'static str,
    least: f64,
    most: f64,
}

impl Truth {
    const fn of(work: &'static str, least: f64, most: f64) -> Truth {
        Truth { work, least, most }
    }

    /// What is to be said of work whose time is not right.
    fn remark(&self) -> &'static str {
        /// How far time may be off.
        const WITHIN: f64 = 1.15;
        match self.most <= WITHIN && self.least >= 1.0 / WITHIN {
            true => "within 15 %",
            false => "not within 15 %",
        }
    }
}

const TRUTH: [Truth; 12] = [
    Truth::of("100,000 files created (ext4, XFS, btrfs)", 0.96, 1.06),
    Truth::of("stat of them", 0.82, 0.86),
    Truth::of("deleted", 0.92, 1.18),
    Truth::of("1 GiB written (ext4, XFS, btrfs)", 0.86, 0.90),
    Truth::of("read again from memory", 0.98, 1.20),
    Truth::of("256 MiB written, btrfs with zstd", 1.08, 1.08),
    Truth::of("the same with zlib", 1.01, 1.01),
    Truth::of("the same with lzo", 0.81, 0.81),
    Truth::of("64 MiB read, squashfs with xz", 0.87, 0.87),
    Truth::of("the same with gzip", 0.72, 0.72),
    Truth::of("the same with lzo, zstd, lz4", 1.08, 1.42),
    Truth::of("the same read, EROFS with LZ4", 1.57, 1.57),
];

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

/// One board: every price with its source.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let board = Board::open(name)?;
    let document = Document {
        line: line(&board),
        prices: prices(&board.file.cpu),
        charged_by_real: TRUTH,
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
        let source = source.map_or("", String::as_str);
        let words: Vec<&str> = source.split_whitespace().collect();
        vec![(*key).to_owned(), value.to_string(), words.join(" ")]
    });
    text.push_str(&table::text(&["price", "value", "source"], rows.collect()));
    let _ = write!(
        text,
        "\n\nWhat is charged, by what a real kernel took (docs/boards.md):\n{}",
        table::text(&["work", "charged by real", ""], TRUTH.map(truth).to_vec())
    );
    output::text_line(&text)?;
    Ok(0)
}

/// A row of what is charged by what is real.
fn truth(truth: Truth) -> Vec<String> {
    let ratio = match truth.least == truth.most {
        true => format!("{:.2}", truth.least),
        false => format!("{:.2}–{:.2}", truth.least, truth.most),
    };
    vec![truth.work.to_owned(), ratio, truth.remark().to_owned()]
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
        ("switch_ns", cpu.switch_ns),
        ("syscall_ns", cpu.syscall_ns),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_off_either_way_is_named() {
        for (least, most, remark) in [
            (0.87, 1.15, "within 15 %"),
            (0.86, 1.0, "not within 15 %"),
            (1.0, 1.16, "not within 15 %"),
        ] {
            assert_eq!(Truth::of("work", least, most).remark(), remark);
        }
    }
}
