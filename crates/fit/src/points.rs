//! The measured points that a fit sees, and how far a model is from them.

use std::collections::BTreeMap;
use whichfs_curves::flashbench::{OPEN_AUS_MOST, OpenAuTests};
use whichfs_curves::{Curves, Rates};
use whichfs_logs::{Operation, Order as Access};
use whichfs_units::SECTOR;

/// Slower requests are errors of the log, in nanoseconds: 1000 s.
const NS_MAX: f64 = 1e12;

/// What a point was measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointOrder {
    /// `flashbench -O`.
    Linear,
    /// `flashbench -O --random`.
    Random,
    /// Reads or writes over much of the card, as dd, hdparm, iozone and fio do them.
    Host(Operation, Access),
}

impl PointOrder {
    /// Those of `flashbench -O`, in the order of the tests.
    pub const FLASHBENCH: [PointOrder; 2] = [PointOrder::Linear, PointOrder::Random];

    /// A few words for people.
    pub fn name(self) -> &'static str {
        match self {
            PointOrder::Linear => "linear",
            PointOrder::Random => "random",
            PointOrder::Host(Operation::Read, Access::Sequential) => "read in order",
            PointOrder::Host(Operation::Read, Access::Random) => "read at random",
            PointOrder::Host(Operation::Write, Access::Sequential) => "written in order",
            PointOrder::Host(Operation::Write, Access::Random) => "written at random",
            PointOrder::Host(Operation::Discard, _) => "discarded",
        }
    }

    /// Whether it is one of `flashbench -O`.
    pub fn is_flashbench(self) -> bool {
        PointOrder::FLASHBENCH.contains(&self)
    }

    /// Whether writes were measured.
    pub fn is_write(self) -> bool {
        self.is_flashbench() || matches!(self, PointOrder::Host(Operation::Write, _))
    }

    /// Whether one AU, or all, were written in order.
    pub(crate) fn in_order(self) -> bool {
        let host = PointOrder::Host(Operation::Write, Access::Sequential);
        self == PointOrder::Linear || self == host
    }

    /// Its part of `curves`, if it is one of `flashbench -O`.
    pub fn of(self, curves: &Curves) -> Option<&BTreeMap<u32, Rates>> {
        match self {
            PointOrder::Linear => Some(&curves.linear),
            PointOrder::Random => Some(&curves.random),
            PointOrder::Host(..) => None,
        }
    }
}

/// Where on the curves a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CurvePlace {
    /// What it was measured by.
    pub order: PointOrder,
    /// Number of AUs written in turns; 1 where that is not what was tested.
    pub aus: u32,
    /// Size of a request in bytes.
    pub bytes: u64,
}

impl CurvePlace {
    /// Its curve for people: `linear, 2 AUs`, `read in order`.
    pub fn name(self) -> String {
        curve_name(self.order, self.aus)
    }
}

/// A curve for people: `linear, 2 AUs`, `read in order`.
pub fn curve_name(order: PointOrder, aus: u32) -> String {
    match (order, aus) {
        (PointOrder::Host(..), _) => order.name().to_owned(),
        (_, 1) => format!("{}, 1 AU", order.name()),
        _ => format!("{}, {aus} AUs", order.name()),
    }
}

/// One measured point: the mean time of a request, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Curve and size that the point belongs to.
    pub place: CurvePlace,
    /// Mean time of one request.
    pub ns: f64,
}

/// The write points of `curves` that a replay with AUs of `erase_bytes` has too, and how many
/// it has not. Rates that are no positive numbers are left out and not counted: a log has them
/// where a run was cut off.
pub(crate) fn points(curves: &Curves, erase_bytes: u64) -> (Vec<Point>, usize) {
    let mut found = Vec::new();
    let mut beyond = 0;
    for order in PointOrder::FLASHBENCH {
        for (aus, rates) in order.of(curves).into_iter().flatten() {
            for (bytes, rate) in rates {
                let ns = *bytes as f64 / rate * 1e9;
                if !(ns > 0.0 && ns < NS_MAX) {
                    continue;
                }
                let place = CurvePlace {
                    order,
                    aus: *aus,
                    bytes: *bytes,
                };
                match replayed(place, erase_bytes) {
                    true => found.push(Point { place, ns }),
                    false => beyond += 1,
                }
            }
        }
    }
    (found, beyond)
}

/// Whether `flashbench -O` with AUs of `erase_bytes` writes at `place`: it halves the AU until
/// it comes to a block.
fn replayed(place: CurvePlace, erase_bytes: u64) -> bool {
    let bytes = place.bytes;
    let halved = bytes > 0 && erase_bytes.is_multiple_of(bytes);
    (1..=OPEN_AUS_MOST).contains(&place.aus)
        && halved
        && (erase_bytes / bytes).is_power_of_two()
        && bytes.is_multiple_of(SECTOR)
}

