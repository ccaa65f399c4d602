//! How far the times of real cards scatter: computed from the raw logs of Wirenboard's cards
//! (github wirenboard/sdcard_benchmark, MIT; `data/wirenboard.json`), 33 runs of flashbench.
//!
//! - **Each read.** `-a` was run three times: what the three differ by is no place. The line is a
//!   mean of seven places, `on - (pre + post) / 2`, so one read scatters √(7 / 1.5) times as much.
//!   (flashbench keeps the fastest of 50 tries: a single one may scatter more.)
//! - **Place.** What neighbouring levels of `-a` differ by where there is no step (their 40 %
//!   quantile), the medians of the three runs: times the same root.
//! - **Each write.** `-f` writes each of the first AUs in blocks: what the mean rates of those from
//!   the fourth on differ by, times the root of the number of blocks in one; the median over
//!   blocks of 64 KiB to 4 MiB.
//! - **Tail.** Of the writes of a whole AU, one request each, the share that took more than
//!   twice the usual.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Reads of a line of `-a` and their weights: a mean of seven places, 1 + 1/4 + 1/4.
const READS_OF_LINE: f64 = 7.0 / 1.5;
/// An AU of flashbench's tests, in bytes.
const AU: u64 = 4 << 20;
/// Smallest block that is looked at: means of more requests are rounded too much.
const LEAST_BLOCK: u64 = 64 << 10;
/// The first AUs, which may be a FAT region.
const FIRST: usize = 3;
/// Share of the runs at either end that is left out: a slow USB reader, an odd card.
const OUTER: f64 = 0.1;

#[derive(Deserialize)]
struct Run {
    al: BTreeMap<u64, Vec<[f64; 4]>>,
    fat: BTreeMap<u64, Vec<Vec<f64>>>,
}

/// Noise that real cards have: least and most of each, without the outer tenths of the runs.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// Of the time of a read, as a standard deviation.
    pub each: (f64, f64),
    /// The same, of a place.
    pub positional: (f64, f64),
    /// Of the time of a write.
    pub write: (f64, f64),
    /// Requests in a thousand, in the mean of all runs, that take much longer.
    pub tail_permille: f64,
}

/// The levels of the logs.
pub static LEVELS: LazyLock<Levels> = LazyLock::new(|| {
    let runs: BTreeMap<String, Run> =
        serde_json::from_str(include_str!("../data/wirenboard.json")).unwrap();
    let runs: Vec<Run> = runs.into_values().collect();
    Levels {
        each: inner(runs.iter().filter_map(each_read)),
        positional: inner(runs.iter().filter_map(place)),
        write: inner(runs.iter().filter_map(each_write)),
        tail_permille: tail(&runs),
    }
});

fn quantile(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = q * last as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(values.into_iter().collect(), 0.5)
}

/// The levels without the outer tenths.
fn inner(levels: impl Iterator<Item = f64>) -> (f64, f64) {
    let levels: Vec<f64> = levels.collect();
    let at = |q| quantile(levels.clone(), q).unwrap();
    (at(OUTER), at(1.0 - OUTER))
}

/// Time of a read, in microseconds.
fn read_us(run: &Run) -> Option<f64> {
    median(run.al.values().flatten().map(|line| line[0]))
}

/// Standard deviation of a few values.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}

fn each_read(run: &Run) -> Option<f64> {
    let repeated = run.al.values().filter(|lines| lines.len() > 1);
    let differ = repeated.map(|lines| {
        let extra: Vec<f64> = lines.iter().map(|line| line[3]).collect();
        deviation(&extra)
    });
    Some(median(differ)? / read_us(run)? * READS_OF_LINE.sqrt())
}

fn place(run: &Run) -> Option<f64> {
    if run.al.values().all(|lines| lines.len() < 2) {
        return None;
    }
    let levels: Vec<f64> = run
        .al
        .values()
        .filter_map(|lines| median(lines.iter().map(|line| line[3])))
        .collect();
    let differ = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    // 0.74 is this quantile of the absolute difference of two standard normal variables.
    let between = quantile(differ.collect(), 0.4)? / 0.74;
    Some(between / read_us(run)? * READS_OF_LINE.sqrt())
}

/// Times of the AUs behind the first ones, in seconds.
fn times(runs: &[Vec<f64>]) -> Vec<f64> {
    let behind = runs.iter().flat_map(|rates| rates.iter().skip(FIRST));
    behind.map(|rate| AU as f64 / rate).collect()
}

fn each_write(run: &Run) -> Option<f64> {
    let of_block = run.fat.range(LEAST_BLOCK..).filter_map(|(block, runs)| {
        let times = times(runs);
        let usual = median(times.iter().copied())?;
        // 1.4826 turns a median absolute deviation into a standard one.
        let off = 1.4826 * median(times.iter().map(|time| (time - usual).abs()))?;
        Some(off / usual * ((AU / block) as f64).sqrt())
    });
    median(of_block)
}

fn tail(runs: &[Run]) -> f64 {
    let (mut long, mut all) = (0.0, 0.0);
    for run in runs {
        let times = run.fat.get(&AU).map(|runs| times(runs)).unwrap_or_default();
        let Some(usual) = median(times.iter().copied()) else {
            continue;
        };
        long += times.iter().filter(|time| **time > 2.0 * usual).count() as f64;
        all += times.len() as f64;
    }
    1000.0 * long / all
}
