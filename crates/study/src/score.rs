//! How true the figures of a study are: its tables beside the published ones.
//!
//! Every measure compares filesystems on one line (a metric of a workload on a card), so that what
//! the lab does not know (the real board, the unit of the card) cancels where it acts on all alike.

mod advice;
#[cfg(test)]
mod tests;

use crate::grid::{Grid, GridLine};
use crate::study::PerformanceStudy;
use serde::Serialize;
use whichfs_decide::kendall_tau_b;

/// The filesystem that "always take the same" takes.
const USUAL: &str = "ext4";

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

    /// The filesystem that a verdict by this figure alone advises.
    fn advised(&self) -> &Side<'a> {
        let ours = self.sides.iter().map(|side| (side.name, side.seeds));
        let advised = advice::of_line(self.line, &ours.collect::<Vec<_>>());
        let named = |name: String| self.sides.iter().find(|side| side.name == name);
        advised.and_then(named).unwrap_or_else(|| self.chosen())
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
