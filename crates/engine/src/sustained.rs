//! Sustained trials of a choice: what the candidates that could win write in the long run.
//!
//! The executor is a small card with the share of spare area of the large one, which a trial can
//! write several times over. For each candidate two trials run there: one tells how much room a new
//! filesystem has, the other fills it and writes several times the spare area.

use crate::campaign::WantedTrial;
use crate::choose::Choice;
use crate::error::Outcome;
use crate::executor::{Executor, TrialSpec};
use crate::images::Images;
use crate::observer::Observer;
use crate::workload_run::WorkloadRun;
use std::collections::BTreeMap;
use whichfs_decide::plan::{MORE_SEEDS_WITHIN, PlannedTrial};
use whichfs_decide::sustained::{FILL_PERMILLE, Lasting, PEAK_PERMILLE, ROUNDS, round_bytes};
use whichfs_decide::{LongUse, SUSTAINED, Verdict};
use whichfs_trial::{Status, Trial};
use whichfs_units::{Bytes, MIB};

/// Bytes of the files of the trial that tells what is free: as few as its workload takes.
const FEW_BYTES: u64 = 2 * MIB;

/// A trial, or why there is none.
pub(crate) type Told = Result<Trial, String>;

impl<E: Executor> Choice<'_, E> {
    /// Runs the sustained trials that `verdict` calls for: of the leader, those near it and the
    /// baseline. True if the verdict may be another one now.
    ///
    /// # Errors
    /// As [`Choice::decide`].
    pub(crate) fn sustain(
        &mut self,
        verdict: &Verdict,
        observer: &mut dyn Observer,
    ) -> Outcome<bool> {
        let long = self.question.need.sustained.clone();
        let (Some(executor), Some(long)) = (self.long_executor, long) else {
            return Ok(false);
        };
        let names: Vec<String> = lacking(verdict, self.question.need.baseline.as_deref())
            .filter(|name| !self.sustained.contains(*name))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return Ok(false);
        }
        self.sustained.extend(names.iter().cloned());
        for (name, told) in self.sustained_trials(executor, &long, names, observer)? {
            let lasting = told.as_ref().ok().and_then(Lasting::of);
            match (told, lasting) {
                (Ok(trial), Some(lasting)) => {
                    match lasting.caveat() {
                        Some(caveat) if lasting.leaves_out() => {
                            self.found.add_caveat(&name, caveat);
                        }
                        unsettled => self
                            .found
                            .unsettled
                            .extend(unsettled.map(|told| (name, told))),
                    }
                    self.found.sustained.push(trial);
                }
                (Ok(_), None) => self.not_sustained(&name, "the card counts nothing"),
                (Err(why), _) => self.not_sustained(&name, &why),
            }
        }
        Ok(true)
    }

    /// The sustained trials of candidates on `executor`: what is free first, then the long run.
    ///
    /// # Errors
    /// As [`Choice::decide`].
    pub(crate) fn sustained_trials(
        &mut self,
        executor: &E,
        long: &LongUse,
        names: Vec<String>,
        observer: &mut dyn Observer,
    ) -> Outcome<Vec<(String, Told)>> {
        let empty = WorkloadRun::named("mkfs", &[("bytes".to_owned(), FEW_BYTES)].into())?;
        let empty = names.into_iter().map(|name| (name, empty.clone()));
        let (mut runs, mut rooms, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for (name, told) in self.trials_on(executor, empty.collect(), observer)? {
            match told.and_then(|trial| used_bytes(&trial)) {
                Ok(used) => {
                    let parameters = long_run(executor, long, used);
                    rooms.push(room(&parameters, executor, used));
                    runs.push((name, WorkloadRun::named(SUSTAINED, &parameters)?));
                }
                Err(why) => all.push((name, Err(why))),
            }
        }
        let told = self.trials_on(executor, runs, observer)?.into_iter();
        all.extend(told.zip(rooms).map(|((name, told), room)| {
            let lacked = |why: String| if why.contains(NO_SPACE) { room } else { why };
            (name, told.map_err(lacked))
        }));
        Ok(all)
    }

    fn not_sustained(&mut self, name: &str, why: &str) {
        let caveat =
            format!("sustained: not measured, so its figures in the long run do not count: {why}");
        self.found.add_caveat(name, caveat);
    }

    /// The trials of candidates, each with what is to be measured, on `executor`.
    fn trials_on(
        &mut self,
        executor: &E,
        runs: Vec<(String, WorkloadRun)>,
        observer: &mut dyn Observer,
    ) -> Outcome<Vec<(String, Told)>> {
        let tell = |what: &str| log::info!("{what}");
        let images = Images::new(&tell);
        let seed = self.question.first_seed;
        let made = runs.iter().map(|(name, _)| self.question.asked(name));
        let made = made.collect::<Outcome<Vec<_>>>()?;
        let of_each = runs.iter().zip(&made);
        let wanted = of_each.map(|((name, work), (candidate, variant))| {
            let key = PlannedTrial {
                candidate: name.clone(),
                seed,
            };
            let spec = TrialSpec {
                candidate,
                work,
                variant,
                seed,
            };
            (key, spec)
        });
        let wanted = wanted.collect();
        let planned = self.plan_on(executor, wanted, &images)?;
        self.run_missing(executor, 0, observer)?;
        let told = |planned: WantedTrial| match planned {
            WantedTrial::LeftOut { why, .. } => Err(why),
            WantedTrial::InMatrix { at, .. } => match self.trial_at(at) {
                None => Err("it did not run".to_owned()),
                Some(trial) => match &trial.outcome.status {
                    Status::Done => Ok(trial.clone()),
                    Status::Failed { reason, .. } => Err(reason.clone()),
                },
            },
        };
        let names = runs.into_iter().map(|(name, _)| name);
        Ok(names.zip(planned.into_iter().map(told)).collect())
    }
}

