//! Times of requests at random places of the whole device.
//!
//! Sizes take turns in random order, so that a card that changes meanwhile changes for all alike.
//! Most writes may be fast until a place is full and all of it is put in order: such a one is part
//! of the mean.
//!
//! **Page maps** put a block in order each time so many bytes were written: they fold what has no
//! place of its own, or collect. A few such events are too few to average as if by chance;
//! but they come evenly, so what they cost for a byte is known from the first to the last of them,
//! and each size pays by its bytes.

use crate::bench::{Bench, Halt};
use crate::evidence::{RandomTimes, RequestLatency};
use crate::rates::{Direction, OUTLIER};
use crate::stats::{median, quantile};
use std::collections::BTreeMap;
use whichfs_units::KIB;

/// Sizes of requests at random places.
pub(crate) const RANDOM_SIZES: [u64; 3] = [4 * KIB, 16 * KIB, 64 * KIB];

/// How long and how often requests are made at random places.
struct Plan {
    direction: Direction,
    /// Requests of each size at least and at most, in turns.
    turns: (usize, usize),
    /// Requests of 4 KiB at least and at most, those in turns included.
    small: (usize, usize),
    /// Standard error of a mean that is good enough, as a share of it.
    precision: f64,
    /// Time for either, in seconds.
    seconds: f64,
}

/// Times of reads at random places of the whole device. They cost next to nothing: many of them.
pub(crate) fn reads_at_random(bench: &mut Bench) -> Result<RandomTimes, Halt> {
    let plan = Plan {
        direction: Direction::Read,
        turns: (48, 64),
        small: (400, 400),
        precision: 0.04,
        seconds: 10.0,
    };
    Ok(requests(bench, &plan)?.summary(&plan))
}

/// Blocks that a page map may put in order, each time so many bytes were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// Bytes of one.
    pub bytes: u64,
    /// Least time that it takes, in microseconds.
    pub least_us: f64,
    /// How many are waited for.
    pub wanted: u64,
}

/// Times of durable writes at random places of the whole device: as many as it takes to know the
/// mean, and to put `blocks` in order.
pub(crate) fn writes_at_random(
    bench: &mut Bench,
    blocks: Option<Blocks>,
) -> Result<RandomTimes, Halt> {
    const LEAST: usize = 8;
    let bytes: u64 = RANDOM_SIZES.iter().sum();
    let turns = blocks.map_or(0, |blocks| (blocks.wanted * blocks.bytes / bytes) as usize);
    let turns = turns.max(LEAST);
    let plan = Plan {
        direction: Direction::Write,
        turns: (turns, turns.max(200)),
        small: (110, 400),
        precision: 0.05,
        // A write that copies an AU takes long, and differs: so many are seldom needed.
        seconds: if blocks.is_some() { 45.0 } else { 120.0 },
    };
    let log = requests(bench, &plan)?;
    let mut times = log.summary(&plan);
    if let Some((means, count)) = blocks.and_then(|blocks| log.in_blocks(&plan, blocks)) {
        times.means = means;
        times.blocks = count;
    } else if let Some(mean) = gathered(&plan, log.small()) {
        times.means.insert(RANDOM_SIZES[0], mean);
    }
    Ok(times)
}

/// Requests in the order in which they were made.
#[derive(Default)]
struct Log {
    /// Size in bytes, time in microseconds.
    all: Vec<(u64, f64)>,
    /// Requests of sizes in turns; those behind are all small.
    mixed: usize,
}

/// Makes the requests of `plan`.
fn requests(bench: &mut Bench, plan: &Plan) -> Result<Log, Halt> {
    let mut log = Log::default();
    let until = |bench: &Bench| bench.spent.device.as_secs_f64() + plan.seconds;
    let end = until(bench);
    for round in 0..plan.turns.1 {
        let mut sizes = RANDOM_SIZES;
        bench.rng.shuffle(&mut sizes);
        for size in sizes {
            log.add(size, one_at_random(bench, plan, size)?);
        }
        bench.tell(0.5 * round as f64 / plan.turns.1 as f64);
        let enough = round + 1 >= plan.turns.0;
        let late = bench.spent.device.as_secs_f64() > end;
        let known = |size: &u64| plan.is_known(&log.of(*size));
        if enough && (late || RANDOM_SIZES.iter().all(known)) {
            break;
        }
    }
    log.mixed = log.all.len();
    let least = RANDOM_SIZES[0];
    let mut small = log.of(least);
    let end = until(bench);
    while small.len() < plan.small.1 && (small.len() < plan.small.0 || !plan.is_known(&small)) {
        let time = one_at_random(bench, plan, least)?;
        small.extend(time);
        log.add(least, time);
        bench.tell(0.5 + 0.5 * small.len() as f64 / plan.small.1 as f64);
        if bench.spent.device.as_secs_f64() > end {
            break;
        }
    }
    Ok(log)
}

