//! Trials on a device, one after the other: which are known, which run, in which order, what they
//! cost, and whether the device changed meanwhile.

use super::{DeviceExecutor, DeviceSession, Run};
use crate::consent::Consent;
use crate::error::{Error, ErrorKind, Outcome};
use crate::observer::{Observer, ProgressEvent};
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use whichfs_store::Stored;
use whichfs_study::{
    Budget, Cost, Counter, DeviceTurn as Turn, Drift, Ledger, ReferenceRun, Spent, drifts, order,
};
use whichfs_trial::{Identity, Status, Trial};
use whichfs_units::{MIB, Nanos, counted};
use whichfs_workload::Writes;

/// Seed of the order: the same trials run in the same order again.
const ORDER_SEED: u64 = 1;
/// Trials that fail with errors of the device, one after the other, until no more is asked of it.
const FAILURES_MAX: usize = 3;

/// What making a filesystem writes: this many bytes, and so great a part of its partition. Inode
/// tables of ext4 have a sixty-fourth (256 bytes for each 16 KiB, `mke2fs.conf`).
const MADE: u64 = MIB;
const MADE_PART: u64 = 64;
/// How often a trial is run again whose machine was suspended or stopped in it.
const AGAIN_MAX: usize = 2;

/// A trial of a campaign, and what it is of.
pub struct Planned<'a> {
    /// The trial.
    pub run: Run,
    /// What it measures.
    pub work: &'a WorkloadRun,
    /// What its workload writes.
    pub writes: Writes,
}

impl Planned<'_> {
    /// Bytes that it writes beside what a filesystem adds to them: the workload's, and what making
    /// the filesystem does.
    fn bytes(&self) -> u64 {
        let made = match self.run.commands.is_empty() {
            true => 0,
            false => MADE + self.run.span.bytes / MADE_PART,
        };
        self.writes.bytes.saturating_add(made)
    }
}

/// Trials on a device: planned, known, to be run.
pub struct Campaign<'a> {
    /// All of them.
    pub planned: Vec<Planned<'a>>,
    /// Those that are known, at the same places.
    pub known: Vec<Option<Trial>>,
    /// What is to run, in this order.
    pub turns: Vec<Turn>,
    /// What it may cost.
    pub budget: Budget,
    /// What it has cost: time of this run, bytes of the session.
    pub spent: Cost,
    /// What of the budget was used up before the end.
    pub stopped: Option<Spent>,
    references: Vec<(u64, Trial)>,
    ledger: Ledger,
}

/// The session to which trials on the device called `card` belong: the last one, or a new one if
/// all is to be measured again.
///
/// # Errors
/// The store cannot be read.
pub fn session(keeper: &mut TrialCache, card: &str) -> Outcome<u64> {
    let all = keeper.measured_on(card)?;
    let sessions = all
        .iter()
        .filter_map(|one| one.trial.identity.measured.as_ref());
    let last = sessions.map(|measured| measured.session).max();
    let anew = keeper.take_fresh();
    Ok(last.map_or(1, |last| last + u64::from(anew)))
}

/// What trials cost is told by: the workload with its parameters.
fn load_of(identity: &Identity) -> String {
    format!(
        "{} {:?} {:?}",
        identity.workload, identity.parameters, identity.input
    )
}

/// What a finished trial has cost.
fn cost_of(stored: &Stored) -> Cost {
    let conditions = stored.trial.outcome.conditions.as_ref();
    Cost {
        time: std::time::Duration::from_nanos(stored.wall_ns),
        bytes: conditions.map_or(0, |conditions| conditions.written_bytes),
    }
}

