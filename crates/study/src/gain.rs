//! What one thing gains over another, with the interval that repeats leave: what misalignment
//! costs, what tuning gives, from how many files on a filesystem falls behind.
//!
//! Both sides are paired by seed, because a seed is a card and a workload of its own. The
//! logarithms of the ratios are taken as a normal sample, so the interval is Student's, at 95 %.

use crate::study::{Base, Compare, PerformanceStudy, Spot};
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_trial::{Metric, Status, Trial};

/// Changes below this are called none, however sure.
const WORTH_TELLING: f64 = 0.01;

/// How many times as good one thing is as another in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Gain {
    /// Card's name in the study.
    pub card: String,
    /// Board's name in the study.
    pub board: String,
    /// Workload, as the study calls it.
    pub load: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Variant; empty if the study has one only.
    pub variant: String,
    /// Name as trials report it.
    pub metric: String,
    /// The ratio: above 1 is better, whichever way the metric counts.
    pub ratio: f64,
    /// Where the ratio lies with a probability of 95 %; `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// Seeds that both sides have.
    pub seeds: usize,
    /// What that says.
    pub effect: Effect,
}

/// What a gain says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Better by 1 % or more, with the whole interval above 1.
    Gain,
    /// Worse by 1 % or more, with the whole interval below 1.
    Loss,
    /// The interval holds 1, or the change is below 1 %.
    None,
    /// One seed tells no interval.
    Unknown,
}

/// From where on in a series of workloads one candidate stays behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FallingBehind {
    /// Card's name in the study.
    pub card: String,
    /// Board's name in the study.
    pub board: String,
    /// The candidate that is compared with the base.
    pub candidate: String,
    /// Name of the variant; empty if the study has one only.
    pub variant: String,
    /// Name as trials report it.
    pub metric: String,
    /// The first workload from which on it is behind in all; `None` if it is not in the last.
    pub behind_from: Option<String>,
    /// The first workload from which on it is ahead in all.
    pub ahead_from: Option<String>,
}

/// All gains that `study` asks for, from its finished trials; in the order of the matrix.
pub fn gains(study: &PerformanceStudy, trials: &[(Spot, Trial)]) -> Vec<Gain> {
    let Some(compare) = &study.compare else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let all = study.spots();
    for spot in all.iter().filter(|spot| spot.seed == 1) {
        let Some(base) = base_of(spot, &all, compare) else {
            continue;
        };
        let [own, other] = [spot, base].map(|spot| by_metric(spot, trials));
        for (name, values) in &own {
            let every = compare.metrics.is_empty() && spot.load.shows(name);
            let counts = every || compare.metrics.contains(name);
            let others = other.iter().find(|(other, _)| other == name);
            if let Some((_, others)) = others.filter(|_| counts) {
                found.extend(gain(study, spot, name, values, others));
            }
        }
    }
    found
}

/// The spot that `spot` is compared with; `None` if there is none or it is that itself.
fn base_of<'a>(spot: &Spot<'a>, all: &'a [Spot<'a>], compare: &Compare) -> Option<&'a Spot<'a>> {
    type Names<'n> = (&'n str, &'n str, &'n str);
    let names = |spot: &Spot<'a>| -> Names<'a> {
        let (load, variant) = (&spot.load.name, &spot.variant.name);
        (load, spot.candidate, variant)
    };
    let own = names(spot);
    let (load, candidate, variant) = own;
    let base: Names<'_> = match &compare.with {
        Base::Variant(name) => (load, candidate, name),
        Base::Candidate(name) => (load, name, variant),
        Base::Workload(name) => (name, candidate, variant),
    };
    if base == own {
        return None;
    }
    all.iter().find(|other| {
        (other.seed, other.card, other.board) == (spot.seed, spot.card, spot.board)
            && names(other) == base
    })
}

/// Figures by seed of each metric, in the order in which the trials report them.
type ByMetric = Vec<(String, BTreeMap<u64, Metric>)>;

