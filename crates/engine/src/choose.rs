//! The policy of `choose`: rounds of trials until the verdict on a need cannot change any more.
//!
//! Every candidate that satisfies the rules of the need gets one seed; those that may still be
//! the best get more, until the contest is decided or the seeds are used up.

use crate::campaign::{Campaign, Gathered, InOrder, Wanted, WantedTrial};
use crate::error::Outcome;
use crate::executor::{Executor, PreparedTrial, TrialSpec};
use crate::images::Images;
use crate::observer::{Observer, ProgressEvent};
use crate::question::{Question, Supplement};
use crate::trial_cache::TrialCache;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use whichfs_decide::plan::{PlannedTrial, first_round, later, next_round};
use whichfs_decide::{Excluded, Verdict, settling};
use whichfs_fs::Candidate;
use whichfs_trial::Trial;

/// Most seeds of a candidate where the caller does not say how many.
pub const SEEDS: u64 = 6;

/// A choice under way: the question, and all that was found so far.
pub struct Choice<'a, E: Executor> {
    /// What is asked.
    pub question: Question,
    /// Where trials run.
    pub executor: &'a E,
    /// What was found.
    pub found: Gathered,
    /// Where sustained trials run; none if there are to be none.
    pub long_executor: Option<&'a E>,
    /// Candidates whose sustained trials were asked for.
    pub(crate) sustained: BTreeSet<String>,
    campaign: Campaign<'a, E, PlannedTrial>,
    /// Places of the campaign that are the need's own trials, not sustained ones.
    own: BTreeSet<usize>,
    begun: Instant,
}

