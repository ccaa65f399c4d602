//! How the share of cards that map pages grows with the year of manufacture.
//!
//! Members near to a card in year say which families it may be of. A card that is older or newer
//! than all members has none near to it, and those at the edge would count as if nothing had
//! changed since. So the odds go on as they changed over the years of the population: by the
//! slope of a logistic regression, whose prior is that of Gelman et al. 2008 (as a normal
//! distribution; one unit is two standard deviations of the years).

use crate::population::Member;

/// Standard deviation of the slope a unit before the data.
const SLOPE: f64 = 2.5;
/// Standard deviation of the odds' logarithm in the middle of the years before the data.
const LEVEL: f64 = 10.0;
/// Steps of Newton's method: it is where it ends after some five.
const STEPS: usize = 30;

/// The trend of a population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// The first and the last year of a member.
    years: [f64; 2],
    /// What a year adds to the logarithm of the odds that a card limits no open AUs.
    pub per_year: f64,
}

impl Trend {
    /// The trend of `members`, each with its weight; `None` where none has a year.
    pub fn of<'a>(members: impl Iterator<Item = (&'a Member, f64)>) -> Option<Trend> {
        let points = members.filter_map(|(member, weight)| {
            let maps_pages = !member.profile.family().limits_open_aus();
            Some((f64::from(member.year?), f64::from(maps_pages), weight))
        });
        let points: Vec<(f64, f64, f64)> = points.collect();
        let total: f64 = points.iter().map(|(.., weight)| weight).sum();
        let mean = |of: &dyn Fn(f64) -> f64| -> f64 {
            let sum: f64 = points.iter().map(|(year, _, w)| w * of(*year)).sum();
            sum / total
        };
        let middle = mean(&|year| year);
        let spread = mean(&|year| (year - middle).powi(2)).sqrt();
        let years = points.iter().map(|(year, ..)| *year);
        let first = years.clone().reduce(f64::min)?;
        let last = years.reduce(f64::max)?;
        let precisions = [LEVEL.powi(-2), (2.0 * spread / SLOPE).powi(2)];
        let [mut level, mut slope] = [0.0, 0.0];
        for _ in 0..STEPS {
            let [mut g0, mut g1] = [-precisions[0] * level, -precisions[1] * slope];
            let [mut h00, mut h01, mut h11] = [precisions[0], 0.0, precisions[1]];
            for (year, maps_pages, weight) in &points {
                let x = year - middle;
                let p = 1.0 / (1.0 + (-level - slope * x).exp());
                let (error, curvature) = (weight * (maps_pages - p), weight * p * (1.0 - p));
                g0 += error;
                g1 += error * x;
                h00 += curvature;
                h01 += curvature * x;
                h11 += curvature * x * x;
            }
            let determinant = h00 * h11 - h01 * h01;
            if determinant <= 0.0 {
                break;
            }
            level += (h11 * g0 - h01 * g1) / determinant;
            slope += (h00 * g1 - h01 * g0) / determinant;
        }
        Some(Trend {
            years: [first, last],
            per_year: slope,
        })
    }

    /// By what the odds that a card of `year` limits no open AUs differ from those of the members
    /// nearest to it in years.
    pub fn odds(&self, year: u32) -> f64 {
        let year = f64::from(year);
        let [first, last] = self.years;
        let beyond = (year - first).min(0.0) + (year - last).max(0.0);
        (self.per_year * beyond).exp()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::knowledge::Knowledge;
    use crate::population::Population;
    use crate::prior::{Prior, Widening};
    use crate::relevance::Relevance;

    /// Mean logarithm of the probability that the prior of `of` gives to what each of `cards` is.
    fn log_score(of: &Population, cards: &[Member], with_trend: bool) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for card in cards {
            let mut known = Knowledge::of("a card", card.interface, card.bytes);
            known.maker = card.maker.clone();
            known.year = card.year;
            if !with_trend {
                let years = of.members.iter().filter_map(|member| member.year);
                let nearest = years.min_by_key(|year| year.abs_diff(card.year.unwrap()));
                known.year = nearest;
            }
            let prior = Prior::new(of, &known, &Relevance::CHOSEN, Widening::default()).unwrap();
            let limits = card.profile.family().limits_open_aus();
            let alike = |family: whichfs_card::Family| family.limits_open_aus() == limits;
            let families = prior.families().into_iter();
            let share: f64 = families
                .filter(|(family, _)| alike(*family))
                .map(|(_, share)| share)
                .sum();
            sum += card.weight * share.ln();
            total += card.weight;
        }
        sum / total
    }

    #[test]
    fn cards_of_years_that_are_left_out_are_told_better_with_the_trend() {
        let all = Population::shipped().unwrap();
        let split = |kept: &dyn Fn(u32) -> bool, asked: &dyn Fn(u32) -> bool| {
            let of = |chosen: &dyn Fn(u32) -> bool| -> Vec<Member> {
                let members = all.members.iter();
                members
                    .filter(|member| member.year.is_some_and(chosen))
                    .cloned()
                    .collect()
            };
            let population = Population { members: of(kept) };
            [true, false].map(|with| log_score(&population, &of(asked), with))
        };
        for [with, without] in [
            split(&|year| year >= 2015, &|year| year < 2015),
            split(&|year| year <= 2016, &|year| year >= 2018),
            split(&|year| year <= 2019, &|year| year >= 2020),
        ] {
            assert!(with > without + 0.05, "{with} {without}");
        }
    }

    #[test]
    fn odds_stay_within_the_years_of_the_population_and_go_on_beyond() {
        let trend = Trend {
            years: [2013.0, 2024.0],
            per_year: 0.5,
        };
        assert_eq!([2013, 2018, 2024].map(|year| trend.odds(year)), [1.0; 3]);
        assert!((trend.odds(2011) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!((trend.odds(2026) - 1.0_f64.exp()).abs() < 1e-12);
    }
}
