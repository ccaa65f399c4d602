//! The order of a device: fair to all candidates, with reference runs, and a budget of time and
//! bytes.
//!
//! A device warms up and wears while it is measured, so each repeat has a random order of its own.
//! A reference trial is repeated between the others to detect drift.

use super::{Cell, NextTrial, Schedule, State, Use};
use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::PreparedTrial;
use crate::trial_cache::TrialCache;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use whichfs_decide::{
    Budget, BudgetLimit, Counter, DeviceTurn, Drift, Ledger, ReferenceRun, TrialCost, drifts, order,
};
use whichfs_trial::{Identity, Status, Trial, TrialRecord};
use whichfs_units::{MIB, counted};
use whichfs_workload::Writes;

/// Seed of the order: the same trials run in the same order again.
const ORDER_SEED: u64 = 1;
/// Trials that fail with errors of the device, one after the other, until no more is asked of it.
const FAILURES_MAX: usize = 3;

/// What making a filesystem writes: this many bytes, and so great a part of its partition. Inode
/// tables of ext4 have a sixty-fourth (256 bytes for each 16 KiB, `mke2fs.conf`).
const MADE: u64 = MIB;
const MADE_PART: u64 = 64;

/// Bytes that `prepared` writes beside what a filesystem adds to them: those of its workload, and
/// what making the filesystem does.
pub(super) fn bytes_of(prepared: &impl PreparedTrial, writes: Writes) -> u64 {
    let made = match prepared.formats_bytes() {
        0 => 0,
        bytes => MADE + bytes / MADE_PART,
    };
    writes.bytes.saturating_add(made)
}

/// The order of trials on a device, what they may cost, and what they did.
pub struct Fair {
    /// What is to run, in this order.
    pub turns: Vec<DeviceTurn>,
    /// What it may cost.
    pub budget: Budget,
    /// What it has cost: time of this run, bytes of the session.
    pub spent: TrialCost,
    /// What of the budget was used up before the end.
    pub stopped: Option<BudgetLimit>,
    references: Vec<(u64, Trial)>,
    ledger: Ledger,
    run: Option<Run>,
    failures: usize,
}

/// The run under way.
struct Run {
    begun: Instant,
    /// Bytes of the session before it.
    before: u64,
    counter: Counter,
    /// What is yet to run.
    turns: std::vec::IntoIter<DeviceTurn>,
    under_way: Option<DeviceTurn>,
}

/// The session to which trials on the device called `card` belong: the last one, or a new one if
/// all is to be measured again.
///
/// # Errors
/// The store cannot be read.
pub fn session(cache: &mut TrialCache, card: &str) -> Outcome<u64> {
    let all = cache.measured_on(card)?;
    let sessions = all
        .iter()
        .filter_map(|one| one.trial.identity.measured.as_ref());
    let last = sessions.map(|measured| measured.session).max();
    let anew = cache.take_fresh();
    Ok(last.map_or(1, |last| last + u64::from(anew)))
}

/// The key under which costs of trials are looked up: the workload with its parameters.
fn load_of(identity: &Identity) -> String {
    format!(
        "{} {:?} {:?}",
        identity.workload, identity.parameters, identity.input
    )
}

/// What a finished trial has cost.
fn cost_of(stored: &TrialRecord) -> TrialCost {
    let conditions = stored.trial.outcome.conditions.as_ref();
    TrialCost {
        time: std::time::Duration::from_nanos(stored.wall_ns),
        bytes: conditions.map_or(0, |conditions| conditions.written_bytes),
    }
}

