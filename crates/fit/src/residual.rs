//! What a fitted family leaves of the measured times of writes, as a smooth factor by size of the
//! request, order and number of AUs ([`whichfs_card::Residual`]).
//!
//! Logarithms of measured by modelled time are a Gaussian process over these three: the mean of the
//! process, given the points that the fit saw, is the factor (Rasmussen and Williams 2006, chapter
//! 2). It goes to 1 where no point is near. The process has an amplitude of each card, which its
//! points tell; how smooth it is and how much of it is scatter is the same for all cards
//! ([`Smoothness`]), from the runs of the data by marginal likelihood (chapter 5 there).

use crate::points::{ComparedPoint, CurvePlace, PointOrder};
use crate::solve::{cholesky, substitute};
use whichfs_card::{FACTOR_PERCENT, Residual};
use whichfs_logs::{Operation, Order as Access};

/// How smooth a residual is, in parts of its variance and in lengths over which it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Smoothness {
    /// Variance of the scatter of single points, by that of the process.
    pub scatter: f64,
    /// Length over sizes, in octaves.
    pub octaves: f64,
    /// Length over the logarithm to base 2 of the number of AUs.
    pub aus: f64,
    /// Part of the process that is the same for all numbers of AUs.
    pub common: f64,
    /// Correlation of writes in order with writes at random.
    pub orders: f64,
}

impl Smoothness {
    /// That of the runs of the data; `whichfs card fit flashbench.json --report` estimates it anew.
    pub const OF_DATA: Smoothness = Smoothness {
        scatter: 0.3,
        octaves: 0.64,
        aus: 0.82,
        common: 0.48,
        orders: 0.08,
    };

    /// The smoothness under which what families leave of `cards` is likeliest.
    pub fn estimated(cards: &[&Remains]) -> Smoothness {
        let likely = |smoothness: &Smoothness| -> f64 {
            cards
                .iter()
                .map(|card| card.log_likelihood(smoothness))
                .sum()
        };
        let mut best = (Smoothness::OF_DATA, likely(&Smoothness::OF_DATA));
        for step in [1.6, 1.25, 1.1, 1.03] {
            // One figure after the other, up and down, as long as one is likelier.
            loop {
                let before = best.1;
                for at in 0..Smoothness::FIGURES {
                    for by in [step, 1.0 / step] {
                        let other = best.0.moved(at, by);
                        let found = likely(&other);
                        if found > best.1 {
                            best = (other, found);
                        }
                    }
                }
                if best.1 - before < 0.01 {
                    break;
                }
            }
        }
        best.0
    }

    const FIGURES: usize = 5;

    /// The same with one of its figures multiplied; a part of a whole keeps below it.
    fn moved(mut self, at: usize, by: f64) -> Smoothness {
        let part = |share: f64| {
            let odds = share / (1.0 - share) * by;
            odds / (1.0 + odds)
        };
        match at {
            0 => self.scatter *= by,
            1 => self.octaves *= by,
            2 => self.aus *= by,
            3 => self.common = part(self.common),
            _ => self.orders = part(self.orders),
        }
        self
    }

    /// Covariance of two places, by the variance of the process.
    fn between(&self, a: &At, b: &At) -> f64 {
        let square = |distance: f64, length: f64| (-(distance / length).powi(2) / 2.0).exp();
        let of_aus = square(a.aus - b.aus, self.aus);
        let aus = self.common + (1.0 - self.common) * of_aus;
        let order = if a.in_order == b.in_order {
            1.0
        } else {
            self.orders
        };
        order * aus * square(a.octave - b.octave, self.octaves)
    }
}

/// Where a point is for the process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct At {
    in_order: bool,
    /// Logarithm to base 2 of the number of AUs.
    aus: f64,
    /// Logarithm to base 2 of the bytes of a request.
    octave: f64,
}

/// AUs of writes anywhere on the card: as many as the card model tells apart.
const ANYWHERE: u32 = 8;

impl At {
    /// Where writes of `place` are; none for reads.
    fn of(place: CurvePlace) -> Option<At> {
        let [in_order, aus] = match place.order {
            PointOrder::Linear => [1, place.aus],
            PointOrder::Random => [0, place.aus],
            PointOrder::Host(Operation::Write, Access::Sequential) => [1, 1],
            PointOrder::Host(Operation::Write, Access::Random) => [0, ANYWHERE],
            PointOrder::Host(..) => return None,
        };
        Some(At::new(in_order == 1, aus, place.bytes))
    }

    fn new(in_order: bool, aus: u32, bytes: u64) -> At {
        At {
            in_order,
            aus: f64::from(aus).log2(),
            octave: (bytes as f64).log2(),
        }
    }
}

/// Logarithms of factors at the places of points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remains(Vec<(At, f64)>);

