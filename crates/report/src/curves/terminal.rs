//! Curves as text of at most 80 columns, in ASCII except for µ.

use super::{blocks, decade, decades, panels, size, steps};
use std::fmt::Write;
use whichfs_curves::{Curves, Rates};

const WIDTH: usize = 80;
/// Columns of the labels on the left, with their rule.
const LABEL: usize = 11;
/// Rows of a decade.
const ROWS: i32 = 4;
/// Longest bar of a step.
const BAR: usize = 48;

/// Draws `curves` under the title `name`.
pub fn terminal(name: &str, curves: &Curves) -> String {
    let mut out = String::new();
    let title: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(WIDTH)
        .collect();
    let _ = writeln!(out, "{title}");
    for (title, tests) in panels(curves) {
        panel(&mut out, title, &tests);
    }
    bars(&mut out, curves);
    if *curves == Curves::default() {
        out.push_str("no curves\n");
    }
    out
}

/// One test: a mark for each number of open AUs, over block sizes, on a logarithmic scale.
fn panel(out: &mut String, title: &str, tests: &[(u32, &Rates)]) {
    let blocks = blocks(tests);
    let (low, high) = decades(tests);
    let step = ((WIDTH - LABEL) / blocks.len().max(1)).clamp(1, 6);
    let shown = blocks.len().min((WIDTH - LABEL) / step);
    let blocks = &blocks[blocks.len() - shown..];
    let height = ((high - low) * ROWS + 1) as usize;
    let mut grid = vec![vec![' '; shown * step]; height];
    for (aus, rates) in tests {
        for (column, block) in blocks.iter().enumerate() {
            let Some(&rate) = rates.get(block).filter(|rate| **rate > 0.0) else {
                continue;
            };
            let up = ((rate.log10() - f64::from(low)) * f64::from(ROWS)).round();
            let row = height - 1 - (up.max(0.0) as usize).min(height - 1);
            let cell = &mut grid[row][column * step + step / 2];
            *cell = if *cell == ' ' { mark(*aus) } else { '*' };
        }
    }
    let legend: Vec<String> = tests
        .iter()
        .map(|(aus, _)| format!("{}: {aus}", mark(*aus)))
        .collect();
    let _ = writeln!(
        out,
        "\n{title}, by open AUs ({}; *: several)",
        legend.join(", ")
    );
    for (row, cells) in grid.iter().enumerate() {
        let above = (height - 1 - row) as i32;
        let label = if above % ROWS == 0 {
            decade(low + above / ROWS)
        } else {
            String::new()
        };
        let line: String = cells.iter().collect();
        let _ = writeln!(out, "{label:>9} |{}", line.trim_end());
    }
    let _ = writeln!(out, "{:>9} +{}", "", "-".repeat(shown * step));
    let labels: String = blocks
        .iter()
        .map(|&block| format!("{:^step$}", size(block)))
        .collect();
    if step == 6 {
        let _ = writeln!(out, "{:>9}  {}", "block", labels.trim_end());
    } else {
        let ends = blocks.first().zip(blocks.last());
        let ends = ends.map(|(a, b)| format!("{} to {}", size(*a), size(*b)));
        let _ = writeln!(out, "{:>9}  {}", "block", ends.unwrap_or_default());
    }
}

/// The last digit of the number of open AUs.
fn mark(aus: u32) -> char {
    char::from_digit(aus % 10, 10).unwrap_or('?')
}

/// The steps of the alignment test.
fn bars(out: &mut String, curves: &Curves) {
    let steps = steps(curves);
    let largest = steps.iter().fold(0.0_f64, |all, step| all.max(step.1));
    if steps.is_empty() {
        return;
    }
    out.push_str("\nreads across boundaries, extra time in µs (median)\n");
    for (boundary, us) in steps {
        let length = if largest > 0.0 && us > 0.0 {
            (us / largest * BAR as f64).round() as usize
        } else {
            0
        };
        let line = format!("{:>9} |{:>9.1} {}", size(boundary), us, "#".repeat(length));
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small card whose second AU of random writes collapses.
    fn curves() -> Curves {
        let rates = |per: f64| {
            (12..23)
                .map(|i| (1 << i, per * f64::from(i - 11)))
                .collect()
        };
        let mut curves = Curves::default();
        for (aus, per) in [(1, 1e6), (3, 9e5), (5, 1e3), (7, 1.2e4)] {
            curves.linear.insert(aus, rates(per));
        }
        curves.random.insert(1, rates(2e5));
        curves.random.insert(2, rates(3e2));
        curves.align.insert(8192, vec![[100.0, 103.0, 100.0, 3.0]]);
        let replicates = [180.0, 200.0, 500.0].map(|diff| [100.0, 100.0 + diff, 100.0, diff]);
        curves.align.insert(4 << 20, replicates.to_vec());
        curves.align.insert(2048, vec![[100.0, 98.0, 100.0, -2.0]]);
        curves
    }

    #[test]
    fn a_card_is_drawn_as_it_was() {
        assert_eq!(terminal("card", &curves()), include_str!("card.txt"));
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut curves = curves();
        let many: Rates = (1..200).map(|i| (i * 512, 1e6 / i as f64)).collect();
        curves.linear.insert(1, many);
        curves.align.insert(u64::MAX, vec![[1.0, 1e9, 1.0, 1e9]]);
        for name in ["", "card", &"long ".repeat(40)] {
            for line in terminal(name, &curves).lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
        assert_eq!(terminal("none", &Curves::default()), "none\nno curves\n");
    }
}
