//! Lab against native, as a table.

use crate::board::{BLOCK_PS, COMPRESSION, prices};
use crate::machine::Machine;
use std::collections::BTreeMap;

/// How far the lab may be off after the one factor.
const WITHIN: f64 = 0.15;
/// How far the ratio of two filesystems may be off.
const RATIO_WITHIN: f64 = 0.10;

/// One phase on one filesystem.
pub struct Row {
    /// Work and phase.
    pub work: String,
    /// Filesystem or compressor.
    pub name: String,
    /// CPU time natively, median.
    pub native_ns: f64,
    /// Longest run by the shortest.
    pub spread: f64,
    /// What the lab counted.
    pub counts: BTreeMap<String, u64>,
}

impl Row {
    /// Time charged in the lab with a block at `block` picoseconds, in ns.
    fn lab_ns(&self, machine: &Machine, block: f64) -> f64 {
        let count = |kind: &str| self.counts.get(kind).copied().unwrap_or(0) as f64;
        let prices = prices(machine, block);
        prices
            .iter()
            .map(|(kind, price)| count(kind) * price)
            .sum::<f64>()
            / 1000.0
    }
}

/// The price of a block by which the mean of the logarithms of lab by native is zero, over
/// the work on filesystems: the bare system calls run from warm caches and tell of boards.
fn calibrate(rows: &[Row], machine: &Machine) -> f64 {
    let error = |block: f64| -> f64 {
        let work = rows.iter().filter(|row| !row.work.starts_with("calls"));
        work.map(|row| (row.lab_ns(machine, block) / row.native_ns).ln())
            .sum()
    };
    let (mut low, mut high) = (BLOCK_PS / 100.0, BLOCK_PS * 100.0);
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        match error(middle) < 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Prints the factor, the table, and the ratios between filesystems.
pub fn print(rows: &[Row], machine: &Machine) {
    if rows.is_empty() {
        return println!("nothing was measured");
    }
    let block = calibrate(rows, machine);
    println!(
        "\none factor: {block:.0} ps a block (compression {:.0} ps)\n\n\
         | work | on | native ms | runs differ by | lab ms | lab/native | |\n\
         |---|---|---:|---:|---:|---:|---|",
        block * COMPRESSION
    );
    for row in rows {
        let (native, lab) = (row.native_ns, row.lab_ns(machine, block));
        println!(
            "| {} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {} |",
            row.work,
            row.name,
            native / 1e6,
            row.spread,
            lab / 1e6,
            lab / native,
            mark(lab / native, WITHIN),
        );
    }
    println!("\n| work | ratio of | native | lab | lab/native | |\n|---|---|---:|---:|---:|---|");
    for (at, row) in rows.iter().enumerate() {
        for other in rows[..at].iter().filter(|other| other.work == row.work) {
            let native = row.native_ns / other.native_ns;
            let lab = row.lab_ns(machine, block) / other.lab_ns(machine, block);
            println!(
                "| {} | {} : {} | {native:.2} | {lab:.2} | {:.2} | {} |",
                row.work,
                row.name,
                other.name,
                lab / native,
                mark(lab / native, RATIO_WITHIN),
            );
        }
    }
}

/// Whether a ratio is within a bound of one, either way.
fn mark(ratio: f64, within: f64) -> &'static str {
    match ratio.max(1.0 / ratio) <= 1.0 + within {
        true => "within",
        false => "off",
    }
}
