//! How far the lab's ratios between filesystems are from published ones, and what that does to a
//! probability.
//!
//! More seeds make a verdict precise, not right: a model that errs in the same way in every trial
//! gives narrow intervals around a wrong ratio. So the verdict draws an error from those that
//! `make truth` found on real cards. (The term for it is model discrepancy: Kennedy and O'Hagan,
//! Bayesian calibration of computer models, 2001. Here it is not fitted; the errors themselves are
//! drawn.) It widens intervals and moves no figure and no rank.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whichfs_units::Rng;

/// Written by `make truth`.
const MEASURED: &str = include_str!("../data/discrepancy.toml");

/// Errors of ratios between two filesystems on one card in one figure: published by ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discrepancy {
    /// Data sets that were compared.
    pub sets: u32,
    /// Ratios in them.
    pub ratios: u32,
    /// The factor that 0, 10, 20, … 100 % of the ratios are off at most, either way: 11 factors
    /// from 1 on, none below the one before.
    pub deciles: Vec<f64>,
}

impl Discrepancy {
    /// What the data sets of `truth/` gave when this version was made.
    pub fn measured() -> Discrepancy {
        // The file is part of the program, and a test reads it.
        toml::from_str(MEASURED).unwrap_or(Discrepancy {
            sets: 0,
            ratios: 0,
            deciles: vec![1.0; 11],
        })
    }

    /// The factor that 8 of 10 ratios are off at most.
    pub fn of_eight_in_ten(&self) -> f64 {
        self.deciles.get(8).copied().unwrap_or(1.0)
    }

    /// The log of an error as they are distributed, upwards as often as downwards: linear between
    /// the logs of the deciles.
    pub(crate) fn draw(&self, rng: &mut Rng) -> f64 {
        let place = rng.unit_f64() * 10.0;
        let up = rng.below(2) == 0;
        let at = |index: usize| self.deciles.get(index).map_or(0.0, |factor| factor.ln());
        let index = place as usize;
        let size = at(index) + (place - index as f64) * (at(index + 1) - at(index));
        if up { size } else { -size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_holds_is_a_distribution_of_many_ratios() {
        let held = Discrepancy::measured();
        assert!(held.sets > 1 && held.ratios > 50, "{held:?}");
        assert_eq!(held.deciles.len(), 11);
        assert!(
            held.deciles[0] >= 1.0 && held.deciles.is_sorted(),
            "{held:?}"
        );
    }

    #[test]
    fn eight_of_ten_draws_are_within_the_eighth_decile() {
        let errors = Discrepancy::measured();
        let mut rng = Rng::named(1, "test");
        let draws: Vec<f64> = (0..10_000).map(|_| errors.draw(&mut rng)).collect();
        let limit = errors.of_eight_in_ten().ln();
        let within = draws.iter().filter(|error| error.abs() <= limit).count();
        assert!((7_800..8_200).contains(&within), "{within}");
        let up = draws.iter().filter(|error| **error > 0.0).count();
        assert!((4_800..5_200).contains(&up), "{up}");
    }
}