impl Fair {
    /// The order of what is missing in `matrix`, in session `session` of the device called `card`,
    /// with what the cache knows of that session.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of<K, P>(
        matrix: &[Cell<K, P>],
        cache: &TrialCache,
        (card, session): (&str, u64),
        budget: Budget,
    ) -> Outcome<Fair> {
        let (mut ledger, mut spent) = (Ledger::default(), TrialCost::default());
        let mut references = Vec::new();
        for stored in cache.measured_on(card)? {
            let identity = &stored.trial.identity;
            let cost = cost_of(&stored);
            ledger.record(&load_of(identity), &identity.candidate, cost);
            let Some(measured) = &identity.measured else {
                continue;
            };
            if measured.session != session {
                continue;
            }
            spent.bytes = spent.bytes.saturating_add(cost.bytes);
            let reference = measured.reference.unwrap_or_default();
            let is_ours = matrix
                .first()
                .is_some_and(|first| is_reference(&first.identity, identity));
            if is_ours && stored.trial.outcome.status == Status::Done {
                references.push((reference, stored.trial));
            }
        }
        let repeats: Vec<u64> = matrix.iter().map(|cell| cell.identity.seed).collect();
        let done: Vec<bool> = matrix.iter().map(|cell| cell.trial.is_some()).collect();
        let numbers = references.iter().map(|(number, _)| *number);
        let next = numbers.max().map_or(1, |last| last + 1);
        Ok(Fair {
            turns: order(&repeats, &done, ORDER_SEED, next),
            budget,
            spent,
            stopped: None,
            references,
            ledger,
            run: None,
            failures: 0,
        })
    }

    /// What `turn` will cost; its time is zero where it is not known.
    pub fn estimate<K, P>(&self, matrix: &[Cell<K, P>], turn: DeviceTurn) -> TrialCost {
        let Some(cell) = matrix.get(place(turn)) else {
            return TrialCost::default();
        };
        let identity = &cell.identity;
        self.ledger
            .estimate(&load_of(identity), &identity.candidate, cell.writes.bytes)
    }

    fn cells<'m, K, P>(&self, matrix: &'m [Cell<K, P>]) -> impl Iterator<Item = &'m Cell<K, P>> {
        let turns = self.turns.iter();
        turns.filter_map(|turn| matrix.get(place(*turn)))
    }

    /// Workloads of what is to run whose programs write what only they know.
    pub fn unknown<'m, K, P>(&self, matrix: &'m [Cell<K, P>]) -> BTreeSet<&'m str> {
        self.cells(matrix)
            .filter(|cell| cell.writes.unknown && !self.ledger.knows(&load_of(&cell.identity)))
            .map(|cell| cell.identity.workload.as_str())
            .collect()
    }

    /// Bytes that the largest of what is to run writes into files, as far as that is said, and
    /// bytes that all of it writes, as estimated.
    pub fn writes<K, P>(&self, matrix: &[Cell<K, P>]) -> (u64, u64) {
        let most = self.cells(matrix).map(|cell| cell.writes.bytes).max();
        let each = self.turns.iter();
        let each = each.map(|turn| self.estimate(matrix, *turn).bytes);
        (most.unwrap_or(0), each.fold(0_u64, u64::saturating_add))
    }

    /// Whether the time of all that is to run can be told.
    pub fn knows_time<K, P>(&self, matrix: &[Cell<K, P>]) -> bool {
        let mut all = self.cells(matrix);
        all.all(|cell| self.ledger.knows(&load_of(&cell.identity)))
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

    /// Brings `spent` up to date with the device's counter.
    fn count(&mut self, written: Option<u64>) {
        if let Some(run) = &mut self.run {
            self.spent = TrialCost {
                time: run.begun.elapsed(),
                bytes: run.before.saturating_add(run.counter.since(written)),
            };
        }
    }
}

impl<K, P> Schedule<K, P> for Fair {
    fn next(&mut self, matrix: &[Cell<K, P>], written: Option<u64>) -> Option<NextTrial> {
        let run = self.run.get_or_insert_with(|| Run {
            begun: Instant::now(),
            before: self.spent.bytes,
            counter: Counter::new(written),
            turns: std::mem::take(&mut self.turns).into_iter(),
            under_way: None,
        });
        if self.stopped.is_some() {
            return None;
        }
        let turn = run.turns.next()?;
        run.under_way = Some(turn);
        self.count(written);
        if let Err(used_up) = self.budget.check(&self.spent, &self.estimate(matrix, turn)) {
            self.stopped = Some(used_up);
            return None;
        }
        Some(NextTrial {
            at: place(turn),
            remark: match turn {
                DeviceTurn::Discarded => " (not counted: the first)".to_owned(),
                DeviceTurn::Reference(number) => format!(" (reference run {number})"),
                DeviceTurn::Trial(_) => String::new(),
            },
            write_limit: self.budget.bytes_left(&self.spent),
        })
    }

