//! From what was measured to findings: each value with its confidence, or nothing and why.

use crate::align::heights;
use crate::evidence::{
    AlignTest, Boundary, OpenAuTest, ProbeEvidence, RandomTimes, Sentinel, Stage, Streams,
};
use crate::findings::{CardDrift, Finding, Findings, Quantity, Value};
use crate::interpret::{PAGE_MAX, confidence, is_page};
use crate::options::Writing;
use crate::stats::{median, rank_score};
use crate::{infer_streams, infer_writes};
use std::collections::BTreeMap;
use whichfs_units::Bytes;

/// Confidence of a rate whose card changed its speed, or differs from place to place.
pub(crate) const DOUBTFUL: f64 = 0.6;
/// The share of the best rate that the best size must have.
const BEST: f64 = 0.945;
/// What is faster than the full rate by more is not at it.
const FASTER: f64 = 1.15;
/// Sizes that are large: their median is the full rate, their best is luck.
const LARGE: usize = 3;
/// Rates of two regions that differ by more are of two zones.
const ZONES: f64 = 0.12;

/// What the evidence tells.
pub fn infer(evidence: &ProbeEvidence) -> Findings {
    let drift = drift(evidence);
    // A card that became warm while it read is warm when it writes.
    let drifts = !drift.is_empty();
    let mut values = BTreeMap::new();
    geometry(evidence, &mut values);
    reading(evidence, drifts, &mut values);
    infer_writes::writing(evidence, drifts, &mut values);
    if let Some(why) = patchwork(evidence) {
        for finding in values.values_mut().filter(|f| f.confidence > DOUBTFUL) {
            finding.confidence = DOUBTFUL;
            finding.evidence += &format!("; but {why}");
        }
    }
    for quantity in Quantity::ALL {
        values
            .entry(quantity)
            .or_insert_with(|| Finding::none("it was not measured"));
    }
    let planned = Stage::ALL
        .iter()
        .filter(|(stage, _, _)| evidence.options.writing != Writing::Never || !stage.writes());
    let complete = planned
        .clone()
        .all(|(stage, _, _)| evidence.done.contains(stage) || evidence.failed.contains_key(stage));
    let mut notes = evidence.events.clone();
    notes.extend(
        evidence
            .failed
            .iter()
            .map(|(stage, reason)| format!("{}: {reason}", doing(*stage))),
    );
    Findings {
        values,
        bytes_written: evidence.spent.write_bytes,
        bytes_read: evidence.spent.read_bytes,
        device_s: evidence.spent.device.as_secs_f64(),
        complete: complete && evidence.lost.is_empty() && evidence.ended.is_none(),
        ended: evidence.ended.clone(),
        drift,
        notes,
        measured: evidence.clone(),
    }
}

fn doing(stage: Stage) -> &'static str {
    let found = Stage::ALL.iter().find(|(other, _, _)| *other == stage);
    found.map_or("", |(_, doing, _)| doing)
}

/// Signs that parts of the card are of different kinds: then what was seen in one place need
/// not hold elsewhere.
fn patchwork(evidence: &ProbeEvidence) -> Option<String> {
    let boundaries = evidence.align.iter().flat_map(|align| &align.boundaries);
    let doubt = boundaries
        .filter_map(|boundary| boundary.doubt.clone())
        .next();
    let random = evidence.random_reads.as_ref();
    let small = crate::at_random::RANDOM_SIZES[0];
    doubt.or_else(|| {
        random
            .is_some_and(|random| random.differs(small))
            .then(|| "reads at random places differ as if the card were of two kinds".into())
    })
}

/// Why a stage has no result.
pub(crate) fn missing(evidence: &ProbeEvidence, stage: Stage) -> Finding {
    if let Some(reason) = evidence.failed.get(&stage) {
        return Finding::none(reason.clone());
    }
    if stage.writes() && evidence.options.writing == Writing::Never {
        return Finding::none("it takes writing, which was not allowed");
    }
    match &evidence.ended {
        Some(reason) => Finding::none(format!("the probe ended before: {reason}")),
        None => Finding::none("it was not measured"),
    }
}

