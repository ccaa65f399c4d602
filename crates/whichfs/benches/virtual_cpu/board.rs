//! The board that stands for this machine.

use crate::machine::Machine;
use std::path::{Path, PathBuf};

/// A shipped board from which memory and queues are taken.
const LIKE: &str = include_str!("../../../../boards/generic-1ghz.toml");
/// Memory of the guest in MiB: a gigabyte that is written stays in memory, as on the host.
const MEMORY_MIB: &str = "2048";

/// Price of a block in picoseconds before the factor is known.
pub const BLOCK_PS: f64 = 3600.0;
/// What a block of compression code costs against one of other code: see docs/boards.md.
pub const COMPRESSION: f64 = 0.31;
/// A change of the running task and an interrupt, in system calls' entries.
const SWITCH: f64 = 4.0;
const INTERRUPT: f64 = 4.0;

/// Prices in picoseconds by the names of `/proc/um_cpu`, with a block at `block` picoseconds.
pub fn prices(machine: &Machine, block: f64) -> [(&'static str, f64); 9] {
    [
        ("code", block),
        ("compression", block * COMPRESSION),
        ("copy", machine.copy_byte),
        ("fill", machine.fill_byte),
        ("checksum", machine.checksum_byte),
        ("syscall", machine.syscall),
        ("fault", machine.fault),
        ("switch", machine.syscall * SWITCH),
        ("interrupt", machine.syscall * INTERRUPT),
    ]
}

/// Writes the board's file into `directory`.
pub fn write(directory: &Path, machine: &Machine) -> PathBuf {
    let of = |wanted: &str| -> f64 {
        let prices = prices(machine, BLOCK_PS);
        let found = prices.iter().find(|(kind, _)| *kind == wanted);
        found.map_or(0.0, |(_, price)| *price)
    };
    let figures = [
        ("block_ps", of("code")),
        ("block_ps_low", of("code")),
        ("block_ps_high", of("code")),
        ("compression_block_ps", of("compression")),
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
        None => line.to_owned(),
    });
    let path = directory.join("this-machine.toml");
    let text = lines.collect::<Vec<_>>().join("\n");
    std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}
