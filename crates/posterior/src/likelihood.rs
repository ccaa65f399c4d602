//! How well a modelled card agrees with observations.
//!
//! A card is put through the same requests as the measured one ([`Replay`]). An error is
//! `ln(model / measured)`. It has a Student distribution whose scale is the observation's noise
//! and the model's own error together, because a family reproduces even the card that it was
//! fitted to only so well.

use crate::knowledge::{Bound, Observation};
use whichfs_card::Profile;
use whichfs_fit::{CurvePlace, Point, Replay};

/// Error of the model at the card that it was fitted to, and how heavy its tails are: over all
/// runs of the data the fitted points are off by 3.8 % in the median and 17.3 % in the 90th
/// percentile (docs/fit.md); a Student distribution of 1.5 degrees of freedom and this scale
/// has these quantiles.
const MODEL_SCALE: f64 = 0.044;
const DEGREES: f64 = 1.5;
/// Points of one curve of flashbench are not independent of each other: what their number counts
/// for, as in `fit`.
const CURVE_WEIGHT: f64 = 0.5;
/// AUs and least bytes of the cut-down card that is put through the requests, as in `fit`.
const TRIAL_AUS: u64 = 128;
const TRIAL_BYTES: u64 = 512 << 20;

/// The same card, cut down to what the requests of `replay` need.
pub(crate) fn trial_card(profile: &Profile, replay: &Replay) -> Option<Profile> {
    let bytes = (TRIAL_AUS * replay.erase_bytes.max(profile.au_bytes())).max(TRIAL_BYTES);
    match bytes < profile.capacity_bytes() {
        true => profile.with_capacity(bytes).ok(),
        false => Some(profile.clone()),
    }
}

/// Nanoseconds of a request at each of `places` on the card of `profile`; `None` where it refuses.
pub(crate) fn times(profile: &Profile, places: &[CurvePlace], replay: &Replay) -> Option<Vec<f64>> {
    let points: Vec<Point> = places
        .iter()
        .map(|place| Point {
            place: *place,
            ns: 1.0,
        })
        .collect();
    replay.times(&trial_card(profile, replay)?, &points).ok()
}

/// Logarithm of how likely `observations` are on a card that takes `times` for them, up to a
/// constant of the observations.
pub(crate) fn log_likelihood(observations: &[Observation], times: &[f64]) -> f64 {
    let of_one = |(observation, time): (&Observation, &f64)| {
        let error = error(observation, *time) / scale(observation);
        let weight = match observation.place.order.is_flashbench() {
            true => CURVE_WEIGHT,
            false => 1.0,
        };
        -weight * (DEGREES + 1.0) / 2.0 * (1.0 + error * error / DEGREES).ln()
    };
    observations.iter().zip(times).map(of_one).sum()
}

/// `ln(model / measured)`; zero where the observation is a bound that the card keeps.
pub(crate) fn error(observation: &Observation, time_ns: f64) -> f64 {
    let error = (time_ns / observation.ns).ln();
    match observation.bound {
        Bound::Exact => error,
        Bound::AtMost => error.max(0.0),
    }
}

/// Scale of the error of an observation: its noise and the model's.
pub(crate) fn scale(observation: &Observation) -> f64 {
    observation.noise.hypot(MODEL_SCALE)
}

/// An error of the model alone, from a uniform and a normal number: a Student variate as a
/// normal one over the root of a gamma one, whose distribution for 1.5 degrees is close to that
/// of a chi-squared variate by Wilson and Hilferty (1931).
pub(crate) fn model_error(normal: f64, other: f64) -> f64 {
    let third = 2.0 / (9.0 * DEGREES);
    let ratio = (1.0 - third + other * third.sqrt()).max(0.05).powi(3);
    MODEL_SCALE * normal / ratio.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::{normals, quantile};
    use whichfs_fit::PointOrder;
    use whichfs_logs::{Operation, Order as Access};
    use whichfs_units::Rng;

    fn observed(bound: Bound) -> Observation {
        let order = PointOrder::Host(Operation::Write, Access::Random);
        let place = CurvePlace {
            order,
            aus: 1,
            bytes: 4096,
        };
        Observation {
            place,
            ns: 1e6,
            noise: 0.1,
            bound,
            label: "4 KiB".into(),
        }
    }

    #[test]
    fn a_bound_that_is_kept_costs_nothing_and_a_worse_error_costs_more() {
        let exact = |time| log_likelihood(&[observed(Bound::Exact)], &[time]);
        let bound = |time| log_likelihood(&[observed(Bound::AtMost)], &[time]);
        assert_eq!(bound(0.2e6), 0.0);
        assert_eq!(bound(2e6), exact(2e6));
        assert!(exact(1.1e6) > exact(1.5e6) && exact(1.5e6) > exact(3e6));
        assert!((exact(2e6) - exact(0.5e6)).abs() < 1e-12);
    }

    #[test]
    fn errors_of_the_model_have_the_quantiles_of_the_fits() {
        let mut rng = Rng::named(1, "errors");
        let mut errors: Vec<f64> = (0..20_000)
            .map(|_| {
                let [a, b] = [normals(&mut rng, 1)[0], normals(&mut rng, 1)[0]];
                model_error(a, b).abs()
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let found = [0.5, 0.9].map(|part| quantile(&errors, part));
        assert!(
            (found[0] - 0.038).abs() < 0.006 && (found[1] - 0.173).abs() < 0.05,
            "{found:?}"
        );
    }
}