/// Pages, AU and zones.
fn geometry(evidence: &ProbeEvidence, values: &mut BTreeMap<Quantity, Finding>) {
    use Quantity::{AuBytes, PageBytes, WriteUnitBytes, ZoneBytes};
    let Some(test) = &evidence.align else {
        for quantity in [PageBytes, WriteUnitBytes, AuBytes, ZoneBytes] {
            values.insert(quantity, missing(evidence, Stage::Align));
        }
        values.insert(WriteUnitBytes, infer_streams::write_unit(evidence));
        if let Some(au) = infer_writes::au_by_writes(evidence, None) {
            values.insert(AuBytes, au);
        }
        return;
    };
    let error_us = test.levels.iter().map(|level| level.extra_us.error);
    let within_us = 3.0 * error_us.fold(0.0, f64::max);
    let why = |where_: &str| match test.boundaries.len() {
        0 => format!(
            "no step {where_}: reads across boundaries take as long as others to {within_us:.1} µs"
        ),
        _ => format!(
            "no further step {where_}: reads across such boundaries take as long as across \
             smaller ones to {within_us:.1} µs"
        ),
    };
    let (page, unit) = pages(test);
    let page = page.map_or_else(|| Finding::none(why("up to 64 KiB")), of_boundary);
    let unit = unit.map_or_else(|| infer_streams::write_unit(evidence), of_boundary);
    let by_reads = au_boundary(test).map(of_boundary);
    let au = infer_writes::au_by_writes(evidence, by_reads.as_ref());
    let au = au.or(by_reads);
    let found = au.as_ref().and_then(|au| au.value).map_or(0, Value::whole);
    let zone = test.boundaries.iter().find(|boundary| {
        let size = boundary.bytes().unwrap_or(boundary.rise.bytes);
        size > found.max(2 * PAGE_MAX) && Some(size) != au_boundary(test).and_then(Boundary::bytes)
    });
    values.insert(PageBytes, page);
    values.insert(WriteUnitBytes, unit);
    values.insert(
        AuBytes,
        au.unwrap_or_else(|| Finding::none(why("from 128 KiB to 64 MiB"))),
    );
    values.insert(
        ZoneBytes,
        zone.map_or_else(|| great_zone(test), of_boundary),
    );
}

/// A zone that is a good part of the card.
fn great_zone(test: &AlignTest) -> Finding {
    let Some(zones) = &test.zones else {
        return Finding::none("no step beyond the AU");
    };
    let Some(found) = zones.found else {
        return Finding::none(format!(
            "no step beyond the AU: no multiple of {} stands out over the whole card, nor do \
             smaller ones",
            Bytes(zones.grid_bytes)
        ));
    };
    let bytes = found.multiple * zones.grid_bytes;
    let evidence = format!(
        "reads across the {} multiples of {} on the card take {:.0} µs more than across other \
         multiples of {}, which differ by {:.1} µs",
        found.boundaries,
        Bytes(bytes),
        found.height_us,
        Bytes(zones.grid_bytes),
        found.spread_us
    );
    // One place may be odd for another reason.
    let sure = match found.boundaries {
        1 => DOUBTFUL,
        2 => 0.85,
        _ => 0.95,
    };
    Finding::of(Value::Whole(bytes), sure, evidence)
}

/// The steps of page and multi-plane page.
fn pages(test: &AlignTest) -> (Option<&Boundary>, Option<&Boundary>) {
    let mut small = test.boundaries.iter().filter(|b| b.rise.bytes <= PAGE_MAX);
    let (first, second) = (small.next(), small.next());
    match (first, second) {
        (Some(page), Some(unit)) if !is_page(&page.rise, &unit.rise, unit.rise.behind_us) => {
            (Some(unit), None)
        }
        both => both,
    }
}