impl Remains {
    /// What the model leaves of the points that the fit saw.
    pub fn of(compared: &[ComparedPoint]) -> Remains {
        let seen = compared.iter().filter(|point| point.fitted);
        let found = seen.filter_map(|point| {
            let ln = (point.measured_ns / point.modelled_ns).ln();
            Some((At::of(point.place)?, ln))
        });
        Remains(found.collect())
    }

    /// The process given these points; none where there are none, or where all are met.
    fn given(&self, smoothness: &Smoothness) -> Option<Given<'_>> {
        let points = &self.0;
        let row = |(j, (a, _)): (usize, &(At, f64))| {
            let with = |(k, (b, _)): (usize, &(At, f64))| {
                smoothness.between(a, b) + if j == k { smoothness.scatter } else { 0.0 }
            };
            points.iter().enumerate().map(with).collect::<Vec<f64>>()
        };
        let matrix: Vec<Vec<f64>> = points.iter().enumerate().map(row).collect();
        let lower = cholesky(&matrix)?;
        let values: Vec<f64> = points.iter().map(|(_, ln)| *ln).collect();
        let weights = substitute(&lower, &values);
        let square: f64 = weights.iter().zip(&values).map(|(a, b)| a * b).sum();
        (square > 0.0).then_some(Given {
            points,
            smoothness: *smoothness,
            variance: square / points.len() as f64,
            lower,
            weights,
        })
    }

    /// Logarithm of the marginal likelihood of these points, with the amplitude that makes it
    /// largest, but for a constant.
    fn log_likelihood(&self, smoothness: &Smoothness) -> f64 {
        let Some(given) = self.given(smoothness) else {
            return 0.0;
        };
        let determinant: f64 = given
            .lower
            .iter()
            .enumerate()
            .map(|(j, row)| row[j].ln())
            .sum();
        -(self.0.len() as f64) / 2.0 * given.variance.ln() - determinant
    }
}

/// A Gaussian process given points.
struct Given<'a> {
    points: &'a [(At, f64)],
    smoothness: Smoothness,
    /// Variance of the process, which the points tell.
    variance: f64,
    /// Lower factor of the covariance of the points, by the variance.
    lower: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

impl Given<'_> {
    /// Mean and variance at a place.
    fn at(&self, place: &At) -> (f64, f64) {
        let with: Vec<f64> = self
            .points
            .iter()
            .map(|(at, _)| self.smoothness.between(at, place))
            .collect();
        let dot = |weights: &[f64]| weights.iter().zip(&with).map(|(a, b)| a * b).sum::<f64>();
        let left = 1.0 - dot(&substitute(&self.lower, &with));
        (dot(&self.weights), self.variance * left.max(0.0))
    }
}

/// `of_family` with the residual of the points that the fit saw, without running the card anew.
pub(crate) fn predicted(
    of_family: &[ComparedPoint],
    smoothness: &Smoothness,
) -> Vec<ComparedPoint> {
    let remains = Remains::of(of_family);
    let given = remains.given(smoothness);
    let factor = |point: &ComparedPoint| Some(given.as_ref()?.at(&At::of(point.place)?).0.exp());
    let with = |point: &ComparedPoint| ComparedPoint {
        modelled_ns: point.modelled_ns * factor(point).unwrap_or(1.0),
        ..*point
    };
    of_family.iter().map(with).collect()
}

/// A measured point that the residual of the others predicts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftOut {
    /// Beside what is predicted for it.
    pub point: ComparedPoint,
    /// How far it is off, in standard deviations of what the process says.
    pub deviations: f64,
}

/// Each point that the fit saw, predicted by the residual of the others (Rasmussen and Williams
/// 2006, 5.4.2).
pub(crate) fn left_out(of_family: &[ComparedPoint], smoothness: &Smoothness) -> Vec<LeftOut> {
    let seen = of_family.iter().filter(|point| point.fitted);
    let seen: Vec<&ComparedPoint> = seen.filter(|point| At::of(point.place).is_some()).collect();
    let remains = Remains::of(of_family);
    let Some(given) = remains.given(smoothness) else {
        return Vec::new();
    };
    let of_point = |(at, point): (usize, &&ComparedPoint)| {
        let mut unit = vec![0.0; seen.len()];
        unit[at] = 1.0;
        let precision = substitute(&given.lower, &unit)[at];
        let off = given.weights[at] / precision;
        LeftOut {
            point: ComparedPoint {
                modelled_ns: point.measured_ns / off.exp(),
                ..**point
            },
            deviations: off / (given.variance / precision).sqrt(),
        }
    };
    seen.iter().enumerate().map(of_point).collect()
}

