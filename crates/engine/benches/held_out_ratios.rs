//! Whether ratios between filesystems are foretold on cards that the inference has not seen.
//!
//! `cargo bench -p whichfs-engine --bench held_out_ratios -- CARDS.csv RUNS.json [RUN...]` (all
//! runs of flashbench with write curves; an hour on two cores). Each card is left out of the
//! population. Of its log, marks, size, year, maker, sizes and reads are known; then also two rates
//! of writing. Filesystems run on the card as fitted, and on nine cards of the posterior: the least
//! and the greatest of nine ratios are an 80 % interval, because the true one is equally likely at
//! each of ten ranks. In brackets: how many are inside, or less than the noise floor outside, which
//! no user notices.

#[path = "../../posterior/examples/data/mod.rs"]
mod data;
mod trials;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use trials::{Failure, Figures};
use whichfs_card::Profile;
use whichfs_decide::{NOISE_FLOOR, Need};
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_fit::{CurvePlace, PointOrder};
use whichfs_logs::LoggedRun;
use whichfs_posterior::{InferenceOptions, Knowledge, Population, infer};
use whichfs_units::KIB;

/// The first is what the others are divided by.
const FILESYSTEMS: [&str; 4] = ["ext4", "f2fs", "btrfs", "xfs"];
/// Needs, each with the parameters that make its workload small.
const NEEDS: [(&str, &[(&str, u64)]); 3] = [
    ("rootfs", &[("bytes", 24 << 20), ("files", 600)]),
    (
        "packages",
        &[("bytes", 8 << 20), ("files", 250), ("packages", 5)],
    ),
    ("database", &[("transactions", 100)]),
];
/// What of the writes is known.
const STEPS: [&str; 2] = ["marks and reads", "and writing in order and random 4 KiB"];
/// Cards of a posterior. Intervals are as wide as in the command's posteriors, which have more.
const SAMPLES: u64 = 9;
const DRAWN: usize = 160;

/// Ratios of one need on one card: how many times the true one is outside of the interval (at most
/// one: inside), and `ln` of its width.
#[derive(Clone, Default)]
struct Score(Vec<(f64, f64)>);

impl Score {
    fn text(scores: &[&Score]) -> String {
        let covered = |beyond: f64| {
            let all = scores.iter().map(|one| one.covered(beyond));
            100.0 * all.sum::<f64>() / scores.len() as f64
        };
        let mut widths: Vec<f64> = scores
            .iter()
            .flat_map(|one| one.0.iter().map(|of| of.1))
            .collect();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).map_or(f64::NAN, |ln| ln.exp());
        format!(
            "{:.0} ({:.0}) % ×{width:.1}",
            covered(1.0),
            covered(NOISE_FLOOR)
        )
    }

    /// Share that is outside by at most `beyond` times.
    fn covered(&self, beyond: f64) -> f64 {
        self.0.iter().filter(|(off, _)| *off <= beyond).count() as f64 / self.0.len() as f64
    }
}

/// Scores of a card by need and step.
type OfCard = [[Score; STEPS.len()]; NEEDS.len()];

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let [cards, runs, wanted @ ..] = &words[..] else {
        return Err("give cards.csv and flashbench.json".into());
    };
    let rows = data::rows(cards);
    let with_curves = |run: &LoggedRun| run.curves.linear.len() + run.curves.random.len() > 1;
    let mut runs = data::runs(runs);
    runs.retain(|run| with_curves(run) && (wanted.is_empty() || wanted.contains(&run.name)));
    let population = Population::shipped()?;
    let heads: Vec<String> = NEEDS
        .iter()
        .flat_map(|(need, _)| STEPS.map(|step| format!("{need}: {step}")))
        .collect();
    println!("| card | {} |", heads.join(" | "));
    println!("|---{}|", "|---".repeat(heads.len()));
    let (next, scores) = (AtomicUsize::new(0), Mutex::new(Vec::<OfCard>::new()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let row = data::row_of_run(&rows, &run.name);
                    let found = of_card(run, row, &population);
                    let mut scores = scores.lock().unwrap_or_else(PoisonError::into_inner);
                    match found {
                        Ok(found) => {
                            println!("| {} | {} |", run.name, cells(&[&found]).join(" | "));
                            scores.push(found);
                        }
                        Err(error) => println!("| {} | left out: {error} |", run.name),
                    }
                    let past = begin.elapsed().as_secs_f64() / 60.0;
                    let left = past / scores.len().max(1) as f64
                        * runs.len().saturating_sub(scores.len()) as f64;
                    eprintln!(
                        "{} of {} cards, about {left:.0} min left",
                        scores.len(),
                        runs.len()
                    );
                }
            });
        }
    });
    let scores = scores.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "| **all** | {} |",
        cells(&scores.iter().collect::<Vec<_>>()).join(" | ")
    );
    Ok(())
}

