//! Pictures of a card's curves: rates by block size for a few numbers of open AUs, and the
//! steps of the alignment test; as text of 80 columns ([`terminal`]) and as SVG ([`svg`]).

mod svg;
mod terminal;

pub use svg::svg;
pub use terminal::terminal;

use std::collections::BTreeMap;
use whichfs_curves::{Curves, Rates};

/// Numbers of open AUs that are drawn where they were measured.
const SHOWN: [u32; 3] = [1, 3, 7];

/// The tests of `curves` that are drawn: title, and open AUs with their rates.
fn panels(curves: &Curves) -> Vec<(&'static str, Vec<(u32, &Rates)>)> {
    let tests = [
        ("linear writes", &curves.linear),
        ("random writes", &curves.random),
    ];
    let panels = tests.map(|(title, tests)| (title, shown(tests)));
    panels
        .into_iter()
        .filter(|(_, tests)| !tests.is_empty())
        .collect()
}

/// 1, 3 and 7 open AUs; where one is missing, up to three from least to most.
fn shown(tests: &BTreeMap<u32, Rates>) -> Vec<(u32, &Rates)> {
    let measured: Vec<(u32, &Rates)> = tests
        .iter()
        .filter(|(_, rates)| !rates.is_empty())
        .map(|(&aus, rates)| (aus, rates))
        .collect();
    if SHOWN.iter().all(|aus| measured.iter().any(|m| m.0 == *aus)) {
        return measured
            .into_iter()
            .filter(|(aus, _)| SHOWN.contains(aus))
            .collect();
    }
    let last = measured.len().saturating_sub(1);
    let mut places = vec![0, last / 2, last];
    places.dedup();
    places
        .into_iter()
        .filter_map(|at| measured.get(at).copied())
        .collect()
}

/// Block sizes of all `tests`, ascending.
fn blocks(tests: &[(u32, &Rates)]) -> Vec<u64> {
    let mut blocks: Vec<u64> = tests
        .iter()
        .flat_map(|(_, rates)| rates.keys().copied())
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

/// The decades that hold all rates of `tests`, as powers of ten.
fn decades(tests: &[(u32, &Rates)]) -> (i32, i32) {
    let rates = tests.iter().flat_map(|(_, rates)| rates.values());
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for &rate in rates.filter(|rate| rate.is_finite() && **rate > 0.0) {
        low = low.min(rate);
        high = high.max(rate);
    }
    if high == 0.0 {
        return (0, 1);
    }
    let low = low.log10().floor() as i32;
    (low, (high.log10().ceil() as i32).max(low + 1))
}

/// Boundaries with the median of `on - (pre + post) / 2` in microseconds, largest first.
fn steps(curves: &Curves) -> Vec<(u64, f64)> {
    let median = |lines: &Vec<[f64; 4]>| {
        let mut diffs: Vec<f64> = lines.iter().map(|line| line[3]).collect();
        diffs.sort_unstable_by(f64::total_cmp);
        diffs.get(diffs.len() / 2).copied()
    };
    let steps = curves.align.iter().rev();
    steps
        .filter_map(|(&boundary, lines)| Some((boundary, median(lines)?)))
        .collect()
}

/// `4K`, `1.5M`: a size in binary units.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!(
        "{}{}",
        text.strip_suffix(".0").unwrap_or(&text),
        UNITS[unit]
    )
}

/// `10 kB/s`: a power of ten as a rate.
fn decade(power: i32) -> String {
    let unit = match power.div_euclid(3) {
        0 => "B/s",
        1 => "kB/s",
        2 => "MB/s",
        3 => "GB/s",
        _ => return format!("1e{power} B/s"),
    };
    format!("{} {unit}", 10_u32.pow(power.rem_euclid(3) as u32))
}