impl<'a> Campaign<'a> {
    /// Looks what is known of `planned`, and orders the rest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn new(
        site: &DeviceExecutor,
        planned: Vec<Planned<'a>>,
        keeper: &mut TrialCache,
        budget: Budget,
    ) -> Outcome<Campaign<'a>> {
        let mut known = Vec::new();
        for one in &planned {
            known.push(keeper.known(&one.run.identity)?);
        }
        let (mut ledger, mut spent) = (Ledger::default(), Cost::default());
        let mut references = Vec::new();
        for stored in keeper.measured_on(site.id())? {
            let identity = &stored.trial.identity;
            let cost = cost_of(&stored);
            ledger.record(&load_of(identity), &identity.candidate, cost);
            let Some(measured) = &identity.measured else {
                continue;
            };
            if measured.session != site.session {
                continue;
            }
            spent.bytes = spent.bytes.saturating_add(cost.bytes);
            let reference = measured.reference.unwrap_or_default();
            let is_ours = planned
                .first()
                .is_some_and(|one| is_reference(&one.run, identity));
            if is_ours && stored.trial.outcome.status == Status::Done {
                references.push((reference, stored.trial));
            }
        }
        let repeats: Vec<u64> = planned.iter().map(|one| one.run.identity.seed).collect();
        let done: Vec<bool> = known.iter().map(Option::is_some).collect();
        let numbers = references.iter().map(|(number, _)| *number);
        let next = numbers.max().map_or(1, |last| last + 1);
        Ok(Campaign {
            turns: order(&repeats, &done, ORDER_SEED, next),
            planned,
            known,
            budget,
            spent,
            stopped: None,
            references,
            ledger,
        })
    }

    /// What `turn` will cost; its time is zero where it is not known.
    pub fn estimate(&self, turn: Turn) -> Cost {
        let Some(one) = self.planned.get(place(turn)) else {
            return Cost::default();
        };
        let identity = &one.run.identity;
        self.ledger
            .estimate(&load_of(identity), &identity.candidate, one.bytes())
    }

    /// Workloads of what is to run whose programs write what only they know.
    pub fn unknown(&self) -> BTreeSet<&str> {
        let planned = self.turns.iter();
        let planned = planned.filter_map(|turn| self.planned.get(place(*turn)));
        planned
            .filter(|one| one.writes.unknown && !self.ledger.knows(&load_of(&one.run.identity)))
            .map(|one| one.run.workload.name())
            .collect()
    }

    /// Bytes that the largest of what is to run writes into files, as far as that is said, and
    /// bytes that all of it writes, as estimated.
    pub fn writes(&self) -> (u64, u64) {
        let planned = self.turns.iter();
        let most = planned.filter_map(|turn| Some(self.planned.get(place(*turn))?.bytes()));
        let each = self.turns.iter().map(|turn| self.estimate(*turn).bytes);
        (
            most.max().unwrap_or(0),
            each.fold(0_u64, u64::saturating_add),
        )
    }

    /// Whether the time of all that is to run can be told.
    pub fn knows_time(&self) -> bool {
        let mut all = self
            .turns
            .iter()
            .filter_map(|turn| self.planned.get(place(*turn)));
        all.all(|one| self.ledger.knows(&load_of(&one.run.identity)))
    }

    /// Changes of the device from reference run to reference run.
    pub fn drifts(&self) -> Vec<Drift> {
        // By their numbers: clocks of boards jump.
        let run = |(number, trial): &(u64, Trial)| ReferenceRun {
            at: *number as f64,
            figures: figures(trial),
        };
        drifts(&self.references.iter().map(run).collect::<Vec<_>>())
    }

    /// Reference runs that are known.
    pub fn references(&self) -> usize {
        self.references.len()
    }

    /// Runs what is to run, on the device of `site`, whose data the user has given up with
    /// `destroy`; `name` is what the journal calls it.
    ///
    /// # Errors
    /// The device is in use, another, or gone; the user's interrupt. What was finished is kept.
    pub fn run(
        &mut self,
        site: &DeviceExecutor,
        name: &str,
        keeper: &mut TrialCache,
        interrupted: &AtomicBool,
        progress: &mut dyn Observer,
    ) -> Outcome {
        keeper.require_writable()?;
        let session = DeviceSession::begin(site, name)?;
        let (begun, spent) = (Instant::now(), self.spent.bytes);
        let mut counter = Counter::new(session.written());
        let mut failures = 0;
        for turn in std::mem::take(&mut self.turns) {
            self.spent = Cost {
                time: begun.elapsed(),
                bytes: spent.saturating_add(counter.since(session.written())),
            };
            if let Err(used_up) = self.budget.check(&self.spent, &self.estimate(turn)) {
                self.stopped = Some(used_up);
                break;
            }
            let left = self.budget.bytes_left(&self.spent);
            let trial = self.turn(turn, left, &session, keeper, interrupted, progress);
            let trial = trial.map_err(|failure| match failure.kind {
                ErrorKind::Interrupted => {
                    self.with_kept(failure, "the same command goes on from there")
                }
                _ => self.with_kept(failure, "the same command goes on when the device is back"),
            })?;
            let Some(trial) = trial else {
                self.spent.bytes = spent.saturating_add(counter.since(session.written()));
                self.stopped = Some(Spent::Bytes);
                break;
            };
            failures = if is_of_device(&trial.outcome) {
                failures + 1
            } else {
                0
            };
            if failures == FAILURES_MAX {
                let failure = Error::new(
                    ErrorKind::Trial,
                    format!("{FAILURES_MAX} trials in a row failed with errors of the device"),
                );
                return Err(
                    self.with_kept(failure, "is it sound? (whichfs probe --write --capacity)")
                );
            }
        }
        session.end()
    }

    /// `failure`, with what is kept and what to do.
    fn with_kept(&self, failure: Error, remedy: &str) -> Error {
        let done = |trial: &&Trial| trial.outcome.status == Status::Done;
        let kept = self.known.iter().flatten().filter(done).count();
        let message = format!(
            "{}; {} kept: {remedy}",
            failure.message,
            counted(kept, "finished trial")
        );
        Error::new(failure.kind, message)
    }

    /// Runs one, which may write `most` bytes, and keeps it; `None` if it wrote more and was
    /// ended.
    fn turn(
        &mut self,
        turn: Turn,
        most: Option<u64>,
        session: &DeviceSession<'_>,
        keeper: &mut TrialCache,
        interrupted: &AtomicBool,
        progress: &mut dyn Observer,
    ) -> Outcome<Option<Trial>> {
        let one = &self.planned[place(turn)];
        let what = match turn {
            Turn::Discarded => format!("{} (not counted: the first)", one.run.label),
            Turn::Reference(number) => format!("{} (reference run {number})", one.run.label),
            Turn::Trial(_) => one.run.label.clone(),
        };
        progress.hear(&ProgressEvent::Begun {
            worker: 0,
            what: what.clone(),
        });
        let begun = Instant::now();
        let trial = undisturbed(one, &what, most, session, interrupted, progress)?;
        let Some(mut trial) = trial else {
            return Ok(None);
        };
        one.work.check_tree()?;
        let wall = begun.elapsed();
        if let (Turn::Reference(number), Some(measured)) = (turn, &mut trial.identity.measured) {
            measured.reference = Some(number);
        }
        let (load, candidate) = (load_of(&trial.identity), trial.identity.candidate.clone());
        let bytes = trial
            .outcome
            .conditions
            .as_ref()
            .map_or(0, |found| found.written_bytes);
        self.ledger
            .record(&load, &candidate, Cost { time: wall, bytes });
        match turn {
            Turn::Discarded => {}
            Turn::Reference(number) => {
                keeper.keep(&trial, wall)?;
                if trial.outcome.status == Status::Done {
                    self.references.push((number, trial.clone()));
                }
            }
            Turn::Trial(at) => {
                keeper.keep(&trial, wall)?;
                self.known[at] = Some(trial.clone());
            }
        }
        progress.hear(&ProgressEvent::Ended {
            worker: 0,
            what,
            trial: Box::new(trial.clone()),
            wall,
        });
        Ok(Some(trial))
    }
}

