//! What the writing tests tell.

use crate::evidence::{OpenAuTest, ProbeEvidence, Stage};
use crate::findings::{Finding, Quantity, Value};
use crate::infer::{DOUBTFUL, au_bytes, latencies, limit_of, missing, per_second, round};
use crate::infer_streams::{rates, slc};
use crate::stats::median;
use std::collections::BTreeMap;
use whichfs_units::Bytes;

/// All quantities that take writing, except the AU.
pub(crate) fn writing(
    evidence: &ProbeEvidence,
    drifts: bool,
    values: &mut BTreeMap<Quantity, Finding>,
) {
    use Quantity::{
        BestWriteBytes, CacheBytes, FatAus, FatFirstAu, FlushUs, OpenAusLinear, OpenAusRandom,
        OverflowUs, RandomWrite4k, RandomWrite16k, RandomWrite64k, SmallWriteBytes,
        WriteLatency99Us, WriteLatencyUs, WriteMbS,
    };
    let (size, rate) = rates(evidence, drifts);
    values.insert(BestWriteBytes, size);
    values.insert(WriteMbS, rate);
    let random = [RandomWrite4k, RandomWrite16k, RandomWrite64k];
    for (quantity, size) in random.into_iter().zip(crate::at_random::RANDOM_SIZES) {
        let test = evidence.random_writes.as_ref();
        let finding = test.and_then(|test| per_second(test.means.get(&size)?, drifts));
        let mut finding = finding.unwrap_or_else(|| missing(evidence, Stage::RandomWrites));
        doubt_writes(evidence, &mut finding);
        values.insert(quantity, finding);
    }
    let none = || missing(evidence, Stage::RandomWrites);
    let (mut usual, mut rare) =
        latencies(evidence.random_writes.as_ref(), drifts, "durable writes")
            .unwrap_or_else(|| (none(), none()));
    if was_never_written(evidence) {
        for finding in [&mut usual, &mut rare] {
            doubt_writes(evidence, finding);
        }
    }
    values.insert(WriteLatencyUs, usual);
    values.insert(WriteLatency99Us, rare);
    slc(evidence, drifts, values);
    values.insert(OpenAusLinear, open_linear(evidence));
    values.insert(OpenAusRandom, open_random(evidence));
    values.insert(OverflowUs, overflow(evidence));
    let (count, first) = fat(evidence);
    values.insert(FatAus, count);
    values.insert(FatFirstAu, first);
    values.insert(SmallWriteBytes, small(evidence));
    values.insert(FlushUs, flush(evidence));
    values.insert(CacheBytes, cache(evidence));
    discard(evidence, values);
}

/// Whether AUs had to be written wholly before copies of them took as long as those of data.
fn was_never_written(evidence: &ProbeEvidence) -> bool {
    /// Copies of AUs with data that take so many times as long as others are of another kind.
    const LONGER: f64 = 1.4;
    let open = evidence.open_linear.as_ref();
    let longer = |open: &OpenAuTest| open.overflow_us > LONGER * open.before_us;
    open.is_some_and(|open| open.copies && !open.filled.is_empty() && longer(open))
}

/// What speaks against times of writes at random that were measured only now.
fn doubt_writes(evidence: &ProbeEvidence, finding: &mut Finding) {
    if finding.value.is_none() {
        return;
    }
    if was_never_written(evidence) {
        *finding = Finding::none(format!(
            "most of the card has no data yet: writes at random take longer the more it has; \
             now {}",
            finding.evidence
        ));
        return;
    }
    let seen = evidence
        .random_writes
        .as_ref()
        .map_or(0, |test| test.blocks);
    let open = evidence.open_linear.as_ref();
    if open.is_some_and(|open| open.folds == Some(true)) && seen < BLOCKS_LEAST {
        finding.confidence = finding.confidence.min(DOUBTFUL);
        finding.evidence += "; but some are written once more later";
    }
}

/// Folded blocks that tell what a write pays for them.
const BLOCKS_LEAST: usize = 3;

fn open_linear(evidence: &ProbeEvidence) -> Finding {
    let Some(test) = &evidence.open_linear else {
        return missing(evidence, Stage::OpenLinear);
    };
    match limit_of(Some(test)) {
        Some(limit) => unplaced(evidence, limited(test, limit)),
        None => unlimited(test, test.filled_up_to),
    }
}

