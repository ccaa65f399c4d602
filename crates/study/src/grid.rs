//! The figures of a performance study as the tables that people know: a table for each card,
//! board and workload, a line for each metric and mount, a column for each candidate. Published
//! figures stand beside ours.

use crate::study::{PerformanceStudy, PublishedFigure, Spot, StudyWorkload};
use serde::Serialize;
use whichfs_decide::doubts;
use whichfs_decide::kendall_tau_b;
use whichfs_trial::{Status, Trial};

/// All repeats of one figure.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Repeats {
    /// The value of each seed that has it, with the seed.
    pub values: Vec<(u64, f64)>,
    /// Their median.
    pub median: f64,
    /// How many times as long its phase would take if the virtual CPU took a real kernel's time,
    /// least and greatest, where that is off by more than 15 % ([`whichfs_decide::doubts`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<[f64; 2]>,
}

impl Repeats {
    fn of(mut values: Vec<(u64, f64)>) -> Option<Repeats> {
        values.sort_by_key(|(seed, _)| *seed);
        let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (
            sorted.get((sorted.len().max(1) - 1) / 2)?,
            sorted.get(sorted.len() / 2)?,
        );
        let median = (low + high) / 2.0;
        Some(Repeats {
            values,
            median,
            doubt: None,
        })
    }

    /// Largest distance from the median, as a share of it; `None` with one repeat.
    pub fn spread(&self) -> Option<f64> {
        let distance = |(_, value): &(u64, f64)| (value - self.median).abs();
        let largest = self.values.iter().map(distance).fold(0.0, f64::max);
        (self.values.len() > 1 && self.median != 0.0).then(|| largest / self.median.abs())
    }
}

/// A metric with one mount, for all candidates.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GridLine {
    /// Name as trials report it.
    pub metric: String,
    /// Unit of `ours` and `published`.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
    /// Variant; empty if the study has one only.
    pub variant: String,
    /// Workload, where the table has several; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// Ours, for each candidate of the grid.
    pub ours: Vec<Option<Repeats>>,
    /// What was published, for each candidate; empty without.
    pub published: Vec<Option<f64>>,
    /// Agreement of the two rankings (Kendall's tau-b); `None` if there are no two to compare.
    pub tau_b: Option<f64>,
}

impl GridLine {
    /// Whether one of two figures is the better one: not of two shares of time.
    pub fn is_judged(&self) -> bool {
        !whichfs_trial::is_share(&self.metric)
    }

    /// Whether one of its figures is off because of what the virtual CPU takes.
    pub fn is_doubted(&self) -> bool {
        let mut ours = self.ours.iter().flatten();
        ours.any(|repeats| repeats.doubt.is_some())
    }

    /// Which candidate is best, by its place; `None` if there are no two, or if neither of two
    /// figures is the better one.
    pub fn best(&self) -> Option<usize> {
        if self.ours.iter().flatten().count() < 2 || !self.is_judged() {
            return None;
        }
        let median = |at: &usize| self.ours[*at].as_ref().map(|repeats| repeats.median);
        let there = (0..self.ours.len()).filter(|at| median(at).is_some());
        there.min_by(|a, b| {
            let (a, b) = (median(a).unwrap_or(0.0), median(b).unwrap_or(0.0));
            if self.lower_is_better {
                a.total_cmp(&b)
            } else {
                b.total_cmp(&a)
            }
        })
    }
}

/// One card, board and workload.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Grid {
    /// Card's name in the study.
    pub card: String,
    /// Board's name in the study.
    pub board: String,
    /// Workload, as the study calls it, or the name of the table that it shares with others.
    pub load: String,
    /// Candidates, in the order of the study.
    pub candidates: Vec<String>,
    /// Metrics, in the order in which trials report them; variants in that of the study.
    pub lines: Vec<GridLine>,
    /// How far published figures rank the workloads of the table as ours do; empty where it has
    /// one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<RankingAgreement>,
}

/// Agreement of the two rankings of a table's workloads, for one metric of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RankingAgreement {
    /// Name as trials report it.
    pub metric: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Lines with both figures.
    pub forms: usize,
    /// Kendall's tau-b over them.
    pub tau_b: f64,
}

/// The orders of `lines`, which are of several workloads, for each of `candidates`.
fn orders(lines: &[GridLine], candidates: &[String]) -> Vec<RankingAgreement> {
    let mut metrics: Vec<&str> = lines.iter().map(|line| line.metric.as_str()).collect();
    metrics.dedup();
    let mut found = Vec::new();
    for metric in metrics {
        for (at, candidate) in candidates.iter().enumerate() {
            let of = lines.iter().filter(|line| line.metric == metric);
            let pairs: Vec<(f64, f64)> = of
                .filter_map(|line| {
                    let ours = line.ours.get(at)?.as_ref()?.median;
                    Some((ours, (*line.published.get(at)?)?))
                })
                .collect();
            found.extend(kendall_tau_b(&pairs).map(|tau_b| RankingAgreement {
                metric: metric.to_owned(),
                candidate: candidate.clone(),
                forms: pairs.len(),
                tau_b,
            }));
        }
    }
    found
}