/// Has the agent do `one`, which is called `what`: again, if something kept it from measuring. A
/// trial that is disturbed again and again has failed: nothing of it is believed.
fn undisturbed(
    one: &Planned<'_>,
    what: &str,
    most: Option<u64>,
    session: &DeviceSession<'_>,
    interrupted: &AtomicBool,
    progress: &mut dyn Observer,
) -> Outcome<Option<Trial>> {
    let begin = session.written();
    let mut counter = Counter::new(begin);
    let mut on_phase = |phase: &str, at: Nanos| {
        progress.hear(&ProgressEvent::Phase {
            worker: 0,
            phase: phase.to_owned(),
            at,
        });
    };
    let mut again = 0;
    loop {
        let left = most.map(|most| most.saturating_sub(counter.since(session.written())));
        let trial = session.run_within(&one.run, left, interrupted, &mut on_phase)?;
        let Some(mut trial) = trial else {
            return Ok(None);
        };
        let Some(why) = disturbance(&trial.outcome) else {
            return Ok(Some(trial));
        };
        if again == AGAIN_MAX {
            trial.outcome.metrics.clear();
            trial.outcome.status = Status::Failed {
                reason: format!(
                    "disturbed {} times, at last because {why}: leave the machine alone meanwhile",
                    again + 1
                ),
                log: Vec::new(),
            };
            return Ok(Some(trial));
        }
        again += 1;
        log::warn!("{what}: {why}; it is run again");
    }
}

