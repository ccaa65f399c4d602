//! The board that stands for this machine.

use crate::machine::Machine;
use std::path::{Path, PathBuf};

/// A shipped board from which memory and queues are taken.
const LIKE: &str = include_str!("../../../../boards/generic-1ghz.toml");
/// Memory of the guest in MiB: a gigabyte that is written stays in memory, as on the host.
const MEMORY_MIB: &str = "2048";

/// Price of an instruction in picoseconds before the factor is known.
pub const INSTRUCTION_PS: f64 = 333.0;
/// An instruction of an innermost loop, and a branch of compression code, in instructions: see
/// docs/boards.md.
const LOOP: f64 = 0.25;
const COMPRESSION: f64 = 3.9;
/// Instructions and calls of a system call that does nothing: they are counted.
const NULL: (f64, f64) = (49.0, 5.0);
/// A change of the running task and an interrupt, in system calls' entries.
const SWITCH: f64 = 4.0;
const INTERRUPT: f64 = 4.0;

/// Prices in picoseconds by the names of `/proc/um_cpu`, with one for an `instruction`.
pub fn prices(machine: &Machine, instruction: f64) -> [(&'static str, f64); 12] {
    let entry = (machine.syscall - NULL.0 * instruction - NULL.1 * machine.call).max(0.0);
    [
        ("code", instruction),
        ("loop", instruction * LOOP),
        ("compression", instruction * COMPRESSION),
        ("call", machine.call),
        ("atomic", machine.atomic),
        ("copy", machine.copy_byte),
        ("fill", machine.fill_byte),
        ("checksum", machine.checksum_byte),
        ("syscall", entry),
        ("fault", machine.fault),
        ("switch", machine.syscall * SWITCH),
        ("interrupt", machine.syscall * INTERRUPT),
    ]
}

/// Writes the board's file into `directory`.
pub fn write(directory: &Path, machine: &Machine) -> PathBuf {
    let of = |wanted: &str| -> f64 {
        let prices = prices(machine, INSTRUCTION_PS);
        let found = prices.iter().find(|(kind, _)| *kind == wanted);
        found.map_or(0.0, |(_, price)| *price)
    };
    let figures = [
        ("instruction_ps", of("code")),
        ("instruction_ps_low", of("code")),
        ("instruction_ps_high", of("code")),
        ("loop_instruction_ps", of("loop")),
        ("compression_branch_ps", of("compression")),
        ("call_ps", of("call")),
        ("atomic_ps", of("atomic")),
        ("copy_byte_ps", of("copy")),
        ("fill_byte_ps", of("fill")),
        ("checksum_byte_ps", of("checksum")),
        ("syscall_ns", of("syscall") / 1000.0),
        ("fault_ns", of("fault") / 1000.0),
        ("switch_ns", of("switch") / 1000.0),
        ("interrupt_ns", of("interrupt") / 1000.0),
    ];
    let lines = LIKE.lines().map(|line| match line.split_once(" = ") {
        Some(("mib", _)) => format!("mib = {MEMORY_MIB}"),
        Some((key, _)) => match figures.iter().find(|(name, _)| *name == key) {
            Some((name, value)) => format!("{name} = {value:.0}"),
            None => line.to_owned(),
        },
        // Natively the program's own work is in its CPU time, which is next to nothing.
        None if line == "[cpu]" => "[cpu]\nprogram_instructions = 0".to_owned(),
        None => line.to_owned(),
    });
    let path = directory.join("this-machine.toml");
    let text = lines.collect::<Vec<_>>().join("\n");
    std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}
