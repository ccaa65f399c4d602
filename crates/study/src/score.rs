//! How true the figures of a study are: its tables beside the published ones.
//!
//! Every measure compares filesystems on one line (a metric of a workload on a card), so that what
//! the lab does not know (the real board, the unit of the card) cancels where it acts on all alike.

use crate::grid::{Grid, GridLine};
use crate::study::PerformanceStudy;
use serde::Serialize;
use whichfs_decide::{Evidence, Need, NeedError, Sample, Weight, catalogue, judge, kendall_tau_b};

/// The filesystem that "always take the same" takes.
const USUAL: &str = "ext4";

/// The need whose baseline and tie-breakers an advice on one figure follows: that of any program.
const ADVISED_AS: &str = "command";

/// Share that the stated intervals shall cover.
pub const COVERED: f64 = 0.8;

/// What a study's figures are worth beside the published ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Score {
    /// Lines with at least two filesystems that both sides have.
    pub lines: usize,
    /// Published figures in these lines.
    pub figures: usize,
    /// How many times worse than the published best are the published figures of the filesystem
    /// that the lab ranks first: geometric mean and worst. `None` where the table has grades.
    pub regret: Option<Regret>,
    /// The same of the filesystem that a verdict by this figure alone advises: where the first is
    /// ahead by less than a verdict's noise floor, the tie-breakers of a need choose.
    pub advised: Option<Regret>,
    /// The same of ext4, over the lines that have it.
    pub usual: Option<Regret>,
    /// The same of a filesystem drawn at random.
    pub random: Option<Regret>,
    /// How often the lab's intervals hold the published ratio of two filesystems.
    pub coverage: Option<Coverage>,
    /// Mean of Kendall's tau-b over the lines, ties within the source's noise counted as ties.
    pub tau_b: Option<f64>,
    /// How far durations are off, after one factor over all other durations of the data set.
    pub seconds: Option<Seconds>,
    /// The lines, the one with the greatest regret first.
    pub worst: Vec<LineScore>,
    /// The ratios that [`Score::coverage`] counts.
    pub ratios: Vec<RatioScore>,
}

/// How many times worse than the best a choice is; 1 is the best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Regret {
    /// Geometric mean.
    pub mean: f64,
    /// Greatest of all choices.
    pub worst: f64,
}

/// Intervals of ratios between filesystems, as the lab states them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Coverage {
    /// Published ratios that have an interval beside them.
    pub ratios: usize,
    /// Share of them inside of it.
    pub covered: f64,
    /// Median width of an interval, as its upper end by its lower end.
    pub width: f64,
}

/// The ratio of two filesystems' costs (below 1: the first is better) on one line.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatioScore {
    /// The filesystem whose cost is divided.
    pub candidate: String,
    /// The one whose cost divides it.
    pub by: String,
    /// Published ratio.
    pub published: f64,
    /// Ours: the middle of the seeds.
    pub ours: f64,
    /// Lower end of our 80 % interval for one more card.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Factor of the source's own noise, by which the interval may be missed.
    pub noise: f64,
}

impl RatioScore {
    /// Whether the published ratio is in the interval, but for the source's noise.
    fn is_covered(&self) -> bool {
        (self.low / self.noise..=self.high * self.noise).contains(&self.published)
    }
}

/// Durations, published by ours, after one factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Seconds {
    /// Durations compared.
    pub count: usize,
    /// Median of how many times too long or too short they are.
    pub median: f64,
    /// Greatest of how many times too long or too short they are.
    pub worst: f64,
}

/// One line of a score.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LineScore {
    /// Card's name in the study.
    pub card: String,
    /// Workload, as the study calls it.
    pub load: String,
    /// Name as trials report it.
    pub metric: String,
    /// Variant; empty if the study has one only.
    pub variant: String,
    /// Filesystem that the lab ranks first.
    pub chosen: String,
    /// Filesystem that a verdict by this figure alone advises.
    pub advised: String,
    /// Filesystem with the best published figure.
    pub best: String,
    /// How many times worse the published figure of the first is than that of the second.
    pub regret: f64,
    /// Agreement of the two rankings.
    pub tau_b: Option<f64>,
}

/// The score of the tables `grids` of `study`; `None` if nothing published stands beside them.
pub fn score_of(study: &PerformanceStudy, grids: &[Grid]) -> Option<Score> {
    let tables = study.published.iter();
    let noise = tables.clone().map(|table| table.noise).fold(0.0, f64::max);
    score(grids, noise, tables.clone().any(|table| table.grades))
}