    fn ended(&mut self, _turn: &NextTrial, trial: &mut Trial, wall: Duration) -> Use {
        let turn = self.run.as_ref().and_then(|run| run.under_way);
        if let (Some(DeviceTurn::Reference(number)), Some(measured)) =
            (turn, &mut trial.identity.measured)
        {
            measured.reference = Some(number);
        }
        let conditions = trial.outcome.conditions.as_ref();
        let cost = TrialCost {
            time: wall,
            bytes: conditions.map_or(0, |found| found.written_bytes),
        };
        let identity = &trial.identity;
        self.ledger
            .record(&load_of(identity), &identity.candidate, cost);
        match turn {
            Some(DeviceTurn::Trial(_)) => Use::Result,
            Some(DeviceTurn::Reference(_)) => Use::Kept,
            Some(DeviceTurn::Discarded) | None => Use::Discarded,
        }
    }

    fn kept(&mut self, trial: &Trial, used: Use, written: Option<u64>) -> Outcome {
        let turn = self.run.as_ref().and_then(|run| run.under_way);
        if let (Use::Kept, Some(DeviceTurn::Reference(number))) = (used, turn)
            && trial.outcome.status == Status::Done
        {
            self.references.push((number, trial.clone()));
        }
        self.count(written);
        match is_of_device(&trial.outcome) {
            true => self.failures += 1,
            false => self.failures = 0,
        }
        match self.failures {
            FAILURES_MAX => Err(Error::new(
                ErrorKind::Trial,
                format!("{FAILURES_MAX} trials in a row failed with errors of the device"),
            )),
            _ => Ok(()),
        }
    }

    fn over_limit(&mut self, written: Option<u64>) {
        self.count(written);
        self.stopped = Some(BudgetLimit::Bytes);
    }

    fn explain(&self, error: Error, what: Option<&str>, state: &State<'_, K, P>) -> Error {
        let remedy = match (error.kind, what) {
            // Told once, when the run has ended.
            (ErrorKind::Interrupted, Some(_)) => return error,
            (ErrorKind::Interrupted, None) => "the same command goes on from there",
            (_, None) => "is it sound? (whichfs probe)",
            _ => "the same command goes on when the device is back",
        };
        let known = state.matrix.iter().filter_map(|cell| cell.trial.as_ref());
        let done = known.filter(|trial| trial.outcome.status == Status::Done);
        let message = format!(
            "{}; {} kept: {remedy}",
            error.message,
            counted(done.count(), "finished trial")
        );
        Error::new(error.kind, message)
    }
}

/// Place in the matrix of what runs at `turn`: the reference is the first.
fn place(turn: DeviceTurn) -> usize {
    match turn {
        DeviceTurn::Trial(at) => at,
        DeviceTurn::Discarded | DeviceTurn::Reference(_) => 0,
    }
}

/// Whether `identity` is of a reference run that repeats `first`.
fn is_reference(first: &Identity, identity: &Identity) -> bool {
    let mut same = identity.clone();
    let reference = same
        .measured
        .as_mut()
        .and_then(|measured| measured.reference.take());
    reference.is_some() && same == *first
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
fn is_of_device(outcome: &whichfs_trial::TrialOutcome) -> bool {
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
    use whichfs_trial::TrialOutcome;
    use whichfs_units::Nanos;

    #[test]
    fn errors_of_a_device_are_told_from_those_of_a_filesystem() {
        let outcome = |reason: &str, log: &str| TrialOutcome {
            status: Status::Failed {
                reason: reason.to_owned(),
                log: vec![log.to_owned()],
            },
            phases: Vec::new(),
            metrics: Vec::new(),
            trace_sha256: String::new(),
            virtual_time: Nanos(0),
            series: None,
            erase_spread: None,
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
        let done = TrialOutcome {
            status: Status::Done,
            ..outcome("", "")
        };
        assert!(!is_of_device(&done));
    }

    #[test]
    fn the_reference_is_the_first_of_the_matrix() {
        assert_eq!(place(DeviceTurn::Discarded), 0);
        assert_eq!(place(DeviceTurn::Reference(7)), 0);
        assert_eq!(place(DeviceTurn::Trial(3)), 3);
    }
}
