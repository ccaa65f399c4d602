//! A campaign: a matrix of trials on one executor, a trial cache, an order and a budget.
//!
//! A policy (`choose`, `study run`, a choice on a device) decides which trials it wants and what
//! their figures mean. The campaign does the rest, and does it in one place: it prepares trials,
//! looks them up, runs those that are missing in the order of a [`Schedule`], keeps each before
//! anybody hears that it ended, and goes on from there after an interruption.

mod dispatch;
mod evidence;
mod fair;
mod in_order;

pub use evidence::{Gathered, failures, not_known, rows_of};
pub use fair::{Fair, session};
pub use in_order::InOrder;

use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::{Executor, Lease, PreparedTrial, TrialSpec};
use crate::images::Images;
use crate::observer::{Observer, ProgressEvent};
use crate::prepare_error::PrepareError;
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use dispatch::{Assignment, Conductor, Ended, dispatch};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use whichfs_trial::{Identity, Trial};
use whichfs_workload::Writes;

/// A trial that a policy wants.
pub struct Wanted<'w, K> {
    /// What the policy knows it by.
    pub key: K,
    /// What decides the trial's result.
    pub spec: TrialSpec<'w>,
    /// What it is called, if not what the executor calls it.
    pub label: Option<String>,
    /// What its workload writes, where a budget asks for it.
    pub writes: Writes,
}

impl<'w, K> Wanted<'w, K> {
    /// The trial of `spec`, called as the executor calls it, of which no budget asks.
    pub fn of(key: K, spec: TrialSpec<'w>) -> Wanted<'w, K> {
        Wanted {
            key,
            spec,
            label: None,
            writes: Writes::default(),
        }
    }
}

/// What became of a trial that was wanted.
pub enum WantedTrial {
    /// It will be run, or its result is in the trial cache.
    InMatrix {
        /// Index into the matrix.
        at: usize,
        /// What its figures leave out.
        caveats: Vec<String>,
    },
    /// Its candidate cannot run here.
    LeftOut {
        /// One sentence, with the remedy where there is one.
        why: String,
        /// Where the limit comes from.
        source: Option<String>,
    },
}

/// Which trials of the cache are as good as those that would be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Those with figures; failed ones run again.
    Done,
    /// Also failed ones: failing is an answer.
    Any,
}

/// A place of the matrix.
pub struct Cell<K, P> {
    /// What policies know the trial by: variants that come to the same commands share one.
    pub keys: Vec<K>,
    /// Everything that decides its result.
    pub identity: Identity,
    /// What it is called.
    pub label: String,
    /// Bytes that it is expected to write, beside what its filesystem adds; and whether programs
    /// write more.
    pub writes: Writes,
    /// Its record, once it is known.
    pub trial: Option<Trial>,
    /// What runs, while it may be needed.
    prepared: Option<Arc<P>>,
    /// The user's tree that it reads, with its digest.
    tree: Option<WorkloadRun>,
}

impl<K, P> Cell<K, P> {
    /// The trial that would run.
    pub fn prepared(&self) -> Option<&P> {
        self.prepared.as_deref()
    }
}

/// What runs next.
pub struct NextTrial {
    /// Place in the matrix.
    pub at: usize,
    /// What is added to its label.
    pub remark: String,
    /// Bytes that it may write.
    pub write_limit: Option<u64>,
}

/// What becomes of a trial that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is the trial of its place: kept and counted.
    Result,
    /// It is kept for comparison.
    Kept,
    /// It counts nowhere.
    Discarded,
}

/// The order of a campaign, with its budget: which place of the matrix runs next, and whether any.
pub trait Schedule<K, P> {
    /// The next turn, if there is one; `written` is what the device has counted so far.
    fn next(&mut self, matrix: &[Cell<K, P>], written: Option<u64>) -> Option<NextTrial>;

    /// Takes the trial of `turn`, which took `wall`, before it is kept: what is to become of it.
    fn ended(&mut self, turn: &NextTrial, trial: &mut Trial, wall: Duration) -> Use;

    /// Takes a trial whose record is kept; `written` is what the device has counted so far.
    ///
    /// # Errors
    /// Nothing more is to be begun.
    fn kept(&mut self, trial: &Trial, used: Use, written: Option<u64>) -> Outcome;

    /// Takes a turn that was ended since it reached its write limit.
    fn over_limit(&mut self, written: Option<u64>);

    /// The error of a run, with what is kept and what to do; `what` had failed, if it was a trial.
    fn explain(&self, error: Error, what: Option<&str>, state: &State<'_, K, P>) -> Error;
}

/// What a message about a run may mention.
pub struct State<'s, K, P> {
    /// Every planned trial, run or not.
    pub matrix: &'s [Cell<K, P>],
    /// Finished trials by digest.
    pub cache: &'s TrialCache,
}