/// The erase size with which the curves were measured where nobody says: that of the published
/// logs, unless the largest block, with which `flashbench -O` begins, is not one of its.
pub(crate) fn erase_bytes(curves: &Curves) -> u64 {
    let usual = OpenAuTests::PUBLISHED.erase_bytes;
    let rates = PointOrder::FLASHBENCH
        .into_iter()
        .filter_map(|o| o.of(curves));
    let sizes = rates.flat_map(BTreeMap::values).flat_map(BTreeMap::keys);
    let largest = sizes.max().copied().unwrap_or(usual);
    let place = CurvePlace {
        order: PointOrder::Linear,
        aus: 1,
        bytes: largest,
    };
    if replayed(place, usual) {
        usual
    } else {
        largest
    }
}

/// A measured point beside what the model does there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedPoint {
    /// Order, number of AUs and size of the request.
    pub place: CurvePlace,
    /// Measured time of one request in nanoseconds.
    pub measured_ns: f64,
    /// Modelled time of one request in nanoseconds.
    pub modelled_ns: f64,
    /// Whether the fit saw it.
    pub fitted: bool,
}

impl ComparedPoint {
    /// |ln(model / measured)|.
    pub fn error(&self) -> f64 {
        (self.modelled_ns / self.measured_ns).ln().abs()
    }
}

/// Median, 90th percentile and worst of |ln(model / measured)| over `points` points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Number of points.
    pub points: usize,
    /// Half of the points are off by less.
    pub median: f64,
    /// Nine of ten points are off by less.
    pub p90: f64,
    /// The worst point.
    pub worst: f64,
}

impl Errors {
    /// Over those of `compared` that `chosen` takes; `None` if it takes none.
    pub fn over<'a>(
        compared: impl IntoIterator<Item = &'a ComparedPoint>,
        chosen: impl Fn(&ComparedPoint) -> bool,
    ) -> Option<Errors> {
        let mut errors: Vec<f64> = compared
            .into_iter()
            .filter(|point| chosen(point))
            .map(ComparedPoint::error)
            .collect();
        errors.sort_by(f64::total_cmp);
        let worst = *errors.last()?;
        Some(Errors {
            points: errors.len(),
            median: quantile(&errors, 0.5),
            p90: quantile(&errors, 0.9),
            worst,
        })
    }
}

/// Quantile of sorted numbers, between neighbours in proportion.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn errors_are_of_the_chosen_points() {
        let point = |modelled_ns: f64, fitted| ComparedPoint {
            place: CurvePlace {
                order: PointOrder::Linear,
                aus: 1,
                bytes: 4096,
            },
            measured_ns: 1.0,
            modelled_ns,
            fitted,
        };
        let all = [
            point(1.0, true),
            point(1.1_f64.exp(), false),
            point((-0.3_f64).exp(), false),
        ];
        let errors = Errors::over(&all, |point| !point.fitted).unwrap();
        assert_eq!(errors.points, 2);
        assert!((errors.median - 0.7).abs() < 1e-12 && (errors.worst - 1.1).abs() < 1e-12);
        assert!(Errors::over(&all[..1], |point| !point.fitted).is_none());
    }

    #[test]
    fn a_rate_that_is_cut_off_or_no_rate_of_a_card_is_no_point() {
        let mut curves = Curves::default();
        let rates = [
            (4096, 1e6),
            (8192, 0.0),
            (16_384, f64::NAN),
            (32_768, 1e-300),
            (65_536, 2e6),
        ];
        curves.linear.insert(1, Rates::from(rates));
        let (found, beyond) = points(&curves, 4 << 20);
        assert_eq!((found.len(), beyond), (2, 0));
        assert_eq!(found[0].ns, 4_096_000.0);
    }

    #[test]
    fn points_that_flashbench_does_not_write_are_counted_and_left_out() {
        let mut curves = Curves::default();
        let rates = Rates::from([(4096, 1e6), (6144, 1e6), (1 << 20, 1e6)]);
        curves.linear.insert(2, rates.clone());
        curves.random.insert(8, rates);
        let (found, beyond) = points(&curves, 4 << 20);
        assert_eq!((found.len(), beyond), (2, 4));
        let (found, _) = points(&curves, 6 << 20);
        assert_eq!(found[0].place.bytes, 6144);
    }

    #[test]
    fn the_largest_block_tells_an_unusual_erase_size() {
        let of = |bytes: &[u64]| {
            let rates = bytes.iter().map(|bytes| (*bytes, 1e6)).collect();
            erase_bytes(&Curves {
                linear: [(1, rates)].into(),
                ..Curves::default()
            })
        };
        assert_eq!(of(&[4096, 1 << 20]), 4 << 20);
        assert_eq!(of(&[4096, 8 << 20]), 8 << 20);
        assert_eq!(of(&[6144, 3 << 20]), 3 << 20);
        assert_eq!(of(&[]), 4 << 20);
    }
}
