//! How far figures may be off beyond what scatter of the points says: other shapes explain nearly
//! as much with other figures, and no shape is the card.

use crate::points::quantile;
use crate::search::{Candidate, Search};

/// What another shape may cost more and still count for 1/e: an amount, and a share of the best's
/// cost, since points that no shape meets speak less.
const COUNTS: f64 = 1.0;
const COUNTS_SHARE: f64 = 0.1;
/// How far figures are off at least, as ln. Set by hand.
const LEAST: f64 = 0.01;
/// The same as a share of the 90th percentile of |ln(model / measured)|. Set by hand.
const OF_ERRORS: f64 = 0.3;

/// Figures that trade with each other, or with sizes that no curve tells: how many times further
/// off they are than the points and the other shapes say. Chosen by the bench `odd`.
const TRADES: [(&str, f64); 5] = [
    ("bus.command_us", 1.5),
    ("write.overhead_us", 1.5),
    ("write.partial_full_us", 1.5),
    ("log_block.random_percent", 3.0),
    ("update_block.small_us", 4.0),
];

impl Search<'_> {
    /// Adds to the spread of the figures of `candidate` how they differ in the other shapes of its
    /// family that were tried, by what these cost, and how far off the best one is. How
    /// often figures are within what is said the bench `odd` tells.
    pub(crate) fn widen(&self, candidate: &mut Candidate) {
        let between = self.between(candidate);
        let floor = LEAST + OF_ERRORS * candidate.errors_p90();
        let spreads = candidate.solution.spread.iter_mut().zip(between);
        for ((spread, between), free) in spreads.zip(&candidate.free) {
            let trades = TRADES.iter().find(|(path, _)| *path == free.path);
            let times = trades.map_or(1.0, |(_, times)| *times);
            *spread = times * (spread.powi(2) + between + floor.powi(2)).sqrt();
        }
    }

    /// Variance of each ln figure over the shapes of the family that were tried, about that of
    /// `best`.
    fn between(&self, best: &Candidate) -> Vec<f64> {
        let counts = COUNTS + COUNTS_SHARE * best.cost;
        let tried = self.tried.iter().chain(&self.placed);
        let found = tried.filter_map(|(.., found)| found.as_ref());
        let others = found.filter(|other| {
            let paths = |of: &Candidate| of.free.iter().map(|free| free.path).collect::<Vec<_>>();
            other.shape.family == best.shape.family && paths(other) == paths(best)
        });
        let (mut all, mut sums) = (1.0, vec![0.0; best.free.len()]);
        for other in others.filter(|other| other.shape != best.shape) {
            let weight = ((best.cost - other.cost) / counts).min(0.0).exp();
            all += weight;
            let pairs = other.solution.theta.iter().zip(&best.solution.theta);
            for (sum, (theta, of_best)) in sums.iter_mut().zip(pairs) {
                *sum += weight * (theta / of_best).ln().powi(2);
            }
        }
        sums.into_iter().map(|sum| sum / all).collect()
    }
}

impl Candidate {
    /// |ln(model / measured)| of each point, the least first.
    pub(crate) fn errors(&self) -> Vec<f64> {
        let theta = &self.solution.theta;
        let rows = self.rows.iter();
        let mut errors: Vec<f64> = rows
            .map(|row| (row.time_at(theta) / row.measured_ns).ln().abs())
            .collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    fn errors_p90(&self) -> f64 {
        quantile(&self.errors(), 0.9)
    }
}
