//! A probe for a need: each next experiment is the one that makes the answer surest for its time,
//! and it ends when none that is left can change the answer.
//!
//! Before, trials ran on some of the cards that this one may be. After each stage the cards are
//! weighed by how well they agree with what was measured so far, and
//! [`whichfs_decide::settling`] says on how many the answer is right, and what each experiment
//! would make of that.

use crate::board::{self, Board};
use crate::cards::{CardState, NamedProfile};
use crate::choose::{Choice, SEEDS};
use crate::clock::Clock;
use crate::error::{Error, Outcome};
use crate::lab_executor::LabExecutor;
use crate::observer::Observer;
use crate::question::Question;
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use crate::{inference, possible_cards};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_card::{Interface, Profile};
use whichfs_decide::plan::first_round;
use whichfs_decide::{MeasurementPrice, Need, PossibleCards, SETTLED, Settling, Verdict, settling};
use whichfs_posterior::{InferenceOptions, Knowledge, Posterior, ToldBy};
use whichfs_probe::{NextStage, ProbeEvidence, Stage, infer};

/// Experiments that tell what cards are inferred by: the stages of each, in their order. AUs are
/// counted where it is known where they begin and how fast one is written.
const EXPERIMENTS: [&[Stage]; 4] = [
    &[Stage::Reading],
    &[Stage::Writing],
    &[Stage::RandomWrites],
    &[
        Stage::Align,
        Stage::Writing,
        Stage::OpenLinear,
        Stage::OpenRandom,
    ],
];
/// An experiment that makes the answer right on no larger share of the cards than this is not worth
/// it.
const HELPS: f64 = 0.02;

/// The message if no possible card agrees with the measurements.
const UNLIKE: &str = "no card of the population is like this one: all stages, in their order";

/// The state of a probe for a need.
pub struct Narrowing {
    verdict: Verdict,
    posterior: Posterior,
    possible: PossibleCards,
    prices: BTreeMap<Stage, MeasurementPrice>,
    options: InferenceOptions,
}

/// The best candidates, and the cards on which all of them are tried before the probe.
const CONTEST: usize = 4;
const CARDS: u64 = 12;
/// Time on this machine after which a trial is ended.
const WALL_LIMIT: Duration = Duration::from_secs(300);

/// Runs trials for `need` in the lab, `jobs` at once, on cards of which nothing is known but
/// `capacity_bytes`, and begins a probe for it.
///
/// # Errors
/// As [`Choice::decide`]; a capacity that no known card has; trials that tell nothing of the cards.
pub fn begin(
    need: Need,
    capacity_bytes: u64,
    jobs: usize,
    cache: TrialCache,
    interrupted: &AtomicBool,
    observer: &mut dyn Observer,
) -> Outcome<Narrowing> {
    let nothing = Knowledge::of("the card", Interface::Sd, capacity_bytes);
    let posterior = inference::of("the card", nothing)?;
    let card = NamedProfile {
        name: "a card of which the size is known".to_owned(),
        profile: posterior.representative().clone(),
        posterior: Some(posterior.clone()),
        probed: ToldBy::NOTHING,
    };
    let work = WorkloadRun::named(&need.workload, &need.parameters)?;
    let board = Board::open(board::DEFAULT)?;
    let lab = LabExecutor::new(card, CardState::Used, board, Clock::Cpu, WALL_LIMIT, jobs)?;
    let long = lab.sustained(&need)?;
    let question = Question {
        need,
        work,
        candidates: Vec::new(),
        first_seed: 1,
        seeds: SEEDS,
        second_card: None,
    };
    let mut choice = Choice::new(question, &lab, cache, interrupted, Instant::now());
    choice.long_executor = long.as_ref();
    let mut verdict = choice.decide(&mut (), observer)?;
    let contest: Vec<String> = (verdict.ranking.iter())
        .take(CONTEST)
        .map(|ranked| ranked.candidate.clone())
        .collect();
    for seed in 1..=CARDS {
        choice.run_round(&first_round(&contest, seed), observer)?;
    }
    verdict = choice.verdict(&())?;
    Narrowing::begin(verdict, posterior).ok_or_else(|| {
        Error::input(
            "fewer than two filesystems have trials on two cards of that size, so nothing tells \
             what a probe would change; probe without a need",
        )
    })
}

/// The stages of all experiments, each once.
fn stages() -> Vec<Stage> {
    let mut stages = EXPERIMENTS.concat();
    let mut seen = BTreeSet::new();
    stages.retain(|stage| seen.insert(*stage));
    stages
}

