//! Reads across boundaries: where the card's pages, AUs and zones end.
//!
//! A read of 1 KiB across a boundary is compared with one on either side of it, the three
//! in random order. flashbench takes seven places and powers of two; here every sample has
//! a new place, because what differs from place to place is no noise that repeats average
//! out, and boundaries are odd multiples of 2^k *times 315* (= 9·5·7), as far as the card
//! is large enough: an AU of 3·2^a bytes then shows at level a like one of 2^a. Which odd
//! factor it is, is asked afterwards, by boundaries that have some of the primes only.
//! Last, each step is looked at in each quarter of the card: zones may differ.

use crate::bench::{Bench, Halt};
use crate::evidence::{AlignTest, AlignmentLevel, Boundary};
use crate::interpret::{AU_MAX, PAGE_MAX};
use crate::stats::Centre;
use crate::steps::{Point, Rise, Rules, rises};
use crate::zones;
use whichfs_units::{KIB, MIB};

/// Size of a read.
const READ: u64 = KIB;
/// Places of each level in one round.
const ROUND: usize = 16;
/// Rounds at least and at most.
const ROUNDS: (usize, usize) = (2, 12);
/// The error of a level that is good enough, as a share of the time of a read.
const ERROR_OF_READ: f64 = 0.005;
/// Odd multiples of a level that must fit the card.
const ODD_MULTIPLES: u64 = 8;
/// Factors to multiply a level with, the best first.
const MULTIPLIERS: [u64; 6] = [315, 45, 15, 9, 3, 1];
/// Odd factors of AUs and pages that are told apart.
const FACTORS: [u64; 6] = [1, 3, 5, 7, 9, 15];
/// Most places of a comparison, on either side.
const PLACES_MAX: usize = 256;
/// An AU that reads do not show, as far as zones are concerned: they have whole ones.
const USUAL_AU: u64 = 4 * MIB;
/// Standard errors between an answer and the middle of both.
const SURE: f64 = 4.0;