impl Score {
    /// The score in sentences.
    pub fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        let factor = |of: Option<Regret>| of.map(|regret| format!("{:.2} ×", regret.mean));
        if let Some(regret) = self.regret {
            let usual = factor(self.usual).map(|by| format!("; always {USUAL}: {by}"));
            let advised = factor(self.advised).map(|by| format!("; what it advises: {by}"));
            let random = factor(self.random).map(|by| format!("; at random: {by}"));
            told.push(format!(
                "Published regret: what the lab ranks first is {:.2} × from the published best \
                 (worst {:.2} ×){}{}{}.",
                regret.mean,
                regret.worst,
                advised.unwrap_or_default(),
                usual.unwrap_or_default(),
                random.unwrap_or_default()
            ));
        }
        if let Some(coverage) = self.coverage {
            told.push(format!(
                "Coverage: {:.0} % of {} published ratios lie in the lab's {:.0} % interval; its \
                 median width is {:.2} ×.",
                100.0 * coverage.covered,
                coverage.ratios,
                100.0 * COVERED,
                coverage.width
            ));
        }
        if let Some(tau) = self.tau_b {
            told.push(format!(
                "Rank agreement: tau-b {tau:.2} in the mean of {} lines.",
                self.lines
            ));
        }
        if let Some(seconds) = self.seconds {
            told.push(format!(
                "Times: after one factor within {:.2} × (median), worst {:.2} ×.",
                seconds.median, seconds.worst
            ));
        }
        told
    }
}

/// The score of the tables `grids`. Two published figures whose ratio is below 1 + `noise` are a
/// tie of the source. With `graded` the published figures are grades: only their order means
/// something. `None` if nothing can be compared.
fn score(grids: &[Grid], noise: f64, graded: bool) -> Option<Score> {
    let lines: Vec<Compared> = grids
        .iter()
        .flat_map(|grid| grid.lines.iter().filter_map(|line| compared(grid, line)))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let mut worst: Vec<LineScore> = lines.iter().map(|line| line.score(noise)).collect();
    worst.sort_by(|a, b| b.regret.total_cmp(&a.regret));
    let taus: Vec<f64> = worst.iter().filter_map(|line| line.tau_b).collect();
    let regret = |of: &dyn Fn(&Compared) -> Option<f64>| match graded {
        true => None,
        false => Regret::of(lines.iter().filter_map(of).collect()),
    };
    let ratios = match graded {
        true => Vec::new(),
        false => lines.iter().flat_map(|line| line.ratios(noise)).collect(),
    };
    Some(Score {
        lines: lines.len(),
        figures: lines.iter().map(|line| line.sides.len()).sum(),
        regret: regret(&|line| line.regret_of(line.chosen())),
        advised: regret(&|line| line.regret_of(line.advised())),
        usual: regret(&|line| {
            let usual = line.sides.iter().find(|side| side.name == USUAL);
            line.regret_of(usual?)
        }),
        random: regret(&|line| {
            let all = line.sides.iter().filter_map(|side| line.regret_of(side));
            mean(all.map(f64::ln).collect()).map(f64::exp)
        }),
        coverage: Coverage::of(&ratios),
        ratios,
        tau_b: mean(taus),
        seconds: (!graded).then(|| seconds(&lines)).flatten(),
        worst,
    })
}

/// A filesystem of a line.
struct Side<'a> {
    name: &'a str,
    /// Published cost: less is better.
    published: f64,
    /// Geometric mean of ours over the seeds, as in a verdict: slow and fast cards count alike.
    ours: f64,
    /// Ours of each seed.
    seeds: &'a [(u64, f64)],
}

/// A line with what both sides have; figures as costs, so that less is better.
struct Compared<'a> {
    grid: &'a Grid,
    line: &'a GridLine,
    sides: Vec<Side<'a>>,
}

fn compared<'a>(grid: &'a Grid, line: &'a GridLine) -> Option<Compared<'a>> {
    let both = line.ours.iter().zip(&line.published).zip(&grid.candidates);
    let sides: Vec<Side> = both
        .filter_map(|((ours, published), name)| {
            let ours = ours.as_ref()?;
            let (published, values) = ((*published)?, &ours.values);
            let usual = mean(values.iter().map(|(_, value)| value.ln()).collect())?.exp();
            (published > 0.0 && usual > 0.0).then(|| Side {
                name,
                published: cost(line, published),
                ours: cost(line, usual),
                seeds: &ours.values,
            })
        })
        .collect();
    (sides.len() > 1).then_some(Compared { grid, line, sides })
}

/// A figure of `line` as a cost: its inverse where more is better.
fn cost(line: &GridLine, value: f64) -> f64 {
    match line.lower_is_better {
        true => value,
        false => 1.0 / value,
    }
}

