//! Leave one card out: how well the writes of a card are predicted that the prior has not seen.
//!
//! `cargo run --release -p whichfs-posterior --example hold_out -- cards.csv flashbench.json`
//!
//! Of each card, marks, size, year, maker and reads are known, then also the rate of writing in
//! order, then also that of random writes of 4 KiB. All other writes are predicted: 80 % intervals
//! of the posterior, beside those of the prior (the population without the card, of which nothing
//! but the interface counts).
#![allow(clippy::unwrap_used)]

mod data;

use data::{Row, side_by_side};
use whichfs_fit::{CurvePlace, Jobs, PointOrder};
use whichfs_logs::{LoggedRun, Operation, Order as Access};
use whichfs_posterior::{
    Bound, InferenceOptions, Knowledge, Observation, Population, Relevance, infer,
};
use whichfs_units::KIB;

/// What of the writes is known.
const STEPS: [&str; 3] = [
    "marks and reads",
    "and writing in order",
    "and random 4 KiB",
];

/// Predictions of one step.
#[derive(Default, Clone)]
struct Score {
    covered: f64,
    points: f64,
    /// Widths of intervals, as `ln` of the factor between their ends.
    widths: Vec<f64>,
    /// Interval scores (Gneiting and Raftery 2007): the width, and ten times how far a point is
    /// outside of the 80 % interval, in `ln`. Less is better; only honest intervals have the least.
    scores: Vec<f64>,
    /// `-ln` of the probability of the family that fits.
    surprise: Vec<f64>,
}

impl Score {
    fn add(&mut self, interval: [f64; 2], measured: f64) {
        self.points += 1.0;
        self.covered += f64::from(u8::from((interval[0]..=interval[1]).contains(&measured)));
        let width = (interval[1] / interval[0]).ln();
        let outside = (interval[0] / measured).max(measured / interval[1]).ln();
        self.widths.push(width);
        self.scores.push(width + 10.0 * outside.max(0.0));
    }

    fn join(&mut self, other: &Score) {
        if other.points == 0.0 {
            return;
        }
        // Each card counts alike, however many points it has.
        self.covered += other.covered / other.points;
        self.points += 1.0;
        self.widths.push(median(&other.widths));
        let of_points = other.scores.iter().sum::<f64>() / other.scores.len() as f64;
        self.scores.push(of_points);
        self.surprise.extend(&other.surprise);
    }

