//! Observations that contradict each other: two of the same requests, or two that no sampled card
//! comes near at once.

use crate::knowledge::{Bound, Observation};
use crate::likelihood::{error, scale};
use crate::smc::Particle;

/// Standard deviations beyond which an observation disagrees, and the least factor.
const DEVIATIONS: f64 = 6.0;
const FACTOR: f64 = 2.0;

/// Two observations of the same requests that differ by far more than their noise.
pub(crate) fn of_one_place(observations: &[Observation]) -> Option<[&Observation; 2]> {
    for (at, one) in observations.iter().enumerate() {
        for other in &observations[..at] {
            let apart = (one.ns / other.ns).ln();
            let allowed = DEVIATIONS * scale(one).hypot(scale(other));
            let differ = match (one.bound, other.bound) {
                (Bound::Exact, Bound::Exact) => apart.abs() > allowed,
                // One is above what the other says is the most.
                (Bound::Exact, Bound::AtMost) => apart > allowed,
                (Bound::AtMost, Bound::Exact) => -apart > allowed,
                (Bound::AtMost, Bound::AtMost) => false,
            };
            if one.place == other.place && differ {
                return Some([other, one]);
            }
        }
    }
    None
}

/// Remarks on observations that no sampled card comes near, alone or two at once. The pair that
/// is farthest apart is named.
pub(crate) fn of_cards<'a>(
    observations: &[Observation],
    particles: impl Iterator<Item = &'a Particle> + Clone,
) -> Vec<String> {
    let off = |particle: &Particle, at: usize| error(&observations[at], particle.times[at]).abs();
    let limit = |at: usize| (DEVIATIONS * scale(&observations[at])).max(FACTOR.ln());
    let nearest =
        |far: &dyn Fn(&Particle) -> f64| particles.clone().map(far).fold(f64::INFINITY, f64::min);
    let count = observations.len();
    let alone: Vec<f64> = (0..count)
        .map(|at| nearest(&|p| off(p, at) / limit(at)))
        .collect();
    let mut remarks = Vec::new();
    for at in (0..count).filter(|at| alone[*at] > 1.0) {
        let factor = (alone[at] * limit(at)).exp();
        remarks.push(format!(
            "no card comes near \"{}\": all are off by a factor of {factor:.1} or more; correct \
             it, or doubt the rest",
            observations[at].label
        ));
    }
    let mut worst: Option<(f64, usize, usize)> = None;
    for one in (0..count).filter(|at| alone[*at] <= 1.0) {
        for other in (0..one).filter(|at| alone[*at] <= 1.0) {
            let far = |p: &Particle| (off(p, one) / limit(one)).max(off(p, other) / limit(other));
            let together = nearest(&far);
            if together > worst.map_or(1.0, |worst| worst.0) {
                worst = Some((together, other, one));
            }
        }
    }
    if let Some((together, one, other)) = worst {
        let factor = (together * limit(one).max(limit(other))).exp();
        remarks.push(format!(
            "no card agrees with both \"{}\" and \"{}\": one of them is off by a factor of \
             {factor:.1} or more; correct or leave out one",
            observations[one].label, observations[other].label
        ));
    }
    remarks
}