/// Trials of one policy: wanted, known, run and kept.
pub struct Campaign<'a, E: Executor, K> {
    /// Finished trials.
    pub cache: TrialCache,
    matrix: Vec<Cell<K, E::Prepared>>,
    places: BTreeMap<String, usize>,
    /// Places in the order in which their trials became known.
    order: Vec<usize>,
    answers: Answers,
    interrupted: &'a AtomicBool,
}

impl<'a, E: Executor, K: Clone + PartialEq> Campaign<'a, E, K> {
    /// A campaign without trials, which ends when `interrupted` is set.
    pub fn new(cache: TrialCache, interrupted: &'a AtomicBool) -> Campaign<'a, E, K> {
        Campaign {
            cache,
            matrix: Vec::new(),
            places: BTreeMap::new(),
            order: Vec::new(),
            answers: Answers::Done,
            interrupted,
        }
    }

    /// Which trials of the cache count from now on.
    pub fn accept(&mut self, answers: Answers) {
        self.answers = answers;
    }

    /// All places, in the order in which they were wanted first.
    pub fn matrix(&self) -> &[Cell<K, E::Prepared>] {
        &self.matrix
    }

    /// The trials that are known, in the order in which they became so.
    pub fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.trials_at(|_| true)
    }

    /// Those of them whose places in the matrix are `wanted`.
    pub fn trials_at(&self, wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = &Trial> {
        let known = self.order.iter().filter(move |at| wanted(**at));
        known.filter_map(|at| self.matrix[*at].trial.as_ref())
    }

    /// The same, each with what the policy knows it by: once for every key.
    pub fn by_key(&self) -> impl Iterator<Item = (&K, &Trial)> {
        let known = self.order.iter().map(|at| &self.matrix[*at]);
        known.flat_map(|cell| {
            let trial = cell.trial.as_ref();
            cell.keys.iter().filter_map(move |key| Some((key, trial?)))
        })
    }

    /// The trials that are known, in the order of the matrix.
    pub fn matrix_trials(&self) -> Vec<Trial> {
        let known = self.matrix.iter().filter_map(|cell| cell.trial.clone());
        known.collect()
    }

    /// Places whose trials are to be run.
    pub fn missing(&self) -> impl Iterator<Item = &Cell<K, E::Prepared>> {
        self.matrix.iter().filter(|cell| cell.trial.is_none())
    }

    /// Whether the caller has asked for an end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Prepares what is `wanted` on `executor`, and looks up what is known of it: what became of
    /// each. `about` says what an error that ends the campaign is about.
    ///
    /// # Errors
    /// The caller's interruption; what is wrong beside a candidate; the store cannot be read.
    pub fn plan<'w>(
        &mut self,
        executor: &E,
        wanted: impl IntoIterator<Item = Wanted<'w, K>>,
        images: &Images<'_>,
        about: &dyn Fn(&K, Error) -> Error,
    ) -> Outcome<Vec<WantedTrial>> {
        let mut planned = Vec::new();
        for Wanted {
            key,
            spec,
            label,
            writes,
        } in wanted
        {
            if self.is_interrupted() {
                return Err(self.cache.interrupted());
            }
            match executor.prepare(&spec, images) {
                Ok(mut prepared) => {
                    label
                        .into_iter()
                        .for_each(|label| prepared.set_label(label));
                    let caveats = prepared.caveats().to_vec();
                    let at = self.place(key, prepared, spec.work, writes)?;
                    planned.push(WantedTrial::InMatrix { at, caveats });
                }
                // The tool that builds an image gets the signal too, and fails.
                Err(PrepareError::Failed(_)) if self.is_interrupted() => {
                    return Err(self.cache.interrupted());
                }
                Err(PrepareError::Failed(error)) => return Err(about(&key, error)),
                Err(PrepareError::Excluded { why, source }) => {
                    planned.push(WantedTrial::LeftOut { why, source });
                }
            }
        }
        Ok(planned)
    }

