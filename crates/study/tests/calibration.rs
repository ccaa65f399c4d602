//! Whether verdicts that claim to be sure are right, and whether stopping early costs anything.
//!
//! `data/trials.csv` holds real trials of the lab: every candidate of the first pairs of
//! `data/pairs.txt`, each with six seeds. A seed draws the names, sizes and order of the workload,
//! and the card's own parameters within what its profile is sure of: another seed is another,
//! perturbed card. A verdict is made as `whichfs choose` makes it, of some of the seeds; it is
//! right if the candidate that it names is the best on a seed that it has not seen, alone.
//!
//! Most pairs have a clear winner. So that sure verdicts are also tried where the contest is
//! close, worlds are made of these trials: the distances between candidates shrunk, and each
//! trial moved by what a real trial of that pair was off its candidate's mean, in all metrics and
//! candidates of one seed alike, so that what belongs together in reality stays together.
//!
//! `setup/verdicts` runs such trials anew, as many as wanted, and these tests on them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use whichfs_study::plan::{Planned, first_round, next_round};
use whichfs_study::{Evidence, Need, Sample, Verdict, judge};
use whichfs_units::Rng;

/// Seeds of each pair, and those that `choose` takes at most.
const SEEDS: usize = 6;
const MOST: u64 = 3;

/// A verdict that claims this much is sure.
const SURE: f64 = 0.9;

/// A line: figures of one candidate in one metric, by seed.
struct Line {
    candidate: String,
    metric: String,
    unit: String,
    lower: bool,
    values: Vec<f64>,
}

/// A card and a need with all trials.
struct Pair {
    need: Need,
    card: String,
    uncertainty: f64,
    fit_error: Option<f64>,
    lines: Vec<Line>,
}

/// Names of the first columns of `data/trials.csv`; six values follow.
const HEAD: &str = "need,card,card_uncertainty,fit_error,candidate,metric,unit,lower_is_better";

/// The pairs of the committed file, or those of the runs in the directory `WHICHFS_RUNS`.
fn pairs() -> Vec<Pair> {
    if let Some(dir) = std::env::var_os("WHICHFS_RUNS") {
        return of_runs(Path::new(&dir));
    }
    let text = include_str!("../data/trials.csv");
    let mut pairs: Vec<Pair> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (need, card) = (cells[0], cells[1]);
        if pairs
            .last()
            .is_none_or(|last| last.need.name != need || last.card != card)
        {
            pairs.push(Pair {
                need: Need::named(need).unwrap(),
                card: card.to_owned(),
                uncertainty: cells[2].parse().unwrap(),
                fit_error: cells[3].parse().ok(),
                lines: Vec::new(),
            });
        }
        pairs.last_mut().unwrap().lines.push(Line {
            candidate: cells[4].to_owned(),
            metric: cells[5].to_owned(),
            unit: cells[6].to_owned(),
            lower: cells[7] == "true",
            values: cells[8..]
                .iter()
                .map(|cell| cell.parse().unwrap())
                .collect(),
        });
    }
    pairs
}

