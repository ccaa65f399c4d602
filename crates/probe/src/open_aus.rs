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
use crate::places;
use crate::stats::{Centre, Sequential, Verdict, median};
use std::collections::BTreeMap;
use whichfs_units::{KIB, MIB};

/// Size of a write.
pub(crate) const BLOCK: u64 = 64 * KIB;
/// Most AUs that are tried.
const AUS_MAX: u32 = 64;
/// AUs that are written wholly where no limit shows.
const FILLED: u32 = 8;
/// A write that takes this many times the usual one copies an AU.
const SLOW: f64 = 2.5;
/// Writes of one AU at most.
const ROUNDS_MAX: u64 = 14;

/// Order of the writes within an AU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Linear,
    Random,
}

/// What is tried, and on which places.
pub(crate) struct Trial {
    pub order: Order,
    /// Places of one AU, in blocks, in the order in which they are written.
    offsets: Vec<u64>,
    slow_us: f64,
    /// Rounds that each place has had: an AU that is still open is written on in order.
    rounds: BTreeMap<u64, u64>,
    /// The next place of the list that is used: each turn takes others.
    next: usize,
}

impl Trial {
    /// For AUs of `au_bytes`, or of 2 MiB at least where that is not known.
    pub fn new(bench: &mut Bench, order: Order, au_bytes: Option<u64>) -> Trial {
        let blocks = (au_bytes.unwrap_or(2 * MIB).min(2 * MIB) / BLOCK).max(4);
        let mut offsets: Vec<u64> = (0..blocks).map(|at| at * BLOCK).collect();
        if order == Order::Random {
            bench.rng.shuffle(&mut offsets);
            // The second place is before the first, which no card can take for in order.
            if offsets[0] < offsets[1] {
                offsets.swap(0, 1);
            }
        }
        Trial {
            order,
            offsets,
            slow_us: f64::MAX,
            rounds: BTreeMap::new(),
            next: 0,
        }
    }

    /// Writes that open an AU and are not counted.
    fn opening(&self) -> u64 {
        match self.order {
            Order::Linear => 1,
            Order::Random => 2,
        }
    }

    /// Where the AU at `base` is written, `ahead` writes from now.
    fn place(&self, base: u64, ahead: u64) -> u64 {
        let round = self.rounds.get(&base).copied().unwrap_or(0) + ahead;
        base + self.offsets[(round % self.offsets.len() as u64) as usize]
    }

    /// Writes the next block of the AU at `base`.
    fn write(&mut self, bench: &mut Bench, base: u64) -> Result<Option<f64>, Halt> {
        let place = self.place(base, 0);
        *self.rounds.entry(base).or_default() += 1;
        bench.write_through(place, BLOCK)
    }

    /// `count` places of `bases`, others than the last time.
    pub fn pick(&mut self, bases: &[u64], count: u32) -> Vec<u64> {
        let from = self.next;
        self.next += count as usize;
        (0..count as usize)
            .map(|at| bases[(from + at) % bases.len()])
            .collect()
    }

    /// Writes of one AU that is alone in use; from them on it is known what is slow.
    pub fn alone(&mut self, bench: &mut Bench, base: u64) -> Result<Centre, Halt> {
        const COUNT: u64 = 12;
        let mut times = Vec::new();
        self.hold(bench, &[base], COUNT + self.opening())?;
        for round in 0..COUNT + self.opening() {
            let time = self.write(bench, base)?;
            if round >= self.opening() {
                times.extend(time);
            }
        }
        bench.release();
        let alone = Centre::of(&times);
        self.slow_us = SLOW * alone.median;
        Ok(alone)
    }

    fn hold(&self, bench: &mut Bench, bases: &[u64], rounds: u64) -> Result<(), Halt> {
        for base in bases {
            for round in 0..rounds {
                bench.hold(self.place(*base, round), BLOCK)?;
            }
        }
        Ok(())
    }