/// The residual of a card of which a family leaves `remains`, at requests of `sizes`; none where it
/// leaves nothing that whole percents tell.
pub(crate) fn residual(
    remains: &Remains,
    smoothness: &Smoothness,
    sizes: &[u64],
    source: String,
) -> Option<Residual> {
    let given = remains.given(smoothness)?;
    let (mut variances, mut nodes) = (0.0, 0.0);
    let mut table = |in_order: bool| {
        let of_order = remains.0.iter().filter(|(at, _)| at.in_order == in_order);
        let most = of_order.map(|(at, _)| at.aus.exp2().round() as u32).max();
        let row = |aus: u32| {
            let factor = |bytes: &u64| {
                let (ln, variance) = given.at(&At::new(in_order, aus, *bytes));
                variances += variance;
                nodes += 1.0;
                let percent = (ln.exp() * 100.0).round() as u64;
                percent.clamp(*FACTOR_PERCENT.start(), *FACTOR_PERCENT.end())
            };
            sizes.iter().map(factor).collect::<Vec<u64>>()
        };
        (1..=most.unwrap_or(1)).map(row).collect::<Vec<_>>()
    };
    let (in_order, at_random) = (table(true), table(false));
    let mut factors = in_order.iter().chain(&at_random).flatten();
    if factors.all(|percent| *percent == 100) {
        return None;
    }
    let spread: f64 = variances / nodes;
    Some(Residual {
        source,
        uncertainty_percent: (spread.sqrt().exp_m1() * 100.0).round().min(900.0) as u64,
        block_bytes: sizes.to_vec(),
        in_order,
        at_random,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Points of orders, 1 to 7 AUs and sizes of which a family is off by `factor` of each.
    fn points(factor: impl Fn(At) -> f64) -> Vec<ComparedPoint> {
        let mut points = Vec::new();
        for order in PointOrder::FLASHBENCH {
            for aus in 1..=7 {
                for bytes in (12..=22).map(|power| 1 << power) {
                    let place = CurvePlace { order, aus, bytes };
                    points.push(ComparedPoint {
                        place,
                        measured_ns: 1e6 * factor(At::of(place).unwrap()),
                        modelled_ns: 1e6,
                        fitted: true,
                    });
                }
            }
        }
        points
    }

    fn slow_at_64k(at: At) -> f64 {
        let off = at.octave - 16.0;
        if at.in_order {
            1.0
        } else {
            1.0 + 0.8 * (-off * off / 2.0).exp()
        }
    }

    fn table(points: &[ComparedPoint]) -> Residual {
        let sizes: Vec<u64> = (12..=22).map(|power| 1 << power).collect();
        residual(
            &Remains::of(points),
            &Smoothness::OF_DATA,
            &sizes,
            "test".into(),
        )
        .unwrap()
    }

    #[test]
    fn what_is_smooth_is_kept_by_order_and_size() {
        let found = table(&points(slow_at_64k));
        let near = |percent: u64, wanted: f64| (percent as f64 / 100.0 / wanted).ln().abs() < 0.06;
        assert_eq!((found.in_order.len(), found.at_random.len()), (7, 7));
        assert!(
            found.at_random.iter().all(|row| near(row[4], 1.8)),
            "{found:?}"
        );
        assert!(
            found
                .in_order
                .iter()
                .flatten()
                .all(|factor| near(*factor, 1.0))
        );
    }

    #[test]
    fn a_point_left_out_is_foretold_if_the_rest_goes_on_there_and_not_if_it_is_scatter() {
        let off = |factor: &dyn Fn(At) -> f64| {
            let left = left_out(&points(factor), &Smoothness::OF_DATA);
            left.iter().map(|one| one.point.error()).sum::<f64>() / left.len() as f64
        };
        let alone = |factor: &dyn Fn(At) -> f64| {
            let points = points(factor);
            points.iter().map(ComparedPoint::error).sum::<f64>() / points.len() as f64
        };
        assert!(off(&slow_at_64k) < 0.2 * alone(&slow_at_64k));
        // The planted fault: every second point by a factor of two.
        let scattered = |at: At| match (at.octave + at.aus.exp2().round()) as u32 % 2 {
            0 => 2.0,
            _ => 0.5,
        };
        assert!(off(&scattered) > 0.9 * alone(&scattered));
    }

    #[test]
    fn a_smoothness_is_found_that_makes_its_points_likelier() {
        let remains = Remains::of(&points(|at| (0.3 * (at.octave / 3.0).sin()).exp()));
        let found = Smoothness::estimated(&[&remains]);
        let gain = remains.log_likelihood(&found) - remains.log_likelihood(&Smoothness::OF_DATA);
        assert!(gain > 10.0, "{gain}");
        assert!(found.octaves > Smoothness::OF_DATA.octaves, "{found:?}");
    }

    #[test]
    fn nothing_left_is_no_residual() {
        let sizes = [4096];
        let none = Remains::of(&points(|_| 1.0));
        assert_eq!(
            residual(&none, &Smoothness::OF_DATA, &sizes, "test".into()),
            None
        );
        assert_eq!(
            residual(
                &Remains::default(),
                &Smoothness::OF_DATA,
                &sizes,
                "test".into()
            ),
            None
        );
    }
}
