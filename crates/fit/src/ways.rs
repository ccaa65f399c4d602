//! What refining tries: figures of a shape, and values of each.

use crate::points::{CurvePlace, Point, PointOrder};
use crate::shape::{NO_LIMIT, Shape};

/// The figures that refining tries, those that matter most first.
pub(crate) fn figures(shape: &Shape) -> Vec<&'static str> {
    let mut paths = vec!["write.coalesce", "reader.max_bytes"];
    let own = shape.family.fit().searched.iter();
    paths.extend(own.map(|figure| figure.path));
    paths.push("geometry.au_bytes");
    // The reader once more: what was taken for it may be explained by now, or the reverse.
    paths.extend(["write.program_bytes", "reader.max_bytes"]);
    paths
}

/// Ways of values of a figure to try; none where the points speak against it at once.
pub(crate) fn ways(shape: &Shape, path: &'static str, hints: &Hints) -> Vec<Vec<u64>> {
    let now = shape.value(path);
    let page = shape.value("geometry.page_bytes");
    let fewer: Vec<u64> = (1..now).rev().collect();
    let more: Vec<u64> = (now + 1..=NO_LIMIT).collect();
    let neighbours: [&[u64]; 2] = [&fewer, &more];
    let ways: &[&[u64]] = match path {
        "reader.max_bytes" if hints.cut => &[&[0], &[64 << 10], &[120 << 10]],
        "write.coalesce" if hints.joined => &[&[0], &[1]],
        "write.program_bytes" if hints.many_sizes => &[&[8 << 10], &[16 << 10], &[32 << 10]],
        "log_block.small_write_bytes" if !hints.small => &[],
        "geometry.open_aus_linear" | "geometry.open_aus_random" => &neighbours,
        _ => of_family(shape, path, hints),
    };
    let differs = |value: &u64| *value != now;
    let is_unit = |value: &u64| path != "write.program_bytes" || *value >= page;
    let ways = ways.iter().map(|way| {
        let values = way.iter().copied();
        values.filter(differs).filter(is_unit).collect()
    });
    ways.collect()
}

/// Ways of values of a figure that the family of `shape` has searched.
fn of_family(shape: &Shape, path: &str, hints: &Hints) -> &'static [&'static [u64]] {
    let mut searched = shape.family.fit().searched.iter();
    match searched.find(|figure| figure.path == path) {
        Some(figure) if !shape.is_met(&figure.only) => &[],
        Some(figure) if hints.many_sizes => figure.ways,
        Some(figure) => figure.of_few_sizes,
        None => &[],
    }
}

/// What some points say at once, so that less needs to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    /// The points tell a family.
    pub told: bool,
    /// Sizes between those of a sparse fit are there.
    pub many_sizes: bool,
    /// Large writes seem to be cut on their way: they take longer than their parts.
    pub cut: bool,
    /// Contiguous small writes may be joined: they are much faster in one AU than in two.
    pub joined: bool,
    /// Small writes may go to an area of their own: slow as such, or unmoved by the number
    /// of AUs that others suffer from.
    pub small: bool,
}

impl Hints {
    /// Nothing is told, so nothing is unusual.
    pub const NONE: Hints = Hints {
        told: false,
        many_sizes: false,
        cut: false,
        joined: false,
        small: false,
    };

    pub fn new(points: &[Point]) -> Hints {
        let of_test = |point: &&Point| point.place.order.is_flashbench();
        let points: Vec<Point> = points.iter().filter(of_test).copied().collect();
        let sizes = || points.iter().map(|point| point.place.bytes);
        let least = sizes().min().unwrap_or(0);
        let near = |wanted: u64| {
            sizes()
                .min_by_key(|bytes| bytes.abs_diff(wanted))
                .unwrap_or(0)
        };
        let [middle, large] = [64 << 10, 1 << 20].map(near);
        let at = |aus: u32, bytes: u64| {
            let of = |point: &&Point| {
                let CurvePlace {
                    order,
                    aus: n,
                    bytes: b,
                } = point.place;
                (order, n, b) == (PointOrder::Linear, aus, bytes)
            };
            points.iter().find(of).map(|point| point.ns)
        };
        let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
        // Not cut, a large write takes less than its parts: it pays the overhead once.
        let parts = 1.03 * large as f64 / middle as f64;
        let most = points
            .iter()
            .map(|point| point.place.aus)
            .max()
            .unwrap_or(1);
        let grown = |bytes| ratio(at(most, bytes), at(2, bytes));
        let immune = grown(middle).is_some_and(|grown| grown > 3.0)
            && grown(least).is_some_and(|grown| grown < 2.0);
        Hints {
            told: true,
            many_sizes: sizes().any(|bytes| bytes == 8 << 10),
            cut: ratio(at(1, large), at(1, middle)).is_none_or(|times| times > parts),
            joined: ratio(at(1, least), at(2, least)).is_none_or(|times| times < 0.7),
            small: immune || ratio(at(2, least), at(2, middle)).is_none_or(|times| times > 1.2),
        }
    }
}

pub(crate) fn changed(shape: &Shape, path: &'static str, value: u64) -> Shape {
    let shape = shape.with(path, value);
    match path {
        "log_block.small_write_bytes" => shape.small_writes(value),
        "write.program_bytes" => shape.with("geometry.write_unit_bytes", value),
        "geometry.open_aus_linear" if shape.value("geometry.open_aus_random") > value => {
            shape.with("geometry.open_aus_random", value)
        }
        _ => shape,
    }
}
