//! Normally distributed numbers from the seeded generator.

use std::f64::consts::TAU;
use whichfs_units::Rng;

/// A standard normal number (Box and Muller, 1958).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit_f64()).ln()).sqrt();
    radius * (TAU * rng.unit_f64()).cos()
}

/// So many of them.
pub(crate) fn normals(rng: &mut Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| normal(rng)).collect()
}

/// The index at which the running sum of `weights`, whose sum is one, passes `unit`.
pub(crate) fn pick(weights: &[f64], unit: f64) -> usize {
    let mut sum = 0.0;
    for (at, weight) in weights.iter().enumerate() {
        sum += weight;
        if unit < sum {
            return at;
        }
    }
    weights.len().saturating_sub(1)
}

/// Quantile of sorted numbers, between neighbours in proportion.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let drawn = normals(&mut Rng::named(1, "normal"), 20_000);
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04,
            "{mean} {variance}"
        );
    }

    #[test]
    fn picks_go_by_weight() {
        let weights = [0.25, 0.0, 0.75];
        let picked = [0.0, 0.24, 0.26, 0.999, 1.0].map(|unit| pick(&weights, unit));
        assert_eq!(picked, [0, 0, 2, 2, 2]);
    }
}
