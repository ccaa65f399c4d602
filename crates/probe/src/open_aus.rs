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

use crate::bench::{Bench, Halt};
use crate::evidence::{OpenAus, Turn};
use crate::folds::{self, Folds};
use crate::kept_aus;
use crate::places;
use crate::stats::{Centre, Sequential, Verdict, median};
use std::collections::BTreeMap;
use whichfs_units::{KIB, MIB};

/// Size of a write.
pub(crate) const BLOCK: u64 = 64 * KIB;
/// Most AUs that are tried.
pub(crate) const AUS_MAX: u32 = 64;
/// AUs beyond the limit that are written wholly where a limit shows.
const SPARE: usize = 2;
/// AUs that are written wholly where no limit shows.
const FILLED: u32 = 8;
/// A write that takes this many times the usual one copies an AU.
const SLOW: f64 = 2.5;
/// Writes at random into AUs in turns take this many times as long as into one only if the AUs are
/// too many: without a limit counts of AUs differ by less (`interpret`'s `COLLAPSE`).
const SLOWER: f64 = 1.43;
/// A copy of an AU takes at least this share of the time of writing one: internal moves are
/// 0.6–2.1 times as fast (2.3.5). What takes less copies the little that tests wrote.
pub(crate) const COPY_LEAST: f64 = 0.42;
/// What takes this share of such a copy beyond a usual write is slow.
const COPY_PART: f64 = 0.2;
/// Least AU that a test with such writes is for: in a smaller one they come round soon, and a
/// write takes as long as a copy of it.
const AU_LEAST: u64 = 16 * BLOCK;
/// What is written of an AU whose size is not known.
const UNKNOWN_AU: u64 = 4 * MIB;
/// Bytes that the tests of AUs with data write beside those.
const AROUND: u64 = 32 * MIB;
/// Visits of one AU at most.
const VISITS_MAX: u64 = 20;

/// Order of the writes within an AU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Linear,
    Random,
}

/// What is tried, and on which places.
pub(crate) struct Trial {
    pub order: Order,
    /// Places of one AU, in the order in which they are written.
    offsets: Vec<u64>,
    slow_us: f64,
    /// Share of the visits that are slow with one AU in use: full logs are merged.
    slow_alone: f64,
    /// Visits that each place has had: an AU that is still open is written on in order.
    visits: BTreeMap<u64, u64>,
    /// Places in the order in which they came into use.
    used: Vec<u64>,
    /// Whether `slow_us` is still that of one AU alone, and not of several in turns.
    alone: bool,
    /// A median above this tells that all writes are slow, though none stands out.
    slower_us: f64,
    /// Visits of each AU before its times count.
    opening: u64,
}

