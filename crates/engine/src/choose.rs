//! The policy of `choose`: rounds of trials until the verdict on a need cannot change any more.
//!
//! Every candidate that satisfies the rules of the need gets one seed; those that may still be
//! the best get more, until the contest is decided or the seeds are used up.

use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::{Capabilities, Executor, PrepareError, PreparedTrial, TrialSpec};
use crate::images::Images;
use crate::observer::{Observer, ProgressEvent};
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use crate::{apply, facts};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use whichfs_study::plan::{Planned, first_round, next_round};
use whichfs_study::{
    CandidateFacts, CardKind, Count, Evidence, Excluded, Failure, Need, Row, Variant, Verdict,
    doubt_ranking, judge,
};
use whichfs_trial::{Status, Trial};
use whichfs_units::Nanos;

/// Most seeds of a candidate where the caller does not say how many.
pub const SEEDS: u64 = 6;

/// What is asked.
pub struct Question {
    /// Rules and weights.
    pub need: Need,
    /// The workload of the need, with its parameters.
    pub work: WorkloadRun,
    /// Names of the candidates; all of the catalogue if empty.
    pub candidates: Vec<String>,
    /// The first seed.
    pub first_seed: u64,
    /// Most seeds of a candidate.
    pub seeds: u64,
}

/// What a caller adds to the trials: series of power cuts, for example. `()` adds nothing.
pub trait Supplement {
    /// Adds what `verdict` calls for; true if the verdict may be another one now.
    ///
    /// # Errors
    /// Those that end the whole choice.
    fn add(&mut self, verdict: &Verdict) -> Outcome<bool>;
    /// Figures beside those of the trials; `rows` are the trials' own.
    fn rows(&self, rows: &[Row]) -> Vec<Row>;
    /// Candidates that it excludes.
    fn excluded(&self) -> Vec<Excluded>;
    /// What was counted behind its figures: metric → candidate → count.
    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>>;
}

impl Supplement for () {
    fn add(&mut self, _verdict: &Verdict) -> Outcome<bool> {
        Ok(false)
    }

    fn rows(&self, _rows: &[Row]) -> Vec<Row> {
        Vec::new()
    }

    fn excluded(&self) -> Vec<Excluded> {
        Vec::new()
    }

    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        BTreeMap::new()
    }
}

