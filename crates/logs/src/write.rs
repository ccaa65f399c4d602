//! Writes curves as flashbench prints them, digit by digit, cut units included.
//!
//! `-a`, `-O` and `-f` print no word about how they were called. [`flashbench_text`] therefore
//! puts the command above each test, as a shell's transcript has it; the reader takes the
//! number of open AUs from there. The other functions print what the program alone prints.

use crate::units::{print_block, print_rate, print_time};
use std::fmt::Write;
use whichfs_curves::{Curves, Rates};

/// Output of `flashbench -a`: replicate after replicate, from the largest boundary down.
pub fn align_text(curves: &Curves) -> String {
    let replicates = curves.align.values().map(Vec::len).max().unwrap_or(0);
    (0..replicates)
        .map(|i| align_replicate(curves, i))
        .collect()
}

fn align_replicate(curves: &Curves, replicate: usize) -> String {
    let mut out = String::new();
    for (boundary, lines) in curves.align.iter().rev() {
        if let Some(line) = lines.get(replicate) {
            let [pre, on, post, diff] = line.map(|us| print_time((us * 1e3).round() as i64));
            let _ = writeln!(
                out,
                "align {boundary}\tpre {pre}\ton {on}\tpost {post}\tdiff {diff}"
            );
        }
    }
    out
}

/// Output of `flashbench -O` for one number of open AUs, from the largest block down.
pub fn open_au_text(rates: &Rates) -> String {
    let mut out = String::new();
    for (&block, &rate) in rates.iter().rev() {
        let _ = writeln!(out, "{:<7} {:<7} ", print_block(block), printed(rate));
    }
    out
}

/// Output of `flashbench -f`: replicate after replicate, from the largest block down.
pub fn fat_text(curves: &Curves) -> String {
    let replicates = curves.fat.values().map(Vec::len).max().unwrap_or(0);
    (0..replicates).map(|i| fat_replicate(curves, i)).collect()
}

fn fat_replicate(curves: &Curves, replicate: usize) -> String {
    let mut out = String::new();
    for (&block, runs) in curves.fat.iter().rev() {
        if let Some(rates) = runs.get(replicate) {
            let _ = write!(out, "{:<7} ", print_block(block));
            for &rate in rates {
                let _ = write!(out, "{:<7}  ", printed(rate));
            }
            out.push('\n');
        }
    }
    out
}

/// All tests of `curves` as the transcript of a shell, each under the command that prints it.
/// [`crate::read`] reads it back, with three significant digits.
pub fn flashbench_text(curves: &Curves) -> String {
    let mut out = String::new();
    let align = curves.align.values().map(Vec::len).max().unwrap_or(0);
    let read = curves
        .align
        .keys()
        .next()
        .map_or(1024, |boundary| boundary / 2);
    for i in 0..align {
        let _ = writeln!(out, "$ flashbench -a --blocksize={read} DEVICE");
        out.push_str(&align_replicate(curves, i));
    }
    let tests = curves.linear.values().chain(curves.random.values());
    let blocks = tests.filter_map(|rates| rates.keys().next_back());
    let erase = blocks.chain(curves.fat.keys().next_back()).max();
    let erase = erase.copied().unwrap_or(4 << 20);
    let fat = curves.fat.values().map(Vec::len).max().unwrap_or(0);
    for i in 0..fat {
        let of_replicate = |runs: &Vec<Vec<f64>>| runs.get(i).map(Vec::len);
        let aus = curves
            .fat
            .values()
            .filter_map(of_replicate)
            .max()
            .unwrap_or(0);
        let block = curves.fat.keys().next().unwrap_or(&erase);
        let _ = writeln!(
            out,
            "$ flashbench -f --fat-nr={aus} --erasesize={erase} --blocksize={block} DEVICE"
        );
        out.push_str(&fat_replicate(curves, i));
    }
    for (flag, tests) in [("", &curves.linear), (" --random", &curves.random)] {
        for (aus, rates) in tests {
            let block = rates.keys().next().unwrap_or(&erase);
            let _ = writeln!(
                out,
                "$ flashbench -O --open-au-nr={aus}{flag} --erasesize={erase} \
                 --blocksize={block} DEVICE"
            );
            out.push_str(&open_au_text(rates));
        }
    }
    out
}

/// flashbench computes in whole bytes a second.
fn printed(rate: f64) -> String {
    print_rate(rate as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_is_the_programs_byte_for_byte() {
        let mut curves = Curves::default();
        curves
            .align
            .insert(8192, vec![[1480.0, 1460.0, 1460.0, -8.994]]);
        curves.fat.insert(1 << 20, vec![vec![2.59e6, 817e3]]);
        assert_eq!(
            align_text(&curves),
            "align 8192\tpre 1.48ms\ton 1.46ms\tpost 1.46ms\tdiff -8994ns\n"
        );
        assert_eq!(fat_text(&curves), "1MiB    2.59M/s  817K/s   \n");
        let rates = [(4 << 20, 3.95e6), (128 << 10, 938e3)].into();
        assert_eq!(open_au_text(&rates), "4MiB    3.95M/s \n128KiB  938K/s  \n");
    }
}