    /// The place of `prepared` in the matrix, which it gets if it has none.
    fn place(
        &mut self,
        key: K,
        prepared: E::Prepared,
        work: &WorkloadRun,
        writes: Writes,
    ) -> Outcome<usize> {
        let id = prepared.identity().id();
        if let Some(at) = self.places.get(&id) {
            let cell = &mut self.matrix[*at];
            if !cell.keys.contains(&key) {
                cell.keys.push(key);
                // Its figures count for each key, so they are reused for each.
                let reused = cell.trial.is_some() && self.answers == Answers::Done;
                self.cache.reused += usize::from(reused);
            }
            return Ok(*at);
        }
        let identity = prepared.identity().clone();
        let trial = match self.answers {
            Answers::Done => self.cache.known(&identity)?,
            Answers::Any => self.cache.answered(&identity)?,
        };
        let at = self.matrix.len();
        self.places.insert(id, at);
        self.order.extend(trial.is_some().then_some(at));
        self.matrix.push(Cell {
            keys: vec![key],
            label: prepared.label().to_owned(),
            writes: Writes {
                bytes: fair::bytes_of(&prepared, writes),
                ..writes
            },
            // The first is the reference of a fair order, whether it is known or not.
            prepared: (trial.is_none() || at == 0).then(|| Arc::new(prepared)),
            tree: work.tree.is_some().then(|| work.clone()),
            identity,
            trial,
        });
        Ok(at)
    }

    /// Runs what is missing on `executor`, leased for trials called `name`, in the order of
    /// `schedule`. Each trial is in the cache before `observer` hears that it ended.
    ///
    /// # Errors
    /// What is no trial's own failure: this machine, the device, the store, the caller's
    /// interruption. What was finished is kept.
    pub fn run(
        &mut self,
        executor: &E,
        name: &str,
        schedule: &mut dyn Schedule<K, E::Prepared>,
        observer: &mut dyn Observer,
    ) -> Outcome {
        self.cache.require_writable()?;
        let missing = self.missing().count();
        let slots = executor.capabilities().slots.clamp(1, missing.max(1));
        let lease = executor.lease(name)?;
        let interrupted = self.interrupted;
        let mut running = Running {
            lease: &lease,
            campaign: self,
            schedule,
            observer,
            turns: BTreeMap::new(),
        };
        let ended = dispatch(&lease, slots, interrupted, &mut running);
        ended.map_err(|error| {
            let state = State {
                matrix: &self.matrix,
                cache: &self.cache,
            };
            match error.kind {
                ErrorKind::Interrupted => schedule.explain(error, None, &state),
                _ => error,
            }
        })?;
        lease.end()
    }
}

/// A run of a campaign.
struct Running<'r, 'a, E: Executor, K, L> {
    lease: &'r L,
    campaign: &'r mut Campaign<'a, E, K>,
    schedule: &'r mut dyn Schedule<K, E::Prepared>,
    observer: &'r mut dyn Observer,
    /// Turns under way, by place.
    turns: BTreeMap<usize, NextTrial>,
}

impl<E: Executor, K: Clone + PartialEq, L: Lease<E::Prepared>> Conductor<E::Prepared>
    for Running<'_, '_, E, K, L>
{
    fn next(&mut self) -> Option<Assignment<E::Prepared>> {
        let matrix = &self.campaign.matrix;
        let turn = self.schedule.next(matrix, self.lease.written())?;
        let cell = matrix.get(turn.at)?;
        let assignment = Assignment {
            prepared: cell.prepared.clone()?,
            at: turn.at,
            what: format!("{}{}", cell.label, turn.remark),
            write_limit: turn.write_limit,
        };
        self.turns.insert(turn.at, turn);
        Some(assignment)
    }

    fn hear(&mut self, event: &ProgressEvent) {
        self.observer.hear(event);
    }

    fn ended(&mut self, ended: Ended) -> Outcome {
        let Ended {
            at,
            what,
            worker,
            trial,
            wall,
        } = ended;
        let Some(turn) = self.turns.remove(&at) else {
            return Ok(());
        };
        let campaign = &mut *self.campaign;
        let mut trial = match trial {
            Ok(Some(trial)) => trial,
            Ok(None) => {
                self.schedule.over_limit(self.lease.written());
                return Ok(());
            }
            Err(error) => {
                let state = State {
                    matrix: &campaign.matrix,
                    cache: &campaign.cache,
                };
                return Err(self.schedule.explain(error, Some(&what), &state));
            }
        };
        let cell = &mut campaign.matrix[at];
        if let Some(work) = &cell.tree {
            work.check_tree()?;
        }
        let used = self.schedule.ended(&turn, &mut trial, wall);
        if used != Use::Discarded {
            campaign.cache.keep(&trial, wall)?;
        }
        if used == Use::Result {
            cell.trial = Some(trial.clone());
            campaign.order.push(at);
            if at > 0 {
                cell.prepared = None;
            }
        }
        self.observer.hear(&ProgressEvent::Ended {
            worker,
            what,
            trial: Box::new(trial.clone()),
            wall,
        });
        let kept = self.schedule.kept(&trial, used, self.lease.written());
        let state = State {
            matrix: &campaign.matrix,
            cache: &campaign.cache,
        };
        kept.map_err(|error| self.schedule.explain(error, None, &state))
    }
}