    fn text(&self) -> String {
        if self.points == 0.0 {
            return "–".to_owned();
        }
        format!(
            "{:3.0} % ×{:.1}",
            100.0 * self.covered / self.points,
            median(&self.widths).exp()
        )
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn options() -> InferenceOptions {
    InferenceOptions {
        jobs: Jobs(side_by_side),
        samples: 160,
        ..InferenceOptions::default()
    }
}

/// The prior of which nothing but the interface counts.
fn indifferent() -> InferenceOptions {
    let relevance = Relevance {
        years: 1e9,
        ln_bytes: 1e9,
        maker: 1.0,
        ..Relevance::CHOSEN
    };
    InferenceOptions {
        relevance,
        ..options()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (rows, runs) = (data::rows(&args[1]), data::runs(&args[2]));
    let population = Population::shipped().unwrap();
    println!("| card | prior | {} |", STEPS.join(" | "));
    println!("|---|---|---|---|---|");
    let mut sums = vec![Score::default(); 4];
    let with_curves = |run: &&LoggedRun| run.curves.linear.len() + run.curves.random.len() > 1;
    // A third argument leaves the curves out, which take most of the time.
    let only_rates = args.len() > 3;
    for run in runs.iter().filter(with_curves).filter(|_| !only_rates) {
        let row = data::row_of_run(&rows, &run.name);
        show(&run.name, &of_run(run, row, &population), &mut sums);
    }
    total("cards with curves", &sums);
    let mut sums = vec![Score::default(); 4];
    for row in rows.iter().filter(|row| row.of_rates()) {
        show(
            &format!("{} {}", row.id, row.name),
            &of_row(row, &population),
            &mut sums,
        );
    }
    total("cards with rates", &sums);
}

fn total(what: &str, sums: &[Score]) {
    let texts: Vec<String> = sums.iter().map(Score::text).collect();
    println!("| **{what}** | {} |", texts.join(" | "));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let scores: Vec<String> = sums
        .iter()
        .map(|sum| format!("{:.2}", mean(&sum.scores)))
        .collect();
    eprintln!("interval score: {}", scores.join(" "));
    let surprises: Vec<String> = sums
        .iter()
        .map(|sum| format!("{:.3}", mean(&sum.surprise)))
        .collect();
    eprintln!("surprise at the family: {}", surprises.join(" "));
}

fn show(name: &str, scores: &[Score], sums: &mut [Score]) {
    let texts: Vec<String> = scores.iter().map(Score::text).collect();
    println!("| {name} | {} |", texts.join(" | "));
    for (sum, score) in sums.iter_mut().zip(scores) {
        sum.join(score);
    }
}

/// Prior and the steps for the card of a run.
fn of_run(run: &LoggedRun, row: &Row, population: &Population) -> Vec<Score> {
    let others = population.without(&row.id);
    let known = data::known_without_writes(run, row);
    let hidden = data::written(run, row);
    let find = |order: PointOrder, bytes: u64| {
        let of = |of: &&Observation| {
            of.place
                == CurvePlace {
                    order,
                    aus: 1,
                    bytes,
                }
        };
        hidden.iter().find(of).cloned()
    };
    let order = find(PointOrder::Linear, 512 * KIB);
    let random = find(PointOrder::Random, 4 * KIB);
    let families: Vec<_> = population
        .members
        .iter()
        .filter(|member| member.id == run.name)
        .map(|member| member.profile.family())
        .collect();
    steps(
        &known,
        [order, random],
        &hidden,
        &others,
        families.first().copied(),
    )
}

/// Prior and the steps for the card of a row.
fn of_row(row: &Row, population: &Population) -> Vec<Score> {
    let others = population.without(&row.id);
    let known = row.knowledge(true, false);
    let written = row.knowledge(false, true).observations;
    let hidden: Vec<Observation> = written
        .into_iter()
        .filter(|of| of.bound == Bound::Exact && of.place.order.is_write())
        .collect();
    let find = |access: Access, bytes: u64| {
        let order = PointOrder::Host(Operation::Write, access);
        let of = |of: &&Observation| {
            of.place
                == CurvePlace {
                    order,
                    aus: 1,
                    bytes,
                }
        };
        hidden.iter().find(of).cloned()
    };
    let known_writes = [
        find(Access::Sequential, 1024 * KIB),
        find(Access::Random, 4 * KIB),
    ];
    steps(&known, known_writes, &hidden, &others, None)
}

fn steps(
    known: &Knowledge,
    more: [Option<Observation>; 2],
    hidden: &[Observation],
    others: &Population,
    family: Option<whichfs_card::Family>,
) -> Vec<Score> {
    let nothing = Knowledge::of(&known.title, known.interface, known.capacity_bytes);
    let mut known = known.clone();
    let mut scores = vec![score(&nothing, hidden, others, &indifferent(), family)];
    scores.push(score(&known, hidden, others, &options(), family));
    for observation in more {
        known.observations.extend(observation);
        scores.push(score(&known, hidden, others, &options(), family));
    }
    scores
}

fn score(
    known: &Knowledge,
    hidden: &[Observation],
    others: &Population,
    options: &InferenceOptions,
    family: Option<whichfs_card::Family>,
) -> Score {
    let found = infer(others, known, options).unwrap();
    let is_known = |of: &&Observation| {
        known
            .observations
            .iter()
            .any(|known| known.place == of.place)
    };
    let hidden: Vec<&Observation> = hidden.iter().filter(|of| !is_known(of)).collect();
    let places: Vec<CurvePlace> = hidden.iter().map(|of| of.place).collect();
    let intervals = found.intervals(&places, options);
    let mut score = Score::default();
    for (interval, hidden) in intervals.iter().zip(&hidden) {
        score.add([interval[0], interval[2]], hidden.ns);
    }
    if let Some(family) = family {
        let share = found
            .families()
            .iter()
            .find(|of| of.0 == family)
            .map_or(0.0, |of| of.1);
        score.surprise.push(-share.max(1e-3).ln());
    }
    score
}
