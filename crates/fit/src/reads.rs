//! Read figures from `flashbench -a`: its reads begin and end at powers of two.

use std::collections::BTreeMap;
use whichfs_curves::Align;

/// Block that the published logs read with `-a`, in bytes.
const BLOCK_BYTES: u64 = 1 << 10;

/// Read figures of a card, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reads {
    /// A read within a page, command included.
    pub within_us: f64,
    /// What crossing a page adds.
    pub page_us: f64,
    /// What crossing an AU adds to that.
    pub au_us: f64,
}

/// The figures, if the boundaries tell: those of `page_bytes` up to `au_bytes` for a page,
/// those of `au_bytes` and more for an AU.
pub(crate) fn reads(
    align: &BTreeMap<u64, Vec<Align>>,
    page_bytes: u64,
    au_bytes: u64,
) -> Option<Reads> {
    let lines = |from: u64, to: u64| {
        let of_range = align.range(from..to);
        of_range
            .flat_map(|(_, lines)| lines)
            .copied()
            .collect::<Vec<Align>>()
    };
    let differences = |lines: Vec<Align>| lines.iter().map(|line| line[3]).collect();
    let all = lines(BLOCK_BYTES * 2, u64::MAX);
    let within_us = median(all.iter().flat_map(|line| [line[0], line[2]]).collect())?;
    let page: f64 = median(differences(lines(page_bytes, au_bytes)))?;
    let au = median(differences(lines(au_bytes, u64::MAX))).unwrap_or(page);
    Some(Reads {
        within_us,
        page_us: page.max(0.0),
        au_us: (au - page.max(0.0)).max(0.0),
    })
}

/// Median of finite numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.retain(|number| number.is_finite());
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn steps_at_pages_and_aus_are_told_apart() {
        let line = |diff: f64| vec![[900.0, 900.0 + diff, 900.0, diff]];
        let align: BTreeMap<u64, Vec<Align>> = (11..30)
            .map(|power| {
                let diff = match power {
                    ..14 => 3.0,
                    14..22 => 120.0,
                    _ => 200.0,
                };
                (1 << power, line(diff))
            })
            .collect();
        let found = reads(&align, 16 << 10, 4 << 20).unwrap();
        assert_eq!(
            (found.within_us, found.page_us, found.au_us),
            (900.0, 120.0, 80.0)
        );
        assert_eq!(reads(&BTreeMap::new(), 16 << 10, 4 << 20), None);
    }
}
