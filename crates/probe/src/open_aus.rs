//! How many AUs can be written in turns without copying.
//!
//! One AU more than can be open costs the copy of an AU with each write: about a hundred
//! times the usual (`flash.md` §2.3.5), whatever the size of the request. So few writes
//! tell, and a sequential test says when they do. The number of AUs is doubled until it is
//! too great, then bisected, and the answer is confirmed in the other half of the card.
//!
//! A request of 64 KiB is above what cards with a small-write area divert (2.3.8). AUs that
//! were never written cost nothing to copy: where no limit shows, a few AUs are written
//! wholly and tried again.

use crate::aus_with_data::{self, SPARE, filled};
use crate::bench::{Bench, Halt};
use crate::evidence::{OpenAuCount, OpenAuTest};
use crate::folds::{self, Folds};
use crate::kept_aus;
use crate::places;
pub(crate) use crate::turns::Order;
use crate::turns::{SLOW, Trial};
use whichfs_units::{KIB, MIB};

/// Size of a write.
pub(crate) const BLOCK: u64 = 64 * KIB;
/// Most AUs that are tried.
pub(crate) const AUS_MAX: u32 = 64;
/// AUs that are written wholly where no limit shows.
const FILLED: u32 = 8;
/// Writes at random into AUs in turns take this many times as long as into one only if the AUs are
/// too many: without a limit counts of AUs differ by less (`interpret`'s `COLLAPSE`).
const SLOWER: f64 = 1.43;
/// A copy of an AU takes at least this share of the time of writing one: internal moves are
/// 0.6–2.1 times as fast (2.3.5). What takes less copies the little that tests wrote.
pub(crate) const COPY_LEAST: f64 = 0.42;
/// Least AU that a test with such writes is for: in a smaller one they come round soon, and a
/// write takes as long as a copy of it.
const AU_LEAST: u64 = 16 * BLOCK;

/// Places in two halves of the card, or those that are known to have data.
fn regions(bench: &mut Bench, stride: u64, linear: Option<&OpenAuTest>) -> [Vec<u64>; 2] {
    match linear.map(|linear| &linear.filled) {
        Some(filled) if !filled.is_empty() => [filled.clone(), filled.clone()],
        _ => [0, 1].map(|region| places::bases(bench, stride, region)),
    }
}

/// Closes what earlier tests left open, which would take the places of AUs of `tried`: as many
/// others as can be open are, and then the first of `tried` is written until those lose theirs.
fn settle(bench: &mut Bench, stride: u64, tried: &[u64], limit: u32) -> Result<(), Halt> {
    let limit = limit as usize;
    let first = &tried[..tried.len().min(limit + SPARE)];
    let mut others = places::bases(bench, stride, 0);
    others.retain(|base| !first.contains(base));
    for base in others.into_iter().take(limit) {
        bench.hold(base, BLOCK)?;
        bench.write_through(base, BLOCK)?;
        bench.release();
    }
    kept_aus::settle(bench, tried[0])
}