impl Narrowing {
    /// Begins with the `verdict` of trials on cards of `posterior`; none if too few trials tell
    /// anything.
    pub fn begin(verdict: Verdict, posterior: Posterior) -> Option<Narrowing> {
        let possible = possible_cards::of_posterior(&posterior);
        settling(&verdict, &possible)?;
        Some(Narrowing {
            prices: possible_cards::prices(&posterior, &stages()),
            verdict,
            posterior,
            possible,
            options: possible_cards::options(),
        })
    }

    /// How it stands.
    pub fn standing(&self) -> Option<Settling> {
        settling(&self.verdict, &self.possible)
    }

    /// Which of the stages `left` comes next after what `evidence` has, and why, for people.
    pub fn next(&mut self, left: &[Stage], evidence: &ProbeEvidence) -> (NextStage, String) {
        let experiments: Vec<Vec<Stage>> = EXPERIMENTS
            .iter()
            .map(|stages| {
                let stages = stages.iter().filter(|stage| left.contains(stage));
                stages.copied().collect()
            })
            .collect();
        self.possible.measurements = experiments
            .iter()
            .map(|stages| possible_cards::measurement_of(stages, &self.prices))
            .collect();
        let found = self.weigh(evidence).and_then(|()| self.standing());
        let Some(found) = found else {
            return (NextStage::usual(left), UNLIKE.to_owned());
        };
        let stands = format!(
            "{} is the best or ties on {:.0} % of the cards that this one may be",
            found.answer,
            found.now * 100.0
        );
        let enough = |why: String| (NextStage::Enough(why.clone()), why);
        if found.now >= SETTLED {
            return enough(stands);
        }
        let gain = |at: &usize| found.measurements[*at].right - found.now;
        let by_time = |at: &usize| gain(at) / found.measurements[*at].price.seconds.max(0.1);
        let tells = |at: &usize| !self.possible.measurements[*at].tells.is_empty();
        let best = (0..experiments.len()).filter(|at| tells(at) && gain(at) >= HELPS);
        let best = best.max_by(|a, b| by_time(a).total_cmp(&by_time(b)));
        match best.and_then(|at| Some((at, experiments[at].first()?))) {
            Some((at, first)) => {
                let right = found.measurements[at].right * 100.0;
                let next = format!("{stands}; with what comes next on {right:.0} %");
                (NextStage::Run(*first), next)
            }
            None => enough(format!(
                "{stands}, and nothing that is left to measure changes that"
            )),
        }
    }

    /// Weighs the cards by what `evidence` has; none if it says nothing that can be used.
    fn weigh(&mut self, evidence: &ProbeEvidence) -> Option<()> {
        let seeds: Vec<u64> = self.possible.cards.keys().copied().collect();
        let Some(knowledge) = knowledge(evidence) else {
            return Some(());
        };
        let logs = self.posterior.agreement(&seeds, &knowledge, &self.options);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !most.is_finite() {
            return None;
        }
        for (card, log) in self.possible.cards.values_mut().zip(logs) {
            card.weight = (log - most).exp();
        }
        Some(())
    }
}