/// The candidates of `verdict` whose figures in the long run can change who wins, and `baseline`,
/// beside which all are measured.
fn lacking<'v>(verdict: &'v Verdict, baseline: Option<&str>) -> impl Iterator<Item = &'v str> {
    let leader = verdict.ranking.first().map_or(0.0, |leader| leader.score);
    let ranking = verdict.ranking.iter();
    ranking
        .filter(move |one| {
            one.score * MORE_SEEDS_WITHIN >= leader || Some(one.candidate.as_str()) == baseline
        })
        .map(|one| one.candidate.as_str())
}

/// Bytes that a new filesystem takes by itself.
fn used_bytes(trial: &Trial) -> Result<u64, String> {
    let mut metrics = trial.outcome.metrics.iter();
    let used = metrics.find(|metric| metric.metric == "mkfs_used");
    let used = used.map(|metric| metric.value as u64);
    used.ok_or_else(|| "nobody knows how much is free on it when it is new".to_owned())
}

/// How the reason of a trial begins that lacked room, after what it did.
const NO_SPACE: &str = "ENOSPC";

/// What a trial says that lacked room: how much files were to take of what is free on a filesystem
/// that takes `used` bytes when new.
fn room<E: Executor>(parameters: &BTreeMap<String, u64>, executor: &E, used: u64) -> String {
    let whole = executor.capabilities().geometry.partition_bytes;
    let bytes = |name: &str| Bytes(parameters.get(name).copied().unwrap_or_default());
    format!(
        "it was full (ENOSPC) before files took {}, then {}, of the {} that it calls free when it \
         is new ({} partition)",
        bytes("peak_bytes"),
        bytes("bytes"),
        Bytes(whole.saturating_sub(used)),
        Bytes(whole)
    )
}

/// Parameters of the long run on a filesystem that takes `used` bytes when it is new.
fn long_run<E: Executor>(executor: &E, long: &LongUse, used: u64) -> BTreeMap<String, u64> {
    let card = executor.capabilities();
    let free = card.geometry.partition_bytes.saturating_sub(used);
    let bytes = free / 1000 * FILL_PERMILLE;
    let mut parameters = long.parameters.clone();
    for (name, value) in [
        ("bytes", bytes.max(MIB)),
        ("peak_bytes", free / 1000 * PEAK_PERMILLE),
        ("round_bytes", round_bytes(card.spare_bytes + free - bytes)),
        ("rounds", ROUNDS),
    ] {
        parameters.insert(name.to_owned(), value);
    }
    parameters
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mock::{MockExecutor, Scripted};
    use whichfs_decide::Need;
    use whichfs_units::Nanos;

    #[test]
    fn a_trial_that_lacked_room_says_how_much_it_asked_for() {
        let takes = |_: &str, _: u64| Scripted::Takes(Nanos(1));
        let mock = MockExecutor::new(&takes);
        let whole = mock.capabilities().geometry.partition_bytes;
        let long = Need::named("rootfs").unwrap().sustained.unwrap();
        let free = whole - whole / 100;
        let parameters = long_run(&mock, &long, whole / 100);
        assert_eq!(parameters["bytes"], free / 1000 * 800);
        assert_eq!(parameters["peak_bytes"], free / 1000 * 950);
        assert_eq!(parameters["update_permille"], 20, "the mix is the need's");
        let room = room(&parameters, &mock, whole / 100);
        let peak = Bytes(parameters["peak_bytes"]).to_string();
        assert!(
            room.contains(&peak) && room.contains("calls free"),
            "{room}"
        );
    }
}