fn au_boundary(test: &AlignTest) -> Option<&Boundary> {
    let most = test.au_max_bytes;
    test.boundaries
        .iter()
        .find(|b| (2 * PAGE_MAX..=most).contains(&b.bytes().unwrap_or(b.rise.bytes)))
}

fn of_boundary(boundary: &Boundary) -> Finding {
    match (boundary.bytes(), &boundary.doubt) {
        (Some(bytes), None) => {
            let quarters = match boundary.quarters.as_slice() {
                [] => String::new(),
                quarters => format!("; by quarters of the card {}", heights(quarters)),
            };
            let evidence = format!(
                "reads across multiples of {} take {:.0} µs more than across odd multiples of \
                 {}{quarters}; {:.0} standard errors at least",
                Bytes(bytes),
                boundary.rise.height_us,
                Bytes(bytes / 2),
                boundary.score
            );
            Finding::of(Value::Whole(bytes), confidence(boundary.score), evidence)
        }
        (_, Some(doubt)) => Finding::none(doubt.clone()),
        (None, None) => Finding::none("the step is at no multiple that was tried"),
    }
}

/// The AU that reads show beyond doubt.
pub(crate) fn au_by_reads(evidence: &ProbeEvidence) -> Option<u64> {
    let boundary = au_boundary(evidence.align.as_ref()?)?;
    let bytes = boundary.bytes()?;
    (boundary.doubt.is_none() && boundary.score >= 3.0).then_some(bytes)
}

/// The AU as far as it is known.
pub(crate) fn au_bytes(evidence: &ProbeEvidence) -> Option<u64> {
    let by_writes = evidence.au_by_writes.as_ref();
    match by_writes {
        Some(test) => test.au_bytes,
        None => au_by_reads(evidence),
    }
}

/// The limit of open AUs, where there is one beyond doubt.
pub(crate) fn limit_of(open: Option<&OpenAuTest>) -> Option<u32> {
    let open = open.filter(|open| open.doubt.is_none())?;
    open.limits.first().copied()
}

/// Rates and latencies of reading.
fn reading(evidence: &ProbeEvidence, drifts: bool, values: &mut BTreeMap<Quantity, Finding>) {
    use Quantity::{
        BestReadBytes, RandomRead4k, RandomRead16k, RandomRead64k, ReadLatency99Us, ReadLatencyUs,
        ReadMbS,
    };
    let random = [RandomRead4k, RandomRead16k, RandomRead64k];
    match &evidence.reads {
        Some(streams) => {
            let (best, rate) = best(streams, drifts, "reading");
            values.insert(BestReadBytes, best);
            values.insert(ReadMbS, rate);
        }
        None => {
            for quantity in [BestReadBytes, ReadMbS] {
                values.insert(quantity, missing(evidence, Stage::Reading));
            }
        }
    }
    for (quantity, size) in random.into_iter().zip(crate::at_random::RANDOM_SIZES) {
        let test = evidence.random_reads.as_ref();
        let finding = test.and_then(|test| per_second(test.means.get(&size)?, drifts));
        values.insert(
            quantity,
            finding.unwrap_or_else(|| missing(evidence, Stage::Reading)),
        );
    }
    let none = || missing(evidence, Stage::Reading);
    let (usual, rare) = latencies(evidence.random_reads.as_ref(), drifts, "reads")
        .unwrap_or_else(|| (none(), none()));
    values.insert(ReadLatencyUs, usual);
    values.insert(ReadLatency99Us, rare);
}

/// Median and 99th percentile of small requests.
pub(crate) fn latencies(
    test: Option<&RandomTimes>,
    drifts: bool,
    what: &str,
) -> Option<(Finding, Finding)> {
    /// Requests of which a hundredth is one.
    const HUNDRED: usize = 100;
    let latency = test?.latency;
    if latency.count == 0 {
        return None;
    }
    let of = |us: f64, sure: f64, text: String| {
        Finding::of(
            Value::Real(round(us)),
            if drifts { DOUBTFUL } else { sure },
            text,
        )
    };
    let text = format!("{} {what} of 4 KiB at random places", latency.count);
    let longest = format!("{text}, the longest but one in a hundred");
    let rare = if latency.count >= HUNDRED {
        0.9
    } else {
        DOUBTFUL
    };
    Some((
        of(latency.median_us, 0.95, text),
        of(latency.p99_us, rare, longest),
    ))
}

