//! Real trials of pairs of a card and a need: `data/trials.tsv` and `data/trials-small.tsv`, or
//! runs of `setup/verdicts`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use whichfs_decide::plan::{PlannedTrial, first_round, next_round};
use whichfs_decide::{Enough, Evidence, ModelError, Need, Sample, Verdict, judge};

/// Seeds of each pair, and those that `choose` takes at most.
pub const SEEDS: usize = 6;
pub const MOST: u64 = 6;

/// What the lines of `data/trials-small.tsv` are.
const HEAD: &str = "\
# Trials of setup/verdicts. A pair: card, need, uncertainty of the card, fit error, bytes of the
# partition (where the need counts by it). Below it for each candidate and metric: unit, which is
# better, and the figures of six seeds. Here with the smaller workloads of setup/verdicts since
# 2026-11-23; trials.tsv has the others.
";

/// A line: figures of one candidate in one metric, by seed.
pub struct Line {
    pub candidate: String,
    pub metric: String,
    unit: String,
    lower: bool,
    pub values: Vec<f64>,
}

/// A card and a need with all trials.
pub struct Pair {
    pub need: Need,
    pub card: String,
    uncertainty: f64,
    fit_error: Option<f64>,
    partition_bytes: Option<u64>,
    pub lines: Vec<Line>,
    /// Its trials were there when the constants of the verdict were chosen.
    pub seen: bool,
}

const FULL: &str = include_str!("../../data/trials.tsv");
const SMALL: &str = include_str!("../../data/trials-small.tsv");

/// The pairs of the committed files, or those of the runs in the directory `WHICHFS_RUNS`.
pub fn pairs() -> Vec<Pair> {
    match std::env::var_os("WHICHFS_RUNS") {
        Some(dir) => of_runs(Path::new(&dir)),
        None => [FULL, SMALL].into_iter().flat_map(of_text).collect(),
    }
}

/// The pairs of the runs in the directory `dir`, then those of `data/trials-small.tsv` of which
/// it has none.
pub fn with_runs(dir: &Path) -> Vec<Pair> {
    let mut pairs = of_runs(dir);
    let done: BTreeSet<String> = pairs.iter().map(Pair::name).collect();
    let others = of_text(SMALL).into_iter();
    pairs.extend(others.filter(|pair| !done.contains(&pair.name())));
    pairs
}

/// Pairs of a card and a need in a file of `data`.
pub fn listed(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

fn is_seen(card: &str, need: &str) -> bool {
    listed(include_str!("../../data/seen.txt")).any(|pair| pair == (card, need))
}

fn of_text(text: &str) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells[..] {
            ["pair", card, need, uncertainty, fit_error, partition] => pairs.push(Pair {
                need: Need::named(need).unwrap(),
                card: card.to_owned(),
                uncertainty: uncertainty.parse().unwrap(),
                fit_error: fit_error.parse().ok(),
                partition_bytes: partition.parse().ok(),
                lines: Vec::new(),
                seen: is_seen(card, need),
            }),
            [candidate, metric, unit, better, values] => {
                pairs.last_mut().unwrap().lines.push(Line {
                    candidate: candidate.to_owned(),
                    metric: metric.to_owned(),
                    unit: unit.to_owned(),
                    lower: better == "lower",
                    values: values.split(' ').map(|v| v.parse().unwrap()).collect(),
                });
            }
            _ => panic!("{line}"),
        }
    }
    pairs
}

/// The pairs as `data/trials-small.tsv` has them; six digits of each figure.
pub fn text_of(pairs: &[Pair]) -> String {
    let mut text = HEAD.to_owned();
    for pair in pairs {
        let fit = pair.fit_error.map_or(String::new(), |e| e.to_string());
        let bytes = pair.partition_bytes;
        let bytes = bytes.map_or(String::new(), |bytes| bytes.to_string());
        let (card, need, doubt) = (&pair.card, &pair.need.name, pair.uncertainty);
        writeln!(text, "pair\t{card}\t{need}\t{doubt}\t{fit}\t{bytes}").unwrap();
        for line in &pair.lines {
            let six = |value: &f64| format!("{value:.5e}").parse::<f64>().unwrap().to_string();
            let values: Vec<String> = line.values.iter().map(six).collect();
            let better = if line.lower { "lower" } else { "higher" };
            let (candidate, metric, unit) = (&line.candidate, &line.metric, &line.unit);
            let values = values.join(" ");
            writeln!(text, "{candidate}\t{metric}\t{unit}\t{better}\t{values}").unwrap();
        }
    }
    text
}

