//! Every sample of every metric, for the page's script: short, because there may be very many.

use crate::number::scale_of;
use crate::page::Page;
use serde::Serialize;
use std::collections::BTreeMap;

/// Characters of a trial's id on the page.
pub(crate) const ID: usize = 12;

/// What the script of the page reads.
#[derive(Serialize)]
struct Data<'a> {
    /// Candidates in the order of the ranking, then those excluded with figures.
    candidates: Vec<Candidate<'a>>,
    metrics: Vec<Metric<'a>>,
    /// Power cuts by candidate: number of the series, the command that shows the first of them, and
    /// that of `repeat` with them.
    cuts: BTreeMap<&'a str, [String; 3]>,
    /// The command that repeats one trial; in its last options CANDIDATE and SEED stand for what
    /// they say.
    repeat: &'a str,
    /// The command that shows one trial; TRIAL stands for its id.
    show: &'a str,
}

#[derive(Serialize)]
struct Candidate<'a> {
    name: &'a str,
    /// Seeds of its trials, and the beginnings of their ids in one text.
    seeds: Vec<u64>,
    ids: String,
}

#[derive(Serialize)]
struct Metric<'a> {
    name: &'a str,
    unit: String,
    /// For each candidate the values by its seeds; none where a trial gave none.
    values: Vec<Vec<Option<f64>>>,
}

/// The data as JSON.
pub(crate) fn json(page: &Page) -> String {
    let verdict = &page.verdict;
    let ranked = verdict
        .ranking
        .iter()
        .map(|one| (&one.candidate, &one.figures));
    let excluded = verdict
        .excluded
        .iter()
        .map(|one| (&one.candidate, &one.figures));
    let known: Vec<_> = ranked
        .chain(excluded.filter(|(_, figures)| !figures.is_empty()))
        .collect();
    let mut ids: BTreeMap<(&str, u64), &str> = BTreeMap::new();
    for trial in &page.trials_of {
        let id = trial.id.get(..ID).unwrap_or(&trial.id);
        ids.insert((&trial.candidate, trial.seed), id);
    }
    let seeds_of = |figures: &BTreeMap<String, whichfs_decide::CandidateFigure>| -> Vec<u64> {
        let points = figures.values().flat_map(|figure| &figure.samples);
        let mut seeds: Vec<u64> = points.map(|point| point.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    };
    let candidates: Vec<Candidate> = known
        .iter()
        .map(|(name, figures)| {
            let seeds = seeds_of(figures);
            let own = seeds.iter().map(|seed| ids.get(&(name.as_str(), *seed)));
            let own: Vec<&str> = own.map(|id| id.copied().unwrap_or("-")).collect();
            Candidate {
                name,
                ids: own.join(" "),
                seeds,
            }
        })
        .collect();
    let metrics = verdict.metrics.iter().map(|metric| {
        let scale = scale_of(verdict, &metric.metric, &metric.unit);
        let row = |at: usize| {
            let figure = known[at].1.get(&metric.metric);
            let value = |seed: &u64| {
                let mut samples = figure?.samples.iter();
                let point = samples.find(|point| point.seed == *seed)?;
                Some(digits(point.value / scale.divisor))
            };
            candidates[at].seeds.iter().map(value).collect()
        };
        Metric {
            name: &metric.metric,
            unit: scale.unit.clone(),
            values: (0..known.len()).map(row).collect(),
        }
    });
    let metrics = metrics.collect();
    let data = Data {
        candidates,
        metrics,
        cuts: page
            .cuts
            .iter()
            .map(|own| {
                let said = [own.id.clone(), own.show(), own.repeat(&page.repeat)];
                (own.candidate.as_str(), said)
            })
            .collect(),
        repeat: &page.repeat,
        show: &page.show,
    };
    serde_json::to_string(&data).unwrap_or_else(|error| unreachable!("plain data: {error}"))
}

/// `value` with four significant digits.
fn digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