/// Finds the limit; `linear` is the result of writing in order, which bounds it; `rate` is
/// that of writing in order, in bytes a second.
pub(crate) fn measure(
    bench: &mut Bench,
    order: Order,
    au_bytes: Option<u64>,
    linear: Option<&OpenAuTest>,
    rate: Option<f64>,
) -> Result<OpenAuTest, Halt> {
    if let Some(au) = au_bytes.filter(|au| *au < AU_LEAST) {
        let [au, least] = [au, AU_LEAST].map(whichfs_units::Bytes);
        let reason = format!("an AU of {au} is too small for this test: {least} at least");
        return Err(Halt::Stage(reason));
    }
    let stride = places::stride(bench.capacity, au_bytes);
    // A mild card's count is not exact enough to bound the other.
    let at_most = crate::infer::limit_of(linear.filter(|linear| linear.is_exact()));
    let regions = regions(bench, stride, linear);
    if regions.iter().any(|bases| bases.len() < 3) {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    let limited = crate::infer::limit_of(linear);
    if let Some(limit) = limited {
        settle(bench, stride, &regions[0], limit)?;
    }
    let mut trial = Trial::new(bench, order, au_bytes);
    let copy_of = |au: u64| au as f64 / rate.unwrap_or(1e8) * 1e6;
    let copy_us = copy_of(au_bytes.unwrap_or(MIB));
    let mut result = OpenAuTest {
        alone_us: trial.alone(bench, &regions[0], au_bytes.map(copy_of))?,
        block_bytes: BLOCK,
        stride_bytes: stride,
        ..OpenAuTest::default()
    };
    if result.alone_us.count < 4 {
        return Err(Halt::Lost("too many writes failed".into()));
    }
    if order == Order::Random && at_most.is_some() {
        trial.slower_us = SLOWER * result.alone_us.median;
    }
    bench.tell(0.1);
    let most = at_most.unwrap_or(AUS_MAX);
    let first = search(bench, &mut trial, &regions[0], 0, most, &mut result)?;
    bench.tell(0.6);
    let slow = result.turns.iter().rfind(|turn| turn.too_many);
    result.overflow_us = slow.map_or(0.0, |turn| turn.slow_us);
    // Where little was written before, copies are short and differ.
    let mixed = |turn: &OpenAuCount| {
        turn.slow * 10 < turn.writes * 7 && turn.fast_us > 2.0 * result.alone_us.median
    };
    let empty = order == Order::Linear
        && (result.overflow_us < COPY_LEAST * copy_us || slow.is_some_and(mixed));
    if order == Order::Linear
        && (empty || is_unclear(&result))
        && kept(bench, &regions, au_bytes, &mut result)?
    {
        return Ok(result);
    }
    if let Some(limit) = limited {
        settle(bench, stride, &regions[1], limit)?;
    }
    if order == Order::Linear
        && first.is_none()
        && folded(bench, &regions, au_bytes, copy_us, &mut result)?
    {
        return Ok(result);
    }
    let mut empty = empty;
    if let Some(limit) = first.filter(|_| !empty) {
        confirm(bench, &mut trial, &regions[1], limit, most, &mut result)?;
        // The first half may have data where the other has none.
        let agreed = order == Order::Linear && result.doubt.is_none();
        empty = agreed && overflow_us(&result) < COPY_LEAST * copy_us;
    }
    match first {
        Some(limit) if empty => {
            aus_with_data::measure(bench, &mut trial, &regions[0], au_bytes, limit, &mut result)?;
        }
        Some(_) => {}
        None if at_most.is_none() && order == Order::Linear => {
            filled(
                bench,
                &mut trial,
                &regions[0],
                au_bytes,
                FILLED,
                &mut result,
            )?;
        }
        None => {
            let count = result.free_up_to;
            elsewhere(bench, &mut trial, &regions[1], count, &mut result)?;
        }
    }
    result.overflow_us = overflow_us(&result);
    result.copies = result.overflow_us >= COPY_LEAST * copy_us;
    Ok(result)
}

/// What a write takes with more AUs in turns than the limit, as the last of such turns had it: one
/// with fewer may have closed what others had left open.
pub(crate) fn overflow_us(result: &OpenAuTest) -> f64 {
    let limit = result.limits.first().copied().unwrap_or(0);
    let over = |turn: &&OpenAuCount| turn.too_many && turn.aus > limit;
    result
        .turns
        .iter()
        .rfind(over)
        .map_or(0.0, |turn| turn.slow_us)
}

/// Whether some writes were slow with numbers of AUs that are not too many, or the limit is one
/// that hardly any card has.
fn is_unclear(result: &OpenAuTest) -> bool {
    const SLOW_MOST: u32 = 2;
    const USUAL_MOST: u32 = 7;
    let turns = result.turns.iter().filter(|turn| !turn.too_many);
    let slow: u32 = turns.map(|turn| turn.slow).sum();
    slow > SLOW_MOST
        || result
            .limits
            .first()
            .is_some_and(|limit| *limit > USUAL_MOST)
}

/// Counts the AUs that keep their place; whether both halves of the card agree on it.
fn kept(
    bench: &mut Bench,
    regions: &[Vec<u64>; 2],
    au_bytes: Option<u64>,
    result: &mut OpenAuTest,
) -> Result<bool, Halt> {
    if au_bytes.is_none_or(|au| au < kept_aus::BYTES) {
        return Ok(false);
    }
    let Some(first) = kept_aus::measure(bench, &regions[0])? else {
        return Ok(false);
    };
    let other = kept_aus::measure(bench, &regions[1])?;
    if other.is_none_or(|other| other.aus != first.aus) {
        return Ok(false);
    }
    result.limits = vec![first.aus; 2];
    result.overflow_us = first.slow_us;
    result.kept = true;
    Ok(true)
}

/// Looks for a page map that writes twice what goes to too many AUs; whether both halves of the
/// card have it.
fn folded(
    bench: &mut Bench,
    regions: &[Vec<u64>; 2],
    au_bytes: Option<u64>,
    copy_us: f64,
    result: &mut OpenAuTest,
) -> Result<bool, Halt> {
    let Some(au) = au_bytes else {
        return Ok(false);
    };
    let fold_us = COPY_LEAST / 2.0 * copy_us;
    let first = folds::measure(bench, &regions[0], au, fold_us)?;
    let Folds::Places(places) = first else {
        result.folds = (first == Folds::Never).then_some(false);
        return Ok(false);
    };
    if folds::measure(bench, &regions[1], au, fold_us)? != first {
        return Ok(false);
    }
    result.limits = vec![places; 2];
    result.free_up_to = 0;
    result.folds = Some(true);
    Ok(true)
}

/// Tries a number without a limit in another region.
fn elsewhere(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    count: u32,
    result: &mut OpenAuTest,
) -> Result<(), Halt> {
    trial.move_on();
    let bases = trial.pick(bases, count.min(bases.len() as u32));
    let turn = trial.turn(bench, &bases, 1)?;
    let usual = result.turns.last().map_or(0.0, |turn| turn.fast_us);
    let usual = usual.max(result.alone_us.median);
    if turn.too_many || turn.fast_us > SLOW * usual {
        result.doubt = Some("one half of the card has a limit, the other has not".into());
    }
    result.turns.push(turn);
    Ok(())
}

/// Doubles and bisects in one region; `None` if nothing up to `most` is too many.
pub(crate) fn search(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    region: u32,
    most: u32,
    result: &mut OpenAuTest,
) -> Result<Option<u32>, Halt> {
    let most = most.min(bases.len() as u32);
    let (mut free, mut over) = (1, None);
    let mut next = 2;
    while free < most && over.is_none_or(|over| over > free + 1) {
        let count = match over {
            None => next.min(most),
            Some(over) => u32::midpoint(free, over),
        };
        let places = trial.pick(bases, count);
        let turn = trial.turn(bench, &places, region)?;
        if turn.too_many {
            over = Some(count);
        } else {
            free = count;
        }
        result.turns.push(turn);
        next = count * 2;
    }
    match over {
        Some(_) => result.limits.push(free),
        None => result.free_up_to = free,
    }
    Ok(over.map(|_| free))
}

/// Tries the limit and one more in another region, twice each where they disagree.
fn confirm(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    limit: u32,
    most: u32,
    result: &mut OpenAuTest,
) -> Result<(), Halt> {
    let mut agrees = true;
    trial.move_on();
    for count in [limit, limit + 1, limit] {
        if count as usize > bases.len() || count > most {
            continue;
        }
        let places = trial.pick(bases, count);
        let turn = trial.turn(bench, &places, 1)?;
        agrees &= turn.too_many == (count > limit);
        result.turns.push(turn);
    }
    if agrees {
        result.limits.push(limit);
        return Ok(());
    }
    let other = search(bench, trial, bases, 1, most, result)?;
    if other != Some(limit) {
        result.doubt = Some(match other {
            Some(other) => format!("{limit} in one half of the card, {other} in the other"),
            None => format!("{limit} in one half of the card, no limit in the other"),
        });
    }
    Ok(())
}