/// The pairs of which all six verdicts are in `dir`, as `CARD.NEED.SEED.json`.
fn of_runs(dir: &Path) -> Vec<Pair> {
    let pair = |(card, need): (&str, &str)| {
        let read = (1..=SEEDS).map(|seed| {
            let text = std::fs::read_to_string(dir.join(format!("{card}.{need}.{seed}.json")));
            serde_json::from_str(&text.ok()?).ok()
        });
        let verdicts = read.collect::<Option<Vec<Value>>>()?;
        Some(of_verdicts(card, need, &verdicts))
    };
    listed(include_str!("../../data/pairs.txt"))
        .filter_map(pair)
        .collect()
}

/// A pair of one verdict for each seed. What a candidate gives with some seeds only is left out.
fn of_verdicts(card: &str, need: &str, verdicts: &[Value]) -> Pair {
    let need = Need::named(need).unwrap();
    let value = |seed: &Value, candidate: &str, metric: &str| {
        let mut ranking = seed["ranking"].as_array()?.iter();
        let own = ranking.find(|one| one["candidate"] == candidate)?;
        own["figures"][metric]["samples"][0]["value"].as_f64()
    };
    let first = &verdicts[0];
    let metrics = first["metrics"].as_array().unwrap();
    let mut lines = Vec::new();
    for one in first["ranking"].as_array().unwrap() {
        let candidate = one["candidate"].as_str().unwrap();
        for metric in metrics {
            let name = metric["metric"].as_str().unwrap();
            let values = verdicts.iter().map(|seed| value(seed, candidate, name));
            let values: Option<Vec<f64>> = values.collect();
            if let Some(values) = values.filter(|_| need.weights.contains_key(name)) {
                lines.push(Line {
                    candidate: candidate.to_owned(),
                    metric: name.to_owned(),
                    unit: metric["unit"].as_str().unwrap().to_owned(),
                    lower: metric["lower_is_better"] == true,
                    values,
                });
            }
        }
    }
    let partition = metrics.iter().find_map(|metric| {
        let (enough, _) = need
            .weights
            .get(metric["metric"].as_str()?)?
            .enough
            .as_ref()?;
        match enough {
            Enough::OfPartition(share) => Some((metric["enough"].as_f64()? / share) as u64),
            Enough::Value(_) => None,
        }
    });
    Pair {
        seen: is_seen(card, &need.name),
        need,
        card: card.to_owned(),
        uncertainty: first["card_uncertainty"].as_f64().unwrap(),
        fit_error: first["fit_error"]["median"].as_f64(),
        partition_bytes: partition,
        lines,
    }
}

/// Gives the figure of a line, at its place in the pair, for a seed.
pub type Figure<'a> = &'a dyn Fn(&Line, usize, u64) -> f64;

impl Pair {
    pub fn name(&self) -> String {
        format!("{} on {}", self.need.name, self.card)
    }

    pub fn candidates(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.lines.iter().map(|line| &line.candidate).collect();
        names.into_iter().cloned().collect()
    }

    /// The verdict on trials.
    fn verdict(&self, trials: &BTreeSet<(String, u64)>, value: Figure) -> Verdict {
        let mut seeds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (name, seed) in trials {
            seeds.entry(name).or_default().push(*seed);
        }
        let lines = self.lines.iter().enumerate();
        let samples = lines.flat_map(|(at, line)| {
            let own = seeds.get(line.candidate.as_str()).into_iter().flatten();
            own.map(move |seed| Sample {
                candidate: line.candidate.clone(),
                metric: line.metric.clone(),
                seed: *seed,
                value: value(line, at, *seed),
                unit: line.unit.clone(),
                lower_is_better: line.lower,
            })
        });
        let evidence = Evidence {
            card: self.card.clone(),
            samples: samples.collect(),
            card_uncertainty: self.uncertainty,
            // The files have medians: nine of ten are within 2.44 times that if errors are normal.
            fit_error: self.fit_error.map(|median| ModelError {
                median,
                p90: 2.44 * median,
            }),
            partition_bytes: self.partition_bytes,
            ..Evidence::default()
        };
        judge(&self.need, &evidence).unwrap()
    }

    /// The verdict as `choose --seeds MOST` comes to it, and the trials that it took.
    pub fn chosen(&self, most: u64, value: Figure) -> (Verdict, BTreeSet<(String, u64)>) {
        let mut trials = BTreeSet::new();
        let mut round = first_round(&self.candidates(), 0);
        let mut verdict = self.verdict(&trials, value);
        while !round.is_empty() {
            let add = |PlannedTrial { seed, candidate }: PlannedTrial| (candidate, seed);
            trials.extend(round.into_iter().map(add));
            verdict = self.verdict(&trials, value);
            round = next_round(&verdict, 0, most);
        }
        (verdict, trials)
    }

    /// The verdict on all candidates with the seeds `seeds`.
    pub fn on_all(&self, seeds: std::ops::Range<u64>, value: Figure) -> Verdict {
        let names = self.candidates();
        let each = seeds.flat_map(|seed| names.iter().map(move |name| (name.clone(), seed)));
        self.verdict(&each.collect(), value)
    }
}
