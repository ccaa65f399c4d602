//! A card like this one: times, rates and thresholds drawn within what the profile is sure of.

use super::Profile;
use crate::figures::Kind;
use whichfs_units::Rng;

impl Profile {
    /// The profile with every time, rate and threshold, and the residual's factors, multiplied by a
    /// factor drawn log-uniformly between `1 / (1 + u)` and `1 + u`, where `u` is the figure's
    /// uncertainty. Geometry, cycles and switches stay, so that a drawn profile is as legal as this
    /// one. Equal seeds give equal profiles.
    pub fn draw(&self, seed: u64) -> Profile {
        let mut drawn = self.clone();
        for figure in drawn.figures_mut() {
            let spec = figure.spec;
            if spec.kind == Kind::Fixed || figure.uncertainty_percent == 0 {
                continue;
            }
            // A stream for each figure: a new figure does not change the others.
            let unit = Rng::named(seed, spec.path).unit_f64();
            let value = scaled(figure.value, figure.uncertainty_percent, unit);
            figure.value = value.clamp(spec.min, spec.max);
        }
        let residual = self.residual.as_ref();
        drawn.residual = residual.map(|residual| residual.drawn(seed, scaled));
        drawn
    }
}

/// `value` times `(1 + percent/100)^(2·unit − 1)`, rounded.
fn scaled(value: u64, percent: u64, unit: f64) -> u64 {
    let base = 1.0 + percent as f64 / 100.0;
    (value as f64 * power(base, 2.0 * unit - 1.0)).round() as u64
}

/// `base^exponent` for a base above zero and an exponent in [-1, 1], by additions and
/// multiplications alone: the system's `pow` may differ in the last bit between machines,
/// and a draw must not.
fn power(base: f64, exponent: f64) -> f64 {
    // ln(base) = 2·artanh((base − 1) / (base + 1)); uncertainty is below 1000 %.
    let ratio = (base - 1.0) / (base + 1.0);
    let mut logarithm = 0.0;
    let mut term = ratio;
    for odd in (1..400).step_by(2) {
        logarithm += 2.0 * term / f64::from(odd);
        term *= ratio * ratio;
    }
    let x = logarithm * exponent;
    let mut sum = 1.0;
    let mut term = 1.0;
    for n in 1..60 {
        term *= x / f64::from(n);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_is_the_power() {
        for (base, exponent) in [
            (1.3, 0.5),
            (1.3, -1.0),
            (1.0, 0.3),
            (6.0, 0.9),
            (11.0, -0.7),
        ] {
            let error = power(base, exponent) / f64::powf(base, exponent) - 1.0;
            assert!(error.abs() < 1e-12, "{base}^{exponent}: off by {error}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_the_uncertainty() {
        assert_eq!(scaled(1_000_000, 30, 0.0), 769_231);
        assert_eq!(scaled(1_000_000, 30, 0.5), 1_000_000);
        assert_eq!(scaled(1_000_000, 30, 1.0), 1_300_000);
    }
}
