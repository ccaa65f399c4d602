//! What saved tables of flashbench's `-O` and `-f` tell of rates and of the first AUs.
//!
//! `-O` with one AU writes it in order, block size by block size: its rates are those of a stream
//! within an AU. `-f` writes the first AUs in the same way, one after the other: those that differ
//! from the ones behind at most block sizes have another mapping (`flash.md` §2.5).

use crate::evidence::Streams;
use crate::findings::{Finding, Quantity, Value};
use crate::infer::best;
use crate::stats::median;
use std::collections::BTreeMap;
use whichfs_curves::{Curves, Rates};
use whichfs_units::{KIB, MIB};

/// AUs that may be a FAT region; those behind are what they are compared with.
const FIRST: usize = 4;
/// AUs behind them that tell what is usual.
const BEHIND: usize = 2;
/// Known regions begin at the first AU or at the second.
const BEGINS_MOST: usize = 1;
/// Block sizes that are compared: smaller ones differ for other reasons.
const BLOCKS: std::ops::RangeInclusive<u64> = 16 * KIB..=MIB;
/// Rates that differ by less, as a difference of logarithms, are of one mapping: regions differ by
/// 0.33 and more in Wirenboard's logs, other AUs at the beginning by up to 0.21.
const DIFFERENT: f64 = 0.27;
/// Confidence of rates of an AU or a few: nothing tells of zones and caches.
const SURE: f64 = 0.85;

/// Inserts rates and the FAT region.
pub(crate) fn insert(curves: &Curves, values: &mut BTreeMap<Quantity, Finding>) {
    let (size, rate) = rates(curves);
    values.insert(Quantity::BestWriteBytes, size);
    values.insert(Quantity::WriteMbS, rate);
    let (count, first) = fat(&curves.fat);
    values.insert(Quantity::FatAus, count);
    values.insert(Quantity::FatFirstAu, first);
}

/// Best size and rate, from the tables with the fewest AUs.
fn rates(curves: &Curves) -> (Finding, Finding) {
    let behind = behind(&curves.fat);
    let (rates, what) = match curves.linear.iter().find(|(_, rates)| !rates.is_empty()) {
        Some((1, rates)) => (rates, "flashbench -O, one AU".to_owned()),
        None if !behind.is_empty() => (&behind, "flashbench -f, AUs behind the first".to_owned()),
        Some((aus, rates)) => (rates, format!("flashbench -O, {aus} AUs in turns")),
        None => {
            let none = Finding::none("no table of flashbench -O or -f");
            return (none.clone(), none);
        }
    };
    let rates = rates.iter().filter(|(_, rate)| **rate > 0.0);
    let streams = Streams {
        rates: rates.map(|(size, rate)| (*size, vec![*rate])).collect(),
    };
    let (mut size, mut rate) = best(&streams, false, &what);
    for finding in [&mut size, &mut rate] {
        finding.confidence = finding.confidence.min(SURE);
    }
    (size, rate)
}

/// Rates of the AUs behind the first ones by block size.
fn behind(fat: &BTreeMap<u64, Vec<Vec<f64>>>) -> Rates {
    let of = |runs: &Vec<Vec<f64>>| {
        let rates: Vec<f64> = runs
            .iter()
            .flat_map(|run| run.iter().skip(FIRST))
            .copied()
            .collect();
        median(&rates)
    };
    fat.iter()
        .filter_map(|(block, runs)| Some((*block, of(runs)?)))
        .collect()
}

/// How many AUs differ from those behind, and the first of them.
fn fat(table: &BTreeMap<u64, Vec<Vec<f64>>>) -> (Finding, Finding) {
    let both = |finding: Finding| (finding.clone(), finding);
    let runs = || table.range(BLOCKS).flat_map(|(_, runs)| runs);
    let aus = runs().map(Vec::len).min().unwrap_or(0);
    if aus < FIRST + BEHIND {
        let least = FIRST + BEHIND;
        return both(Finding::none(format!(
            "no table of flashbench -f with {least} AUs and block sizes of 16 KiB to 1 MiB"
        )));
    }
    let off: Vec<f64> = (0..aus).map(|au| difference(table, au)).collect();
    let differs: Vec<usize> = (0..aus).filter(|au| off[*au] > DIFFERENT).collect();
    let told: Vec<String> = off
        .iter()
        .map(|off| format!("{:.0} %", 100.0 * off.exp_m1()))
        .collect();
    let told = format!(
        "flashbench -f at 16 KiB to 1 MiB: the rates of the first AUs differ by {} from those \
         behind",
        told.join(", ")
    );
    let Some((first, last)) = differs.first().copied().zip(differs.last().copied()) else {
        let none = Finding::of(Value::Whole(0), 0.9, told);
        return (none, Finding::none("there is no such region"));
    };
    if last - first + 1 != differs.len() || first > BEGINS_MOST || last >= FIRST {
        return both(Finding::none(format!(
            "{told}, which is no region as cards have one"
        )));
    }
    (
        Finding::of(Value::Whole(differs.len() as u64), 0.92, told.clone()),
        Finding::of(Value::Whole(first as u64), 0.92, told),
    )
}

/// How much the rates of an AU differ from those of the AUs behind, as a logarithm: in the median
/// of block sizes.
fn difference(table: &BTreeMap<u64, Vec<Vec<f64>>>, au: usize) -> f64 {
    let behind = behind(table);
    let of_block = table.range(BLOCKS).filter_map(|(block, runs)| {
        let here: Vec<f64> = runs.iter().filter_map(|run| run.get(au)).copied().collect();
        Some((median(&here)? / behind.get(block)?).ln().abs())
    });
    median(&of_block.collect::<Vec<_>>()).unwrap_or(0.0)
}