/// Where it is not known where AUs begin, one place may have been two AUs.
fn unplaced(evidence: &ProbeEvidence, finding: Finding) -> Finding {
    match au_bytes(evidence) {
        Some(_) => finding,
        None => Finding {
            confidence: finding.confidence.min(0.85),
            evidence: format!("{}; it is not known where AUs begin", finding.evidence),
            ..finding
        },
    }
}

fn open_random(evidence: &ProbeEvidence) -> Finding {
    let of = evidence;
    let Some(test) = &evidence.open_random else {
        return missing(evidence, Stage::OpenRandom);
    };
    if let Some(limit) = limit_of(Some(test)) {
        return unplaced(evidence, limited(test, limit));
    }
    let linear = evidence.open_linear.as_ref();
    match limit_of(linear.filter(|linear| linear.is_exact())) {
        // All that can be open in order can be so at random: one more is too many anyway.
        Some(limit) if test.doubt.is_none() && test.free_up_to >= limit => {
            let evidence = format!(
                "writes into {limit} AUs at random in turns take {:.0} µs, into one {:.0} µs, and \
                 no more can be open",
                usual_us(test, limit),
                test.alone_us.median
            );
            let most = if as_alone(test, limit) {
                0.97
            } else {
                DOUBTFUL
            };
            let sure = open_linear_sure(linear.unwrap_or(test)).min(most);
            unplaced(
                of,
                Finding::of(Value::Whole(u64::from(limit)), sure, evidence),
            )
        }
        _ => unlimited(test, linear.map_or(0, |linear| linear.filled_up_to)),
    }
}

fn limited(test: &OpenAuTest, limit: u32) -> Finding {
    if test.kept {
        let evidence = format!(
            "of many AUs in turns {limit} stay fast and the others take {:.0} ms for two writes \
             of {}, in both halves of the card",
            test.overflow_us / 1e3,
            Bytes(test.block_bytes)
        );
        return Finding::of(Value::Whole(u64::from(limit)), KEPT, evidence);
    }
    if test.folds == Some(true) {
        let evidence = format!(
            "of 16 AUs in turns some share a block that is copied as soon as it is full, so often \
             that {limit} have places of their own, in both halves of the card"
        );
        return Finding::of(Value::Whole(u64::from(limit)), KEPT, evidence);
    }
    let other_half = match test.limits.len() {
        2.. => "confirmed in the other half of the card",
        _ if test.filled.is_empty() => "not confirmed in the other half of the card",
        _ => "not tried in the other half of the card",
    };
    let evidence = format!(
        "with {} AUs in turns a write of {} takes {:.0} ms, with {limit} {:.1} ms; {other_half}",
        limit + 1,
        Bytes(test.block_bytes),
        test.overflow_us / 1e3,
        usual_us(test, limit) / 1e3,
    );
    let sure = open_linear_sure(test);
    Finding::of(Value::Whole(u64::from(limit)), sure, evidence)
}

/// Writes in turns that take this many times as long as into one AU may be those of too many:
/// medians of a dozen differ by less from noise.
const SLOWER: f64 = 1.15;
/// Share of writes that may be slow for reasons of their own.
const STALLS: f64 = 0.15;
/// Confidence of a limit that is the number of AUs that stayed fast.
const KEPT: f64 = 0.95;

/// Time of a write with `aus` AUs in turns that are not too many, in microseconds.
fn usual_us(test: &OpenAuTest, aus: u32) -> f64 {
    let turn = |turn: &&crate::evidence::OpenAuCount| turn.aus == aus && !turn.too_many;
    let found = test.turns.iter().rfind(turn);
    found.map_or(test.alone_us.median, |turn| turn.fast_us)
}

/// Whether writes with `aus` AUs in turns take what they take with one, but for stalls.
fn as_alone(test: &OpenAuTest, aus: u32) -> bool {
    let turn = |turn: &&crate::evidence::OpenAuCount| turn.aus == aus && !turn.too_many;
    let mut turns = test.turns.iter().filter(turn);
    let stalls = turns.all(|turn| f64::from(turn.slow) <= STALLS * f64::from(turn.writes));
    stalls && usual_us(test, aus) <= SLOWER * test.alone_us.median
}

/// Confidence of a limit: two parts of the card agree, or the copies stand out.
fn open_linear_sure(test: &OpenAuTest) -> f64 {
    let clear = test.overflow_us > 8.0 * test.alone_us.median;
    match test.limits.len() {
        _ if test.kept || test.folds == Some(true) => KEPT,
        // Counted from copies now and then.
        _ if !test.copies => 0.8,
        2.. => 0.98,
        _ if clear => 0.92,
        _ => 0.85,
    }
}