impl Log {
    fn add(&mut self, size: u64, time: Option<f64>) {
        self.all.extend(time.map(|us| (size, us)));
    }

    /// Times of requests of `size`.
    fn of(&self, size: u64) -> Vec<f64> {
        let these = self.all.iter().filter(|request| request.0 == size);
        these.map(|request| request.1).collect()
    }

    /// Times of the small requests behind the mixed ones.
    fn small(&self) -> Vec<f64> {
        self.all[self.mixed..]
            .iter()
            .map(|request| request.1)
            .collect()
    }

    /// Times of each size of which there are enough.
    fn by_size(&self) -> BTreeMap<u64, Vec<f64>> {
        let sizes = RANDOM_SIZES.map(|size| (size, self.of(size)));
        sizes
            .into_iter()
            .filter(|(_, times)| times.len() >= 3)
            .collect()
    }

    fn summary(&self, plan: &Plan) -> RandomTimes {
        let small = self.of(RANDOM_SIZES[0]);
        let at = |q| quantile(&small, q).unwrap_or(0.0);
        let latency = RequestLatency {
            median_us: at(0.5),
            p99_us: at(0.99),
            count: small.len(),
        };
        let spread = |times: &[f64]| {
            let at = |q| quantile(times, q).unwrap_or(0.0);
            (at(0.92) - at(0.08)) / at(0.5).max(1e-9)
        };
        let times = self.by_size();
        RandomTimes {
            latency,
            spreads: times.iter().map(|(s, t)| (*s, spread(t))).collect(),
            means: times.iter().map(|(s, t)| (*s, plan.known(t))).collect(),
            blocks: 0,
        }
    }

    /// Means of writes that pay by their bytes for blocks that are put in order, where this was
    /// seen between two of them and more; and how many were.
    fn in_blocks(&self, plan: &Plan, blocks: Blocks) -> Option<(Means, usize)> {
        let usual: BTreeMap<u64, f64> = self
            .by_size()
            .iter()
            .filter_map(|(size, times)| Some((*size, median(times)?)))
            .collect();
        let is_slow = |(size, us): &(u64, f64)| {
            usual
                .get(size)
                .is_some_and(|usual| us - usual > blocks.least_us)
        };
        let mut paid: Vec<f64> = Vec::new();
        let (mut bytes, mut began) = (0, false);
        for request in &self.all {
            bytes += request.0;
            if is_slow(request) {
                if began {
                    paid.push((request.1 - usual[&request.0]) / bytes as f64);
                }
                (bytes, began) = (0, true);
            }
        }
        let (mean, error) = cost(&paid)?;
        let fast = self.all.iter().filter(|request| !is_slow(request));
        let fast = Log {
            all: fast.copied().collect(),
            mixed: 0,
        };
        let means = fast.by_size().into_iter().map(|(size, times)| {
            let (base, uncertain, count) = plan.known(&times);
            let (besides, doubt) = (mean * size as f64, error * size as f64);
            (size, (base + besides, uncertain.hypot(doubt), count))
        });
        Some((means.collect(), paid.len() + 1))
    }
}

/// Request size → mean, its standard error, and count.
type Means = BTreeMap<u64, (f64, f64, usize)>;

/// Mean cost of a byte, of the costs seen from block to block, and its standard error.
fn cost(paid: &[f64]) -> Option<(f64, f64)> {
    /// Share by which one alone may be off.
    const ALONE: f64 = 0.15;
    let count = paid.len() as f64;
    let mean = paid.iter().sum::<f64>() / count;
    let squares: f64 = paid.iter().map(|each| (each - mean).powi(2)).sum();
    let error = match paid.len() {
        0 => return None,
        1 => ALONE * mean,
        _ => (squares / (count - 1.0) / count).sqrt(),
    };
    Some((mean, error.max(ALONE / 3.0 * mean / count.sqrt())))
}

/// Mean of small writes of which each so many-th puts in order all that were gathered, its standard
/// error and their count; `None` if none does, or they do not come evenly.
fn gathered(plan: &Plan, times: Vec<f64>) -> Option<(f64, f64, usize)> {
    /// Such a write takes this many times the usual one.
    const HUGE: f64 = 50.0;
    /// From one to the next as many writes as on average, but for this share.
    const UNEVEN: f64 = 0.25;
    const LEAST: usize = 3;
    let bound = HUGE * median(&times)?;
    let is_huge = |at: &usize| times[*at] > bound;
    let huge: Vec<usize> = (0..times.len()).filter(is_huge).collect();
    if huge.len() < LEAST {
        return None;
    }
    let spans: Vec<f64> = huge
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let span = (huge[huge.len() - 1] - huge[0]) as f64 / spans.len() as f64;
    if spans.iter().any(|each| (each / span - 1.0).abs() > UNEVEN) {
        return None;
    }
    // The first one may put in order what was written before in other sizes.
    let paid: Vec<f64> = huge[1..].iter().map(|at| times[*at] / span).collect();
    let (besides, doubt) = cost(&paid)?;
    let usual: Vec<f64> = times.iter().copied().filter(|us| *us <= bound).collect();
    let (base, error) = plan.mean_of(&usual);
    Some((base + besides, error.hypot(doubt), times.len()))
}

