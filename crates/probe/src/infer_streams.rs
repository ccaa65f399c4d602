//! What long and short streams of writes tell: rates, a pSLC cache, what is programmed together.

use crate::evidence::{ProbeEvidence, Stage, Streams, Sustained};
use crate::findings::{Finding, Quantity, Value};
use crate::infer::{DOUBTFUL, au_bytes, best, limit_of, missing, round};
use crate::stats::median;
use std::collections::BTreeMap;
use whichfs_units::Bytes;

/// Best size and rate of a stream that goes on: what a long one paid beside its requests, such as
/// for closing AUs, all sizes pay.
pub(crate) fn rates(evidence: &ProbeEvidence, drifts: bool) -> (Finding, Finding) {
    let Some(streams) = &evidence.writes else {
        let none = missing(evidence, Stage::Writing);
        return (none.clone(), none);
    };
    let Some(long) = &evidence.sustained else {
        return best(streams, drifts, "writing");
    };
    let closing = closing(evidence);
    let [large, small] = besides(streams, long, closing, au_bytes(evidence));
    let paid = paid(streams, [large, small]);
    let (mut size, mut rate) = best(&paid, drifts, "writing");
    let told = match (long.fast, large > 0.0) {
        (Some(_), _) if may_hide_a_cache(evidence) => ", behind a pSLC cache".to_owned(),
        (_, true) => format!(
            ", with what a stream of {} paid besides",
            Bytes(long.bytes())
        ),
        (_, false) => String::new(),
    };
    let rate_mb_s = rate.value.map_or(1.0, Value::real).max(1e-9);
    for finding in [&mut size, &mut rate] {
        finding.evidence += &told;
        // What AUs cost goes by how the stream comes to them.
        let much = large.max(small) * 1e6 * MUCH > rate_mb_s.recip();
        if closing >= long.times_us.len() || much {
            finding.confidence = finding.confidence.min(DOUBTFUL);
        }
    }
    if long.fast.is_none() && may_hide_a_cache(evidence) {
        rate.confidence = rate.confidence.min(UNBOUNDED);
        rate.evidence += &format!(
            "; a cache larger than the {} written at a time would hide it: raise --budget",
            Bytes(long.bytes())
        );
    }
    (size, rate)
}

/// Rates in bytes a second, by request size, of streams of writes that go on.
pub(crate) fn going_on(evidence: &ProbeEvidence) -> BTreeMap<u64, f64> {
    let Some(streams) = &evidence.writes else {
        return BTreeMap::new();
    };
    let long = evidence.sustained.as_ref();
    let besides = long.map(|long| besides(streams, long, closing(evidence), au_bytes(evidence)));
    let paid = paid(streams, besides.unwrap_or_default());
    let of_size = |(size, rates): (u64, Vec<f64>)| Some((size, median(&rates)?));
    paid.rates.into_iter().filter_map(of_size).collect()
}

/// `streams` whose large and small requests pay `besides` for each byte, in seconds.
fn paid(streams: &Streams, [large, small]: [f64; 2]) -> Streams {
    let mut paid = streams.clone();
    for (size, rates) in &mut paid.rates {
        let besides = if *size > SMALL_STREAM { large } else { small };
        for rate in rates {
            *rate = 1.0 / (1.0 / *rate + besides);
        }
    }
    paid
}

/// Requests of the long stream that closed AUs that were open before, or filled a cache.
fn closing(evidence: &ProbeEvidence) -> usize {
    let Some(long) = &evidence.sustained else {
        return 0;
    };
    let open = evidence.open_linear.as_ref();
    let limit = limit_of(open.filter(|open| open.copies));
    match (limit, au_bytes(evidence)) {
        (Some(limit), Some(au)) => {
            (u64::from(limit + 1) * au).div_ceil(long.request_bytes) as usize
        }
        // Places are lost to others after a number of writes: all of them count.
        _ if open.is_some_and(|open| open.kept) => 0,
        _ => long.fast.unwrap_or(long.times_us.len() / 4),
    }
}

/// A part of the time that is more than one in so many is much.
const MUCH: f64 = 3.0;
/// Up to this size requests pay what the second stream did, in bytes.
const SMALL_STREAM: u64 = 256 << 10;