/// What kept a finished trial from measuring, if something did.
fn disturbance(outcome: &whichfs_trial::Outcome) -> Option<String> {
    match outcome.status {
        Status::Done => outcome.conditions.as_ref()?.disturbed(),
        Status::Failed { .. } => None,
    }
}

/// Asks for the consent to destroy what is on the disk of `site`.
///
/// # Errors
/// Not named, another one named, in use.
pub fn confirm(site: &mut DeviceExecutor, consent: &dyn Consent) -> Outcome {
    site.around.confirm(&site.device, consent)
}

/// Place in the matrix of what runs at `turn`: the reference is the first.
fn place(turn: Turn) -> usize {
    match turn {
        Turn::Trial(at) => at,
        Turn::Discarded | Turn::Reference(_) => 0,
    }
}

/// Whether `identity` is of a reference run that repeats `run`.
fn is_reference(run: &Run, identity: &Identity) -> bool {
    let mut same = identity.clone();
    let reference = same
        .measured
        .as_mut()
        .and_then(|measured| measured.reference.take());
    reference.is_some() && same == run.identity
}

/// Figures of a trial that a change is seen by.
fn figures(trial: &Trial) -> BTreeMap<String, f64> {
    let metrics = trial.outcome.metrics.iter();
    let counted = metrics.filter(|metric| !whichfs_trial::is_use_of_phase(&metric.metric));
    counted
        .map(|metric| (metric.metric.clone(), metric.value))
        .collect()
}

/// Whether the trial failed because the device did not do what it was asked.
fn is_of_device(outcome: &whichfs_trial::Outcome) -> bool {
    let Status::Failed { reason, log } = &outcome.status else {
        return false;
    };
    let says = |text: &String| {
        ["EIO", "I/O error", "Input/output error"]
            .iter()
            .any(|word| text.contains(word))
    };
    says(reason) || log.iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_trial::Outcome;
    use whichfs_units::Nanos;

    #[test]
    fn errors_of_a_device_are_told_from_those_of_a_filesystem() {
        let outcome = |reason: &str, log: &str| Outcome {
            status: Status::Failed {
                reason: reason.to_owned(),
                log: vec![log.to_owned()],
            },
            phases: Vec::new(),
            metrics: Vec::new(),
            trace_sha256: String::new(),
            virtual_time: Nanos(0),
            series: None,
            conditions: None,
        };
        assert!(is_of_device(&outcome(
            "write /a: EIO: Input/output error",
            ""
        )));
        assert!(is_of_device(&outcome(
            "mkfs failed",
            "I/O error, dev sda, sector 0"
        )));
        assert!(!is_of_device(&outcome(
            "write /a: ENOSPC: the filesystem is full",
            ""
        )));
        let done = Outcome {
            status: Status::Done,
            ..outcome("", "")
        };
        assert!(!is_of_device(&done));
    }

    #[test]
    fn only_a_finished_trial_is_disturbed() {
        let outcome = |status, stopped| Outcome {
            status,
            phases: Vec::new(),
            metrics: Vec::new(),
            trace_sha256: String::new(),
            virtual_time: Nanos(0),
            series: None,
            conditions: Some(whichfs_trial::Conditions {
                stopped: Nanos(stopped),
                ..whichfs_trial::Conditions::default()
            }),
        };
        assert_eq!(disturbance(&outcome(Status::Done, 0)), None);
        let why = disturbance(&outcome(Status::Done, 2_000_000_000)).unwrap_or_default();
        assert!(why.contains("stopped for 2"), "{why}");
        let failed = Status::Failed {
            reason: "full".to_owned(),
            log: Vec::new(),
        };
        assert_eq!(disturbance(&outcome(failed, 2_000_000_000)), None);
    }

    #[test]
    fn the_reference_is_the_first_of_the_matrix() {
        assert_eq!(place(Turn::Discarded), 0);
        assert_eq!(place(Turn::Reference(7)), 0);
        assert_eq!(place(Turn::Trial(3)), 3);
    }
}
