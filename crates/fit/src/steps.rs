//! Steps of the time with the number of AUs: where a card has no more open.

use crate::points::{Point, PointOrder};
use crate::shape::NO_LIMIT;

/// Growth of ln time with one AU more that is a step.
const STEP: f64 = 0.12;
/// The same in order from one AU to two, where contiguous writes may have been joined before:
/// that is no matter of open AUs. Set by hand: on cards of the data it grows by at most 0.17
/// there, where a write copies an AU by much more.
const STEP_FROM_ONE: f64 = 1.2;

/// Growth of ln time from `aus` AUs to one more that is a step.
fn least(order: PointOrder, aus: u64) -> f64 {
    match (order, aus) {
        (PointOrder::Linear, 1) => STEP_FROM_ONE,
        _ => STEP,
    }
}

/// Open AUs, linear and random, before the largest step of time with the number of AUs;
/// [`NO_LIMIT`] where there is none.
pub(crate) fn slots(points: &[Point]) -> [u64; 2] {
    PointOrder::FLASHBENCH.map(|order| largest_step(points, order).unwrap_or(NO_LIMIT))
}

/// Number of AUs before the largest step of time, if there is one.
pub(crate) fn largest_step(points: &[Point], order: PointOrder) -> Option<u64> {
    let largest = steps(points, order).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(largest.1)
}

/// All steps, with the numbers of AUs before them.
pub(crate) fn steps(points: &[Point], order: PointOrder) -> impl Iterator<Item = (f64, u64)> + '_ {
    let grown = (1..7).filter_map(move |aus| Some((step(points, order, aus)?, u64::from(aus))));
    grown.filter(move |(grown, aus)| *grown > least(order, *aus))
}

/// The largest number of AUs from which a step to it would show; none where one or two AUs
/// alone were written.
pub(crate) fn most_aus(points: &[Point], order: PointOrder) -> Option<u32> {
    let of_order = points.iter().filter(|point| point.place.order == order);
    let most = of_order.map(|point| point.place.aus).max();
    most.filter(|aus| *aus > 2)
}

/// Median growth of ln time from `aus` to one more, over sizes of 16 KiB and more.
fn step(points: &[Point], order: PointOrder, aus: u32) -> Option<f64> {
    let at = |bytes: u64, aus: u32| {
        let of = |point: &&Point| {
            (point.place.order, point.place.aus, point.place.bytes) == (order, aus, bytes)
        };
        points.iter().find(of).map(|point| point.ns.ln())
    };
    let mut growth: Vec<f64> = points
        .iter()
        .map(|point| point.place.bytes)
        .filter(|bytes| (16 << 10..=1 << 20).contains(bytes))
        .filter_map(|bytes| Some(at(bytes, aus + 1)? - at(bytes, aus)?))
        .collect();
    growth.sort_by(f64::total_cmp);
    growth.get(growth.len() / 2).copied()
}