/// A bound from below: `written` AUs that had been written wholly stayed fast.
fn unlimited(test: &OpenAuTest, written: u32) -> Finding {
    if let Some(doubt) = &test.doubt {
        return Finding::none(doubt.clone());
    }
    let proven = test.free_up_to.min(written);
    if proven < 2 {
        return Finding::none(format!(
            "no limit up to {} AUs, which says nothing if they were never written",
            test.free_up_to
        ));
    }
    let mut evidence = format!(
        "no limit up to {} AUs in turns, {written} of them written wholly before",
        test.free_up_to
    );
    if test.folds.is_none() {
        evidence += "; whether some are written twice would take more writing";
        return Finding::at_least(u64::from(proven), 0.85, evidence);
    }
    Finding::at_least(u64::from(proven), 0.95, evidence)
}

/// Of a smaller AU the writes that ask for a place are a good part.
const COPY_TOLD: u64 = 2 << 20;

fn overflow(evidence: &ProbeEvidence) -> Finding {
    let of = evidence;
    let Some(test) = &evidence.open_linear else {
        return missing(evidence, Stage::OpenLinear);
    };
    match limit_of(Some(test)) {
        Some(_) if test.folds == Some(true) => {
            Finding::none("a write into an AU too many is slow only now and then, as any other")
        }
        Some(limit) => {
            let evidence = format!(
                "writes of {} into {} AUs in turns",
                Bytes(test.block_bytes),
                limit + 1
            );
            // Copies of AUs that hold little are short.
            let whole = au_bytes(of).is_some_and(|au| au >= COPY_TOLD) && test.filled.is_empty();
            let sure = if test.copies && whole || test.kept {
                0.95
            } else {
                DOUBTFUL
            };
            Finding::of(Value::Real(round(test.overflow_us)), sure, evidence)
        }
        None => Finding::none("no limit of open AUs was found"),
    }
}

/// The AU by writes, with what reads say beside it; `None` where writes do not tell.
pub(crate) fn au_by_writes(
    evidence: &ProbeEvidence,
    by_reads: Option<&Finding>,
) -> Option<Finding> {
    let test = evidence.au_by_writes.as_ref()?;
    let Some(au) = test.au_bytes else {
        let doubt = test.doubt.clone();
        return Some(Finding::none(
            doubt.unwrap_or_else(|| "writes do not tell".into()),
        ));
    };
    let pairs = format!(
        "{} of {} pairs of writes lie in one AU or in two as AUs of {} have it",
        test.agree,
        test.agree + test.disagree,
        Bytes(au)
    );
    let reads = by_reads.and_then(|finding| Some((finding.value?.whole(), finding)));
    Some(match reads {
        Some((bytes, finding)) if bytes == au => {
            let evidence = format!("{pairs}; {}", finding.evidence);
            Finding::of(Value::Whole(au), 0.99, evidence)
        }
        Some((bytes, _)) => {
            let evidence = format!("{pairs}; reads show a step at {}", Bytes(bytes));
            Finding::of(Value::Whole(au), 0.92, evidence)
        }
        None => Finding::of(
            Value::Whole(au),
            0.96,
            format!("{pairs}; reads do not show it"),
        ),
    })
}

/// How many AUs of another mapping there are, and the first of them.
fn fat(evidence: &ProbeEvidence) -> (Finding, Finding) {
    let both = |finding: Finding| (finding.clone(), finding);
    let Some(test) = &evidence.fat else {
        return both(missing(evidence, Stage::FatRegion));
    };
    let first = test.different.iter().take_while(|other| !**other).count();
    let count = test.different[first.min(test.different.len())..]
        .iter()
        .take_while(|other| **other)
        .count();
    let end = first + count;
    if test.different[end..].iter().any(|other| *other) {
        let which: Vec<String> = (0..)
            .zip(&test.different)
            .filter(|(_, other)| **other)
            .map(|(at, _): (u32, _)| at.to_string())
            .collect();
        return both(Finding::none(format!(
            "AUs {} differ from the others, which is no region",
            which.join(", ")
        )));
    }
    if count > 0 && end == test.different.len() {
        return both(Finding::none(format!(
            "AUs {first} to {} differ from others, and no later ones were tried",
            end - 1
        )));
    }
    let times: Vec<String> = test
        .first_us
        .iter()
        .map(|centre| format!("{:.1}", centre.median / 1e3))
        .collect();
    let how = if test.by_copies {
        "written in turns with as many others as can be open"
    } else {
        "written in order"
    };
    let evidence = format!(
        "the first AUs, {how}, take {} ms a write, others {:.1} ms",
        times.join(", "),
        test.other_us.median / 1e3
    );
    // Rates may agree by chance where the mapping does not.
    let sure = if test.by_copies { 0.97 } else { 0.85 };
    let beginning = match count {
        0 => Finding::none("there is no such region"),
        _ => Finding::of(Value::Whole(first as u64), sure, evidence.clone()),
    };
    (
        Finding::of(Value::Whole(count as u64), sure, evidence),
        beginning,
    )
}

