//! The alignment test of a probe as bars of a terminal of 80 columns.

use std::fmt::Write as _;
use whichfs_probe::{Findings, Quantity};
use whichfs_units::Bytes;

/// Columns of the bars.
const BAR: usize = 40;

/// The extra time of reads across boundaries as bars, with what was found beside them;
/// `ascii` avoids block characters. Empty if the test was not made.
pub fn boundaries_text(findings: &Findings, ascii: bool) -> String {
    let Some(test) = &findings.measured.align else {
        return String::new();
    };
    let most = test
        .levels
        .iter()
        .map(|l| l.extra_us.median)
        .fold(1.0, f64::max);
    let mut text = String::from("extra time of a read across odd multiples of\n");
    for level in &test.levels {
        let eighths = (8.0 * BAR as f64 * level.extra_us.median.max(0.0) / most).round() as usize;
        let _ = writeln!(
            text,
            "{:>9} {:>6.0} µs {}{}",
            Bytes(level.bytes).to_string(),
            level.extra_us.median,
            bar(eighths, ascii),
            named(findings, level.bytes)
        );
    }
    text
}

/// A bar of so many eighths of a column.
fn bar(eighths: usize, ascii: bool) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if ascii {
        return "#".repeat((eighths + 4) / 8);
    }
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// What begins at this level.
fn named(findings: &Findings, bytes: u64) -> String {
    let names = [
        (Quantity::PageBytes, "page"),
        (Quantity::WriteUnitBytes, "unit"),
        (Quantity::AuBytes, "AU"),
        (Quantity::ZoneBytes, "zone"),
    ];
    names
        .into_iter()
        .filter_map(|(quantity, name)| {
            let found = findings.value(quantity)?.whole();
            let here = 1_u64 << found.trailing_zeros() == bytes;
            here.then(|| format!(" {name} {}", Bytes(found)))
        })
        .collect()
}
