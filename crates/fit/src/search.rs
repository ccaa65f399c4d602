//! The search for a shape: from a start for each family, one figure after the other.

mod opened;
mod starts;

use crate::Sizes;
use crate::jobs::Jobs;
use crate::points::{Point, PointOrder};
use crate::replay::Replay;
use crate::response;
use crate::shape::{self, Free, NO_LIMIT, Shape};
use crate::solve::{Prior, Row, Solution, solve};
use crate::steps::{largest_step, most_aus, slots};
use crate::ways::{Hints, changed, figures, ways};
use std::collections::BTreeMap;
use std::sync::Arc;
use whichfs_card::Family;
use whichfs_card::limits::AU_BYTES;

/// What a family may be behind the best and still be refined.
const REFINE_WITHIN: f64 = 1.5;

/// How often refining goes over all figures at most: one may be told only by the right value of
/// another.
const PASSES: usize = 3;
/// The share of what the fit minimises that going over the figures has to take off for another
/// time.
const WORTH: f64 = 0.05;

/// What a family may be behind the best and still be tried with other AUs.
const OTHER_AUS_WITHIN: f64 = 3.0;

/// What AUs cost that reads speak against, in the unit of what the fit minimises: ln 100, for
/// odds of a hundred to one. Set by hand.
const AGAINST_READS: f64 = 4.6;
/// What AUs cost of three times the size at which reads step up: ln 9, for odds of
/// nine to one. Set by hand.
const THRICE: f64 = 2.2;

/// A shape with its fitted figures.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub shape: Shape,
    pub free: Vec<Free>,
    pub solution: Solution,
    pub cost: f64,
    /// The tests, with what the points tell of the card's state before each.
    pub replay: Replay,
    /// How the points answer to the figures.
    pub rows: Arc<Vec<Row>>,
    /// How the points decided sizes, counts and switches; others have their usual values.
    pub decided: BTreeMap<&'static str, How>,
}

/// How points decide a size, a count or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It fits best of the values tried.
    Tried,
    /// The time steps up at this number of AUs.
    Step,
    /// The time does not step up with the number of AUs, of which this is the largest.
    NoStep(u32),
    /// The points speak against any other value at once.
    Plain,
}

/// The search over shapes for one card.
pub(crate) struct Search<'a> {
    pub(crate) points: &'a [Point],
    hints: Hints,
    pub(crate) replay: Replay,
    sizes: Sizes,
    pub(crate) jobs: Jobs,
    /// Whether what promises nothing is tried, too.
    pub(crate) thorough: bool,
    pub(crate) tried: Vec<Tried>,
    /// What became of shapes that close the AU opened first.
    pub(crate) placed: Vec<Tried>,
}

/// A shape under the tests of a replay, and what came of it.
pub(crate) type Tried = (Shape, Replay, Option<Candidate>);