fn small(evidence: &ProbeEvidence) -> Finding {
    let Some(test) = &evidence.small_writes else {
        return missing(evidence, Stage::SmallWrites);
    };
    let copies: Vec<(u64, bool)> = test
        .iter()
        .filter(|(_, (writes, _, _))| *writes > 0)
        .map(|(size, (writes, slow, _))| (*size, slow * 2 > *writes))
        .collect();
    let told: Vec<String> = test
        .iter()
        .map(|(size, (writes, slow, _))| format!("{} {slow} of {writes}", Bytes(*size)))
        .collect();
    let evidence = format!(
        "writes that copied an AU, with one AU too many in use: {}",
        told.join(", ")
    );
    let least = copies.iter().position(|(_, copies)| *copies);
    match least {
        Some(at) if copies[at..].iter().any(|(_, copies)| !copies) => Finding::none(format!(
            "{evidence}: neither all small sizes nor none of them"
        )),
        Some(0) => Finding::of(Value::Whole(0), 0.95, evidence),
        Some(at) => Finding::of(Value::Whole(copies[at].0), 0.95, evidence),
        None => Finding::none(format!("{evidence}: the bound is above them")),
    }
}

fn flush(evidence: &ProbeEvidence) -> Finding {
    let Some(test) = &evidence.flush else {
        return missing(evidence, Stage::Flush);
    };
    if !test.supported || test.after_write_us.count == 0 {
        return Finding::none("the device does not know flush");
    }
    let text = format!(
        "{:.0} µs after a write of 4 KiB ({:.0} µs), {:.0} µs with nothing to do",
        test.after_write_us.median, test.write_us.median, test.idle_us.median
    );
    Finding::of(Value::Real(round(test.after_write_us.median)), 0.95, text)
}

fn cache(evidence: &ProbeEvidence) -> Finding {
    let Some(test) = &evidence.cache else {
        return missing(evidence, Stage::Cache);
    };
    // The first is coarse, and nothing if no fine one agrees.
    let fine: Vec<f64> = test.sizes.iter().skip(1).map(|size| *size as f64).collect();
    if let Some(bytes) = median(&fine) {
        let spread = fine
            .iter()
            .map(|f| (f / bytes - 1.0).abs())
            .fold(0.0, f64::max);
        let sure = if fine.len() == 2 && spread < 0.1 {
            0.95
        } else {
            DOUBTFUL
        };
        let text = format!(
            "after a rest, {} are written fast and what follows slower, in {} of {} bursts",
            Bytes(bytes as u64),
            test.sizes.len(),
            test.bursts.len()
        );
        return Finding::of(Value::Whole(bytes.round() as u64), sure, text);
    }
    if let Some(end) = test.sizes.first() {
        return Finding::none(format!(
            "a burst slowed down after {}, but no finer one did",
            Bytes(*end)
        ));
    }
    let flushes = evidence.flush.as_ref();
    if flushes.is_some_and(|flush| {
        flush.supported && flush.after_write_us.median > 0.5 * flush.write_us.median
    }) {
        return Finding::none(format!(
            "a flush costs something, so there is a cache, but bursts up to {} see no end of it",
            Bytes(test.none_up_to)
        ));
    }
    let longest = test
        .bursts
        .iter()
        .map(|(size, times)| size * times.len() as u64);
    let Some(longest) = longest.max() else {
        return Finding::none("the budget left nothing for it");
    };
    let text = format!(
        "after a rest, the first writes take as long as the last, in bursts up to {}",
        Bytes(longest)
    );
    Finding::of(Value::Whole(0), 0.9, text)
}