/// Requests a second from the mean, its error and the count.
pub(crate) fn per_second(
    (mean, error, count): &(f64, f64, usize),
    drifts: bool,
) -> Option<Finding> {
    if *mean <= 0.0 {
        return None;
    }
    let relative = error / mean;
    let sure = match () {
        () if drifts => DOUBTFUL,
        () if relative <= 0.05 => 0.95,
        () if relative <= 0.1 => 0.8,
        () => 0.5,
    };
    let evidence = format!(
        "{count} requests at random places took {:.0} µs ± {:.0} % in the mean",
        mean,
        100.0 * relative
    );
    Some(Finding::of(Value::Real(round(1e6 / mean)), sure, evidence))
}

/// Four digits are more than any of these is known to.
pub(crate) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// Best size and rate of a stream.
pub(crate) fn best(streams: &Streams, drifts: bool, what: &str) -> (Finding, Finding) {
    let rates: Vec<(u64, f64)> = streams
        .rates
        .iter()
        .filter_map(|(size, rates)| Some((*size, median(rates)?)))
        .collect();
    let smooth = smooth(&rates);
    let large: Vec<f64> = smooth.iter().rev().take(LARGE).map(|rate| rate.1).collect();
    let Some(top) = median(&large) else {
        let reason = "no request of the streams succeeded";
        return (Finding::none(reason), Finding::none(reason));
    };
    // One that is at full rate by chance has a next one that is not.
    let full_at = |at: usize, share: f64| smooth.get(at).is_none_or(|rate| rate.1 >= share * top);
    let at = (0..rates.len()).find(|at| full_at(*at, BEST) && full_at(at + 1, BEST - 0.05));
    let at = at.unwrap_or(rates.len() - 1);
    // Smaller ones may be faster still, where each AU costs and these are spared it.
    let full: Vec<f64> = rates[at..]
        .iter()
        .map(|rate| rate.1)
        .filter(|rate| *rate <= FASTER * top)
        .collect();
    let rate = median(&full).unwrap_or(top);
    let zones = zones(streams);
    let steady = full.iter().all(|other| (other / rate - 1.0).abs() < ZONES);
    let sure = match () {
        () if drifts || zones.is_some() || !steady => DOUBTFUL,
        () => 0.95,
    };
    let mut evidence = format!("{what} in order: ");
    let table: Vec<String> = rates
        .iter()
        .map(|(size, rate)| format!("{} {:.1}", Bytes(*size), rate / 1e6))
        .collect();
    evidence += &format!("{} MB/s", table.join(", "));
    if let Some(ratio) = zones {
        evidence += &format!("; two parts of the card differ by a factor of {ratio:.2}");
    }
    (
        Finding::of(Value::Whole(rates[at].0), sure, evidence.clone()),
        Finding::of(Value::Real(round(rate / 1e6)), sure, evidence),
    )
}

/// Rates with noise removed: of large requests most follow t = t0 + size / rate, so where
/// all but one do within 15 %, these are read off the line.
fn smooth(rates: &[(u64, f64)]) -> Vec<(u64, f64)> {
    const FROM: u64 = 32 << 10;
    const CLOSE: f64 = 0.045;
    let mut used: Vec<(f64, f64)> = rates
        .iter()
        .filter(|(size, _)| *size >= FROM)
        .map(|(size, rate)| (*size as f64, *size as f64 / rate))
        .collect();
    for _ in 0..2 {
        let Some((start, slope)) = line(&used) else {
            break;
        };
        let off = |(size, time): &(f64, f64)| ((start + slope * size) / time - 1.0).abs();
        let worst = (0..used.len()).max_by(|a, b| off(&used[*a]).total_cmp(&off(&used[*b])));
        match worst {
            Some(worst) if off(&used[worst]) > CLOSE => drop(used.remove(worst)),
            _ => {
                let of = |size: u64, rate: f64| match size {
                    ..FROM => rate,
                    _ => size as f64 / (start + slope * size as f64),
                };
                return rates.iter().map(|(s, r)| (*s, of(*s, *r))).collect();
            }
        }
    }
    rates.to_vec()
}