/// The figures of all seeds of `spot`.
fn by_metric(spot: &Spot, trials: &[(Spot, Trial)]) -> ByMetric {
    let mut found = ByMetric::new();
    let same = |other: &Spot| {
        Spot {
            seed: spot.seed,
            ..*other
        } == *spot
    };
    let done = |trial: &Trial| trial.outcome.status == Status::Done;
    for (of, trial) in trials.iter().filter(|(of, trial)| same(of) && done(trial)) {
        let judged = |metric: &&Metric| !whichfs_trial::is_share(&metric.metric);
        for metric in trial.outcome.metrics.iter().filter(judged) {
            let at = found.iter().position(|(name, _)| *name == metric.metric);
            let at = at.unwrap_or_else(|| {
                found.push((metric.metric.clone(), BTreeMap::new()));
                found.len() - 1
            });
            found[at].1.insert(of.seed, metric.clone());
        }
    }
    found
}

fn gain(
    study: &PerformanceStudy,
    spot: &Spot,
    metric: &str,
    values: &BTreeMap<u64, Metric>,
    others: &BTreeMap<u64, Metric>,
) -> Option<Gain> {
    let paired = values.iter().filter_map(|(seed, own)| {
        let other = others.get(seed)?;
        let ratio = match own.lower_is_better {
            true => other.value / own.value,
            false => own.value / other.value,
        };
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
    });
    let logs: Vec<f64> = paired.collect();
    let (mean, half) = mean_and_half(&logs)?;
    let interval = half.map(|half| ((mean - half).exp(), (mean + half).exp()));
    Some(Gain {
        card: spot.card.to_owned(),
        board: spot.board.to_owned(),
        load: spot.load.name.clone(),
        candidate: spot.candidate.to_owned(),
        variant: match study.variants.len() {
            1 => String::new(),
            _ => spot.variant.name.clone(),
        },
        metric: metric.to_owned(),
        ratio: mean.exp(),
        interval,
        seeds: logs.len(),
        effect: effect(mean.exp(), interval),
    })
}

fn effect(ratio: f64, interval: Option<(f64, f64)>) -> Effect {
    match interval {
        // Exactly alike is alike with one seed too.
        None if ratio == 1.0 => Effect::None,
        None => Effect::Unknown,
        Some((low, high)) if low <= 1.0 && 1.0 <= high => Effect::None,
        Some(_) if (ratio - 1.0).abs() < WORTH_TELLING => Effect::None,
        Some(_) if ratio > 1.0 => Effect::Gain,
        Some(_) => Effect::Loss,
    }
}

/// Mean of a sample, and half its interval of 95 % by Student's t; `None` without a sample, no
/// half with one value.
fn mean_and_half(sample: &[f64]) -> Option<(f64, Option<f64>)> {
    if sample.is_empty() {
        return None;
    }
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    if sample.len() == 1 {
        return Some((mean, None));
    }
    let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some((mean, Some(error * t_quantile(sample.len() - 1))))
}

/// The 97.5 % quantile of Student's t with so many degrees of freedom, at least one
/// (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
fn t_quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
}

/// The turning points of a series, from the `gains` of its workloads.
pub fn turns(study: &PerformanceStudy, gains: &[Gain]) -> Vec<FallingBehind> {
    if !study.compare.as_ref().is_some_and(|compare| compare.series) {
        return Vec::new();
    }
    let mut lines: Vec<Vec<&Gain>> = Vec::new();
    for gain in gains {
        match lines.iter_mut().find(|line| same_line(line[0], gain)) {
            Some(line) => line.push(gain),
            None => lines.push(vec![gain]),
        }
    }
    lines.iter().map(|line| turn(line)).collect()
}

/// Whether two gains differ in the workload only.
fn same_line(one: &Gain, other: &Gain) -> bool {
    let key = |gain: &Gain| {
        let place = (gain.card.clone(), gain.board.clone());
        (
            place,
            gain.candidate.clone(),
            gain.variant.clone(),
            gain.metric.clone(),
        )
    };
    key(one) == key(other)
}