/// A request at a random place.
fn one_at_random(bench: &mut Bench, plan: &Plan, size: u64) -> Result<Option<f64>, Halt> {
    let offset = bench.rng.below(bench.capacity / size) * size;
    let time = match plan.direction {
        Direction::Read => bench.read(offset, size)?,
        Direction::Write => {
            bench.hold(offset, size)?;
            bench.write_through(offset, size)?
        }
    };
    bench.release();
    Ok(time)
}

impl Plan {
    fn is_known(&self, times: &[f64]) -> bool {
        let (mean, error) = self.mean_of(times);
        times.len() >= 6 && error <= self.precision * mean
    }

    fn known(&self, times: &[f64]) -> (f64, f64, usize) {
        let (mean, error) = self.mean_of(times);
        (mean, error, times.len())
    }

    /// Mean and its standard error. Of reads without rare outliers; writes that take long now and
    /// then are part of it: a card that gathers small ones puts them in order some day.
    fn mean_of(&self, times: &[f64]) -> (f64, f64) {
        let bound = OUTLIER * median(times).unwrap_or(0.0);
        let kept: Vec<f64> = times.iter().copied().filter(|us| *us <= bound).collect();
        let rare = (times.len() - kept.len()) * 10 <= times.len();
        let used = match rare && self.direction == Direction::Read {
            true => &kept,
            false => times,
        };
        let mean = used.iter().sum::<f64>() / used.len().max(1) as f64;
        let squares: f64 = used.iter().map(|us| (us - mean).powi(2)).sum();
        let count = used.len().max(2) as f64;
        (mean, (squares / (count - 1.0) / count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLAN: Plan = Plan {
        direction: Direction::Write,
        turns: (8, 200),
        small: (110, 400),
        precision: 0.05,
        seconds: 45.0,
    };

    /// Writes of a page map with blocks of 4 MiB, each of which costs a second when it is full.
    fn page_map(turns: usize) -> Log {
        let (mut log, mut filled) = (Log::default(), 0);
        for (turn, size) in (0..turns).flat_map(|turn| RANDOM_SIZES.map(|size| (turn, size))) {
            filled += size;
            let full = filled >= 4 << 20;
            filled -= u64::from(full) * (4 << 20);
            let noise = 1.0 + 0.02 * (turn % 5) as f64;
            let besides = if full { 1e6 } else { 0.0 };
            log.add(size, Some(1000.0 * noise + 0.1 * size as f64 + besides));
        }
        log
    }

    #[test]
    fn a_page_maps_blocks_are_paid_by_bytes_however_few_were_seen() {
        let blocks = Blocks {
            bytes: 4 << 20,
            least_us: 4e5,
            wanted: 3,
        };
        let (means, count) = page_map(160).in_blocks(&PLAN, blocks).unwrap();
        assert_eq!(count, 3);
        for size in RANDOM_SIZES {
            let truth = 1040.0 + 0.1 * size as f64 + 1e6 * size as f64 / (4 << 20) as f64;
            let (mean, error, _) = means[&size];
            assert!((mean / truth - 1.0).abs() < 0.03, "{size} {mean} {truth}");
            assert!(error < 0.05 * truth, "{error}");
        }
        // Of one block nothing is known.
        assert_eq!(page_map(60).in_blocks(&PLAN, blocks), None);
    }

    #[test]
    fn small_writes_pay_for_what_puts_them_in_order_if_it_comes_evenly() {
        let times = |every: &[usize]| -> Vec<f64> {
            let one = |at: usize| if every.contains(&at) { 5e6 } else { 5e3 };
            (0..300).map(one).collect()
        };
        let (mean, error, _) = gathered(&PLAN, times(&[30, 95, 160, 225, 290])).unwrap();
        assert!((mean / (5e3 + 5e6 / 65.0) - 1.0).abs() < 0.01, "{mean}");
        assert!(error < 0.05 * mean, "{error}");
        assert_eq!(gathered(&PLAN, times(&[30, 50, 225])), None);
        assert_eq!(gathered(&PLAN, times(&[30, 95])), None);
    }
}