/// What the stages so far tell, if they tell a rate.
fn knowledge(evidence: &ProbeEvidence) -> Option<Knowledge> {
    let text = infer(evidence).to_profile().ok()?;
    Profile::parse("probe", &text).ok()?;
    Knowledge::within("probe", &text).ok()?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::LazyLock;
    use whichfs_card::Card;
    use whichfs_curves::Modelled;
    use whichfs_decide::{Evidence, PossibleCard, Sample, judge};
    use whichfs_posterior::{Population, infer as infer_cards};
    use whichfs_probe::{Findings, ProbeOptions, ProbeStep, Progress, Writing, probe};

    /// Places of random writes of 4 KiB and of the count of open AUs among the features of a card.
    const RANDOM_WRITES: usize = 3;
    const OPEN_AUS: usize = 13;

    /// Cards of 8 GB of which nothing else is known.
    static CARDS_OF_8_GB: LazyLock<Posterior> = LazyLock::new(|| {
        let population = Population::shipped().unwrap();
        let nothing = Knowledge::of(
            "a card",
            Interface::Sd,
            8_000_000_000 / (4 << 20) * (4 << 20),
        );
        let options = InferenceOptions {
            samples: 96,
            ..possible_cards::options()
        };
        infer_cards(&population, &nothing, &options).unwrap()
    });

    /// A verdict where f2fs takes as many times as long as ext4 on the cards of 12 seeds as `f2fs`
    /// makes of them.
    fn verdict(f2fs: impl Fn(&PossibleCard) -> f64) -> Verdict {
        let need = Need::named("logger").unwrap();
        let possible = possible_cards::of_posterior(&CARDS_OF_8_GB);
        let metrics: Vec<&String> = need.weights.keys().chain(&need.requires).collect();
        let of_seed = |seed: u64| {
            let f2fs = f2fs(&possible.cards[&seed]);
            [("ext4", 1.0), ("f2fs", f2fs)].map(|(candidate, value)| (candidate, seed, value))
        };
        let samples = (1..=CARDS)
            .flat_map(of_seed)
            .flat_map(|(candidate, seed, value)| {
                metrics.iter().map(move |metric| Sample {
                    candidate: candidate.to_owned(),
                    metric: (*metric).clone(),
                    seed,
                    value,
                    unit: "s".into(),
                    lower_is_better: true,
                })
            });
        let evidence = Evidence {
            samples: samples.collect(),
            ..Evidence::default()
        };
        judge(&need, &evidence).unwrap()
    }

    struct ForNeed(Narrowing);

    impl Progress for ForNeed {
        fn step(&mut self, _step: &ProbeStep) {}

        fn next(&mut self, left: &[Stage], state: &ProbeEvidence) -> NextStage {
            self.0.next(left, state).0
        }
    }

    /// A probe for the need of `verdict` of the card with `seed`: what it found and its answer.
    fn probed(verdict: Verdict, seed: u64) -> (Findings, String) {
        let card = CARDS_OF_8_GB.sample(seed);
        let mut device = Modelled::new(Card::used(card, 1), card.capacity_bytes());
        let options = ProbeOptions {
            writing: Writing::Preserve,
            ..ProbeOptions::default()
        };
        let mut need = ForNeed(Narrowing::begin(verdict, CARDS_OF_8_GB.clone()).unwrap());
        let found = probe(&mut device, &options, &mut need);
        (found, need.0.standing().unwrap().answer)
    }

    #[test]
    fn what_decides_is_measured_and_the_rest_is_not() {
        let possible = possible_cards::of_posterior(&CARDS_OF_8_GB);
        let cost = |seed: u64| possible.cards[&seed].log_features[RANDOM_WRITES];
        let mut costs: Vec<f64> = (1..=CARDS).map(cost).collect();
        costs.sort_by(f64::total_cmp);
        let middle = (costs[5] + costs[6]) / 2.0;
        let of = |card: &PossibleCard| match card.log_features[RANDOM_WRITES] > middle {
            true => 0.5,
            false => 2.0,
        };
        let apart = |seed: &u64| (cost(*seed) - middle).abs();
        let far = |dear: bool| {
            let seeds = (20..=90).filter(|seed| (cost(*seed) > middle) == dear);
            seeds.max_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap()
        };
        for (dear, answer) in [(true, "f2fs"), (false, "ext4")] {
            let (found, told) = probed(verdict(of), far(dear));
            assert_eq!(told, answer);
            let done = &found.measured.done;
            assert!(
                !done.is_empty() && done.iter().all(|stage| stages().contains(stage)),
                "{done:?}"
            );
            assert!(found.ended.is_some());
        }
    }

    #[test]
    fn aus_are_counted_where_nothing_but_their_number_decides() {
        let few = |card: &PossibleCard| card.log_features[OPEN_AUS].exp() < 20.0;
        let f2fs = |card: &PossibleCard| if few(card) { 2.0 } else { 0.5 };
        let mut narrowing = Narrowing::begin(verdict(f2fs), CARDS_OF_8_GB.clone()).unwrap();
        for card in narrowing.possible.cards.values_mut() {
            card.kind.clear();
            card.log_features[..OPEN_AUS].fill(1.0);
        }
        let mut left: Vec<Stage> = Stage::ALL.map(|(stage, _, _)| stage).into();
        let nothing = ProbeEvidence::default();
        for expected in EXPERIMENTS[3] {
            let (next, told) = narrowing.next(&left, &nothing);
            assert!(told.ends_with("with what comes next on 93 %"), "{told}");
            assert_eq!(next, NextStage::Run(*expected));
            left.retain(|stage| stage != expected);
        }
        let (next, told) = narrowing.next(&left, &nothing);
        assert!(told.ends_with("and nothing that is left to measure changes that"));
        assert_eq!(next, NextStage::Enough(told));
    }

    #[test]
    fn nothing_is_measured_where_the_card_does_not_decide() {
        let (found, answer) = probed(verdict(|_| 0.5), 30);
        assert_eq!(
            (answer.as_str(), found.bytes_written, found.bytes_read),
            ("f2fs", 0, 0)
        );
        let why = found.ended.unwrap();
        assert!(why.contains("f2fs is the best or ties on 93 %"), "{why}");
    }
}