impl<'a> Compared<'a> {
    /// The filesystem that the lab ranks first.
    fn chosen(&self) -> &Side<'a> {
        least(&self.sides, |side| side.ours)
    }

    /// The filesystem that a verdict by this figure alone advises: the first, unless others tie
    /// with it and the need's tie-breakers or its baseline are for one of them.
    fn advised(&self) -> &Side<'a> {
        let told = || {
            let verdict = judge(&self.need().ok()?, &self.evidence()).ok()?;
            let name = verdict.advice?.candidate;
            self.sides.iter().find(|side| side.name == name)
        };
        told().unwrap_or_else(|| self.chosen())
    }

    /// A need that counts this figure only.
    fn need(&self) -> Result<Need, NeedError> {
        let weight = Weight {
            weight: 1.0,
            label: self.line.metric.clone(),
            short: String::new(),
            because: String::new(),
            enough: None,
        };
        Ok(Need {
            weights: [(self.line.metric.clone(), weight)].into(),
            requires: vec![self.line.metric.clone()],
            rules: Vec::new(),
            ..Need::named(ADVISED_AS)?
        })
    }

    /// Our figures of this line.
    fn evidence(&self) -> Evidence {
        let sample = |side: &Side, (seed, value): &(u64, f64)| Sample {
            candidate: side.name.to_owned(),
            metric: self.line.metric.clone(),
            seed: *seed,
            value: *value,
            unit: self.line.unit.clone(),
            lower_is_better: self.line.lower_is_better,
        };
        let samples = self
            .sides
            .iter()
            .flat_map(|side| side.seeds.iter().map(move |one| sample(side, one)));
        let names: Vec<String> = self.sides.iter().map(|side| side.name.to_owned()).collect();
        Evidence {
            samples: samples.collect(),
            facts: catalogue::of_those(&names),
            ..Evidence::default()
        }
    }

    fn best(&self) -> &Side<'a> {
        least(&self.sides, |side| side.published)
    }

    fn regret_of(&self, side: &Side) -> Option<f64> {
        Some(side.published / self.best().published)
    }

    fn score(&self, noise: f64) -> LineScore {
        let (chosen, advised, best) = (self.chosen(), self.advised(), self.best());
        LineScore {
            card: self.grid.card.clone(),
            load: match self.line.load.is_empty() {
                true => self.grid.load.clone(),
                false => self.line.load.clone(),
            },
            metric: self.line.metric.clone(),
            variant: self.line.variant.clone(),
            chosen: chosen.name.to_owned(),
            advised: advised.name.to_owned(),
            best: best.name.to_owned(),
            regret: chosen.published / best.published,
            tau_b: self.tau_b(noise),
        }
    }

    /// The ratios of each filesystem to the first, where the lab's seeds give an interval for the
    /// next card: Student's t of paired log ratios.
    fn ratios(&self, noise: f64) -> Vec<RatioScore> {
        let Some((first, others)) = self.sides.split_first() else {
            return Vec::new();
        };
        let ratio = |other: &Side| {
            let (low, high) = interval(self.line, first, other)?;
            Some(RatioScore {
                candidate: other.name.to_owned(),
                by: first.name.to_owned(),
                published: other.published / first.published,
                ours: ((low + high) / 2.0).exp(),
                low: low.exp(),
                high: high.exp(),
                noise: 1.0 + noise,
            })
        };
        others.iter().filter_map(ratio).collect()
    }

    /// Agreement of the rankings; published figures within the noise of the next better one share
    /// its rank.
    fn tau_b(&self, noise: f64) -> Option<f64> {
        let mut order: Vec<&Side> = self.sides.iter().collect();
        order.sort_by(|a, b| a.published.total_cmp(&b.published));
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        let mut first = f64::NEG_INFINITY;
        for side in order {
            if side.published > first * (1.0 + noise) {
                first = side.published;
            }
            pairs.push((side.ours, first));
        }
        kendall_tau_b(&pairs)
    }
}

/// The one of `sides`, which are not empty, whose `figure` is the least.
fn least<'a, 'b>(sides: &'b [Side<'a>], figure: impl Fn(&Side) -> f64) -> &'b Side<'a> {
    let mut least = &sides[0];
    for side in &sides[1..] {
        if figure(side) < figure(least) {
            least = side;
        }
    }
    least
}

impl Regret {
    fn of(ratios: Vec<f64>) -> Option<Regret> {
        let worst = ratios.iter().copied().fold(1.0, f64::max);
        let mean = mean(ratios.into_iter().map(f64::ln).collect())?.exp();
        Some(Regret { mean, worst })
    }
}