impl Trial {
    /// For AUs of `au_bytes`; where that is not known little of each is used, as places may
    /// lie anywhere in an AU.
    pub fn new(bench: &mut Bench, order: Order, au_bytes: Option<u64>) -> Trial {
        let blocks = (au_bytes.unwrap_or(MIB / 2).min(2 * MIB) / BLOCK).max(2) / 2 * 2;
        let mut offsets: Vec<u64> = (0..blocks).map(|at| at * BLOCK).collect();
        if order == Order::Random {
            bench.rng.shuffle(&mut offsets);
            // Of two places of a visit the second is before the first, which no card can
            // take for in order.
            for pair in offsets.chunks_exact_mut(2) {
                pair.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        Trial {
            order,
            offsets,
            slow_us: f64::MAX,
            slow_alone: 0.0,
            visits: BTreeMap::new(),
            used: Vec::new(),
            alone: true,
            slower_us: f64::MAX,
            opening: 1,
        }
    }

    /// Writes of a visit: a log that was just opened is in order until its second write.
    fn writes(&self) -> u64 {
        match self.order {
            Order::Linear => 1,
            Order::Random => 2,
        }
    }

    /// Places that the visit that is `ahead` visits from now writes in the AU at `base`.
    fn places(&self, base: u64, ahead: u64) -> impl Iterator<Item = u64> + use<> {
        let first = (self.visits.get(&base).copied().unwrap_or(0) + ahead) * self.writes();
        let offsets: Vec<u64> = (first..first + self.writes())
            .map(|at| base + self.offsets[(at % self.offsets.len() as u64) as usize])
            .collect();
        offsets.into_iter()
    }

    /// Writes the next of the AU at `base`: the longest time of the visit.
    fn visit(&mut self, bench: &mut Bench, base: u64) -> Result<Option<f64>, Halt> {
        let mut longest: Option<f64> = None;
        for place in self.places(base, 0) {
            let Some(us) = bench.write_through(place, BLOCK)? else {
                return Ok(None);
            };
            longest = Some(longest.map_or(us, |other| other.max(us)));
        }
        *self.visits.entry(base).or_default() += 1;
        Ok(longest)
    }

    /// `count` places: those last in use, as they may be open still, then others of `bases`.
    pub fn pick(&mut self, bases: &[u64], count: u32) -> Vec<u64> {
        let fresh = bases.iter().filter(|base| !self.used.contains(base));
        let missing = (count as usize).saturating_sub(self.used.len());
        let fresh: Vec<u64> = fresh.take(missing).copied().collect();
        self.used.extend(fresh);
        self.used[self.used.len().saturating_sub(count as usize)..].to_vec()
    }

    /// Goes on elsewhere.
    pub fn move_on(&mut self) {
        self.used.clear();
    }

    /// Writes of one AU that is alone in use; from them on it is known what is slow.
    ///
    /// A card may join contiguous writes to one AU (2.3.2), which it cannot in turns: what is
    /// slow must also take a good part of the time to copy an AU, `copy_us`; where that is not
    /// known, much more than writes to one AU that cannot be joined.
    pub fn alone(
        &mut self,
        bench: &mut Bench,
        bases: &[u64],
        copy_us: Option<f64>,
    ) -> Result<Centre, Halt> {
        const COUNT: u64 = 12;
        let mut times = Vec::new();
        let base = bases[0];
        self.hold(bench, &[base], COUNT + 1)?;
        for visit in 0..=COUNT {
            let time = self.visit(bench, base)?;
            if visit > 0 {
                times.extend(time);
            }
        }
        bench.release();
        let alone = Centre::of(&times);
        self.slow_us = match copy_us {
            Some(us) => (SLOW * alone.median).max(alone.median + COPY_PART * us),
            None => SLOW * alone.median.max(backwards(bench, bases[1])?),
        };
        let slow = times.iter().filter(|us| **us > self.slow_us).count();
        self.slow_alone = slow as f64 / times.len().max(1) as f64;
        Ok(alone)
    }

    fn hold(&self, bench: &mut Bench, bases: &[u64], visits: u64) -> Result<(), Halt> {
        for base in bases {
            for visit in 0..visits {
                for place in self.places(*base, visit) {
                    bench.hold(place, BLOCK)?;
                }
            }
        }
        Ok(())
    }

    /// Visits `bases` in turns until it is clear whether they are too many.
    pub fn turn(&mut self, bench: &mut Bench, bases: &[u64], region: u32) -> Result<Turn, Halt> {
        let visits = (self.opening + 13_u64.div_ceil(bases.len() as u64)).min(3);
        self.hold(bench, bases, visits)?;
        let rare = (1.3 * self.slow_alone).clamp(0.05, 0.5);
        let mut test = Sequential::between(rare, rare + 0.3);
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        // The first visits open the AUs.
        'visits: for visit in 0..VISITS_MAX + self.opening {
            for base in bases {
                let time = self.visit(bench, *base)?;
                let Some(us) = time.filter(|_| visit >= self.opening) else {
                    continue;
                };
                test.add(us > self.slow_us);
                if us > self.slow_us {
                    &mut slow
                } else {
                    &mut fast
                }
                .push(us);
                if test.verdict() != Verdict::Open {
                    break 'visits;
                }
            }
        }
        bench.release();
        let too_many = match test.verdict() {
            Verdict::Frequent => true,
            Verdict::Rare => false,
            Verdict::Open => slow.len() as f64 > (rare + 0.15) * (fast.len() + slow.len()) as f64,
        };
        let all_slow = median(&fast).is_some_and(|us| us > self.slower_us);
        if !too_many && all_slow {
            slow.append(&mut fast);
        }
        let too_many = too_many || all_slow;
        let fast_us = median(&fast).unwrap_or(0.0);
        if self.alone && !too_many && bases.len() > 1 {
            // What is usual in turns, where nothing is joined, is known now.
            self.slow_us = SLOW * fast_us;
            self.alone = false;
        }
        Ok(Turn {
            aus: bases.len() as u32,
            writes: (fast.len() + slow.len()) as u32,
            slow: slow.len() as u32,
            too_many,
            fast_us,
            slow_us: median(&slow).unwrap_or(0.0),
            region,
        })
    }
}

/// Median time of writes to one AU in falling order, in microseconds.
fn backwards(bench: &mut Bench, base: u64) -> Result<f64, Halt> {
    const COUNT: u64 = 8;
    let mut times = Vec::new();
    bench.hold(base, COUNT * BLOCK)?;
    for at in (0..COUNT).rev() {
        let us = bench.write_through(base + at * BLOCK, BLOCK)?;
        if at + 2 < COUNT {
            times.extend(us);
        }
    }
    bench.release();
    Ok(median(&times).unwrap_or(0.0))
}

/// Places in two halves of the card, or those that are known to have data.
fn regions(bench: &mut Bench, stride: u64, linear: Option<&OpenAus>) -> [Vec<u64>; 2] {
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
    linear: Option<&OpenAus>,
    rate: Option<f64>,
) -> Result<OpenAus, Halt> {
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
    let mut result = OpenAus {
        alone_us: trial.alone(bench, &regions[0], au_bytes.map(copy_of))?,
        block_bytes: BLOCK,
        stride_bytes: stride,
        ..OpenAus::default()
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
    let mixed = |turn: &Turn| {
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
            with_data(bench, &mut trial, &regions[0], au_bytes, limit, &mut result)?;
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
fn overflow_us(result: &OpenAus) -> f64 {
    let limit = result.limits.first().copied().unwrap_or(0);
    let over = |turn: &&Turn| turn.too_many && turn.aus > limit;
    result
        .turns
        .iter()
        .rfind(over)
        .map_or(0.0, |turn| turn.slow_us)
}

/// The same with AUs that have data, where others seem to have none.
fn with_data(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    au_bytes: Option<u64>,
    limit: u32,
    result: &mut OpenAus,
) -> Result<(), Halt> {
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

/// Whether some writes were slow with numbers of AUs that are not too many, or the limit is one
/// that hardly any card has.
fn is_unclear(result: &OpenAus) -> bool {
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
    result: &mut OpenAus,
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
    result: &mut OpenAus,
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
    result: &mut OpenAus,
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
fn search(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    region: u32,
    most: u32,
    result: &mut OpenAus,
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
    result: &mut OpenAus,
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
fn filled(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    au_bytes: Option<u64>,
    count: u32,
    result: &mut OpenAus,
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
    // What was open before can only take places away, and is closed meanwhile: the greater counts.
    for _ in 0..2 {
        search(bench, trial, &bases, 0, count as u32, result)?;
    }
    let greatest = result.limits.iter().max().copied();
    result.limits = greatest.into_iter().collect();
    if result.free_up_to > 0 {
        result.doubt = Some(format!("{count} AUs were too many once, and once not"));
    }
    Ok(())
}
