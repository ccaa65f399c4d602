//! The measured points that a fit sees, and how far a model is from them.

use std::collections::BTreeSet;
use whichfs_curves::{Curves, Rates};

/// The order in which an AU is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// `flashbench -O`.
    Linear,
    /// `flashbench -O --random`.
    Random,
}

impl Order {
    /// Both, in the order of the tests.
    pub const ALL: [Order; 2] = [Order::Linear, Order::Random];

    /// One word for people.
    pub fn name(self) -> &'static str {
        match self {
            Order::Linear => "linear",
            Order::Random => "random",
        }
    }

    /// Its part of `curves`.
    pub fn of(self, curves: &Curves) -> &std::collections::BTreeMap<u32, Rates> {
        match self {
            Order::Linear => &curves.linear,
            Order::Random => &curves.random,
        }
    }
}

/// Where on the curves a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Linear or random.
    pub order: Order,
    /// Number of AUs written in turns.
    pub aus: u32,
    /// Size of a write in bytes.
    pub bytes: u64,
}

/// One measured point: the mean time of a write, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it is.
    pub place: Place,
    /// Mean time of one write.
    pub ns: f64,
}

/// The write points of `curves`; of the sizes in `block_sizes` alone if it is given. Rates
/// that are no positive numbers are left out: a log has them where a run was cut off.
pub fn points(curves: &Curves, block_sizes: Option<&[u64]>) -> Vec<Point> {
    let seen: Option<BTreeSet<u64>> = block_sizes.map(|sizes| sizes.iter().copied().collect());
    let mut found = Vec::new();
    for order in Order::ALL {
        for (aus, rates) in order.of(curves) {
            for (bytes, rate) in rates {
                let chosen = seen.as_ref().is_none_or(|sizes| sizes.contains(bytes));
                if !chosen || !rate.is_finite() || *rate <= 0.0 {
                    continue;
                }
                let place = Place {
                    order,
                    aus: *aus,
                    bytes: *bytes,
                };
                let ns = *bytes as f64 / rate * 1e9;
                found.push(Point { place, ns });
            }
        }
    }
    found
}

/// Time of a write at `place` in `curves`, in nanoseconds.
pub fn time_at(curves: &Curves, place: Place) -> Option<f64> {
    let rate = place.order.of(curves).get(&place.aus)?.get(&place.bytes)?;
    Some(place.bytes as f64 / rate * 1e9)
}

/// A measured point beside what the model does there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Where.
    pub place: Place,
    /// Measured time of one write in nanoseconds.
    pub measured_ns: f64,
    /// Modelled time of one write in nanoseconds.
    pub modelled_ns: f64,
    /// Whether the fit saw it.
    pub fitted: bool,
}

impl Compared {
    /// |ln(model / measured)|.
    pub fn error(&self) -> f64 {
        (self.modelled_ns / self.measured_ns).ln().abs()
    }
}

/// Every measured point that the model has too.
pub fn compare(measured: &Curves, modelled: &Curves, block_sizes: Option<&[u64]>) -> Vec<Compared> {
    points(measured, None)
        .into_iter()
        .filter_map(|point| {
            Some(Compared {
                place: point.place,
                measured_ns: point.ns,
                modelled_ns: time_at(modelled, point.place)?,
                fitted: block_sizes.is_none_or(|sizes| sizes.contains(&point.place.bytes)),
            })
        })
        .collect()
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
        compared: impl IntoIterator<Item = &'a Compared>,
        chosen: impl Fn(&Compared) -> bool,
    ) -> Option<Errors> {
        let mut errors: Vec<f64> = compared
            .into_iter()
            .filter(|point| chosen(point))
            .map(Compared::error)
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
fn quantile(sorted: &[f64], part: f64) -> f64 {
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
        let point = |modelled_ns: f64, fitted| Compared {
            place: Place {
                order: Order::Linear,
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
    fn a_cut_off_rate_is_no_point() {
        let mut curves = Curves::default();
        let rates = Rates::from([(4096, 1e6), (8192, 0.0), (16_384, f64::NAN), (32_768, 2e6)]);
        curves.linear.insert(1, rates);
        assert_eq!(points(&curves, None).len(), 2);
        assert_eq!(points(&curves, Some(&[4096, 8192])).len(), 1);
        assert_eq!(points(&curves, None)[0].ns, 4_096_000.0);
    }
}