impl Coverage {
    fn of(ratios: &[RatioScore]) -> Option<Coverage> {
        let mut widths: Vec<f64> = ratios.iter().map(|one| one.high / one.low).collect();
        let covered = ratios.iter().filter(|one| one.is_covered()).count();
        Some(Coverage {
            ratios: ratios.len(),
            covered: covered as f64 / ratios.len() as f64,
            width: median(&mut widths)?,
        })
    }
}

/// The interval of the log ratio of costs of `other` to `first`; `None` without two seeds of both.
fn interval(line: &GridLine, first: &Side, other: &Side) -> Option<(f64, f64)> {
    let ratios: Vec<f64> = other
        .seeds
        .iter()
        .filter_map(|(seed, value)| {
            let (_, base) = first.seeds.iter().find(|(other, _)| other == seed)?;
            Some((cost(line, *value) / cost(line, *base)).ln())
        })
        .collect();
    let count = ratios.len() as f64;
    let middle = mean(ratios.clone())?;
    if ratios.len() < 2 {
        return None;
    }
    let squares: f64 = ratios.iter().map(|ratio| (ratio - middle).powi(2)).sum();
    // For one more card, not for the mean of these.
    let spread = (squares / (count - 1.0) * (1.0 + 1.0 / count)).sqrt();
    let half = t_quantile_90(ratios.len() - 1) * spread;
    Some((middle - half, middle + half))
}

