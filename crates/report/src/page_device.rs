//! The device's part of the page: latencies, requests by size, wear.

use crate::chart::unjudged;
use crate::device::{DeviceView, LatencyView};
use crate::number::{count, short, with_unit};
use crate::page::Page;

/// Latencies of one phase, all candidates.
pub(crate) struct LatencyChart {
    pub phase: String,
    /// What the left and right edges stand for; the scale is logarithmic.
    pub begin: String,
    pub end: String,
    /// Whole decades.
    pub ticks: Vec<Tick>,
    pub rows: Vec<LatencyRow>,
}

/// A mark of an axis.
pub(crate) struct Tick {
    pub percent: String,
    /// What it stands for; empty where there is no room for it.
    pub text: String,
    /// On which side of its place the text stands: `start`, `middle` or `end`.
    pub anchor: &'static str,
}

/// One candidate's.
pub(crate) struct LatencyRow {
    pub candidate: String,
    pub operations: u64,
    /// Half, 90 %, 99 %, 99.9 % and all of the operations: in figures, and in percent of the
    /// drawing.
    pub marks: Vec<Mark>,
    /// From the first mark to the last, in percent.
    pub from: String,
    pub width: String,
}

/// One percentile of the latency, as a dot on the row.
pub(crate) struct Mark {
    pub name: &'static str,
    pub text: String,
    pub percent: String,
    /// Radius in pixels: the rarer the larger.
    pub radius: &'static str,
}

/// Requests of one candidate by size.
pub(crate) struct SizesRow {
    pub candidate: String,
    pub writes: String,
    pub bars: Vec<SizeBar>,
    pub others: String,
}

/// Writes of one size.
pub(crate) struct SizeBar {
    /// `≤ 4 KiB`.
    pub size: String,
    /// Share of the writes, in percent.
    pub share: String,
    /// Class of its colour, 0 the smallest size.
    pub class: usize,
    pub begin: String,
    pub width: String,
}

/// One candidate's wear.
pub(crate) struct WearRow {
    pub candidate: String,
    pub written: String,
    pub programmed: String,
    /// Programmed by written, mkfs included.
    pub card: String,
    /// Programmed by what the application wrote, without mkfs: the metric.
    pub whole: String,
    pub erases: String,
    pub copies: String,
}

/// Sizes that have a colour of their own; larger ones share the last.
const SIZES: [(u64, &str); 6] = [
    (4 << 10, "≤ 4 KiB"),
    (16 << 10, "≤ 16 KiB"),
    (64 << 10, "≤ 64 KiB"),
    (256 << 10, "≤ 256 KiB"),
    (512 << 10, "≤ 512 KiB"),
    (u64::MAX, "> 512 KiB"),
];

/// Devices in the order of the ranking, then the others.
pub(crate) fn ordered(page: &Page) -> Vec<&DeviceView> {
    let ranking = &page.verdict.ranking;
    let place = |device: &&DeviceView| {
        let at = ranking
            .iter()
            .position(|one| one.candidate == device.candidate);
        at.unwrap_or(usize::MAX)
    };
    let mut devices: Vec<&DeviceView> = page.devices.iter().collect();
    devices.sort_by_key(place);
    devices
}

pub(crate) fn latencies(page: &Page) -> Vec<LatencyChart> {
    let devices = ordered(page);
    let mut phases: Vec<&str> = Vec::new();
    for latency in devices.iter().flat_map(|device| &device.latencies) {
        if !phases.contains(&latency.phase.as_str()) {
            phases.push(&latency.phase);
        }
    }
    let chart = |phase: &str| {
        let own = devices.iter().filter_map(|device| {
            let mut all = device.latencies.iter();
            Some((
                device.candidate.as_str(),
                all.find(|one| one.phase == phase)?,
            ))
        });
        latency_chart(phase, &own.collect::<Vec<_>>())
    };
    phases.into_iter().map(chart).collect()
}

fn latency_chart(phase: &str, all: &[(&str, &LatencyView)]) -> LatencyChart {
    let low = all
        .iter()
        .map(|(_, one)| one.p50_ns)
        .min()
        .unwrap_or(1)
        .max(1) as f64;
    let high = all.iter().map(|(_, one)| one.max_ns).max().unwrap_or(1) as f64;
    // Whole decades, so that the edges are round figures.
    let (begin, end) = (low.log10().floor(), high.max(low).log10().ceil());
    let place = |ns: u64| (ns.max(1) as f64).log10().clamp(begin, end);
    let percent = |ns: u64| (place(ns) - begin) / (end - begin).max(1.0) * 100.0;
    let time = |ns: u64| with_unit(ns as f64 / 1e9, "s");
    let row = |(name, one): &(&str, &LatencyView)| {
        let marks = [
            ("half", one.p50_ns, "2"),
            ("90 %", one.p90_ns, "2.5"),
            ("99 %", one.p99_ns, "3"),
            ("99.9 %", one.p999_ns, "3.5"),
            ("longest", one.max_ns, "4.5"),
        ];
        LatencyRow {
            candidate: (*name).to_owned(),
            operations: one.operations,
            from: format!("{:.2}", percent(one.p50_ns)),
            width: format!("{:.2}", percent(one.max_ns) - percent(one.p50_ns)),
            marks: (marks.iter())
                .map(|(name, ns, radius)| Mark {
                    name,
                    text: time(*ns),
                    percent: format!("{:.2}", percent(*ns)),
                    radius,
                })
                .collect(),
        }
    };
    LatencyChart {
        ticks: ticks(begin, end),
        phase: phase.replace('_', " "),
        begin: with_unit(10_f64.powf(begin) / 1e9, "s"),
        end: with_unit(10_f64.powf(end) / 1e9, "s"),
        rows: all.iter().map(row).collect(),
    }
}