/// Measures the levels and looks closely at each step.
pub(crate) fn measure(bench: &mut Bench) -> Result<AlignTest, Halt> {
    let mut samples = Samples::new(bench.capacity);
    if samples.levels.len() < 8 {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    let mut last: Vec<u64> = Vec::new();
    for round in 1..=ROUNDS.1 {
        samples.round(bench)?;
        bench.tell(0.6 * round as f64 / ROUNDS.1 as f64);
        let found = rises(&samples.points(), samples.rules());
        let sizes: Vec<u64> = found.iter().map(|rise| rise.bytes).collect();
        let settled = sizes == last && found.iter().all(|rise| rise.score >= 6.0);
        if round >= ROUNDS.0 && settled && samples.error() <= ERROR_OF_READ * samples.read_us() {
            break;
        }
        last = sizes;
    }
    let found = rises(&samples.points(), samples.rules());
    let mut test = samples.result();
    for (at, rise) in found.iter().enumerate() {
        bench.tell(0.6 + 0.4 * at as f64 / found.len() as f64);
        let boundary = inspect(bench, *rise)?;
        // What fresh places do not confirm was noise.
        if boundary.factor.is_some() {
            test.boundaries.push(boundary);
        }
    }
    let au = test
        .boundaries
        .iter()
        .filter_map(Boundary::bytes)
        .next_back();
    let unit = au.filter(|bytes| (2 * PAGE_MAX..=AU_MAX).contains(bytes));
    if test
        .boundaries
        .iter()
        .all(|boundary| boundary.rise.bytes <= AU_MAX)
    {
        let above = unit.unwrap_or(AU_MAX);
        test.zones = Some(zones::measure(bench, unit.unwrap_or(USUAL_AU), above)?);
    }
    Ok(test)
}

/// Largest AU that reads are taken to show on a card of `capacity` bytes; greater steps are zones.
/// SD105 allows 4 MB up to 32 GB, of which makers have up to six times that, and 64 MB beyond.
pub(crate) fn au_max(capacity: u64) -> u64 {
    if capacity > 32 << 30 {
        AU_MAX
    } else {
        24 * MIB
    }
}

/// Samples of all levels.
struct Samples {
    capacity: u64,
    /// Power of two and extra times.
    levels: Vec<(u64, Vec<f64>)>,
    reads: Vec<f64>,
}

impl Samples {
    fn new(capacity: u64) -> Samples {
        let levels = (11..)
            .map(|power| 1 << power)
            .take_while(|bytes| capacity / bytes >= 2 * ODD_MULTIPLES)
            .map(|bytes| (bytes, Vec::new()))
            .collect();
        Samples {
            capacity,
            levels,
            reads: Vec::new(),
        }
    }

    /// One round of places for every level, all in random order.
    fn round(&mut self, bench: &mut Bench) -> Result<(), Halt> {
        let mut order: Vec<usize> = (0..self.levels.len() * ROUND)
            .map(|at| at / ROUND)
            .collect();
        bench.rng.shuffle(&mut order);
        for level in order {
            let step = multiplier(self.capacity, self.levels[level].0) * self.levels[level].0;
            let odd = 2 * bench.rng.below((self.capacity / step).div_ceil(2).max(1)) + 1;
            if let Some((extra, read)) = across(bench, (odd * step) % self.capacity)? {
                self.levels[level].1.push(extra);
                self.reads.push(read);
            }
        }
        Ok(())
    }

    fn centres(&self) -> impl Iterator<Item = AlignmentLevel> + '_ {
        self.levels.iter().map(|(bytes, extra)| AlignmentLevel {
            bytes: *bytes,
            extra_us: Centre::of(extra),
        })
    }

    fn points(&self) -> Vec<Point> {
        self.centres()
            .filter(|level| level.extra_us.count > 0)
            .map(|level| (level.bytes, level.extra_us.median, level.extra_us.error))
            .collect()
    }

    fn read_us(&self) -> f64 {
        crate::stats::median(&self.reads).unwrap_or(0.0)
    }

    /// Typical error of a level.
    fn error(&self) -> f64 {
        let errors: Vec<f64> = self.centres().map(|level| level.extra_us.error).collect();
        crate::stats::median(&errors).unwrap_or(f64::MAX)
    }

    fn rules(&self) -> Rules {
        Rules {
            score: 4.0,
            height_us: (0.004 * self.read_us()).max(0.5),
            relative: 0.0,
        }
    }

    fn result(&self) -> AlignTest {
        AlignTest {
            levels: self.centres().collect(),
            boundaries: Vec::new(),
            au_max_bytes: au_max(self.capacity),
            zones: None,
            read_us: Centre::of(&self.reads),
        }
    }
}

/// The richest odd factor with which enough odd multiples of `bytes` fit the card.
fn multiplier(capacity: u64, bytes: u64) -> u64 {
    let fits = |factor: &&u64| capacity / (bytes * **factor) >= 2 * ODD_MULTIPLES;
    MULTIPLIERS.iter().find(fits).copied().unwrap_or(1)
}

/// How much longer a read across `place` takes than one beside it, and the latter's time.
fn across(bench: &mut Bench, place: u64) -> Result<Option<(f64, f64)>, Halt> {
    if place < READ || place + READ > bench.capacity {
        return Ok(None);
    }
    let mut offsets = [(0, place - READ), (1, place - READ / 2), (2, place)];
    bench.rng.shuffle(&mut offsets);
    let mut times = [None; 3];
    for (which, offset) in offsets {
        times[which] = bench.read(offset, READ)?;
    }
    let [Some(before), Some(on), Some(behind)] = times else {
        return Ok(None);
    };
    let beside = (before + behind) / 2.0;
    Ok(Some((on - beside, beside)))
}

/// Finds the odd factor of a step and whether all of the card has it.
fn inspect(bench: &mut Bench, rise: Rise) -> Result<Boundary, Halt> {
    let allowed = multiplier(bench.capacity, rise.bytes);
    let mut boundary = Boundary {
        rise,
        factor: None,
        quarters: Vec::new(),
        doubt: None,
        score: rise.score.min(50.0),
    };
    if allowed == 1 {
        boundary.factor = Some(1);
    }
    for factor in FACTORS
        .into_iter()
        .filter(|f| allowed > 1 && allowed.is_multiple_of(*f))
    {
        let unit = factor * rise.bytes;
        let at = |bench: &mut Bench| coprime(bench, unit);
        let beside = |bench: &mut Bench| coprime(bench, unit / 2);
        let (there, score, _) = compare(bench, rise.height_us, at, beside)?;
        boundary.score = boundary.score.min(score);
        if there {
            boundary.factor = Some(factor);
            break;
        }
    }
    let Some(bytes) = boundary.bytes() else {
        return Ok(boundary);
    };
    if bench.capacity / bytes >= 64 {
        // Fresh places answer, no longer the levels among which the step was chosen.
        boundary.score = 50.0;
        by_quarters(bench, bytes, &mut boundary)?;
    }
    Ok(boundary)
}

