//! Other starts of the search, for cards that it did not come near: limits, AUs and rules of logs
//! that depend on each other, so that one after the other leads nowhere.

use super::{Candidate, Search};
use crate::points::{Point, PointOrder, quantile};
use crate::shape::NO_LIMIT;
use crate::shape::{Free, Shape};
use crate::solve::Row;
use crate::steps::steps;
use crate::{BROKEN, SIZES_LEAST};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// What a shape may be behind the best at a rough guess and still be tried: a share, and more in
/// the unit of what the fit minimises.
const PROMISING: f64 = 2.0;
const PROMISING_PLUS: f64 = 20.0;

/// A search that came no nearer than this to its points, in the median and in the 90th percentile
/// of |ln(model / measured)|, is begun anew elsewhere.
const NEAR: [f64; 2] = [0.06, 0.27];
/// How many of the starts are followed.
const STARTS: usize = 2;

impl Search<'_> {
    /// Whether `shape` may fit better than `best` under the same tests.
    pub(crate) fn promises(&self, best: &Candidate, shape: &Shape) -> bool {
        if self.thorough {
            return true;
        }
        let guessed = self.guess(best, shape);
        guessed.is_none_or(|cost| cost < PROMISING * best.cost + PROMISING_PLUS)
    }

    /// What `shape` may cost: how it answers to figures is taken to be as with `best`, but for one
    /// run with the figures of `best`. `None` where that cannot be said.
    fn guess(&self, best: &Candidate, shape: &Shape) -> Option<f64> {
        let same = |a: &Free, b: &Free| a.path == b.path;
        let free = shape.free();
        if free.len() != best.free.len() || !free.iter().zip(&best.free).all(|(a, b)| same(a, b)) {
            return None;
        }
        let written: Vec<f64> = free
            .iter()
            .zip(&best.solution.theta)
            .map(|(free, theta)| free.unit.theta(free.unit.integer(*theta)))
            .collect();
        let capacity = best.replay.trial_capacity(shape.value("geometry.au_bytes"));
        let sheet = shape.sheet(&free, &written, capacity);
        let profile = sheet.profile().ok();
        let Some(times) = profile.and_then(|card| best.replay.times(&card, self.points).ok())
        else {
            return Some(f64::INFINITY);
        };
        let moved = |(row, time): (&Row, f64)| Row {
            constant: row.constant + time - row.time_at(&written),
            ..row.clone()
        };
        let rows: Vec<Row> = best.rows.iter().zip(times).map(moved).collect();
        Some(self.solved(shape, &rows).cost + self.oddity(shape, &best.replay))
    }

    /// `best`, or what comes of other starts if it is not near to the points.
    pub(crate) fn again(&mut self, best: Candidate) -> Candidate {
        if within(&best, NEAR) {
            return best;
        }
        let shapes = self.starts(&best.shape);
        let guessed: Vec<OnceLock<Option<f64>>> = shapes.iter().map(|_| OnceLock::new()).collect();
        self.jobs.run(shapes.len(), &|at| {
            guessed[at].get_or_init(|| self.guess(&best, &shapes[at]));
        });
        let costs = guessed.into_iter().map(|cost| cost.into_inner().flatten());
        let mut starts: Vec<(f64, Shape)> = costs
            .zip(shapes)
            .filter_map(|(cost, shape)| Some((cost?, shape)))
            .collect();
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut best = best;
        for (_, shape) in starts.into_iter().take(STARTS) {
            if let Some(start) = self.try_shape(&shape, self.replay) {
                let found = self.refine(start);
                best = if found.cost < best.cost { found } else { best };
            }
        }
        self.first_opened(best)
    }

    /// `best`, or where that fits no family ([`BROKEN`]) the best of all shapes of its family that
    /// does, with what promised little tried too: a card fits no family only if no shape does.
    pub(crate) fn unbroken(&mut self, best: Candidate) -> Candidate {
        if within(&best, BROKEN) {
            return best;
        }
        self.thorough = true;
        let best = self.refine_both(best);
        self.thorough = false;
        let tried = self.tried.iter().chain(&self.placed);
        let found = tried.filter_map(|(.., found)| found.as_ref());
        let whole =
            found.filter(|one| one.shape.family == best.shape.family && within(one, BROKEN));
        match whole.min_by(|a, b| a.cost.total_cmp(&b.cost)) {
            Some(other) => Candidate {
                decided: best.decided,
                ..other.clone()
            },
            None => best,
        }
    }

    /// Puts in place of each of `found`, where none is near to the points, what the search comes
    /// to from the card of its family that fits a few sizes best, if that fits all points better:
    /// a fit to all points is no worse than one to fewer.
    pub(crate) fn of_few_sizes(&mut self, found: &mut [Candidate]) {
        let few = few_sizes(self.points);
        if few.len() == self.points.len() || found.iter().any(|one| within(one, NEAR)) {
            return;
        }
        let of_few = Search::new(&few, self.replay, self.sizes, self.jobs).run();
        for candidate in of_few {
            let Some(same) = found
                .iter_mut()
                .find(|one| one.shape.family == candidate.shape.family)
            else {
                continue;
            };
            if let Some(start) = self.try_shape(&candidate.shape, candidate.replay) {
                let other = self.refine(start);
                if other.cost < same.cost {
                    *same = other;
                }
            }
        }
    }

    /// Shapes like `shape` with other limits of open AUs, other AUs and other rules of logs.
    fn starts(&self, shape: &Shape) -> Vec<Shape> {
        let [linear, random] = ["geometry.open_aus_linear", "geometry.open_aus_random"];
        let mut starts = vec![shape.clone()];
        if shape.family.limits_open_aus() {
            let of_order = PointOrder::FLASHBENCH.map(|order| self.limits(order));
            starts = each(&starts, linear, &of_order[0]);
            starts = each(&starts, random, &of_order[1]);
            starts.retain(|shape| shape.value(random) <= shape.value(linear));
        }
        starts = each(&starts, "geometry.au_bytes", &self.aus());
        for (path, values) in shape.family.fit().restarts {
            starts = each(&starts, path, values);
        }
        starts
    }

    /// Numbers of open AUs that steps of an order speak for: those before a step and, since a card
    /// that goes by the order of opening pays only for some writes at first, one less.
    fn limits(&self, order: PointOrder) -> Vec<u64> {
        let before = steps(self.points, order).flat_map(|(_, aus)| [aus, aus - 1]);
        let mut limits: Vec<u64> = before.filter(|aus| *aus > 0).collect();
        limits.push(NO_LIMIT);
        limits.sort_unstable();
        limits.dedup();
        limits
    }
}

