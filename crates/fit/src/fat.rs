//! The FAT region from `flashbench -f`: leading AUs that are not like those behind them.

use crate::solve::median;
use std::collections::BTreeMap;

/// AUs from here on are taken for ordinary ones.
const ORDINARY: usize = 4;
/// Median factor from which an AU counts as different.
const DIFFERENT: f64 = 1.25;
/// Sizes from which on whole pages are written.
const PAGE_BYTES: u64 = 16 << 10;

/// Leading AUs that a card treats specially, and what writing there in order costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FatRegion {
    pub first_au: u64,
    pub aus: u64,
    pub overhead_us: f64,
    pub rate: f64,
    pub sub_page_us: f64,
}

/// The region that the runs show: the AUs before [`ORDINARY`] that differ, if they are next
/// to each other, and what writing there in order costs.
pub(crate) fn region(fat: &BTreeMap<u64, Vec<Vec<f64>>>) -> Option<FatRegion> {
    let different: Vec<usize> = (0..ORDINARY)
        .filter(|au| apart(fat, *au).is_some_and(|factor| factor.abs() > DIFFERENT.ln()))
        .collect();
    let (first, last) = (*different.first()?, *different.last()?);
    if last - first + 1 != different.len() {
        return None;
    }
    let time_us = |bytes: u64| {
        let runs = fat.get(&bytes)?;
        let rates = runs
            .iter()
            .flat_map(|run| run.get(first..=last).unwrap_or(&[]));
        Some(bytes as f64 / median(rates.copied().collect())? * 1e6)
    };
    let (small, large) = (time_us(PAGE_BYTES)?, time_us(1 << 20)?);
    let per_byte = (large - small) / ((1 << 20) - PAGE_BYTES) as f64;
    let rate = 1e6 / per_byte.max(1e-4);
    let overhead_us = (small - PAGE_BYTES as f64 * per_byte).max(0.0);
    let four_kib = time_us(4096).unwrap_or(small);
    let sub_page_us = (four_kib - overhead_us - 4096.0 * per_byte).max(0.0);
    Some(FatRegion {
        first_au: first as u64,
        aus: different.len() as u64,
        overhead_us,
        rate,
        sub_page_us,
    })
}

/// Median of ln(rate of AU `au` / median rate of ordinary AUs) over runs and sizes of a page
/// and more.
fn apart(fat: &BTreeMap<u64, Vec<Vec<f64>>>, au: usize) -> Option<f64> {
    let mut factors = Vec::new();
    for runs in fat.range(PAGE_BYTES..).map(|(_, runs)| runs) {
        for run in runs {
            let ordinary = median(run.get(ORDINARY..).unwrap_or(&[]).to_vec());
            if let (Some(rate), Some(ordinary)) = (run.get(au), ordinary) {
                factors.push((rate / ordinary).ln());
            }
        }
    }
    median(factors)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn runs(slow: &[usize]) -> BTreeMap<u64, Vec<Vec<f64>>> {
        (10..23)
            .map(|power| {
                let bytes: u64 = 1 << power;
                let rate = |au: usize| {
                    let us = if slow.contains(&au) {
                        1000.0 + bytes.max(PAGE_BYTES) as f64 / 4.0
                    } else {
                        bytes as f64 / 10.0
                    };
                    bytes as f64 / us * 1e6
                };
                (bytes, vec![(0..8).map(rate).collect()])
            })
            .collect()
    }

    #[test]
    fn leading_slow_aus_are_the_region_and_its_figures_come_back() {
        let found = region(&runs(&[0, 1])).unwrap();
        assert_eq!((found.first_au, found.aus), (0, 2));
        assert!((found.rate / 4e6 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.overhead_us - 1000.0).abs() < 1e-6);
        assert!((found.sub_page_us - 3072.0).abs() < 1.0);
        assert_eq!(region(&runs(&[1])).unwrap().first_au, 1);
    }

    #[test]
    fn no_region_where_aus_are_alike_or_differ_here_and_there() {
        assert_eq!(region(&runs(&[])), None);
        assert_eq!(region(&runs(&[0, 2])), None);
        assert_eq!(region(&BTreeMap::new()), None);
    }
}
