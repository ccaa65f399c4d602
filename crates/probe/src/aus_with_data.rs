//! Open AUs among such as have data: a card that was never written has no AU to copy.
//!
//! AUs of the long stream have data, and a few more are written wholly. Then one AU too many costs
//! the copy of an AU, as it does on a card in use.

use crate::bench::{Bench, Halt};
use crate::evidence::OpenAuTest;
use crate::open_aus::{self, BLOCK, Order};
use crate::places;
use crate::turns::Trial;
use whichfs_units::MIB;

/// AUs beyond the limit that are written wholly where a limit shows.
pub(crate) const SPARE: usize = 2;
/// What is written of an AU whose size is not known.
const UNKNOWN_AU: u64 = 4 * MIB;
/// Bytes that the tests of AUs with data write beside those.
const AROUND: u64 = 32 * MIB;
/// A write that closes an AU with data takes this share of the time of others that do at least.
const COPY_PART: f64 = 0.5;

/// Tries again the limit that `linear` tells of AUs that seem to have no data after all; `None` if
/// it takes too much to write, or nothing shows.
pub(crate) fn again(
    bench: &mut Bench,
    linear: &OpenAuTest,
    au_bytes: Option<u64>,
) -> Result<Option<OpenAuTest>, Halt> {
    let Some(limit) = linear.limits.first().copied() else {
        return Ok(None);
    };
    let bases = places::bases(bench, linear.stride_bytes, 0);
    if bases.len() < 3 {
        return Ok(None);
    }
    let mut trial = Trial::new(bench, Order::Linear, au_bytes);
    let mut result = OpenAuTest {
        alone_us: trial.alone(bench, &bases, None)?,
        block_bytes: BLOCK,
        stride_bytes: linear.stride_bytes,
        copies: true,
        before_us: linear.overflow_us,
        ..OpenAuTest::default()
    };
    measure(bench, &mut trial, &bases, au_bytes, limit, &mut result)?;
    result.overflow_us = open_aus::overflow_us(&result);
    let told = result.limits == [limit] && !result.filled.is_empty();
    let longer = result.overflow_us > linear.overflow_us;
    Ok((told && longer && result.doubt.is_none()).then_some(result))
}

/// Tries AUs with data where others, of which `limit` can be open, seem to have none.
pub(crate) fn measure(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    au_bytes: Option<u64>,
    limit: u32,
    result: &mut OpenAuTest,
) -> Result<(), Halt> {
    result.before_us = result.before_us.max(open_aus::overflow_us(result));
    result.limits.clear();
    let count = limit + SPARE as u32;
    filled(bench, trial, bases, au_bytes, count, result)?;
    if result.filled.is_empty() {
        let bytes = 2 * u64::from(count) * au_bytes.unwrap_or(UNKNOWN_AU);
        result.doubt = Some(format!(
            "a limit of {limit} was seen, but AUs may never have been written, and writing them \
             takes {}: raise --budget",
            whichfs_units::Bytes(bytes)
        ));
    }
    Ok(())
}

/// Writes all of one AU.
pub(crate) fn fill(bench: &mut Bench, base: u64, bytes: u64) -> Result<(), Halt> {
    let mut at = 0;
    while at < bytes {
        let length = MIB.min(bytes - at);
        bench.hold(base + at, length)?;
        bench.write(base + at, length)?;
        bench.release();
        at += length;
    }
    Ok(())
}

/// Writes a few AUs wholly and tries them: a card that was never written has no AU to copy.
pub(crate) fn filled(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    au_bytes: Option<u64>,
    count: u32,
    result: &mut OpenAuTest,
) -> Result<(), Halt> {
    let bytes = au_bytes.unwrap_or(UNKNOWN_AU);
    let count = bases.len().min(count as usize);
    let mut written = bench.streamed(bytes, count);
    let missing = count - written.len();
    if !bench.affords(bytes * missing as u64 + AROUND) {
        return Ok(());
    }
    for (done, base) in bases[..missing].iter().enumerate() {
        fill(bench, *base, bytes)?;
        trial.visits.remove(base);
        bench.tell(0.6 + 0.3 * done as f64 / missing as f64);
    }
    written.extend(&bases[..missing]);
    let bases = written;
    trial.move_on();
    // Some of them have places since before they were filled, and lose them to the others.
    trial.opening = 2;
    let places = trial.pick(&bases, count as u32);
    let turn = trial.turn(bench, &places, 0)?;
    result.turns.push(turn);
    result.filled.clone_from(&bases);
    if !turn.too_many {
        result.filled_up_to = count as u32;
        return Ok(());
    }
    result.free_up_to = 0;
    trial.slow_from(COPY_PART * turn.slow_us);
    // What was open before can only take places away, and is closed meanwhile: the greater counts.
    for _ in 0..2 {
        open_aus::search(bench, trial, &bases, 0, count as u32, result)?;
    }
    let greatest = result.limits.iter().max().copied();
    result.limits = greatest.into_iter().collect();
    if result.free_up_to > 0 {
        result.doubt = Some(format!("{count} AUs were too many once, and once not"));
    }
    Ok(())
}