/// Seconds for a byte that long streams of large and small requests paid beside these; zero of less
/// than noise.
fn besides(streams: &Streams, long: &Sustained, closing: usize, au_bytes: Option<u64>) -> [f64; 2] {
    // The mean of the second has stalls in it.
    const NOISE: [f64; 2] = [0.06, 0.12];
    let beyond = |((bytes, us), noise): ((u64, f64), f64)| {
        let rate = median(streams.rates.get(&bytes)?)?;
        let paid = us / 1e6 / bytes as f64;
        (paid * rate > 1.0 + noise).then_some(paid - 1.0 / rate)
    };
    let large = long.request_us(closing, au_bytes);
    let large = large.map(|us| (long.request_bytes, us));
    let [first, second] = NOISE;
    let [large, small] = [large.zip(Some(first)), long.small.zip(Some(second))]
        .map(|stream| stream.and_then(beyond).unwrap_or(0.0));
    // One that passed hardly an AU says nothing of them.
    let passed = au_bytes.is_none_or(|au| au <= SMALL_TOLD);
    [large, if passed { small } else { large }]
}

/// Greatest AU that the stream of small requests passes twice.
const SMALL_TOLD: u64 = 8 << 20;

/// Confidence of what a larger cache could hide.
const UNBOUNDED: f64 = 0.85;

/// Whether nothing shows the flash itself: copies of AUs would.
fn may_hide_a_cache(evidence: &ProbeEvidence) -> bool {
    limit_of(evidence.open_linear.as_ref().filter(|open| open.is_exact())).is_none()
}

/// The pSLC cache: bytes and rate.
pub(crate) fn slc(
    evidence: &ProbeEvidence,
    drifts: bool,
    values: &mut BTreeMap<Quantity, Finding>,
) {
    use Quantity::{SlcBytes, SlcWriteMbS};
    let Some(test) = &evidence.sustained else {
        for quantity in [SlcBytes, SlcWriteMbS] {
            values.insert(quantity, missing(evidence, Stage::Sustained));
        }
        return;
    };
    let mb_s = |us: f64| test.request_bytes as f64 / us;
    // Where AUs have places, what ends is their number.
    let fast = test.fast.filter(|_| may_hide_a_cache(evidence));
    let Some((fast, us)) = fast.zip(test.fast_us()) else {
        let reason = format!(
            "a stream of {} saw no end of such a cache: there is none, or a larger one",
            Bytes(test.bytes())
        );
        for quantity in [SlcBytes, SlcWriteMbS] {
            values.insert(quantity, Finding::none(&reason));
        }
        return;
    };
    let text = format!(
        "a stream in requests of {} wrote {} at {:.1} MB/s and then {:.1} MB/s",
        Bytes(test.request_bytes),
        Bytes(test.request_bytes * fast as u64),
        mb_s(us),
        mb_s(test.request_us(fast, au_bytes(evidence)).unwrap_or(us))
    );
    let sure = if drifts { DOUBTFUL } else { 0.92 };
    // The end lies within the first request that was slow.
    let bytes = test.request_bytes * fast as u64 + test.request_bytes / 2;
    values.insert(
        SlcBytes,
        Finding::of(Value::Whole(bytes), sure, text.clone()),
    );
    values.insert(
        SlcWriteMbS,
        Finding::of(Value::Real(round(mb_s(us))), sure, text),
    );
}

/// What is programmed together, by writes.
pub(crate) fn write_unit(evidence: &ProbeEvidence) -> Finding {
    const CLEAR: f64 = 14.0;
    let Some(test) = &evidence.write_unit else {
        let reason = missing(evidence, Stage::WriteUnit)
            .reason
            .unwrap_or_default();
        return Finding::none(format!(
            "reads show no second step up to 64 KiB; by writes: {reason}"
        ));
    };
    let [next, even] = test.margins;
    if even < CLEAR {
        return Finding::none(format!(
            "reads show no second step up to 64 KiB, and {} writes of 16 to 60 KiB take as long as \
             their bytes: what is programmed together is small, or hidden",
            test.writes
        ));
    }
    let text = format!(
        "the times of {} writes of 16 to 60 KiB go by the units of {} that they cover",
        test.writes,
        Bytes(test.unit_bytes)
    );
    let sure = match next {
        next if next >= CLEAR => 0.95,
        next if next >= CLEAR / 2.0 => 0.8,
        _ => DOUBTFUL,
    };
    Finding::of(Value::Whole(test.unit_bytes), sure, text)
}