impl<'a, E: Executor> Choice<'a, E> {
    /// A choice on `executor` that began at `begun`; it ends when `interrupted` is set.
    pub fn new(
        question: Question,
        executor: &'a E,
        cache: TrialCache,
        interrupted: &'a AtomicBool,
        begun: Instant,
    ) -> Choice<'a, E> {
        Choice {
            question,
            executor,
            found: Gathered::default(),
            long_executor: None,
            sustained: BTreeSet::new(),
            campaign: Campaign::new(cache, interrupted),
            own: BTreeSet::new(),
            begun,
        }
    }

    /// Trials that came from the cache.
    pub fn reused(&self) -> usize {
        self.campaign.cache.reused
    }

    /// Applies the rules of the need: the names of the candidates that satisfy them.
    pub fn candidates(&mut self) -> Vec<String> {
        let bytes = self.executor.capabilities().geometry.partition_bytes;
        let names = self.found.apply_rules(&self.question, bytes);
        if let Some(second) = &self.question.second_card {
            let is_on_it = |name: &&String| name.contains(Candidate::SECOND_CARD);
            for name in names.iter().filter(is_on_it) {
                self.found.add_caveat(name, second.told());
            }
        }
        names
    }

    /// Runs rounds until the verdict cannot change, or every candidate that may win has all its
    /// seeds; then what the cache has of excluded candidates is looked up.
    ///
    /// # Errors
    /// The caller's interruption; what this machine lacks; figures that contradict each other.
    pub fn decide(
        &mut self,
        supplement: &mut dyn Supplement,
        observer: &mut dyn Observer,
    ) -> Outcome<Verdict> {
        let candidates = self.candidates();
        let mut verdict = self.verdict(supplement)?;
        let mut round = first_round(&candidates, self.question.first_seed);
        loop {
            while !round.is_empty() {
                self.run_round(&round, observer)?;
                verdict = self.verdict(supplement)?;
                round = self.next_round(&verdict);
            }
            // Sustained figures and power cuts can bring others near the leader, and those may
            // deserve more seeds.
            if !self.sustain(&verdict, observer)? && !supplement.add(&verdict)? {
                break;
            }
            verdict = self.verdict(supplement)?;
            round = self.next_round(&verdict);
        }
        if self.recall()? {
            verdict = self.verdict(supplement)?;
        }
        let possible = self.executor.possible_cards();
        verdict.settling = possible.and_then(|cards| settling(&verdict, &cards));
        Ok(verdict)
    }

    fn next_round(&self, verdict: &Verdict) -> Vec<PlannedTrial> {
        let question = &self.question;
        let mut round = next_round(verdict, question.first_seed, question.seeds);
        // A round without news would never end.
        round.retain(|asked| !self.has(asked));
        round
    }

    /// Runs the trials of `round` that the cache does not have.
    ///
    /// # Errors
    /// As [`Choice::decide`]; finished trials are kept.
    pub fn run_round(&mut self, round: &[PlannedTrial], observer: &mut dyn Observer) -> Outcome {
        let before = self.reused();
        self.plan(round, observer)?;
        let reused = self.reused() - before;
        if reused > 0 {
            observer.hear(&ProgressEvent::Reused(reused));
        }
        let later = later(round, self.question.first_seed, self.question.seeds);
        let ended = self.run_missing(self.executor, later, observer);
        let own = self.campaign.trials_at(|at| self.own.contains(&at));
        self.found.trials = own.cloned().collect();
        ended
    }

    /// Runs on `executor` what was planned and is not known; about `later` trials may follow.
    ///
    /// # Errors
    /// As [`Choice::decide`]; finished trials are kept.
    pub(crate) fn run_missing(
        &mut self,
        executor: &E,
        later: usize,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let missing = self.campaign.missing().count();
        if missing == 0 {
            return Ok(());
        }
        observer.hear(&ProgressEvent::RoundBegun {
            trials: missing,
            slots: executor.capabilities().slots.min(missing),
            later,
        });
        let name = format!("trials for {}", self.question.need.name);
        let order = &mut InOrder::default();
        let ended = self.campaign.run(executor, &name, order, observer);
        observer.hear(&ProgressEvent::RoundEnded);
        ended
    }

    /// Prepares trials on `executor`: what became of each.
    ///
    /// # Errors
    /// As [`Choice::decide`].
    pub(crate) fn plan_on(
        &mut self,
        executor: &E,
        wanted: Vec<(PlannedTrial, TrialSpec<'_>)>,
        images: &Images<'_>,
    ) -> Outcome<Vec<WantedTrial>> {
        let wanted = wanted.into_iter().map(|(key, spec)| Wanted::of(key, spec));
        self.campaign
            .plan(executor, wanted, images, &|_, error| error)
    }

    /// The trial at the place `at` of the campaign, once it is known.
    pub(crate) fn trial_at(&self, at: usize) -> Option<&Trial> {
        self.campaign.matrix()[at].trial.as_ref()
    }

    /// Prepares `round`. An interruption ends it after the image under way, which is then removed.
    fn plan(&mut self, round: &[PlannedTrial], observer: &mut dyn Observer) -> Outcome {
        let tell = |what: &str| log::info!("{what}");
        let images = Images::new(&tell);
        let made = round
            .iter()
            .map(|asked| self.question.asked(&asked.candidate));
        let made = made.collect::<Outcome<Vec<_>>>()?;
        let wanted: Vec<_> = round
            .iter()
            .zip(&made)
            .map(|(asked, (candidate, variant))| {
                let spec = TrialSpec {
                    candidate,
                    work: &self.question.work,
                    variant,
                    seed: asked.seed,
                };
                Wanted::of(asked.clone(), spec)
            })
            .collect();
        let (campaign, found) = (&mut self.campaign, &mut self.found);
        let planned = campaign.plan(self.executor, wanted, &images, &|_, error| error)?;
        for planned in &planned {
            if let WantedTrial::InMatrix { at, .. } = planned {
                self.own.insert(*at);
            }
        }
        for (asked, planned) in round.iter().zip(planned) {
            let candidate = asked.candidate.clone();
            match planned {
                WantedTrial::InMatrix { caveats, .. } if asked.seed == self.question.first_seed => {
                    for caveat in caveats {
                        found.add_caveat(&candidate, caveat.clone());
                        let candidate = candidate.clone();
                        observer.hear(&ProgressEvent::Caveat { candidate, caveat });
                    }
                }
                WantedTrial::InMatrix { .. } => {}
                WantedTrial::LeftOut { why, source } => {
                    found.leave_out(&candidate, why.clone(), source);
                    observer.hear(&ProgressEvent::Excluded { candidate, why });
                }
            }
        }
        Ok(())
    }

    /// Looks up what the cache has of candidates that one rule alone excludes, to say what that
    /// rule decides; whether there is anything. Images are not built for it, and nothing runs.
    fn recall(&mut self) -> Outcome<bool> {
        let images = Images::unbuilt();
        let alone = |one: &&Excluded| one.rules().count() == 1;
        for one in self.found.excluded.iter().filter(alone) {
            let Ok((candidate, variant)) = self.question.asked(&one.candidate) else {
                continue;
            };
            if candidate.facts().read_only {
                continue;
            }
            let spec = TrialSpec {
                candidate,
                work: &self.question.work,
                variant: &variant,
                seed: self.question.first_seed,
            };
            // One that cannot be made here, or not on this card, has no trials.
            if let Ok(trial) = self.executor.prepare(&spec, &images) {
                let known = self.campaign.cache.known(trial.identity())?;
                self.found.aside.extend(known);
            }
        }
        Ok(!self.found.aside.is_empty())
    }

    fn has(&self, asked: &PlannedTrial) -> bool {
        let is_it = |trial: &Trial| {
            let identity = &trial.identity;
            identity.candidate == asked.candidate && identity.seed == asked.seed
        };
        self.found.trials.iter().any(is_it)
    }

    /// Judges what was found so far.
    ///
    /// # Errors
    /// Figures that contradict each other or the need.
    pub fn verdict(&self, supplement: &dyn Supplement) -> Outcome<Verdict> {
        let wall = self.begun.elapsed();
        self.found
            .verdict(&self.question, self.executor, supplement, wall)
    }
}
