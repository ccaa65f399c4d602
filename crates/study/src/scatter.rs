//! How much cards of one kind differ: the scatter between units, apart from that between repeats on
//! the same unit.

use crate::grid::Grid;
use serde::Serialize;

/// What one unit gave of a figure: a card in its board.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UnitFigure {
    /// What the card is called in results.
    pub card: String,
    /// Name of the board that it is in.
    pub board: String,
    /// Mean of its repeats, in the unit of the figure.
    pub mean: f64,
    /// How many repeats the mean is of.
    pub repeats: usize,
}

/// A figure of one candidate over several units. Standard deviations are estimated by a one-way
/// analysis of variance with random effects, and are shares of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UnitScatter {
    /// Title of its table: the workload, or the name of the table that workloads share.
    pub load: String,
    /// Workload, where the table has several; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub form: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Variant; empty if the study has one only.
    pub variant: String,
    /// Name as trials report it.
    pub metric: String,
    /// Unit of all means.
    pub unit: String,
    /// Mean of the units' means.
    pub mean: f64,
    /// Standard deviation between units, without what repeats scatter by. Where no unit has two
    /// repeats it holds their scatter too, and `within` is absent.
    pub between: f64,
    /// Standard deviation between repeats on the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Each unit, in the order of the command line.
    pub units: Vec<UnitFigure>,
}

