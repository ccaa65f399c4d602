//! Robust statistics: medians, spreads, ranks and a sequential test.
//!
//! Latencies have long tails, and what differs from place to place on a card is not noise
//! that repeats average out (`flash.md` §4). So places are drawn anew for every sample, and
//! centres and spreads are medians.

/// Turns a median absolute deviation into a standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Standard error of a median over that of a mean, for a normal distribution.
const MEDIAN_COST: f64 = 1.2533;

/// Middle of `values`; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Value below which the fraction `q` lies, interpolated; `None` of none.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

/// Spread around the median as a standard deviation; zero of fewer than two values.
pub(crate) fn sigma(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    MAD_TO_SIGMA * median(&distances).unwrap_or(0.0)
}

/// A centre, how well it is known, and of how many values.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    serde::Serialize,
    schemars::JsonSchema,
    serde::Deserialize,
)]
pub struct Centre {
    /// The centre itself, in the unit of the values.
    pub median: f64,
    /// Standard error of the median.
    pub error: f64,
    /// Spread of one value, as a standard deviation.
    pub spread: f64,
    /// Number of values.
    pub count: usize,
}

impl Centre {
    /// The centre of `values`; all zero of none.
    pub(crate) fn of(values: &[f64]) -> Centre {
        let spread = sigma(values);
        Centre {
            median: median(values).unwrap_or(0.0),
            error: MEDIAN_COST * spread / (values.len().max(1) as f64).sqrt(),
            spread,
            count: values.len(),
        }
    }
}

/// Mann and Whitney's test: standard score of `a` being greater than `b`, ties averaged.
pub(crate) fn rank_score(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (a.len() as f64, b.len() as f64);
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let mut wins = 0.0;
    for x in a {
        for y in b {
            wins += match x.total_cmp(y) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    (wins - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}

/// Wald's sequential test between two rates of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequential {
    score: f64,
    hit: f64,
    miss: f64,
}

/// What a sequential test says so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Rare,
    Frequent,
    Open,
}

impl Sequential {
    /// Error of either kind: 1 %.
    const BOUND: f64 = 4.6;

    /// Tells a rate of at most `rare` from one of at least `frequent`.
    pub fn between(rare: f64, frequent: f64) -> Sequential {
        Sequential {
            score: 0.0,
            hit: (frequent / rare).ln(),
            miss: ((1.0 - frequent) / (1.0 - rare)).ln(),
        }
    }

    pub fn add(&mut self, event: bool) {
        self.score += if event { self.hit } else { self.miss };
    }

    pub fn verdict(&self) -> Verdict {
        match self.score {
            score if score >= Self::BOUND => Verdict::Frequent,
            score if score <= -Self::BOUND => Verdict::Rare,
            _ => Verdict::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_neither_centre_nor_spread_much() {
        let clean = Centre::of(&[10.0, 11.0, 9.0, 10.5, 9.5]);
        let dirty = Centre::of(&[10.0, 11.0, 9.0, 10.5, 5_000.0]);
        assert!((clean.median - dirty.median).abs() <= 0.5, "{dirty:?}");
        assert!(dirty.spread < 2.0, "{dirty:?}");
        assert_eq!(Centre::of(&[]).count, 0);
    }

    #[test]
    fn ranks_tell_shifted_samples_from_equal_ones() {
        let low: Vec<f64> = (0..12).map(f64::from).collect();
        let high: Vec<f64> = (0..12).map(|v| f64::from(v) + 20.0).collect();
        assert!(rank_score(&high, &low) > 4.0);
        assert!(rank_score(&low, &low).abs() < 1e-9);
        assert!(rank_score(&low, &high) < -4.0);
    }

    #[test]
    fn a_hundredfold_signal_takes_few_samples() {
        let mut test = Sequential::between(0.05, 0.35);
        let mut samples = 0;
        while test.verdict() == Verdict::Open {
            test.add(true);
            samples += 1;
        }
        assert_eq!((test.verdict(), samples), (Verdict::Frequent, 3));
        let mut test = Sequential::between(0.05, 0.35);
        (0..13).for_each(|_| test.add(false));
        assert_eq!(test.verdict(), Verdict::Rare);
    }
}
