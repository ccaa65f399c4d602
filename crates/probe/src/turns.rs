//! Writing AUs in turns: some at each visit of one, until it is clear whether they are too many.

use crate::bench::{Bench, Halt};
use crate::evidence::OpenAuCount;
use crate::open_aus::BLOCK;
use crate::stats::{Centre, Sequential, Verdict, median};
use std::collections::BTreeMap;
use whichfs_units::MIB;

/// A write that takes this many times the usual one copies an AU.
pub(crate) const SLOW: f64 = 2.5;
/// What takes this share of a copy of an AU beyond a usual write is slow.
const COPY_PART: f64 = 0.2;
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
    pub visits: BTreeMap<u64, u64>,
    /// Places in the order in which they came into use.
    used: Vec<u64>,
    /// Whether `slow_us` is still that of one AU alone, and not of several in turns.
    alone: bool,
    /// A median above this tells that all writes are slow, though none stands out.
    pub slower_us: f64,
    /// Visits of each AU before its times count.
    pub opening: u64,
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

    /// From now on a write is slow only if it takes `us` at least.
    pub fn slow_from(&mut self, us: f64) {
        self.slow_us = self.slow_us.max(us);
        self.alone = false;
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
    pub fn turn(
        &mut self,
        bench: &mut Bench,
        bases: &[u64],
        region: u32,
    ) -> Result<OpenAuCount, Halt> {
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
        Ok(OpenAuCount {
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
