//! Lab against native, as a table.

use crate::board::{INSTRUCTION_PS, prices};
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
    /// CPU time natively, the least of all runs.
    pub native_ns: f64,
    /// Longest run by the shortest.
    pub spread: f64,
    /// What the lab counted.
    pub counts: BTreeMap<String, u64>,
}

impl Row {
    /// Whether the factor is found by it; what is not is judged.
    fn calibrates(&self) -> bool {
        self.work.starts_with("mixed")
    }

    /// Time charged in the lab with an instruction at so many picoseconds, in ns.
    fn lab_ns(&self, machine: &Machine, instruction: f64) -> f64 {
        let count = |kind: &str| self.counts.get(kind).copied().unwrap_or(0) as f64;
        let prices = prices(machine, instruction);
        prices
            .iter()
            .map(|(kind, price)| count(kind) * price)
            .sum::<f64>()
            / 1000.0
    }
}

/// The price of an instruction by which the mean of the logarithms of lab by native is zero, over
/// the work that is not judged. Without any it is the usual price.
fn calibrate(rows: &[Row], machine: &Machine) -> f64 {
    if !rows.iter().any(Row::calibrates) {
        return INSTRUCTION_PS;
    }
    let error = |instruction: f64| -> f64 {
        let work = rows.iter().filter(|row| row.calibrates());
        work.map(|row| (row.lab_ns(machine, instruction) / row.native_ns).ln())
            .sum()
    };
    let (mut low, mut high) = (INSTRUCTION_PS / 100.0, INSTRUCTION_PS * 100.0);
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
    let instruction = calibrate(rows, machine);
    println!(
        "\none factor: {instruction:.0} ps an instruction\n\n\
         | work | on | native ms | runs differ by | lab ms | lab/native | |\n\
         |---|---|---:|---:|---:|---:|---|"
    );
    for row in rows {
        let (native, lab) = (row.native_ns, row.lab_ns(machine, instruction));
        println!(
            "| {} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {} |",
            row.work,
            row.name,
            native / 1e6,
            row.spread,
            lab / 1e6,
            lab / native,
            match row.calibrates() {
                true => "calibrates",
                false => mark(lab / native, WITHIN),
            },
        );
    }
    println!("\n| work | ratio of | native | lab | lab/native | |\n|---|---|---:|---:|---:|---|");
    let judged = |(_, row): &(usize, &Row)| !row.calibrates();
    for (at, row) in rows.iter().enumerate().filter(judged) {
        for other in rows[..at].iter().filter(|other| other.work == row.work) {
            let native = row.native_ns / other.native_ns;
            let lab = row.lab_ns(machine, instruction) / other.lab_ns(machine, instruction);
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