/// A choice under way: the question, and all that was found so far.
pub struct Choice<'a, E: Executor> {
    /// What is asked.
    pub question: Question,
    /// Where trials run.
    pub executor: &'a E,
    /// Finished trials.
    pub cache: TrialCache,
    /// Trials of this choice, in the order in which they ended.
    pub trials: Vec<Trial>,
    /// Trials that the cache has of candidates that a rule excludes.
    pub aside: Vec<Trial>,
    /// Candidates that cannot win, and why.
    pub excluded: Vec<Excluded>,
    /// Candidates that are measured and not ranked, and why.
    pub not_comparable: Vec<Excluded>,
    /// What the figures of a candidate leave out.
    pub caveats: BTreeMap<String, Vec<String>>,
    interrupted: &'a AtomicBool,
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
            cache,
            trials: Vec::new(),
            aside: Vec::new(),
            excluded: Vec::new(),
            not_comparable: Vec::new(),
            caveats: BTreeMap::new(),
            interrupted,
            begun,
        }
    }

    /// Applies the rules of the need: the names of the candidates that satisfy them. The others
    /// are kept with the rule that excludes them.
    pub fn candidates(&mut self) -> Vec<String> {
        let all = facts::of_those(&self.question.candidates);
        let bytes = self.executor.capabilities().geometry.partition_bytes;
        let (kept, excluded) = whichfs_study::exclude(&self.question.need, bytes, &all);
        self.excluded = excluded;
        self.not_comparable = whichfs_study::not_comparable(&kept);
        self.caveats = not_known(&self.question.need, &kept);
        kept.into_iter().map(|facts| facts.name).collect()
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
            // Power cuts can bring others near the leader, and those may deserve more seeds.
            if !supplement.add(&verdict)? {
                break;
            }
            verdict = self.verdict(supplement)?;
            round = self.next_round(&verdict);
        }
        match self.recall()? {
            true => self.verdict(supplement),
            false => Ok(verdict),
        }
    }

    fn next_round(&self, verdict: &Verdict) -> Vec<Planned> {
        let question = &self.question;
        let mut round = next_round(verdict, question.first_seed, question.seeds);
        // A round without news would never end.
        round.retain(|planned| !self.has(planned));
        round
    }

    /// Runs the trials of `round` that the cache does not have.
    ///
    /// # Errors
    /// As [`Choice::decide`]; finished trials are kept.
    pub fn run_round(&mut self, round: &[Planned], observer: &mut dyn Observer) -> Outcome {
        let prepared = self.prepare(round, observer)?;
        let mut missing = Vec::new();
        let before = self.cache.reused;
        for trial in prepared {
            match self.cache.known(trial.identity())? {
                Some(known) => self.trials.push(known),
                None => missing.push(trial),
            }
        }
        if self.cache.reused > before {
            observer.hear(&ProgressEvent::Reused(self.cache.reused - before));
        }
        if missing.is_empty() {
            return Ok(());
        }
        observer.hear(&ProgressEvent::RoundBegun {
            trials: missing.len(),
            slots: self.executor.capabilities().slots.min(missing.len()),
        });
        let (trials, work) = (&mut self.trials, &self.question.work);
        let ended = self.cache.run(
            self.executor,
            missing,
            self.interrupted,
            observer,
            &|| work.check_tree(),
            &mut |trial| {
                trials.push(trial.clone());
                Ok(())
            },
        );
        observer.hear(&ProgressEvent::RoundEnded);
        ended
    }

    /// Prepares `round`. An interruption ends it after the image under way, which is then removed.
    fn prepare(
        &mut self,
        round: &[Planned],
        observer: &mut dyn Observer,
    ) -> Outcome<Vec<E::Prepared>> {
        let tell = |what: &str| log::info!("{what}");
        let images = Images::new(&tell);
        let variant = Variant::default();
        let mut prepared = Vec::new();
        for planned in round {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(self.cache.interrupted());
            }
            let name = &planned.candidate;
            let spec = TrialSpec {
                candidate: whichfs_fs::find(name).map_err(Error::input)?,
                work: &self.question.work,
                variant: &variant,
                seed: planned.seed,
            };
            match self.executor.prepare(&spec, &images) {
                Ok(trial) => {
                    if planned.seed == self.question.first_seed {
                        for caveat in trial.caveats() {
                            observer.hear(&ProgressEvent::Caveat {
                                candidate: name.clone(),
                                caveat: caveat.clone(),
                            });
                            let said = self.caveats.entry(name.clone()).or_default();
                            said.push(caveat.clone());
                        }
                    }
                    prepared.push(trial);
                }
                // The tool that builds an image gets the signal too, and fails.
                Err(PrepareError::Failed(_)) if self.interrupted.load(Ordering::Relaxed) => {
                    return Err(self.cache.interrupted());
                }
                Err(PrepareError::Failed(error)) => return Err(error),
                Err(PrepareError::Excluded { why, source }) => {
                    observer.hear(&ProgressEvent::Excluded {
                        candidate: name.clone(),
                        why: why.clone(),
                    });
                    self.excluded.push(Excluded {
                        candidate: name.clone(),
                        why,
                        source,
                        ..Excluded::default()
                    });
                }
            }
        }
        Ok(prepared)
    }

    /// Looks up what the cache has of candidates that one rule alone excludes, to say what that
    /// rule decides; whether there is anything. Images are not built for it, and nothing runs.
    fn recall(&mut self) -> Outcome<bool> {
        let images = Images::unbuilt();
        let variant = Variant::default();
        for one in self.excluded.iter().filter(|one| one.rules().count() == 1) {
            let Ok(candidate) = whichfs_fs::find(&one.candidate) else {
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
                self.aside.extend(self.cache.known(trial.identity())?);
            }
        }
        Ok(!self.aside.is_empty())
    }

    fn has(&self, planned: &Planned) -> bool {
        self.trials.iter().any(|trial| {
            let identity = &trial.identity;
            identity.candidate == planned.candidate && identity.seed == planned.seed
        })
    }

    /// Judges what was found so far.
    ///
    /// # Errors
    /// Figures that contradict each other or the need.
    pub fn verdict(&self, supplement: &dyn Supplement) -> Outcome<Verdict> {
        let question = &self.question;
        let need = &question.need;
        let rows = self.rows(supplement);
        let Capabilities {
            card,
            geometry,
            origin,
            card_uncertainty,
            fit_error,
            ..
        } = self.executor.capabilities();
        let mount_point = match need.workload.as_str() {
            "rootfs" => "/",
            _ => "/data",
        };
        let names = self.trials.iter().map(|trial| &trial.identity.candidate);
        let mut names: Vec<&String> = names.collect();
        names.sort_unstable();
        names.dedup();
        let commands = names.into_iter().filter_map(|name| {
            let partition = need.partition.as_ref();
            let lines = apply::commands(&geometry, name, mount_point, partition)?;
            Some((name.clone(), lines))
        });
        // In whole nanoseconds: trials end in any order, and a sum of fractions depends on it.
        let virtual_times = self.trials.iter().map(|trial| trial.outcome.virtual_time);
        let virtual_time = virtual_times.fold(Nanos(0), |sum, one| sum + one);
        let evidence = Evidence {
            card,
            samples: rows.iter().map(Row::sample).collect(),
            failures: failures(&self.trials),
            excluded: [&self.excluded, &self.not_comparable, &supplement.excluded()]
                .map(Vec::as_slice)
                .concat(),
            commands: commands.collect(),
            card_kinds: self.card_kinds(),
            card_uncertainty,
            fit_error,
            origin,
            partition_bytes: Some(geometry.partition_bytes),
            caveats: self.caveats.clone(),
            facts: facts::of_those(&question.candidates),
            counts: supplement.counts(),
            aside: rows_of(&self.aside).iter().map(Row::sample).collect(),
            trials: self.trials.len() as u64,
            virtual_s: virtual_time.as_secs_f64(),
            wall_s: self.begun.elapsed().as_secs_f64(),
        };
        let judged = judge(need, &evidence);
        let mut verdict = judged.map_err(|error| Error::new(ErrorKind::Trial, error))?;
        doubt_ranking(&mut verdict, need, &self.trials);
        Ok(verdict)
    }

    /// What kind of card each seed's trials ran on.
    fn card_kinds(&self) -> BTreeMap<u64, CardKind> {
        let seeds = self.trials.iter().map(|trial| trial.identity.seed);
        let kind = |seed| Some((seed, self.executor.card_kind(seed)?));
        seeds.filter_map(kind).collect()
    }

    /// Figures of the finished trials, and those of `supplement`.
    pub fn rows(&self, supplement: &dyn Supplement) -> Vec<Row> {
        let mut rows = rows_of(&self.trials);
        rows.extend(supplement.rows(&rows));
        rows
    }
}

/// What the rules of `need` leave open of the candidates `kept`, by name.
pub fn not_known(need: &Need, kept: &[CandidateFacts]) -> BTreeMap<String, Vec<String>> {
    let open = kept.iter().filter_map(|facts| {
        let told = format!("{} {}", facts.name, whichfs_study::not_known(need, facts)?);
        Some((facts.name.clone(), vec![told]))
    });
    open.collect()
}

/// The figures of those of `trials` that succeeded.
pub fn rows_of(trials: &[Trial]) -> Vec<Row> {
    let done = trials
        .iter()
        .filter(|trial| trial.outcome.status == Status::Done);
    done.flat_map(Row::of_trial).collect()
}

/// Those of `trials` that failed, with the reason.
pub fn failures(trials: &[Trial]) -> Vec<Failure> {
    let failure = |trial: &Trial| match &trial.outcome.status {
        Status::Done => None,
        Status::Failed { reason, .. } => Some(Failure {
            candidate: trial.identity.candidate.clone(),
            seed: trial.identity.seed,
            reason: reason.clone(),
        }),
    };
    trials.iter().filter_map(failure).collect()
}
