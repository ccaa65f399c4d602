//! Trials on a real device: their order, what they may cost, whether the device changed
//! meanwhile, and how far it is from the lab.

mod budget;
mod distance;
mod drift;
mod order;

pub use budget::{Budget, BudgetLimit, Counter, Ledger, TrialCost};
pub use distance::{Distance, distances};
pub use drift::{Drift, REFERENCES_MIN, ReferenceRun, drifts};
pub use order::{Turn, order};

/// The median of `values`; `None` without any.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (upper, lower) = (values.len() / 2, values.len().saturating_sub(1) / 2);
    Some((values.get(lower)? + values.get(upper)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