/// The scatter of each figure that at least two of `runs` have; each run has the tables of one
/// unit. Shares of time are left out: they are no figures of a card.
pub fn unit_scatter(runs: &[&[Grid]]) -> Vec<UnitScatter> {
    let mut found: Vec<(UnitScatter, Vec<Vec<f64>>)> = Vec::new();
    for grid in runs.iter().flat_map(|grids| grids.iter()) {
        for line in grid.lines.iter().filter(|line| line.is_judged()) {
            for (candidate, ours) in grid.candidates.iter().zip(&line.ours) {
                let Some(repeats) = ours else { continue };
                let values: Vec<f64> = repeats.values.iter().map(|(_, value)| *value).collect();
                let figure = UnitFigure {
                    card: grid.card.clone(),
                    board: grid.board.clone(),
                    mean: mean(&values),
                    repeats: values.len(),
                };
                let is_it = |(one, _): &&mut (UnitScatter, Vec<Vec<f64>>)| {
                    (&one.load, &one.form, &one.candidate) == (&grid.load, &line.load, candidate)
                        && (&one.variant, &one.metric) == (&line.variant, &line.metric)
                };
                if let Some((one, all)) = found.iter_mut().find(is_it) {
                    one.units.push(figure);
                    all.push(values);
                    continue;
                }
                let one = UnitScatter {
                    load: grid.load.clone(),
                    form: line.load.clone(),
                    candidate: candidate.clone(),
                    variant: line.variant.clone(),
                    metric: line.metric.clone(),
                    unit: line.unit.clone(),
                    mean: 0.0,
                    between: 0.0,
                    within: None,
                    units: vec![figure],
                };
                found.push((one, vec![values]));
            }
        }
    }
    let judged = found.into_iter().filter_map(|(one, values)| {
        let (between, within) = deviations(&values)?;
        let means: Vec<f64> = one.units.iter().map(|unit| unit.mean).collect();
        let mean = mean(&means);
        (mean != 0.0).then(|| UnitScatter {
            mean,
            between: between / mean.abs(),
            within: within.map(|within| within / mean.abs()),
            ..one
        })
    });
    judged.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviations between the `units` and between the values within one; none with fewer than
/// two units.
fn deviations(units: &[Vec<f64>]) -> Option<(f64, Option<f64>)> {
    if units.len() < 2 {
        return None;
    }
    let squares = |values: &[f64], around: f64| -> f64 {
        let each = values.iter().map(|value| (value - around).powi(2));
        each.sum()
    };
    let all: Vec<f64> = units.iter().flatten().copied().collect();
    let (grand, total, count) = (mean(&all), all.len() as f64, units.len() as f64);
    let sum_within: f64 = units.iter().map(|unit| squares(unit, mean(unit))).sum();
    let of_unit = |unit: &Vec<f64>| unit.len() as f64 * (mean(unit) - grand).powi(2);
    let between = units.iter().map(of_unit).sum::<f64>() / (count - 1.0);
    let free = total - count;
    if free <= 0.0 {
        return Some((between.sqrt(), None));
    }
    let within = sum_within / free;
    let sizes: f64 = units.iter().map(|unit| (unit.len() as f64).powi(2)).sum();
    let size = (total - sizes / total) / (count - 1.0);
    let between = ((between - within) / size).max(0.0);
    Some((between.sqrt(), Some(within.sqrt())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::grid::{GridLine, Repeats};
    use whichfs_units::Rng;

    fn grid(card: &str, values: &[f64]) -> Grid {
        let repeats = |values: &[f64]| Repeats {
            values: values
                .iter()
                .enumerate()
                .map(|(at, v)| (at as u64, *v))
                .collect(),
            median: values[0],
            doubt: None,
        };
        let line = |metric: &str| GridLine {
            metric: metric.into(),
            unit: "MB/s".into(),
            lower_is_better: false,
            variant: String::new(),
            load: String::new(),
            ours: vec![Some(repeats(values)), None],
            published: Vec::new(),
            tau_b: None,
        };
        Grid {
            card: card.into(),
            board: "rpi4".into(),
            load: "tree".into(),
            candidates: vec!["ext4".into(), "f2fs".into()],
            lines: vec![line("tree_write"), line("tree_write_busy")],
            orders: Vec::new(),
        }
    }

    /// Sum of twelve uniform numbers less six: nearly normal, with a deviation of 1.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.unit_f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn units_are_told_from_repeats() {
        // 200 units that scatter by 10 % of 100, whose repeats scatter by 3 %.
        let mut random = Rng::named(1, "scatter");
        let mut runs = Vec::new();
        for number in 0..200 {
            let unit = 100.0 + 10.0 * normal(&mut random);
            let values: Vec<f64> = (0..5).map(|_| unit + 3.0 * normal(&mut random)).collect();
            runs.push(vec![grid(&format!("card {number}"), &values)]);
        }
        let runs: Vec<&[Grid]> = runs.iter().map(Vec::as_slice).collect();
        let all = unit_scatter(&runs);
        let [one] = &all[..] else {
            panic!("{} figures: shares of time are none", all.len())
        };
        assert_eq!((one.candidate.as_str(), one.units.len()), ("ext4", 200));
        assert!((one.between - 0.10).abs() < 0.012, "{}", one.between);
        assert!(
            (one.within.unwrap() - 0.03).abs() < 0.003,
            "{:?}",
            one.within
        );
    }

    #[test]
    fn units_that_are_alike_have_no_scatter_beyond_their_repeats() {
        let runs = [[grid("a", &[90.0, 110.0])], [grid("b", &[110.0, 90.0])]];
        let runs: Vec<&[Grid]> = runs.iter().map(<[Grid; 1]>::as_slice).collect();
        let one = &unit_scatter(&runs)[0];
        assert_eq!(one.between, 0.0);
        assert!((one.within.unwrap() - 0.1414).abs() < 0.001);
        assert!(
            unit_scatter(&runs[..1]).is_empty(),
            "one unit does not scatter"
        );
    }

    #[test]
    fn without_repeats_the_scatter_is_of_both() {
        let runs = [[grid("a", &[90.0])], [grid("b", &[110.0])]];
        let runs: Vec<&[Grid]> = runs.iter().map(<[Grid; 1]>::as_slice).collect();
        let one = &unit_scatter(&runs)[0];
        assert!((one.between - 0.1414).abs() < 0.001 && one.within.is_none());
    }
}
