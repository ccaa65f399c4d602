//! The search for a shape: from a start for each family, one figure after the other.

use crate::points::{Order, Point};
use crate::response;
use crate::shape::{self, Free, Shape};
use crate::solve::{Prior, Solution, solve};
use whichfs_card::Family;

/// Passes over all figures of a shape.
const PASSES: usize = 2;
/// What a family may be behind the best and still be refined.
const REFINE_WITHIN: f64 = 1.6;

/// A shape with its fitted figures.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub shape: Shape,
    pub free: Vec<Free>,
    pub solution: Solution,
    pub cost: f64,
}

/// The search over shapes for one card.
pub(crate) struct Search<'a> {
    points: &'a [Point],
    seed: u64,
    tried: Vec<(Shape, Option<Candidate>)>,
}

impl Search<'_> {
    pub fn new(points: &[Point], seed: u64) -> Search<'_> {
        Search {
            points,
            seed,
            tried: Vec::new(),
        }
    }

    /// The best candidate of each family, the best of all first.
    pub fn run(&mut self) -> Vec<Candidate> {
        let slots = slots(self.points);
        let mut found: Vec<Candidate> = Family::NAMES
            .iter()
            .filter_map(|(_, family)| self.try_shape(&first(*family, slots)))
            .collect();
        found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let most = found.first().map_or(0.0, |best| best.cost * REFINE_WITHIN + 5.0);
        let mut refined: Vec<Candidate> = found
            .into_iter()
            .map(|candidate| match candidate.cost <= most {
                true => self.refine(candidate),
                false => candidate,
            })
            .collect();
        refined.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        refined
    }

    fn refine(&mut self, mut best: Candidate) -> Candidate {
        for _ in 0..PASSES {
            let before = best.cost;
            for path in figures(&best.shape) {
                for value in alternatives(&best.shape, path, self.points) {
                    let shape = changed(&best.shape, path, value);
                    if let Some(candidate) = self.try_shape(&shape)
                        && candidate.cost < best.cost
                    {
                        best = candidate;
                    }
                }
            }
            if best.cost >= before {
                break;
            }
        }
        best
    }

    fn try_shape(&mut self, shape: &Shape) -> Option<Candidate> {
        if let Some((_, known)) = self.tried.iter().find(|(of, _)| of == shape) {
            return known.clone();
        }
        let candidate = self.evaluate(shape);
        self.tried.push((shape.clone(), candidate.clone()));
        candidate
    }

    fn evaluate(&self, shape: &Shape) -> Option<Candidate> {
        let free = shape.free();
        let priors: Vec<Prior> = free.iter().map(|free| free.prior).collect();
        let limits: Vec<(f64, f64)> = free.iter().map(|free| free.unit.limits()).collect();
        let reference = reference(&free, self.points);
        let rows = response::rows(shape, &free, &reference, self.points, self.seed)?;
        let solution = solve(&rows, &priors, &limits);
        let cost = solution.cost + shape.oddity();
        Some(Candidate {
            shape: shape.clone(),
            free,
            solution,
            cost,
        })
    }
}

/// Centres of the priors about the rate of the largest linear writes.
fn reference(free: &[Free], points: &[Point]) -> Vec<f64> {
    let per_byte = points
        .iter()
        .filter(|point| point.place.order == Order::Linear)
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

/// Open AUs, linear and random, before the largest step of time with the number of AUs;
/// eight, which no test reaches, where there is none.
fn slots(points: &[Point]) -> [u64; 2] {
    const STEP: f64 = 0.12;
    const NONE: u64 = 8;
    Order::ALL.map(|order| {
        let steps = (1..7).filter_map(|aus| Some((step(points, order, aus)?, aus)));
        match steps.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((step, aus)) if step > STEP => u64::from(aus),
            _ => NONE,
        }
    })
}

/// Median growth of ln time from `aus` to one more, over sizes of 16 KiB and more.
fn step(points: &[Point], order: Order, aus: u32) -> Option<f64> {
    let at = |bytes: u64, aus: u32| {
        let of = |point: &&Point| {
            (point.place.order, point.place.aus, point.place.bytes) == (order, aus, bytes)
        };
        points.iter().find(of).map(|point| point.ns.ln())
    };
    // The step from one AU to two is that of contiguous writes, not of slots.
    if aus == 1 {
        return None;
    }
    let mut growth: Vec<f64> = points
        .iter()
        .map(|point| point.place.bytes)
        .filter(|bytes| (16 << 10..=1 << 20).contains(bytes))
        .filter_map(|bytes| Some(at(bytes, aus + 1)? - at(bytes, aus)?))
        .collect();
    growth.sort_by(f64::total_cmp);
    growth.get(growth.len() / 2).copied()
}

/// The first shape of a family that is tried.
fn first(family: Family, [linear, random]: [u64; 2]) -> Shape {
    let least = linear.min(random);
    let shape = shape::start(family);
    match family {
        Family::PageMap => shape.with("page_map.streams", if least < 8 { least } else { 0 }),
        _ => shape
            .with("geometry.open_aus_linear", linear)
            .with("geometry.open_aus_random", random.min(linear)),
    }
}

/// The figures that refining tries, those that matter most first.
fn figures(shape: &Shape) -> Vec<&'static str> {
    let mut paths = vec!["reader.max_bytes", "write.coalesce"];
    match shape.family {
        Family::LogBlock => paths.extend([
            "log_block.small_write_bytes",
            "log_block.small_write_jumps",
            "log_block.log_percent",
            "geometry.open_aus_linear",
            "geometry.open_aus_random",
        ]),
        Family::UpdateBlock => paths.extend([
            "update_block.group_bytes",
            "geometry.open_aus_linear",
            "update_block.small_bytes",
        ]),
        Family::PageMap => paths.push("page_map.streams"),
    }
    paths.push("write.program_bytes");
    paths
}

/// Values of a figure to try.
fn alternatives(shape: &Shape, path: &'static str, points: &[Point]) -> Vec<u64> {
    let now = shape.value(path);
    let neighbours = [now.saturating_sub(1).max(1), (now + 1).min(8)];
    let many_sizes = points.iter().any(|point| point.place.bytes == 8 << 10);
    match path {
        "reader.max_bytes" => vec![0, 64 << 10, 120 << 10],
        "write.coalesce" => vec![0, 1],
        "write.program_bytes" if many_sizes => vec![8 << 10, 16 << 10, 32 << 10],
        "log_block.small_write_bytes" => vec![0, 8 << 10],
        "log_block.small_write_jumps" if shape.value("log_block.small_write_bytes") > 0 => {
            vec![0, 1]
        }
        "log_block.log_percent" => vec![100, 50, 34, 25],
        "update_block.small_bytes" if many_sizes => vec![4 << 10, 8 << 10, 16 << 10],
        "update_block.group_bytes" => vec![256 << 10, 512 << 10, 1 << 20],
        "page_map.streams" => vec![0, 2, 3, 4, 5, 6],
        "geometry.open_aus_linear" | "geometry.open_aus_random" => neighbours.to_vec(),
        _ => Vec::new(),
    }
}

fn changed(shape: &Shape, path: &'static str, value: u64) -> Shape {
    let shape = shape.with(path, value);
    match path {
        "geometry.open_aus_linear" if shape.value("geometry.open_aus_random") > value => {
            shape.with("geometry.open_aus_random", value)
        }
        _ => shape,
    }
}