/// Looks at multiples of `bytes` and at places between them in each quarter of the card.
fn by_quarters(bench: &mut Bench, bytes: u64, boundary: &mut Boundary) -> Result<(), Halt> {
    let count = bench.capacity / bytes / 4;
    for quarter in 0..4 {
        let first = quarter * count;
        let at = move |bench: &mut Bench| (first + bench.rng.below(count)).max(1) * bytes;
        let beside = move |bench: &mut Bench| {
            let odd = 2 * bench.rng.below(2) + 1;
            (first + bench.rng.below(count)) * bytes + odd * bytes / 4
        };
        let (there, score, centre) = compare(bench, boundary.rise.height_us, at, beside)?;
        boundary.score = boundary.score.min(score);
        boundary.quarters.push(centre);
        if !there {
            boundary.doubt = Some(format!(
                "the step at {} is not there in quarter {} of the card",
                whichfs_units::Bytes(bytes),
                quarter + 1
            ));
        }
    }
    if boundary.doubt.is_none() && !alike(&boundary.quarters) {
        boundary.doubt = Some(format!(
            "the step at {} is of another height in parts of the card: {}",
            whichfs_units::Bytes(bytes),
            heights(&boundary.quarters)
        ));
    }
    Ok(())
}

/// Heights of a step by quarters, for people.
pub(crate) fn heights(quarters: &[Centre]) -> String {
    let heights: Vec<String> = quarters
        .iter()
        .map(|centre| format!("{:.0}±{:.0}", centre.median, centre.error))
        .collect();
    format!("{} µs", heights.join(", "))
}

/// Whether quarters have a step of one height: a card of one kind.
fn alike(quarters: &[Centre]) -> bool {
    const APART: f64 = 0.25;
    let medians: Vec<f64> = quarters.iter().map(|centre| centre.median).collect();
    let usual = crate::stats::median(&medians).unwrap_or(0.0);
    quarters.iter().all(|centre| {
        let off = (centre.median - usual).abs();
        off <= APART * usual || off <= SURE * centre.error
    })
}

/// A multiple of `unit` by a number without the factors 2, 3, 5 and 7.
fn coprime(bench: &mut Bench, unit: u64) -> u64 {
    let most = (bench.capacity / unit).max(2) - 1;
    for _ in 0..64 {
        let number = bench.rng.below(most) + 1;
        if [2, 3, 5, 7]
            .iter()
            .all(|prime| !number.is_multiple_of(*prime))
        {
            return number * unit;
        }
    }
    unit
}

/// Whether reads across places of the first kind take more than half of `height` longer than
/// those of the second: answer, standard errors from the middle, and the difference.
fn compare(
    bench: &mut Bench,
    height: f64,
    mut at: impl FnMut(&mut Bench) -> u64,
    mut beside: impl FnMut(&mut Bench) -> u64,
) -> Result<(bool, f64, Centre), Halt> {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    loop {
        for _ in 0..ROUND {
            let (place, other) = (at(bench), beside(bench));
            on.extend(across(bench, place)?.map(|(extra, _)| extra));
            off.extend(across(bench, other)?.map(|(extra, _)| extra));
        }
        let (there, here) = (Centre::of(&on), Centre::of(&off));
        let difference = Centre {
            median: there.median - here.median,
            error: there.error.hypot(here.error),
            spread: there.spread.hypot(here.spread),
            count: there.count.min(here.count),
        };
        let distance = difference.median - height / 2.0;
        let score = distance.abs() / difference.error.max(1e-3);
        if score >= 1.5 * SURE || on.len() >= PLACES_MAX || off.is_empty() {
            return Ok((distance > 0.0, score, difference));
        }
    }
}