impl Search<'_> {
    pub fn new(points: &[Point], replay: Replay, sizes: Sizes, jobs: Jobs) -> Search<'_> {
        Search {
            points,
            hints: Hints::new(points),
            replay,
            sizes,
            jobs,
            thorough: false,
            tried: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// The best candidate of each family, the best of all first.
    pub fn run(&mut self) -> Vec<Candidate> {
        let found = self.first_of_families(slots(self.points), &self.hints.clone());
        let most = found
            .first()
            .map_or(0.0, |best| best.cost * REFINE_WITHIN + 5.0);
        let mut refined: Vec<Candidate> = found
            .into_iter()
            .map(|candidate| match candidate.cost <= most {
                true => {
                    let refined = self.refine_both(candidate);
                    let found = self.again(refined);
                    self.unbroken(found)
                }
                false => candidate,
            })
            .collect();
        self.of_few_sizes(&mut refined);
        refined.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        for candidate in &mut refined {
            self.widen(candidate);
        }
        refined
    }

    /// The usual card of each family with times and rates fitted, the nearest first: for
    /// points that tell neither family nor sizes.
    pub fn usual(&mut self) -> Vec<Candidate> {
        self.first_of_families([NO_LIMIT; 2], &Hints::NONE)
    }

    fn first_of_families(&mut self, slots: [u64; 2], hints: &Hints) -> Vec<Candidate> {
        let erase_bytes = self.replay.erase_bytes;
        let sizes = self.sizes;
        let mut found: Vec<Candidate> = Family::NAMES
            .iter()
            .map(|(_, family)| first(*family, slots, hints).of_sizes(&sizes, erase_bytes))
            .filter_map(|shape| self.try_shape(&shape, self.replay))
            .collect();
        let costs = || found.iter().map(|candidate| candidate.cost);
        let near = OTHER_AUS_WITHIN * costs().fold(f64::INFINITY, f64::min);
        for candidate in found.iter_mut().filter(|one| one.cost <= near) {
            *candidate = self.first_of_aus(candidate.clone());
        }
        found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        found
    }

    /// The best of `candidate` with each AU that is tried.
    fn first_of_aus(&mut self, candidate: Candidate) -> Candidate {
        let mut best = candidate;
        for bytes in self.aus() {
            let shape = best.shape.with("geometry.au_bytes", bytes);
            if let Some(other) = self.try_shape(&shape, self.replay)
                && other.cost < best.cost
            {
                best = other;
            }
        }
        best
    }

    /// Refines `candidate`, and what it becomes with places, if it fits better with them.
    pub(crate) fn refine_both(&mut self, candidate: Candidate) -> Candidate {
        let with_places = self.first_opened(candidate.clone());
        let placed = with_places.shape != candidate.shape;
        let refined = self.refine(candidate);
        let best = self.first_opened(refined);
        if !placed {
            return best;
        }
        let refined = self.refine(with_places);
        let other = self.first_opened(refined);
        if other.cost < best.cost { other } else { best }
    }

    pub(crate) fn refine(&mut self, mut best: Candidate) -> Candidate {
        let replay = best.replay;
        let at_once = at_once(&best.shape, self.points, &self.hints);
        let mut decided = at_once.clone();
        for _ in 0..PASSES {
            let before = best.cost;
            for path in figures(&best.shape) {
                let ways = self.ways(&best.shape, path);
                if ways.iter().any(|way| !way.is_empty()) {
                    decided.insert(path, How::Tried);
                }
                for way in ways {
                    best = self.along(best, path, &way, replay);
                }
            }
            if best.cost > before * (1.0 - WORTH) {
                break;
            }
        }
        // Beyond what was measured all values fit alike.
        let unlimited = at_once.into_iter().filter(|(path, how)| {
            matches!(how, How::NoStep(_)) && best.shape.value(path) == NO_LIMIT
        });
        decided.extend(unlimited);
        best.decided = decided;
        best
    }

    /// `best` with the values of a figure, one after the other as long as they fit better.
    fn along(&mut self, best: Candidate, path: &'static str, way: &[u64], at: Replay) -> Candidate {
        let mut best = best;
        for value in way {
            let shape = changed(&best.shape, path, *value);
            if !self.known(&shape, at) && !self.promises(&best, &shape) {
                break;
            }
            match self.try_shape(&shape, at) {
                Some(candidate) if candidate.cost < best.cost => best = candidate,
                _ => break,
            }
        }
        best
    }

    /// Values of a figure to try, each way until one fits no better.
    fn ways(&self, shape: &Shape, path: &'static str) -> Vec<Vec<u64>> {
        match path {
            "geometry.au_bytes" => {
                let now = shape.value(path);
                let others = self.aus().into_iter().filter(|bytes| *bytes != now);
                others.map(|bytes| vec![bytes]).collect()
            }
            _ => ways(shape, path, &self.hints),
        }
    }

    /// AUs that are tried, in bytes, the likeliest first: what reads tell and, since they step up
    /// at powers of two alone, three times that; flashbench's `--erasesize`.
    pub(crate) fn aus(&self) -> Vec<u64> {
        let told = self.sizes.au_bytes;
        let thrice = told
            .map(|bytes| 3 * bytes)
            .filter(|_| self.hints.many_sizes);
        let erase = Some(self.replay.erase_bytes);
        let mut aus: Vec<u64> = Vec::new();
        for bytes in [told, thrice, erase].into_iter().flatten() {
            if AU_BYTES.contains(&bytes) && !aus.contains(&bytes) {
                aus.push(bytes);
            }
        }
        aus
    }

    fn known(&self, shape: &Shape, replay: Replay) -> bool {
        let is_it = |tried: &Tried| (&tried.0, tried.1) == (shape, replay);
        self.tried.iter().any(is_it)
    }

    pub(crate) fn try_shape(&mut self, shape: &Shape, replay: Replay) -> Option<Candidate> {
        let is_it = |tried: &&Tried| (&tried.0, tried.1) == (shape, replay);
        if let Some((.., known)) = self.tried.iter().find(is_it) {
            return known.clone();
        }
        let candidate = self.evaluate(shape, replay);
        self.tried.push((shape.clone(), replay, candidate.clone()));
        candidate
    }

    /// Fits times and rates of `shape` to the points, under the tests of `replay`.
    pub(crate) fn evaluate(&self, shape: &Shape, replay: Replay) -> Option<Candidate> {
        let rows = self.rows(shape, &replay)?;
        let solution = self.solved(shape, &rows);
        Some(Candidate {
            shape: shape.clone(),
            free: shape.free(),
            cost: solution.cost + self.oddity(shape, &replay),
            solution,
            replay,
            rows: Arc::new(rows),
            decided: BTreeMap::new(),
        })
    }

    /// What a shape and what it had opened cost for being unusual.
    pub(crate) fn oddity(&self, shape: &Shape, replay: &Replay) -> f64 {
        shape.oddity() + opened::oddity(&replay.opened) + self.against_reads(shape)
    }

    /// What AUs cost that are not those of which reads tell.
    fn against_reads(&self, shape: &Shape) -> f64 {
        let now = shape.value("geometry.au_bytes");
        match self.sizes.au_bytes {
            Some(told) if now == 3 * told => THRICE,
            Some(told) if now != told => AGAINST_READS,
            _ => 0.0,
        }
    }

    /// How the points answer to the figures of `shape`; `None` where it is no card.
    pub(crate) fn rows(&self, shape: &Shape, replay: &Replay) -> Option<Vec<Row>> {
        let free = shape.free();
        let reference = reference(&free, self.points);
        response::rows(shape, &free, &reference, self.points, replay, self.jobs)
    }

    /// Times and rates of `shape` that fit `rows`.
    pub(crate) fn solved(&self, shape: &Shape, rows: &[Row]) -> Solution {
        let free = shape.free();
        let priors: Vec<Prior> = free.iter().map(|free| free.prior).collect();
        let limits: Vec<(f64, f64)> = free.iter().map(|free| free.unit.limits()).collect();
        solve(rows, &priors, &limits)
    }
}