fn turn(line: &[&Gain]) -> FallingBehind {
    let from = |effect: Effect| {
        let tail = line.iter().rev().take_while(|gain| gain.effect == effect);
        tail.last().map(|gain| gain.load.clone())
    };
    let first = line[0];
    FallingBehind {
        card: first.card.clone(),
        board: first.board.clone(),
        candidate: first.candidate.clone(),
        variant: first.variant.clone(),
        metric: first.metric.clone(),
        behind_from: from(Effect::Loss),
        ahead_from: from(Effect::Gain),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Known;

    #[test]
    fn an_interval_as_by_hand() {
        // 1, 2, 3: mean 2, deviation 1, t of 2 degrees 4.303.
        let (mean, half) = mean_and_half(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(mean, 2.0);
        assert!((half.unwrap() - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(mean_and_half(&[1.5]), Some((1.5, None)));
        assert_eq!(mean_and_half(&[]), None);
        assert_eq!(t_quantile(1000), 2.042, "never narrower than it is");
    }

    #[test]
    fn none_is_what_the_repeats_cannot_tell_from_nothing() {
        assert_eq!(effect(1.2, Some((1.1, 1.3))), Effect::Gain);
        assert_eq!(effect(0.8, Some((0.7, 0.9))), Effect::Loss);
        assert_eq!(effect(1.2, Some((0.9, 1.5))), Effect::None);
        assert_eq!(effect(1.005, Some((1.004, 1.006))), Effect::None);
        assert_eq!(effect(1.2, None), Effect::Unknown);
        assert_eq!(effect(1.0, None), Effect::None);
    }

    #[test]
    fn a_workload_is_compared_with_another_of_the_same_candidate() {
        let known = Known {
            candidates: &["ext4", "vfat"],
            filesystems: &[],
            faults: &[],
            card: &|_| Ok(()),
            board: &|_| Ok(()),
            workload: &|_, _| Ok(()),
            metric: &|_, _| Ok(()),
        };
        let text = "name = \"x\"\nkind = \"performance\"\ntitle = \"t\"\nsource = \"s\"\n\
                    method = \"m\"\ncards = [\"a\"]\nboards = [\"b\"]\nseeds = 2\n\
                    candidates = [\"ext4\", \"vfat\"]\n\
                    compare = { workload = \"1 job\" }\n\
                    [[workloads]]\nname = \"1 job\"\nworkload = \"w\"\n\
                    [[workloads]]\nname = \"deep\"\nworkload = \"w\"\n\
                    [[workloads]]\nname = \"2 jobs\"\nworkload = \"w\"\non_devices = true\n";
        let study = PerformanceStudy::parse("x.toml", text, &known).unwrap();
        let bases = |study: &PerformanceStudy| -> Vec<String> {
            let spots = study.spots();
            let compare = study.compare.as_ref().unwrap();
            let of = |spot: &Spot<'_>| {
                let base = base_of(spot, &spots, compare)?;
                assert_eq!((base.seed, base.load.name.as_str()), (spot.seed, "1 job"));
                Some(format!(
                    "{} {}/{}",
                    spot.load.name, spot.candidate, base.candidate
                ))
            };
            spots
                .iter()
                .filter(|spot| spot.seed == 2)
                .filter_map(of)
                .collect()
        };
        assert_eq!(
            bases(&study),
            ["deep ext4/ext4", "deep vfat/vfat"],
            "one CPU in the lab"
        );
        let on_device = PerformanceStudy {
            clock: whichfs_trial::REAL.to_owned(),
            ..study
        };
        assert_eq!(bases(&on_device).len(), 4);
    }

    fn gain_of(load: &str, effect: Effect) -> Gain {
        Gain {
            card: "c".into(),
            board: "b".into(),
            load: load.into(),
            candidate: "vfat".into(),
            variant: String::new(),
            metric: "m".into(),
            ratio: 1.0,
            interval: None,
            seeds: 1,
            effect,
        }
    }

    #[test]
    fn it_is_behind_from_where_it_stays_behind() {
        use Effect::{Gain as G, Loss as L, None as N};
        let of = |effects: &[Effect]| {
            let gains: Vec<Gain> = effects
                .iter()
                .enumerate()
                .map(|(at, effect)| gain_of(&at.to_string(), *effect))
                .collect();
            let turn = turn(&gains.iter().collect::<Vec<_>>());
            (turn.behind_from, turn.ahead_from)
        };
        assert_eq!(of(&[N, L, N, L, L]), (Some("3".into()), None));
        assert_eq!(of(&[L, L, N]), (None, None));
        assert_eq!(of(&[G, G]), (None, Some("0".into())));
    }
}