/// The pairs of which all six verdicts are in `dir`, as `CARD.NEED.SEED.json`.
fn of_runs(dir: &Path) -> Vec<Pair> {
    let listed = include_str!("../data/pairs.txt").lines();
    let listed = listed.filter_map(|line| line.split_once(' ').filter(|_| !line.starts_with('#')));
    let pair = |(card, need): (&str, &str)| {
        let seeds = 1..=SEEDS;
        let read = seeds.map(|seed| {
            let text = std::fs::read_to_string(dir.join(format!("{card}.{need}.{seed}.json")));
            serde_json::from_str(&text.ok()?).ok()
        });
        Some(of_verdicts(
            card,
            need,
            &read.collect::<Option<Vec<Value>>>()?,
        ))
    };
    listed.filter_map(pair).collect()
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
    let mut lines = Vec::new();
    for one in first["ranking"].as_array().unwrap() {
        let candidate = one["candidate"].as_str().unwrap();
        for metric in first["metrics"].as_array().unwrap() {
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
    Pair {
        need,
        card: card.to_owned(),
        uncertainty: first["card_uncertainty"].as_f64().unwrap(),
        fit_error: first["fit_error"].as_f64(),
        lines,
    }
}

#[test]
#[ignore = "writes the runs of WHICHFS_RUNS to the file WHICHFS_TRIALS, as data/trials.csv is"]
fn write_the_trials() {
    let mut text = format!("{HEAD},1,2,3,4,5,6\n");
    for pair in pairs() {
        for line in &pair.lines {
            let fit = pair
                .fit_error
                .map_or(String::new(), |error| error.to_string());
            let (need, card, doubt) = (&pair.need.name, &pair.card, pair.uncertainty);
            let (candidate, metric, unit) = (&line.candidate, &line.metric, &line.unit);
            let lower = line.lower;
            text += &format!("{need},{card},{doubt},{fit},{candidate},{metric},{unit},{lower}");
            for value in &line.values {
                text += &format!(",{}", format!("{value:.5e}").parse::<f64>().unwrap());
            }
            text.push('\n');
        }
    }
    std::fs::write(std::env::var_os("WHICHFS_TRIALS").unwrap(), text).unwrap();
}

impl Pair {
    fn candidates(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.lines.iter().map(|line| &line.candidate).collect();
        names.into_iter().cloned().collect()
    }

    /// The verdict on trials, each with the value that `value` gives a line for a seed.
    fn verdict(
        &self,
        trials: &BTreeSet<(String, u64)>,
        value: &dyn Fn(&Line, usize, u64) -> f64,
    ) -> Verdict {
        let lines = self.lines.iter().enumerate();
        let samples = lines.flat_map(|(at, line)| {
            let own = trials.iter().filter(|(name, _)| *name == line.candidate);
            own.map(move |(_, seed)| Sample {
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
            fit_error: self.fit_error,
            ..Evidence::default()
        };
        judge(&self.need, &evidence).unwrap()
    }

    /// The verdict as `choose` comes to it, and the trials that it took.
    fn chosen(&self, value: &dyn Fn(&Line, usize, u64) -> f64) -> (Verdict, usize) {
        let mut trials = BTreeSet::new();
        let mut round = first_round(&self.candidates(), 0);
        let mut verdict = self.verdict(&trials, value);
        while !round.is_empty() {
            let add = |Planned { seed, candidate }: Planned| (candidate, seed);
            trials.extend(round.into_iter().map(add));
            verdict = self.verdict(&trials, value);
            round = next_round(&verdict, 0, MOST);
        }
        (verdict, trials.len())
    }

    /// The verdict on all candidates with the seeds `seeds`.
    fn on_all(
        &self,
        seeds: std::ops::Range<u64>,
        value: &dyn Fn(&Line, usize, u64) -> f64,
    ) -> Verdict {
        let names = self.candidates();
        let each = seeds.flat_map(|seed| names.iter().map(move |name| (name.clone(), seed)));
        self.verdict(&each.collect(), value)
    }
}

fn winner(verdict: &Verdict) -> (&str, f64) {
    let first = &verdict.ranking[0];
    (&first.candidate, first.p_best)
}

/// Verdicts that were sure, and how many of them were right.
#[derive(Default)]
struct Claims {
    sure: u32,
    right: u32,
}

impl Claims {
    fn hear(&mut self, right: bool) {
        self.sure += 1;
        self.right += u32::from(right);
    }

    fn share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.sure.max(1))
    }
}

#[test]
fn sure_verdicts_hold_on_unseen_seeds_of_real_trials() {
    let (mut claims, mut made) = (Claims::default(), 0);
    for pair in &pairs() {
        for turn in 0..SEEDS as u64 {
            let value =
                |line: &Line, _: usize, seed: u64| line.values[(seed + turn) as usize % SEEDS];
            let (verdict, _) = pair.chosen(&value);
            made += 1;
            let (name, p_best) = winner(&verdict);
            if p_best < SURE {
                continue;
            }
            for unseen in MOST..SEEDS as u64 {
                let truth = pair.on_all(unseen..unseen + 1, &value);
                let best = winner(&truth).0;
                claims.hear(best == name);
                if best != name {
                    let (need, card) = (&pair.need.name, &pair.card);
                    println!("  wrong: {need} on {card}: {name} at {p_best}, {best} on a new seed");
                }
            }
        }
    }
    let (sure, share) = (claims.sure, claims.share() * 100.0);
    println!(
        "real trials: {made} verdicts; of {sure} sure ones on unseen seeds {share:.1} % right"
    );
    assert!(claims.sure >= 100, "{sure}");
    assert!(claims.share() >= SURE, "{share:.1} % of {sure}");
}

/// A world near to a real pair: levels of its lines, and what each seed moves them by.
struct World<'a> {
    pair: &'a Pair,
    level: Vec<f64>,
    /// For each line what each of its trials is off its mean, in logarithms.
    off: Vec<Vec<f64>>,
    /// Which real seed stands behind a seed of this world.
    behind: Vec<usize>,
}

impl<'a> World<'a> {
    fn draw(pair: &'a Pair, rng: &mut Rng) -> World<'a> {
        let logs = |line: &Line| {
            line.values
                .iter()
                .map(|value| value.ln())
                .collect::<Vec<_>>()
        };
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let level: Vec<f64> = pair.lines.iter().map(|line| mean(&logs(line))).collect();
        // The means of six trials scatter less than trials do; this makes up for it.
        let lost = (SEEDS as f64 / (SEEDS as f64 - 1.0)).sqrt();
        let off = pair
            .lines
            .iter()
            .zip(&level)
            .map(|(line, level)| logs(line).iter().map(|log| (log - level) * lost).collect());
        let off = off.collect();
        // From as far apart as they are down to a tenth of it.
        let near = 0.1_f64.powf(rng.unit_f64());
        let mut middle: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (line, level) in pair.lines.iter().zip(&level) {
            middle.entry(&line.metric).or_default().push(*level);
        }
        let shrunk = pair.lines.iter().zip(&level).map(|(line, level)| {
            let middle = mean(&middle[line.metric.as_str()]);
            middle + (level - middle) * near
        });
        World {
            level: shrunk.collect(),
            pair,
            off,
            behind: (0..64).map(|_| rng.below(SEEDS as u64) as usize).collect(),
        }
    }

    fn value(&self, at: usize, seed: u64) -> f64 {
        (self.level[at] + self.off[at][self.behind[seed as usize]]).exp()
    }
}

#[test]
fn sure_verdicts_hold_where_the_contest_is_close() {
    let pairs = pairs();
    let mut rng = Rng::named(7, "worlds");
    let (mut claims, mut made) = (Claims::default(), 0);
    while claims.sure < 200 {
        let pair = &pairs[rng.below(pairs.len() as u64) as usize];
        let world = World::draw(pair, &mut rng);
        let value = |_: &Line, at: usize, seed: u64| world.value(at, seed);
        let (verdict, _) = world.pair.chosen(&value);
        made += 1;
        let (name, p_best) = winner(&verdict);
        if p_best >= SURE {
            let truth = pair.on_all(MOST..MOST + 1, &value);
            claims.hear(winner(&truth).0 == name);
        }
    }
    let share = claims.share() * 100.0;
    println!(
        "close contests: {made} verdicts; of {} sure ones {share:.1} % right",
        claims.sure
    );
    assert!(claims.share() >= SURE, "{share:.1} %");
}

#[test]
fn stopping_early_finds_the_winner_of_all_trials_with_a_third_of_them() {
    let (mut right, mut all, mut spent, mut full) = (0, 0, 0, 0);
    for pair in &pairs() {
        let value = |line: &Line, _: usize, seed: u64| line.values[seed as usize];
        let (early, trials) = pair.chosen(&value);
        let exhaustive = pair.on_all(0..SEEDS as u64, &value);
        let name = winner(&early).0;
        let best = &exhaustive.ranking[0];
        let own = exhaustive
            .ranking
            .iter()
            .find(|one| one.candidate == name)
            .unwrap();
        // An exact tie: the same score to its four digits.
        let same = own.score == best.score;
        all += 1;
        right += u32::from(same);
        spent += trials;
        full += pair.candidates().len() * SEEDS;
        if !same {
            let regret = (best.score / own.score - 1.0) * 100.0;
            let (need, card) = (&pair.need.name, &pair.card);
            println!(
                "  miss: {need} on {card}: {name}, best {}, regret {regret:.1} %",
                best.candidate
            );
        }
    }
    let share = f64::from(right) / f64::from(all);
    let part = spent as f64 / full as f64;
    println!(
        "early stopping: {right} of {all} pairs right with {spent} of {full} trials ({part:.2})"
    );
    assert!(share >= 0.96, "{share}");
    assert!(part <= 1.0 / 3.0, "{part}");
}