/// Centres of the priors about the rate of the largest linear writes.
fn reference(free: &[Free], points: &[Point]) -> Vec<f64> {
    let per_byte = points
        .iter()
        .filter(|point| point.place.order.in_order())
        .max_by_key(|point| (point.place.bytes.min(1 << 20), u32::MAX - point.place.aus))
        .map_or(100.0, |point| point.ns / point.place.bytes as f64);
    free.iter()
        .enumerate()
        .map(|(j, free)| match (j, free.prior.relative) {
            (0, _) => per_byte,
            (_, true) => per_byte * free.prior.centre.exp(),
            (_, false) => free.prior.centre.exp(),
        })
        .collect()
}

/// The first shape of a family that is tried.
fn first(family: Family, [linear, random]: [u64; 2], hints: &Hints) -> Shape {
    let least = linear.min(random);
    let shape = shape::start(family).with("write.coalesce", u64::from(hints.joined));
    let small = if hints.small { 8 << 10 } else { 0 };
    if let Some(path) = family.fit().steps_at {
        return shape.with(path, if least < NO_LIMIT { least } else { 0 });
    }
    if !family.limits_open_aus() {
        return shape;
    }
    let open = shape
        .with("geometry.open_aus_linear", linear)
        .with("geometry.open_aus_random", random.min(linear));
    match hints.told && open.fixed.contains_key("log_block.small_write_bytes") {
        true => open.small_writes(small),
        false => open,
    }
}

/// What the points decide before anything is tried.
fn at_once(shape: &Shape, points: &[Point], hints: &Hints) -> BTreeMap<&'static str, How> {
    let mut decided = BTreeMap::new();
    let open_aus = ["geometry.open_aus_linear", "geometry.open_aus_random"];
    for (path, order) in open_aus.into_iter().zip(PointOrder::FLASHBENCH) {
        let Some(most) = most_aus(points, order).filter(|_| shape.family.limits_open_aus()) else {
            continue;
        };
        let how = match largest_step(points, order) {
            Some(_) => How::Step,
            None => How::NoStep(most),
        };
        decided.insert(path, how);
    }
    let ruled_out = [
        ("reader.max_bytes", hints.cut),
        ("write.coalesce", hints.joined),
        ("log_block.small_write_bytes", hints.small),
    ];
    for (path, possible) in ruled_out {
        if !possible && shape.fixed.contains_key(path) {
            decided.insert(path, How::Plain);
        }
    }
    decided
}