    /// Writes to `bases` in turns until it is clear whether they are too many.
    pub fn turn(&mut self, bench: &mut Bench, bases: &[u64], region: u32) -> Result<Turn, Halt> {
        let count = bases.len() as u64;
        let rounds = (self.opening() + 13_u64.div_ceil(count)).min(ROUNDS_MAX);
        self.hold(bench, bases, rounds.min(3))?;
        let mut test = Sequential::between(0.05, 0.35);
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        'rounds: for round in 0..self.opening() + ROUNDS_MAX {
            for base in bases {
                let time = self.write(bench, *base)?;
                let Some(us) = time.filter(|_| round >= self.opening()) else {
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
                    break 'rounds;
                }
            }
        }
        bench.release();
        Ok(Turn {
            aus: bases.len() as u32,
            writes: (fast.len() + slow.len()) as u32,
            slow: slow.len() as u32,
            fast_us: median(&fast).unwrap_or(0.0),
            slow_us: median(&slow).unwrap_or(0.0),
            region,
        })
    }
}

/// Whether a turn had too many AUs.
fn too_many(turn: &Turn) -> bool {
    f64::from(turn.slow) > 0.2 * f64::from(turn.writes)
}

/// Finds the limit. `at_most` is a limit that is known already: that of writing in order.
pub(crate) fn measure(
    bench: &mut Bench,
    order: Order,
    au_bytes: Option<u64>,
    at_most: Option<u32>,
) -> Result<OpenAus, Halt> {
    let stride = places::stride(bench.capacity, au_bytes);
    let regions = [
        places::bases(bench, stride, 0),
        places::bases(bench, stride, 1),
    ];
    if regions.iter().any(|bases| bases.len() < 3) {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    let mut trial = Trial::new(bench, order, au_bytes);
    let mut result = OpenAus {
        alone_us: trial.alone(bench, regions[0][0])?,
        block_bytes: BLOCK,
        stride_bytes: stride,
        ..OpenAus::default()
    };
    if result.alone_us.count < 4 {
        return Err(Halt::Stage("too many writes failed".into()));
    }
    bench.tell(0.1);
    let most = at_most.unwrap_or(AUS_MAX);
    let first = search(bench, &mut trial, &regions[0], 0, most, &mut result)?;
    bench.tell(0.6);
    match first {
        Some(limit) => confirm(bench, &mut trial, &regions[1], limit, most, &mut result)?,
        None if at_most.is_none() && order == Order::Linear => {
            filled(bench, &mut trial, &regions[0], au_bytes, &mut result)?;
        }
        None => {
            let count = result.free_up_to.min(regions[1].len() as u32);
            let bases = trial.pick(&regions[1], count);
            let turn = trial.turn(bench, &bases, 1)?;
            if too_many(&turn) {
                result.doubt = Some("one half of the card has a limit, the other has not".into());
            }
            result.turns.push(turn);
        }
    }
    let slow = result.turns.iter().rfind(|turn| too_many(turn));
    result.overflow_us = slow.map_or(0.0, |turn| turn.slow_us);
    Ok(result)
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
        if too_many(&turn) {
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
    for count in [limit, limit + 1, limit] {
        if count as usize > bases.len() || count > most {
            continue;
        }
        let places = trial.pick(bases, count);
        let turn = trial.turn(bench, &places, 1)?;
        agrees &= too_many(&turn) == (count > limit);
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

/// Writes a few AUs wholly and tries them: a card that was never written has no AU to copy.
fn filled(
    bench: &mut Bench,
    trial: &mut Trial,
    bases: &[u64],
    au_bytes: Option<u64>,
    result: &mut OpenAus,
) -> Result<(), Halt> {
    let bytes = au_bytes.unwrap_or(4 * MIB);
    let count = bases.len().min(FILLED as usize);
    if !bench.affords(2 * bytes * count as u64) {
        return Ok(());
    }
    for (done, base) in bases[..count].iter().enumerate() {
        let mut at = 0;
        while at < bytes {
            let length = MIB.min(bytes - at);
            bench.hold(base + at, length)?;
            bench.write(base + at, length)?;
            bench.release();
            at += length;
        }
        trial.rounds.remove(base);
        bench.tell(0.6 + 0.3 * done as f64 / count as f64);
    }
    let turn = trial.turn(bench, &bases[..count], 0)?;
    result.turns.push(turn);
    if !too_many(&turn) {
        result.filled_up_to = count as u32;
        return Ok(());
    }
    result.free_up_to = 0;
    search(bench, trial, &bases[..count], 0, count as u32, result)?;
    Ok(())
}