fn discard(evidence: &ProbeEvidence, values: &mut BTreeMap<Quantity, Finding>) {
    use Quantity::{DiscardSpeedup, DiscardUs};
    let Some(test) = &evidence.discard else {
        let none = missing(evidence, Stage::Discard);
        values.insert(DiscardUs, none.clone());
        values.insert(DiscardSpeedup, none);
        return;
    };
    // A write that closed an AU that was open before, or put others in order, tells nothing of it.
    let [before, after] = [&test.before_us, &test.after_us].map(|us| median(us).unwrap_or(0.0));
    let cost = format!(
        "{} discards of {}",
        test.discard_us.count,
        Bytes(test.bytes)
    );
    values.insert(
        DiscardUs,
        match test.discard_us.count {
            0 => Finding::none("no discard succeeded"),
            _ => Finding::of(Value::Real(round(test.discard_us.median)), 0.9, cost),
        },
    );
    let speedup = match test.after_us.len() {
        0 => Finding::none(
            "no write tells it: the device, or the part of it that has data, has too few AUs",
        ),
        count => {
            let text = format!(
                "{count} first writes into AUs with data took {:.1} ms each, into \
                 discarded ones {:.1} ms",
                before / 1e3,
                after / 1e3
            );
            // Few writes tell a ratio roughly.
            let open = evidence.open_linear.as_ref();
            let known = au_bytes(evidence).is_some() && open.is_some_and(|o| o.doubt.is_none());
            let sure = match alike(&test.before_us) && alike(&test.after_us) && known {
                true => 0.9,
                false => DOUBTFUL,
            };
            Finding::of(Value::Real(round(before / after.max(1e-9))), sure, text)
        }
    };
    values.insert(DiscardSpeedup, speedup);
}

/// Whether nearly all of `times` are near their median.
fn alike(times: &[f64]) -> bool {
    const NEAR: f64 = 0.15;
    let usual = median(times).unwrap_or(0.0);
    let near = times.iter().filter(|us| (*us / usual - 1.0).abs() <= NEAR);
    times.len() >= 5 && near.count() + 1 >= times.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::evidence::{CacheTest, OpenAuCount};

    #[test]
    fn a_limit_is_told_with_the_time_of_its_turn_and_where_it_was_tried() {
        let turn = |aus: u32, too_many: bool, fast_us: f64| OpenAuCount {
            aus,
            writes: 9,
            slow: 0,
            too_many,
            fast_us,
            slow_us: 0.0,
            region: 0,
        };
        let mut test = OpenAuTest {
            turns: vec![turn(3, false, 7000.0), turn(4, true, 7000.0)],
            limits: vec![3],
            overflow_us: 90_000.0,
            block_bytes: 65_536,
            copies: true,
            ..OpenAuTest::default()
        };
        test.alone_us.median = 190.0;
        let told = |test: &OpenAuTest| limited(test, 3).evidence;
        let text = told(&test);
        assert!(
            text.contains("with 3 7.0 ms") && text.contains("not confirmed"),
            "{text}"
        );
        test.limits.push(3);
        assert!(told(&test).contains("; confirmed in the other half"));
        test.limits.pop();
        test.filled.push(0);
        assert!(told(&test).contains("not tried in the other half"));
    }

    #[test]
    fn aus_in_turns_that_take_longer_than_one_alone_may_be_too_many() {
        let mut turn = OpenAuCount {
            aus: 3,
            writes: 20,
            slow: 1,
            too_many: false,
            fast_us: 1050.0,
            slow_us: 9000.0,
            region: 0,
        };
        let told = |turn: OpenAuCount| {
            let mut test = OpenAuTest {
                turns: vec![turn],
                ..OpenAuTest::default()
            };
            test.alone_us.median = 1000.0;
            as_alone(&test, 3)
        };
        assert!(told(turn));
        turn.fast_us = 1270.0;
        assert!(!told(turn));
        (turn.fast_us, turn.slow) = (1000.0, 4);
        assert!(!told(turn));
    }

    #[test]
    fn an_end_that_only_a_coarse_burst_saw_is_no_cache_and_no_absence_of_one() {
        let mut test = CacheTest {
            bursts: vec![(8192, vec![1.0; 48]); 3],
            sizes: vec![65_536],
            none_up_to: 0,
        };
        let told = |test: &CacheTest| {
            cache(&ProbeEvidence {
                cache: Some(test.clone()),
                ..ProbeEvidence::default()
            })
        };
        let found = told(&test);
        assert_eq!(found.value, None);
        assert!(found.reason.unwrap().contains("64 KiB"));
        test.sizes.extend([61_440, 65_536]);
        test.bursts
            .extend([(8192, vec![1.0; 48]), (8192, vec![1.0; 48])]);
        assert!(told(&test).evidence.contains("in 3 of 5 bursts"));
        test.sizes.clear();
        assert_eq!(told(&test).value, Some(Value::Whole(0)));
    }
}