/// Each of `shapes` with each of the values of a figure.
fn each(shapes: &[Shape], path: &'static str, values: &[u64]) -> Vec<Shape> {
    let with = |shape: &Shape| {
        let all = values.iter().map(|value| shape.with(path, *value));
        all.collect::<Vec<Shape>>()
    };
    shapes.iter().flat_map(with).collect()
}

/// The points of every fourth size of `flashbench -O`, of which three tell a family.
fn few_sizes(points: &[Point]) -> Vec<Point> {
    const EVERY: usize = 4;
    let of_test = points
        .iter()
        .filter(|point| point.place.order.is_flashbench());
    let sizes: BTreeSet<u64> = of_test.map(|point| point.place.bytes).collect();
    let few: Vec<u64> = sizes.iter().copied().step_by(EVERY).collect();
    match few.len() < SIZES_LEAST {
        true => points.to_vec(),
        false => points
            .iter()
            .copied()
            .filter(|point| few.contains(&point.place.bytes))
            .collect(),
    }
}

/// Whether median and 90th percentile of the errors of a candidate are within `bounds`.
fn within(of: &Candidate, bounds: [f64; 2]) -> bool {
    let errors = of.errors();
    let parts = [0.5, 0.9].into_iter().zip(bounds);
    parts
        .into_iter()
        .all(|(part, bound)| quantile(&errors, part) <= bound)
}