/// The 90 % quantile of Student's t with so many degrees of freedom, at least one
/// (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2): 80 % lie within it on both sides.
fn t_quantile_90(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [
        3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
}

/// Durations and rates of all lines, each after the factor that the others leave: the geometric
/// mean of published by ours without its own line.
fn seconds(lines: &[Compared]) -> Option<Seconds> {
    let is_time = |unit: &str| matches!(unit, "s" | "ms") || unit.ends_with("/s");
    let offs: Vec<Vec<f64>> = lines
        .iter()
        .filter(|line| is_time(&line.line.unit))
        .map(|line| {
            let sides = line.sides.iter();
            sides
                .map(|side| (side.published / side.ours).ln())
                .collect()
        })
        .collect();
    let (sum, count) = (
        offs.iter().flatten().sum::<f64>(),
        offs.iter().flatten().count(),
    );
    let mut errors = Vec::new();
    for line in &offs {
        let left = count - line.len();
        if left == 0 {
            continue;
        }
        let factor = (sum - line.iter().sum::<f64>()) / left as f64;
        errors.extend(line.iter().map(|off| (off - factor).abs().exp()));
    }
    let worst = errors.iter().copied().fold(1.0, f64::max);
    Some(Seconds {
        count: errors.len(),
        median: median(&mut errors)?,
        worst,
    })
}

fn mean(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median; sorts `values`. `None` of nothing.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let low = values.get((values.len().max(1) - 1) / 2)?;
    Some((low + values.get(values.len() / 2)?) / 2.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::grid::Repeats;

    /// A line of rates: for each filesystem ours of each seed, and what was published.
    fn line(figures: &[(&[f64], Option<f64>)]) -> GridLine {
        let ours = figures.iter().map(|(values, _)| {
            let mut sorted = values.to_vec();
            Some(Repeats {
                median: median(&mut sorted)?,
                values: (1..).zip(values.iter().copied()).collect(),
                doubt: None,
            })
        });
        GridLine {
            metric: "write".into(),
            unit: "MB/s".into(),
            lower_is_better: false,
            variant: String::new(),
            load: String::new(),
            ours: ours.collect(),
            published: figures.iter().map(|(_, published)| *published).collect(),
            tau_b: None,
        }
    }

    fn grid(lines: Vec<GridLine>) -> Grid {
        Grid {
            card: "card".into(),
            board: "board".into(),
            load: "tree".into(),
            candidates: ["ext4", "xfs", "f2fs"].map(str::to_owned).to_vec(),
            lines,
            orders: Vec::new(),
        }
    }

    #[test]
    fn the_best_choice_has_no_regret_and_the_worst_has_all() {
        let right = line(&[
            (&[10.0], Some(5.0)),
            (&[20.0], Some(9.0)),
            (&[5.0], Some(3.0)),
        ]);
        let wrong = line(&[
            (&[10.0], Some(5.0)),
            (&[5.0], Some(20.0)),
            (&[4.0], Some(4.0)),
        ]);
        let found = score(&[grid(vec![right.clone()])], 0.0, false).unwrap();
        let regret = found.regret.unwrap();
        assert_eq!((regret.mean, regret.worst), (1.0, 1.0));
        assert_eq!(found.tau_b, Some(1.0));
        assert!((found.usual.unwrap().mean - 9.0 / 5.0).abs() < 1e-12);
        let random = (9.0 / 5.0 * 1.0 * 3.0_f64).cbrt();
        assert!((found.random.unwrap().mean - random).abs() < 1e-12);

        let both = score(&[grid(vec![right, wrong])], 0.0, false).unwrap();
        assert!((both.regret.unwrap().mean - 2.0).abs() < 1e-12);
        assert_eq!(both.regret.unwrap().worst, 4.0);
        let first = &both.worst[0];
        assert_eq!(
            (first.chosen.as_str(), first.best.as_str()),
            ("ext4", "xfs")
        );
    }

    #[test]
    fn an_advice_takes_what_everybody_uses_where_the_first_is_hardly_ahead() {
        let ahead = |xfs: f64| {
            let figures = [
                (&[10.0][..], Some(9.0)),
                (&[xfs][..], Some(4.5)),
                (&[5.0][..], Some(3.0)),
            ];
            let found = score(&[grid(vec![line(&figures)])], 0.0, false).unwrap();
            let first = found.worst[0].clone();
            (
                first.chosen,
                first.advised,
                found.regret.unwrap().mean,
                found.advised.unwrap().mean,
            )
        };
        let told = |first: &str, advised: &str, regrets: (f64, f64)| {
            (first.to_owned(), advised.to_owned(), regrets.0, regrets.1)
        };
        assert_eq!(ahead(10.9), told("xfs", "ext4", (2.0, 1.0)));
        assert_eq!(ahead(11.1), told("xfs", "xfs", (2.0, 2.0)));
        assert_eq!(ahead(9.0), told("ext4", "ext4", (1.0, 1.0)));
    }

    #[test]
    fn figures_within_the_noise_of_the_source_are_ties() {
        let figures = line(&[
            (&[1.0], Some(100.0)),
            (&[2.0], Some(98.0)),
            (&[3.0], Some(50.0)),
        ]);
        let tau = |noise| {
            score(&[grid(vec![figures.clone()])], noise, false)
                .unwrap()
                .tau_b
        };
        assert_eq!(tau(0.0), Some(-1.0));
        assert!(tau(0.05).unwrap() > -1.0, "two of three pairs count");
    }

    #[test]
    fn intervals_hold_what_the_seeds_say_and_not_more() {
        // xfs is twice as fast as ext4, give or take a tenth.
        let figures = |published| {
            line(&[
                (&[10.0, 10.0, 10.0], Some(1.0)),
                (&[18.0, 20.0, 22.0], Some(published)),
            ])
        };
        let found = |published, noise| {
            let all = score(&[grid(vec![figures(published)])], noise, false);
            all.unwrap().coverage.unwrap()
        };
        assert_eq!(found(2.1, 0.0).covered, 1.0);
        assert_eq!(found(3.0, 0.0).covered, 0.0, "a planted miss is seen");
        assert_eq!(found(3.0, 0.3).covered, 1.0);
        let width = found(2.0, 0.0).width;
        assert!((1.2..2.0).contains(&width), "{width}");
    }

    #[test]
    fn one_factor_over_the_others_is_no_error() {
        let slower = |by: f64| line(&[(&[10.0], Some(10.0 * by)), (&[20.0], Some(20.0 * by))]);
        let alike = score(&[grid(vec![slower(0.5), slower(0.5)])], 0.0, false).unwrap();
        assert!((alike.seconds.unwrap().worst - 1.0).abs() < 1e-12);
        let one_off = score(&[grid(vec![slower(0.5), slower(1.0)])], 0.0, false).unwrap();
        assert!((one_off.seconds.unwrap().median - 2.0).abs() < 1e-12);
    }

    #[test]
    fn grades_have_an_order_and_no_ratio() {
        let grades = line(&[
            (&[10.0], Some(5.0)),
            (&[20.0], Some(6.0)),
            (&[5.0], Some(1.0)),
        ]);
        let found = score(&[grid(vec![grades])], 0.0, true).unwrap();
        assert_eq!(found.tau_b, Some(1.0));
        assert!(found.regret.is_none() && found.seconds.is_none() && found.coverage.is_none());
    }

    #[test]
    fn nothing_published_is_no_score() {
        assert_eq!(score(&[], 0.0, false), None);
        let alone = line(&[(&[10.0], Some(5.0)), (&[20.0], None)]);
        assert_eq!(score(&[grid(vec![alone])], 0.0, false), None);
    }
}
