//! How well a modelled card agrees with observations.
//!
//! A card is put through the same requests as the measured one ([`Replay`]). An error is
//! `ln(model / measured)`. It has a Student distribution whose scale is the observation's noise
//! and the model's own error together, because a family reproduces even the card that it was
//! fitted to only so well.

use crate::knowledge::{Bound, Observation, OpenAuLimit};
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
/// Scale of the error of a count of AUs, as a logarithm: 4 in place of 5 is then a sixth as likely.
const COUNT_NOISE: f64 = 0.1;
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
        weight * log_student(error)
    };
    observations.iter().zip(times).map(of_one).sum()
}

/// Logarithm of how likely it is that `found` AUs can be open on a card that can have
/// [`open_aus`] of them, up to a constant.
pub(crate) fn log_likelihood_of_open_aus(found: OpenAuLimit, of_card: [u64; 2]) -> f64 {
    let most = u64::from(found.tried) + 1;
    let off = |found: u32, of_card: u64| {
        let ratio = u64::from(found).min(most) as f64 / of_card.min(most) as f64;
        log_student(ratio.ln() / COUNT_NOISE)
    };
    let [linear, random] = of_card;
    off(found.linear, linear) + found.random.map_or(0.0, |found| off(found, random))
}

/// How many AUs can be written in turns on the card of `profile`, in order and at random within
/// each; `u64::MAX` without a limit.
pub(crate) fn open_aus(profile: &Profile) -> [u64; 2] {
    match profile.family().limits_open_aus() {
        true => [profile.open_aus_linear(), profile.open_aus_random()].map(|aus| aus.max(1)),
        false => [u64::MAX; 2],
    }
}

/// Logarithm of the density of an error in multiples of its scale, up to a constant.
fn log_student(error: f64) -> f64 {
    -(DEGREES + 1.0) / 2.0 * (1.0 + error * error / DEGREES).ln()
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
    fn a_count_of_open_aus_is_likelier_the_nearer_and_no_limit_is_beyond_what_was_tried() {
        let found = |linear, random| OpenAuLimit {
            linear,
            random,
            tried: 64,
        };
        let five = |of_card| log_likelihood_of_open_aus(found(5, Some(3)), of_card);
        assert_eq!(five([5, 3]), 0.0);
        assert!(five([4, 3]) > five([2, 3]) && five([5, 3]) > five([5, 1]));
        assert!(five([2, 3]) > five([u64::MAX; 2]));
        let none = |of_card| log_likelihood_of_open_aus(found(65, None), of_card);
        assert_eq!(none([u64::MAX; 2]), 0.0);
        assert_eq!(none([200, 1]), 0.0, "200 were not tried");
        assert!(none([8, 8]) < -4.0);
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