/// Start and slope of the line that is closest to the points, each relative to its height.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (mut ww, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in points {
        let weight = 1.0 / (y * y);
        ww += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    let below = ww * wxx - wx * wx;
    let slope = (ww * wxy - wx * wy) / below;
    let start = (wy - slope * wx) / ww;
    (points.len() >= 4 && slope > 0.0 && start >= 0.0).then_some((start, slope))
}

/// Ratio of the rates of two regions at large sizes, where it is not one.
fn zones(streams: &Streams) -> Option<f64> {
    let ratios: Vec<f64> = streams
        .rates
        .iter()
        .filter(|(size, _)| **size >= PAGE_MAX)
        .filter_map(|(_, rates)| Some(rates.first()? / rates.get(1)?))
        .collect();
    let ratio = median(&ratios)?;
    (ratio.max(1.0 / ratio) > 1.0 + ZONES).then_some(ratio)
}

/// Whether the card was as fast at the end as at the beginning.
fn drift(evidence: &ProbeEvidence) -> Vec<CardDrift> {
    let mut drifts = Vec::new();
    drifts.extend(trend("read", &evidence.read_sentinels, 1.06));
    drifts.extend(trend("write", &evidence.write_sentinels, 1.12));
    drifts
}

fn trend(what: &str, sentinels: &[Sentinel], bound: f64) -> Option<CardDrift> {
    let third = (sentinels.len() / 3).max(1);
    if sentinels.len() < 2 {
        return None;
    }
    let times = |part: &[Sentinel]| part.iter().map(|s| s.us).collect::<Vec<_>>();
    let (first, last) = (
        times(&sentinels[..third]),
        times(&sentinels[sentinels.len() - third..]),
    );
    let (before, after) = (median(&first)?, median(&last)?);
    let ratio = after / before;
    let told = third < 4 || rank_score(&last, &first).abs() > 2.5;
    let requests = match what {
        "read" => "four reads at the same places",
        _ => "a write in order at a fresh place",
    };
    (told && ratio.max(1.0 / ratio) > bound).then(|| CardDrift {
        what: what.to_owned(),
        slowdown: round(ratio),
        evidence: format!(
            "{requests} took {before:.0} µs in the first third of the probe and {after:.0} µs in \
             the last, in the median"
        ),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn drift_tells_the_medians_from_which_it_is_told() {
        let sentinels: Vec<Sentinel> = [5000.0, 1000.0, 1000.0, 1150.0, 1300.0, 1300.0, 1300.0]
            .iter()
            .flat_map(|us| [*us; 9])
            .map(|us| Sentinel { at_s: 0.0, us })
            .collect();
        let found = trend("read", &sentinels[8..], 1.06).unwrap();
        assert_eq!(found.slowdown, 1.3);
        assert!(found.evidence.contains("1000 µs") && found.evidence.contains("1300 µs"));
        assert!(!found.evidence.contains("5000"), "{}", found.evidence);
    }

    #[test]
    fn a_probe_whose_stages_all_lost_their_requests_is_not_complete() {
        let mut evidence = ProbeEvidence::default();
        for stage in [Stage::Align, Stage::Reading] {
            evidence
                .failed
                .insert(stage, "the device is too small".into());
        }
        assert!(infer(&evidence).complete);
        evidence.lost.push(Stage::Reading);
        assert!(!infer(&evidence).complete);
    }
}