/// One text for each need and step: each card counts alike.
fn cells(cards: &[&OfCard]) -> Vec<String> {
    let cell = |need: usize, step: usize| {
        let of: Vec<&Score> = cards.iter().map(|card| &card[need][step]).collect();
        Score::text(&of)
    };
    (0..NEEDS.len())
        .flat_map(|need| (0..STEPS.len()).map(move |step| (need, step)))
        .map(|(need, step)| cell(need, step))
        .collect()
}

/// The card of `run` beside what is inferred of it, from `population` without it.
fn of_card(run: &LoggedRun, row: &data::Row, population: &Population) -> Result<OfCard, Failure> {
    let member = population
        .members
        .iter()
        .find(|member| member.id == run.name);
    let card = &member.ok_or("no member of the population")?.profile;
    let others = population.without(&row.id);
    let options = InferenceOptions {
        samples: DRAWN,
        ..InferenceOptions::default()
    };
    let [reads, writes] = known(run, row);
    let mut scores = OfCard::default();
    let posteriors = [
        infer(&others, &reads, &options)?,
        infer(&others, &writes, &options)?,
    ];
    for (need, scores) in NEEDS.iter().zip(&mut scores) {
        let (need, small) = (Need::named(need.0)?, need.1);
        let small: BTreeMap<String, u64> = small
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        let work = WorkloadRun::named(&need.workload, &small)?;
        let of = |card: &Profile| {
            let mut all = trials::figures(card, &work, &FILESYSTEMS)?;
            all.retain(|(_, metric), _| need.weights.contains_key(metric) && metric != "mount");
            Ok::<Figures, Failure>(all)
        };
        let truth = of(card)?;
        for (posterior, score) in posteriors.iter().zip(scores) {
            let samples: Vec<Figures> = (1..=SAMPLES)
                .map(|seed| of(posterior.sample(seed)))
                .collect::<Result<_, _>>()?;
            for (key, ratio) in ratios(&truth) {
                let drawn = samples
                    .iter()
                    .filter_map(|of| ratios(of).get(&key).copied());
                let [low, high] = drawn.fold([f64::INFINITY, 0.0], |[low, high], ratio| {
                    [ratio.min(low), ratio.max(high)]
                });
                let off = (ratio / high).max(low / ratio);
                if off > 1.0 {
                    let (filesystem, metric) = &key;
                    eprintln!(
                        "{}: {filesystem}/{} {metric} is {ratio:.2}, {off:.2} times outside of \
                         {low:.2} to {high:.2}",
                        run.name, FILESYSTEMS[0]
                    );
                }
                score.0.push((off, (high / low).ln()));
            }
        }
    }
    Ok(scores)
}

/// What is known of the card of `run`: marks and reads, and the same with two rates of writing.
fn known(run: &LoggedRun, row: &data::Row) -> [Knowledge; 2] {
    let known = data::known_without_writes(run, row);
    let places = [
        (PointOrder::Linear, 512 * KIB),
        (PointOrder::Random, 4 * KIB),
    ];
    let is_told =
        |place: CurvePlace| place.aus == 1 && places.contains(&(place.order, place.bytes));
    let mut more = known.clone();
    let written = data::written(run, row).into_iter();
    more.observations
        .extend(written.filter(|of| is_told(of.place)));
    [known, more]
}

/// What each filesystem's figures are as a multiple of those of the first.
fn ratios(of: &Figures) -> BTreeMap<(&'static str, String), f64> {
    let ratio = |(key, value): (&(&'static str, String), &(f64, bool))| {
        let first = of.get(&(FILESYSTEMS[0], key.1.clone()))?;
        let ratio = value.0 / first.0;
        (key.0 != FILESYSTEMS[0] && ratio.is_finite() && ratio > 0.0).then(|| (key.clone(), ratio))
    };
    of.iter().filter_map(ratio).collect()
}