/// The grids of `study` from its finished trials; those that failed have no figures.
pub fn grids(
    study: &PerformanceStudy,
    trials: &[(Spot, Trial)],
    published: &[PublishedFigure],
) -> Vec<Grid> {
    let mut grids = Vec::new();
    for card in &study.cards {
        for board in &study.boards {
            let here: Vec<&(Spot, Trial)> = trials
                .iter()
                .filter(|(spot, trial)| {
                    (spot.card, spot.board) == (card, board) && trial.outcome.status == Status::Done
                })
                .collect();
            let beside: Vec<&PublishedFigure> = published
                .iter()
                .filter(|figure| figure.card.as_ref().is_none_or(|other| other == card))
                .collect();
            for (title, loads) in tables(study) {
                let lines = table(study, &loads, &here, &beside);
                if !lines.is_empty() {
                    grids.push(Grid {
                        card: card.clone(),
                        board: board.clone(),
                        load: title.to_owned(),
                        candidates: study.candidates.clone(),
                        orders: match loads.len() {
                            1 => Vec::new(),
                            _ => orders(&lines, &study.candidates),
                        },
                        lines,
                    });
                }
            }
        }
    }
    grids
}

/// The tables of a study: title and workloads of each, in the order of the file.
fn tables(study: &PerformanceStudy) -> Vec<(&str, Vec<&StudyWorkload>)> {
    let mut tables: Vec<(&str, Vec<&StudyWorkload>)> = Vec::new();
    for load in &study.workloads {
        match tables.iter_mut().find(|(title, _)| *title == load.table) {
            Some((_, loads)) if !load.table.is_empty() => loads.push(load),
            _ if load.table.is_empty() => tables.push((&load.name, vec![load])),
            _ => tables.push((&load.table, vec![load])),
        }
    }
    tables
}

/// The lines of a table; where it has several workloads, those of one metric together.
fn table(
    study: &PerformanceStudy,
    loads: &[&StudyWorkload],
    trials: &[&(Spot, Trial)],
    published: &[&PublishedFigure],
) -> Vec<GridLine> {
    let mut lines = Vec::new();
    for load in loads {
        let here: Vec<&(Spot, Trial)> = trials
            .iter()
            .copied()
            .filter(|(spot, _)| spot.load.name == load.name)
            .collect();
        let beside: Vec<&PublishedFigure> = published
            .iter()
            .copied()
            .filter(|figure| figure.load == load.name)
            .collect();
        let own = self::lines(study, &here, &beside).into_iter();
        lines.extend(own.map(|line| GridLine {
            load: match loads.len() {
                1 => String::new(),
                _ => load.name.clone(),
            },
            ..line
        }));
    }
    if loads.len() > 1 {
        let order: Vec<String> = lines.iter().map(|line| line.metric.clone()).collect();
        lines.sort_by_key(|line| order.iter().position(|metric| *metric == line.metric));
    }
    lines
}

fn lines(
    study: &PerformanceStudy,
    trials: &[&(Spot, Trial)],
    published: &[&PublishedFigure],
) -> Vec<GridLine> {
    let mut metrics: Vec<(&str, &str, bool)> = Vec::new();
    for (spot, trial) in trials {
        let all = trial.outcome.metrics.iter();
        for metric in all.filter(|metric| spot.load.shows(&metric.metric)) {
            let known = (
                metric.metric.as_str(),
                metric.unit.as_str(),
                metric.lower_is_better,
            );
            if !metrics.contains(&known) {
                metrics.push(known);
            }
        }
    }
    let mut lines = Vec::new();
    for (metric, unit, lower_is_better) in metrics {
        for variant in &study.variants {
            let ours: Vec<Option<Repeats>> = study
                .candidates
                .iter()
                .map(|candidate| repeats(trials, candidate, &variant.name, metric))
                .collect();
            if ours.iter().all(Option::is_none) {
                continue;
            }
            let beside = |candidate: &String| {
                // Of a variant that only some candidates have, only theirs.
                if !variant.only.is_empty() && !variant.only.contains(candidate) {
                    return None;
                }
                let is = |p: &&&PublishedFigure| {
                    p.metric == metric
                        && p.candidate == *candidate
                        && p.variant.as_ref().is_none_or(|v| *v == variant.name)
                };
                let found = published.iter().find(is)?;
                // Of a duration the better grade is the shorter one.
                let turned = found.grade && lower_is_better;
                Some(if turned {
                    1.0 / found.value
                } else {
                    found.value
                })
            };
            let mut published: Vec<Option<f64>> = study.candidates.iter().map(beside).collect();
            if published.iter().all(Option::is_none) {
                published.clear();
            }
            let pairs = ours.iter().zip(&published);
            let pairs: Vec<(f64, f64)> = pairs
                .filter_map(|(ours, theirs)| Some((ours.as_ref()?.median, (*theirs)?)))
                .collect();
            lines.push(GridLine {
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                lower_is_better,
                variant: match study.variants.len() {
                    1 => String::new(),
                    _ => variant.name.clone(),
                },
                load: String::new(),
                ours,
                published,
                tau_b: kendall_tau_b(&pairs),
            });
        }
    }
    lines
}

