//! `whichfs board`: the computers around the card, how fast they are, and how that is known.

use crate::failure::Outcome;
use crate::output;
use std::collections::BTreeMap;
use whichfs_decide::charged_works;
use whichfs_engine::board::{self, Board, Cpu, SpeedBasis};
use whichfs_report::documents::board::{BoardLine, BoardShown, board_table, board_text};

/// All shipped boards, a line each.
pub fn list(json: bool) -> Outcome<u8> {
    let boards: Vec<Board> = board::names().map(Board::open).collect::<Outcome<_>>()?;
    let lines: Vec<BoardLine<SpeedBasis>> = boards.iter().map(line).collect();
    match json {
        true => output::list(&lines)?,
        false => output::text_line(&board_table(&lines, output::width()))?,
    }
    Ok(0)
}

/// One board: every price with its source.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let board = Board::open(name)?;
    let document = BoardShown {
        line: line(&board),
        prices: prices(&board.file.cpu),
        charged_by_real: charged_works(),
        sources: board.file.sources.clone(),
    };
    let usual = board::PROGRAM_INSTRUCTIONS;
    match json {
        true => output::document(&document)?,
        false => output::text_line(&board_text(&document, usual, output::width()))?,
    }
    Ok(0)
}

fn line(board: &Board) -> BoardLine<SpeedBasis> {
    let cpu = &board.file.cpu;
    BoardLine {
        name: board.name.clone(),
        title: board.file.title.clone(),
        clock_mhz: cpu.clock_mhz,
        cores: cpu.cores,
        memory_mib: board.file.memory.mib,
        instruction_ps: cpu.instruction_ps,
        instruction_ps_low: cpu.instruction_ps_low,
        instruction_ps_high: cpu.instruction_ps_high,
        basis: cpu.basis,
        known_from: cpu.basis.words(),
    }
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