/// A tick for each decade from 10^`begin` to 10^`end` ns; of more than four parts every other has
/// a text.
fn ticks(begin: f64, end: f64) -> Vec<Tick> {
    let decades = (end - begin).max(1.0) as u32;
    let tick = |at: u32| {
        let every = if decades > 4 { 2 } else { 1 };
        let named = at.is_multiple_of(every) && (at == decades || decades - at >= every);
        Tick {
            percent: format!("{:.2}", f64::from(at) / f64::from(decades) * 100.0),
            text: match named || at == decades {
                true => with_unit(10_f64.powf(begin + f64::from(at)) / 1e9, "s"),
                false => String::new(),
            },
            anchor: match at {
                0 => "start",
                at if at == decades => "end",
                _ => "middle",
            },
        }
    };
    (0..=decades).map(tick).collect()
}

pub(crate) fn sizes(page: &Page) -> Vec<SizesRow> {
    let devices = ordered(page);
    devices.into_iter().map(sizes_row).collect()
}

fn sizes_row(device: &DeviceView) -> SizesRow {
    let total = &device.total;
    let mut counts = [0_u64; SIZES.len()];
    for (&size, &count) in &total.write_sizes {
        let at = SIZES.iter().position(|(bound, _)| size <= *bound);
        counts[at.unwrap_or(SIZES.len() - 1)] += count;
    }
    let all = counts.iter().sum::<u64>().max(1) as f64;
    let mut begin = 0.0;
    let mut bars = Vec::new();
    for (class, (count, (_, size))) in counts.iter().zip(SIZES).enumerate() {
        let width = *count as f64 / all * 100.0;
        if *count > 0 {
            bars.push(SizeBar {
                size: size.to_owned(),
                share: short(width),
                class,
                begin: format!("{begin:.2}"),
                width: format!("{width:.2}"),
            });
        }
        begin += width;
    }
    let trials = device.trials.max(1);
    // Candidates ran as many seeds as their contest deserved: all of them would not be comparable.
    let of = |n: u64, noun| whichfs_units::counted(count((n + trials / 2) / trials), noun);
    SizesRow {
        candidate: device.candidate.clone(),
        writes: match total.write_sizes.is_empty() && total.writes > 0 {
            true => format!("{}, sizes not known", of(total.writes, "write")),
            false => of(total.writes, "write"),
        },
        others: format!(
            "{}, {}, {}",
            of(total.reads, "read"),
            of(total.flushes, "flush"),
            of(total.discards, "discard")
        ),
        bars,
    }
}

pub(crate) fn wear(page: &Page) -> Vec<WearRow> {
    let devices = ordered(page);
    let without = without(page).into_iter();
    let without = without.map(|(name, _)| WearRow {
        candidate: name,
        written: "–".to_owned(),
        programmed: "–".to_owned(),
        card: "–".to_owned(),
        whole: "–".to_owned(),
        erases: "–".to_owned(),
        copies: "–".to_owned(),
    });
    let rows = devices.iter().map(|device| wear_row(page, device));
    rows.chain(without).collect()
}

/// Candidates that had trials, none of which tells of the device, and why they are not judged.
pub(crate) fn without(page: &Page) -> Vec<(String, String)> {
    let known = |name: &str| page.devices.iter().any(|one| one.candidate == name);
    let all = unjudged(&page.verdict).into_iter();
    let all = all.filter(|(one, _)| !known(&one.candidate));
    all.map(|(one, mark)| (one.candidate.clone(), mark))
        .collect()
}

fn wear_row(page: &Page, device: &DeviceView) -> WearRow {
    let trials = device.trials.max(1);
    let each = |count: u64| count / trials;
    let total = &device.total;
    let factor =
        |times: Option<f64>| times.map_or("–".to_owned(), |one| format!("{} ×", short(one)));
    WearRow {
        candidate: device.candidate.clone(),
        written: with_unit(each(total.write_bytes) as f64, "B"),
        programmed: with_unit(each(total.programmed_bytes) as f64, "B"),
        card: factor(total.write_amplification()),
        whole: factor(figure(page, &device.candidate, "write_amplification")),
        erases: count(each(total.erases)),
        copies: count(each(total.au_copies)),
    }
}

/// The figure of a candidate, judged or not.
fn figure(page: &Page, candidate: &str, metric: &str) -> Option<f64> {
    let judged = page.verdict.ranking.iter();
    let judged = judged.map(|one| (&one.candidate, &one.figures));
    let others = page.verdict.excluded.iter();
    let others = others.map(|one| (&one.candidate, &one.figures));
    let mut own = judged.chain(others).filter(|(name, _)| *name == candidate);
    own.find_map(|(_, figures)| figures.get(metric))
        .map(|figure| figure.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decade_has_a_tick_and_the_ends_have_texts() {
        let texts = |begin: f64, end: f64| -> Vec<String> {
            ticks(begin, end)
                .into_iter()
                .map(|tick| tick.text)
                .collect()
        };
        assert_eq!(texts(5.0, 8.0), ["100 µs", "1.00 ms", "10.0 ms", "100 ms"]);
        assert_eq!(
            texts(3.0, 9.0),
            ["1.00 µs", "", "100 µs", "", "10.0 ms", "", "1.00 s"]
        );
        assert_eq!(
            texts(4.0, 9.0),
            ["10.0 µs", "", "1.00 ms", "", "", "1.00 s"]
        );
        assert_eq!(texts(6.0, 6.0), ["1.00 ms", "10.0 ms"]);
    }
}
