//! Read figures: from `flashbench -a`, whose reads begin and end at powers of two, and from
//! rates of reads.

use crate::points::Point;
use crate::shape::{Free, Unit};
use crate::solve::{Prior, Row, Solution, median, solve};
use whichfs_curves::{Align, Curves};

/// Read figures of a card, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reads {
    /// Bytes of a read, if the table tells.
    pub block_bytes: Option<u64>,
    /// A read within a page, command included.
    pub within_us: f64,
    /// What crossing a page adds.
    pub page_us: f64,
    /// What crossing an AU adds to that.
    pub au_us: f64,
}

/// The figures, if the boundaries tell: those of `page_bytes` up to `au_bytes` for a page,
/// those of `au_bytes` and more for an AU.
pub(crate) fn reads(curves: &Curves, page_bytes: u64, au_bytes: u64) -> Option<Reads> {
    let lines = |from: u64, to: u64| {
        let of_range = curves.align.range(from..to);
        of_range
            .flat_map(|(_, lines)| lines)
            .copied()
            .collect::<Vec<Align>>()
    };
    let differences = |lines: Vec<Align>| lines.iter().map(|line| line[3]).collect();
    let all = lines(0, u64::MAX);
    let within_us = median(all.iter().flat_map(|line| [line[0], line[2]]).collect())?;
    let page: f64 = median(differences(lines(page_bytes, au_bytes)))?;
    let au = median(differences(lines(au_bytes, u64::MAX))).unwrap_or(page);
    Some(Reads {
        block_bytes: curves.align_block_bytes(),
        within_us,
        page_us: page.max(0.0),
        au_us: (au - page.max(0.0)).max(0.0),
    })
}

/// Figures that rates of reads tell: time per byte on the bus, and, unless they are known,
/// the first page and each further one.
const FREE: [Free; 3] = [
    read_figure(
        "bus.rate_bytes_per_s",
        Unit::Rate,
        3.77, // ln of 43.5 ns/B, which is 23 MB/s
        0.7,
        "SD high speed 25 MB/s less framing",
    ),
    read_figure(
        "read.first_page_us",
        Unit::Micros,
        12.9, // ln of 400 us in ns
        0.7,
        "cards of the data",
    ),
    read_figure(
        "read.next_page_us",
        Unit::Micros,
        11.5, // ln of 100 us in ns
        1.5,
        "cards of the data",
    ),
];

const fn read_figure(
    path: &'static str,
    unit: Unit,
    centre: f64,
    sigma: f64,
    why: &'static str,
) -> Free {
    Free {
        path,
        unit,
        prior: Prior {
            centre,
            relative: false,
            sigma,
        },
        why,
    }
}

/// What is known of reads before their rates are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub command_us: f64,
    pub page_bytes: u64,
    /// First page and each further one in microseconds, if `flashbench -a` told them.
    pub pages_us: Option<[f64; 2]>,
}

/// The read figures that times of reads at `points` tell; `None` without such points.
pub(crate) fn of_rates(points: &[Point], known: &Known) -> Option<(Vec<Free>, Solution)> {
    let rows: Vec<Row> = points
        .iter()
        .filter(|point| !point.place.order.is_write())
        .map(|point| row(point, known))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let free = FREE[..rows[0].linear.len()].to_vec();
    let priors: Vec<Prior> = free.iter().map(|free| free.prior).collect();
    let limits: Vec<(f64, f64)> = free.iter().map(|free| free.unit.limits()).collect();
    let solution = solve(&rows, &priors, &limits);
    Some((free, solution))
}

/// A read within one command, which begins at a page.
fn row(point: &Point, known: &Known) -> Row {
    let bytes = point.place.bytes;
    let further = bytes.div_ceil(known.page_bytes).saturating_sub(1) as f64;
    let command_ns = known.command_us * 1e3;
    let (constant, linear) = match known.pages_us {
        Some([first, next]) => (
            command_ns + (first + further * next) * 1e3,
            vec![bytes as f64],
        ),
        None => (command_ns, vec![bytes as f64, 1.0, further]),
    };
    Row {
        constant,
        linear,
        factored: Vec::new(),
        measured_ns: point.ns,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn steps_at_pages_and_aus_are_told_apart() {
        let line = |diff: f64| vec![[900.0, 900.0 + diff, 900.0, diff]];
        let align = (11..30)
            .map(|power| {
                let diff = match power {
                    ..14 => 3.0,
                    14..22 => 120.0,
                    _ => 200.0,
                };
                (1 << power, line(diff))
            })
            .collect();
        let curves = Curves {
            align,
            ..Curves::default()
        };
        let found = reads(&curves, 16 << 10, 4 << 20).unwrap();
        assert_eq!(
            (found.within_us, found.page_us, found.au_us),
            (900.0, 120.0, 80.0)
        );
        assert_eq!(found.block_bytes, Some(1024));
        assert_eq!(reads(&Curves::default(), 16 << 10, 4 << 20), None);
    }
}