fn repeats(
    trials: &[&(Spot, Trial)],
    candidate: &str,
    variant: &str,
    metric: &str,
) -> Option<Repeats> {
    let of = || {
        let of = |(spot, _): &&&(Spot, Trial)| {
            spot.candidate == candidate && spot.variant.name == variant
        };
        trials.iter().filter(of)
    };
    let values = of().flat_map(|(spot, trial)| {
        let metrics = trial.outcome.metrics.iter();
        metrics
            .filter(|found| found.metric == metric)
            .map(|found| (spot.seed, found.value))
    });
    let mut repeats = Repeats::of(values.collect())?;
    let doubted = of().flat_map(|(_, trial)| doubts(trial));
    repeats.doubt = doubted
        .filter(|doubt| doubt.is_of(metric))
        .map(|doubt| doubt.times)
        .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
    Some(repeats)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn cpu_time_of_phases_has_lines_where_the_study_asks_for_them() {
        let load = |cpu| StudyWorkload {
            name: "tree".into(),
            workload: "rootfs".into(),
            parameters: BTreeMap::new(),
            quick: BTreeMap::new(),
            only_variants: Vec::new(),
            partition_bytes: None,
            table: String::new(),
            at: String::new(),
            cpu,
            on_devices: false,
        };
        let shown = |cpu| {
            let all = ["tree_write", "cpu", "cpu_per_mib", "tree_write_cpu"];
            all.into_iter()
                .filter(move |m| load(cpu).shows(m))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(false), ["tree_write", "cpu", "cpu_per_mib"]);
        assert_eq!(shown(true).len(), 4);
    }

    #[test]
    fn a_median_of_repeats_and_how_far_they_spread() {
        let repeats = |values: &[f64]| {
            let with_seed = values.iter().enumerate();
            Repeats::of(with_seed.map(|(at, &value)| (at as u64, value)).collect())
        };
        assert_eq!(repeats(&[]), None);
        assert_eq!(repeats(&[3.0]).unwrap().spread(), None);
        let three = repeats(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.median, three.spread()), (2.0, Some(0.5)));
        assert_eq!(repeats(&[4.0, 1.0]).unwrap().median, 2.5);
    }

    #[test]
    fn the_workloads_of_a_table_are_ranked_for_each_candidate() {
        let line = |load: &str, ours: f64, theirs: Option<f64>| GridLine {
            metric: "appstart".into(),
            unit: "s".into(),
            lower_is_better: true,
            variant: String::new(),
            load: load.into(),
            ours: vec![Repeats::of(vec![(1, ours)]), None],
            published: theirs.map_or(Vec::new(), |theirs| vec![Some(theirs), None]),
            tau_b: None,
        };
        let names = ["vfat".to_owned(), "ext4".to_owned()];
        let lines = [
            line("a", 1.0, Some(10.0)),
            line("b", 2.0, Some(30.0)),
            line("c", 3.0, Some(20.0)),
            line("d", 9.0, None),
        ];
        let found = orders(&lines, &names);
        assert_eq!(found.len(), 1, "ext4 has no figures");
        assert_eq!((found[0].candidate.as_str(), found[0].forms), ("vfat", 3));
        // Two pairs of three are in the same order.
        assert!((found[0].tau_b - 1.0 / 3.0).abs() < 1e-12);
        assert!(orders(&lines[..1], &names).is_empty());
    }

    #[test]
    fn the_best_is_the_lowest_of_durations_and_the_highest_of_rates() {
        let line = |lower_is_better| GridLine {
            metric: "m".into(),
            unit: "s".into(),
            lower_is_better,
            variant: String::new(),
            load: String::new(),
            ours: [Some(2.0), None, Some(1.0), Some(3.0)]
                .map(|value| Repeats::of(vec![(1, value?)]))
                .to_vec(),
            published: Vec::new(),
            tau_b: None,
        };
        assert_eq!(line(true).best(), Some(2));
        assert_eq!(line(false).best(), Some(3));
    }
}
