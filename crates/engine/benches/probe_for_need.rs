//! What a probe for a need saves and loses: its answer beside the best on the card.
//!
//! `cargo bench -p whichfs-engine --bench probe_for_need -- CARDS` (40; some ten minutes on two
//! cores). Cards are drawn from the prior of which nothing is known but the size. Each is probed
//! for the need `rootfs`, and all candidates run on it. Beside it the answers without a probe and
//! after a whole one.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_card::{Card, Interface, Profile};
use whichfs_curves::Modelled;
use whichfs_decide::{NOISE_FLOOR, Need, Verdict};
use whichfs_engine::board::{self, Board};
use whichfs_engine::cards::{CardState, NamedProfile};
use whichfs_engine::choose::Choice;
use whichfs_engine::clock::Clock;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::narrowing::{self, Narrowing};
use whichfs_engine::question::Question;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_posterior::{InferenceOptions, Knowledge, Population, ToldBy, infer};
use whichfs_probe::{
    NextStage, ProbeEvidence, ProbeOptions, ProbeStep, Progress, Silent, Stage, Writing, probe,
};

const NEED: &str = "rootfs";
/// Sizes of the cards, in decimal gigabytes.
const SIZES_GB: [u64; 2] = [8, 32];
/// Trials at once.
const JOBS: usize = 2;

type Failure = Box<dyn Error + Send + Sync>;

/// Lets a need decide what is measured.
struct ForNeed(Narrowing);

impl Progress for ForNeed {
    fn step(&mut self, _step: &ProbeStep) {}

    fn next(&mut self, left: &[Stage], state: &ProbeEvidence) -> NextStage {
        self.0.next(left, state).0
    }
}

/// What one way of probing gave on all cards: regret, seconds on the card, bytes written.
#[derive(Default)]
struct Way(Vec<(f64, f64, u64)>);

fn main() -> Result<(), Failure> {
    let count = std::env::args().find_map(|word| word.parse().ok());
    let count: usize = count.unwrap_or(40);
    let population = Population::shipped()?;
    let never = AtomicBool::new(false);
    let home = tempfile::tempdir()?;
    let store = || TrialCache::open(Some(home.path().join("trials.db")), false);
    let (mut without, mut adaptive, mut whole) = (Way::default(), Way::default(), Way::default());
    for gb in SIZES_GB {
        let bytes = gb * 1_000_000_000 / (4 << 20) * (4 << 20);
        let begin = || {
            let need = Need::named(NEED)?;
            let begun = narrowing::begin(need, bytes, JOBS, store()?, &never, &mut ())?;
            Ok::<Narrowing, Failure>(begun)
        };
        let options = InferenceOptions {
            // Not the draws that the inference of the card has.
            seed: 7,
            samples: count.div_ceil(SIZES_GB.len()),
            ..InferenceOptions::default()
        };
        let nothing = Knowledge::of("drawn", Interface::Sd, bytes);
        for card in infer(&population, &nothing, &options)?.samples() {
            let narrowing = begin()?;
            let before = narrowing
                .standing()
                .ok_or("nothing tells the cards apart")?;
            let verdict = on_card(card, store()?, &never)?;
            without.0.push((regret(&verdict, &before.answer), 0.0, 0));
            let mut device = Modelled::new(Card::used(card, 1), card.capacity_bytes());
            let options = ProbeOptions {
                writing: Writing::Preserve,
                ..ProbeOptions::default()
            };
            let mut for_need = ForNeed(narrowing);
            let found = probe(&mut device, &options, &mut for_need);
            let after = for_need
                .0
                .standing()
                .ok_or("nothing tells the cards apart")?;
            let lost = regret(&verdict, &after.answer);
            adaptive.0.push((lost, found.device_s, found.bytes_written));
            println!(
                "{gb} GB: {} with {:.0} %, then {} with {:.0} % after {:.0} s; regret {lost:.2}",
                before.answer,
                before.now * 100.0,
                after.answer,
                after.now * 100.0,
                found.device_s
            );
            let mut device = Modelled::new(Card::used(card, 1), card.capacity_bytes());
            let found = probe(&mut device, &options, &mut Silent);
            let mut all = begin()?;
            all.next(&[], &found.measured);
            let after = all.standing().ok_or("nothing tells the cards apart")?;
            let lost = regret(&verdict, &after.answer);
            whole.0.push((lost, found.device_s, found.bytes_written));
        }
    }
    for (what, way) in [
        ("no probe", without),
        ("for the need", adaptive),
        ("whole", whole),
    ] {
        tell(what, &way);
    }
    Ok(())
}

/// The verdict on `card`, of which everything is known.
fn on_card(card: &Profile, cache: TrialCache, never: &AtomicBool) -> Result<Verdict, Failure> {
    let named = NamedProfile {
        name: "card".to_owned(),
        profile: card.clone(),
        posterior: None,
        probed: ToldBy::NOTHING,
    };
    let (board, limit) = (Board::open(board::DEFAULT)?, Duration::from_secs(300));
    let lab = LabExecutor::new(named, CardState::Used, board, Clock::Cpu, limit, JOBS)?;
    let need = Need::named(NEED)?;
    let long = lab.sustained(&need)?;
    let work = WorkloadRun::named(&need.workload, &BTreeMap::new())?;
    let question = Question {
        need,
        work,
        candidates: Vec::new(),
        first_seed: 1,
        seeds: 1,
        second_card: None,
    };
    let mut choice = Choice::new(question, &lab, cache, never, Instant::now());
    choice.long_executor = long.as_ref();
    Ok(choice.decide(&mut (), &mut ())?)
}

/// How many times worse `answer` is than the best of `verdict`.
fn regret(verdict: &Verdict, answer: &str) -> f64 {
    let own = verdict.ranking.iter().find(|one| one.candidate == answer);
    match (verdict.ranking.first(), own) {
        (Some(best), Some(own)) => best.score / own.score,
        _ => f64::INFINITY,
    }
}

fn tell(what: &str, Way(all): &Way) {
    let right = all
        .iter()
        .filter(|(regret, _, _)| *regret < NOISE_FLOOR)
        .count();
    let mean = all.iter().map(|(regret, _, _)| regret.ln()).sum::<f64>() / all.len() as f64;
    let middle = |of: fn(&(f64, f64, u64)) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{what:>12}: best or ties on {right} of {}, {:.2} times from the best in the mean; \
         {:.0} s and {:.0} MiB written in the median",
        all.len(),
        mean.exp(),
        middle(|one| one.1),
        middle(|one| one.2 as f64 / f64::from(1 << 20))
    );
}
