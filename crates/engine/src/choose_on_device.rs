//! The policy of a choice on a device: every candidate twice, those that may still be the best more
//! often, in a fair order and within a budget.

use crate::campaign::{Campaign, Fair, Gathered, Wanted, WantedTrial};
use crate::error::{Error, Outcome};
use crate::executor::{Executor, TrialSpec};
use crate::images::Images;
use crate::observer::{Observer, ProgressEvent};
use crate::question::Question;
use crate::trial_cache::TrialCache;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use whichfs_decide::plan::{PlannedTrial, first_round, next_round};
use whichfs_decide::{Budget, Verdict};
use whichfs_study::Variant;

/// Repeats that every candidate gets: of one alone it is not known how far a device scatters.
const FIRST: u64 = 2;

/// Most repeats, unless the user says how many: they take real time.
pub const REPEATS: u64 = 3;

/// A choice on a device under way.
pub struct DeviceChoice<'a, E: Executor> {
    /// What is asked.
    pub question: &'a Question,
    /// What was found.
    pub found: Gathered,
    /// What it may cost from its beginning on.
    pub budget: Budget,
    session: u64,
    campaign: Campaign<'a, E, PlannedTrial>,
    begun: Instant,
}

impl<'a, E: Executor> DeviceChoice<'a, E> {
    /// A choice in session `session` of the device that began at `begun`; it ends when
    /// `interrupted` is set.
    pub fn new(
        question: &'a Question,
        session: u64,
        cache: TrialCache,
        interrupted: &'a AtomicBool,
        budget: Budget,
        begun: Instant,
    ) -> DeviceChoice<'a, E> {
        DeviceChoice {
            question,
            found: Gathered::default(),
            budget,
            session,
            campaign: Campaign::new(cache, interrupted),
            begun,
        }
    }

    /// The trials of this choice.
    pub fn campaign(&self) -> &Campaign<'a, E, PlannedTrial> {
        &self.campaign
    }

    /// The first round: the candidates that satisfy the rules of the need, each with the first
    /// repeats.
    pub fn first_round(&mut self, executor: &E) -> Vec<PlannedTrial> {
        let question = self.question;
        let bytes = executor.capabilities().geometry.partition_bytes;
        let candidates = self.found.apply_rules(question, bytes);
        let last = question
            .first_seed
            .saturating_add(question.seeds.min(FIRST));
        (question.first_seed..last)
            .flat_map(|repeat| first_round(&candidates, repeat))
            .collect()
    }

    /// What `verdict` leaves open; empty if nothing.
    pub fn next_round(&self, verdict: &Verdict) -> Vec<PlannedTrial> {
        let question = self.question;
        let mut round = next_round(verdict, question.first_seed, question.seeds);
        let matrix = self.campaign.matrix();
        round.retain(|asked| matrix.iter().all(|cell| !cell.keys.contains(asked)));
        round
    }

    /// Prepares `round`, and orders what is missing of all rounds.
    ///
    /// # Errors
    /// The caller's interruption; what is wrong beside a candidate.
    pub fn plan(
        &mut self,
        executor: &E,
        round: &[PlannedTrial],
        images: &Images<'_>,
        observer: &mut dyn Observer,
    ) -> Outcome<Fair> {
        let variant = Variant::default();
        let writes = self.question.work.writes()?;
        let mut wanted = Vec::new();
        for asked in round {
            let spec = TrialSpec {
                candidate: whichfs_fs::find(&asked.candidate).map_err(Error::input)?,
                work: &self.question.work,
                variant: &variant,
                seed: asked.seed,
            };
            wanted.push(Wanted {
                writes,
                ..Wanted::of(asked.clone(), spec)
            });
        }
        let planned = self
            .campaign
            .plan(executor, wanted, images, &|_, error| error)?;
        let mut told: Vec<&str> = Vec::new();
        for (asked, planned) in round.iter().zip(planned) {
            let candidate = &asked.candidate;
            match planned {
                WantedTrial::InMatrix { caveats, .. } => {
                    for caveat in caveats {
                        self.found.add_caveat(candidate, caveat);
                    }
                }
                WantedTrial::LeftOut { why, source } => {
                    self.found.leave_out(candidate, why.clone(), source);
                    if !told.contains(&candidate.as_str()) {
                        told.push(candidate);
                        let candidate = candidate.clone();
                        observer.hear(&ProgressEvent::Excluded { candidate, why });
                    }
                }
            }
        }
        let budget = Budget {
            time: self
                .budget
                .time
                .map(|all| all.saturating_sub(self.begun.elapsed())),
            ..self.budget
        };
        let card = executor.capabilities().card;
        let (matrix, cache) = (self.campaign.matrix(), &self.campaign.cache);
        let order = Fair::of(matrix, cache, (&card, self.session), budget)?;
        self.found.trials = self.campaign.matrix_trials();
        Ok(order)
    }

    /// Runs what `order` has to run.
    ///
    /// # Errors
    /// The device is in use, another or gone; the caller's interruption. What was finished is
    /// kept.
    pub fn run(&mut self, executor: &E, order: &mut Fair, observer: &mut dyn Observer) -> Outcome {
        if order.turns.is_empty() {
            return Ok(());
        }
        observer.hear(&ProgressEvent::RoundBegun {
            trials: order.turns.len(),
            slots: 1,
            later: 0,
        });
        let name = format!("trials for {}", self.question.need.name);
        let ended = self.campaign.run(executor, &name, order, observer);
        observer.hear(&ProgressEvent::RoundEnded);
        self.found.trials = self.campaign.matrix_trials();
        ended
    }

    /// Runs rounds until the verdict cannot change, or the budget is spent: the verdict, and the
    /// order of the last round. `consent` is asked before the first trial runs.
    ///
    /// # Errors
    /// As [`DeviceChoice::plan`] and [`DeviceChoice::run`]; figures that contradict each other.
    pub fn decide(
        &mut self,
        executor: &mut E,
        consent: &dyn Fn(&mut E) -> Outcome,
        images: &Images<'_>,
        observer: &mut dyn Observer,
    ) -> Outcome<(Verdict, Option<Fair>)> {
        let mut round = self.first_round(executor);
        let (mut verdict, mut asked, mut last) = (self.verdict(executor)?, false, None);
        while !round.is_empty() {
            let mut order = self.plan(executor, &round, images, observer)?;
            if !order.turns.is_empty() && !asked {
                consent(executor)?;
                asked = true;
            }
            self.run(executor, &mut order, observer)?;
            let judged = self.verdict(executor);
            let stopped = order.stopped.is_some();
            last = Some(order);
            if stopped {
                // Of half a round there may be too little to judge.
                verdict = judged.unwrap_or(verdict);
                break;
            }
            verdict = judged?;
            round = self.next_round(&verdict);
        }
        Ok((verdict, last))
    }

    /// What the figures so far say.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn verdict(&self, executor: &E) -> Outcome<Verdict> {
        self.found
            .verdict(self.question, executor, &(), self.begun.elapsed())
    }
}
