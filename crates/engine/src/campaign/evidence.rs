//! What was found of a need, and the verdict on it: the one place that assembles evidence.

use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::{Capabilities, Executor};
use crate::question::{Question, Supplement};
use crate::{apply, facts};
use std::collections::BTreeMap;
use std::time::Duration;
use whichfs_decide::{
    CandidateFacts, Discrepancy, Evidence, Excluded, Failure, FigureOrigin, FigureRow, Need,
    Sample, Verdict, doubt_ranking, judge,
};
use whichfs_trial::{Status, Trial};
use whichfs_units::Nanos;

/// Everything that was found so far of the candidates of a need.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Trials in the order in which they became known.
    pub trials: Vec<Trial>,
    /// Sustained trials: on a small card that is written several times over.
    pub sustained: Vec<Trial>,
    /// Trials that the cache has of candidates that a rule excludes.
    pub aside: Vec<Trial>,
    /// Candidates that cannot win, and why.
    pub excluded: Vec<Excluded>,
    /// Candidates that are measured and not ranked, and why.
    pub not_comparable: Vec<Excluded>,
    /// What the figures of a candidate leave out.
    pub caveats: BTreeMap<String, Vec<String>>,
    /// Which figure of a candidate still changed when its trial ended, by too little to matter.
    pub unsettled: BTreeMap<String, String>,
}

impl Gathered {
    /// Applies the rules of `question` to its candidates on a partition of `bytes`: the names of
    /// those that satisfy them. The others are kept with the rule that excludes them.
    pub fn apply_rules(&mut self, question: &Question, bytes: u64) -> Vec<String> {
        let all = facts::of_those(&question.candidates);
        let (kept, excluded) = whichfs_decide::exclude(&question.need, bytes, &all);
        self.excluded = excluded;
        self.not_comparable = whichfs_decide::not_comparable(&kept);
        self.caveats = not_known(&question.need, &kept);
        kept.into_iter().map(|facts| facts.name).collect()
    }

    /// Adds what the figures of `candidate` leave out, once.
    pub fn add_caveat(&mut self, candidate: &str, caveat: String) {
        let said = self.caveats.entry(candidate.to_owned()).or_default();
        if !said.contains(&caveat) {
            said.push(caveat);
        }
    }

    /// Leaves `candidate` out, if it is not yet.
    pub fn leave_out(&mut self, candidate: &str, why: String, source: Option<String>) {
        if self.excluded.iter().all(|one| one.candidate != candidate) {
            self.excluded.push(Excluded {
                candidate: candidate.to_owned(),
                why,
                source,
                ..Excluded::default()
            });
        }
    }

    /// Figures of the finished trials, and those of `supplement`.
    pub fn rows(&self, supplement: &dyn Supplement) -> Vec<FigureRow> {
        let mut rows = rows_of(&self.trials);
        rows.extend(rows_of(&self.sustained));
        rows.extend(supplement.rows(&rows));
        rows
    }

    /// The verdict on `question` after `wall` by trials of `executor`.
    ///
    /// # Errors
    /// Figures that contradict each other or the need.
    pub fn verdict<E: Executor>(
        &self,
        question: &Question,
        executor: &E,
        supplement: &dyn Supplement,
        wall: Duration,
    ) -> Outcome<Verdict> {
        let need = &question.need;
        let rows = self.rows(supplement);
        let Capabilities {
            card,
            geometry,
            origin,
            card_uncertainty,
            fit_error,
            ..
        } = executor.capabilities();
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
        let seeds = self.trials.iter().map(|trial| trial.identity.seed);
        let kind = |seed| Some((seed, executor.card_kind(seed)?));
        // In whole nanoseconds: trials end in any order, and a sum of fractions depends on it.
        let all = self.trials.iter().chain(&self.sustained);
        let virtual_times = all.map(|trial| trial.outcome.virtual_time);
        let virtual_time = virtual_times.fold(Nanos(0), |sum, one| sum + one);
        // A device counts in whole units, and a phase without any has the figure 0.
        let counted = |sample: &Sample| origin != FigureOrigin::Measured || sample.value > 0.0;
        let evidence = Evidence {
            card,
            samples: rows.iter().map(FigureRow::sample).filter(counted).collect(),
            failures: failures(&self.trials),
            excluded: [&self.excluded, &self.not_comparable, &supplement.excluded()]
                .map(Vec::as_slice)
                .concat(),
            commands: commands.collect(),
            card_kinds: seeds.filter_map(kind).collect(),
            card_uncertainty,
            fit_error,
            discrepancy: (origin == FigureOrigin::Modelled).then(Discrepancy::measured),
            origin,
            partition_bytes: Some(geometry.partition_bytes),
            caveats: self.caveats.clone(),
            unsettled: self.unsettled.clone(),
            facts: facts::of_those(&question.candidates),
            counts: supplement.counts(),
            aside: rows_of(&self.aside).iter().map(FigureRow::sample).collect(),
            trials: (self.trials.len() + self.sustained.len()) as u64,
            virtual_s: virtual_time.as_secs_f64(),
            wall_s: wall.as_secs_f64(),
        };
        let judged = judge(need, &evidence);
        let mut verdict = judged.map_err(|error| Error::new(ErrorKind::Trial, error))?;
        if origin == FigureOrigin::Modelled {
            doubt_ranking(&mut verdict, need, &self.trials);
        }
        Ok(verdict)
    }
}

/// What the rules of `need` leave open of the candidates `kept`, by name.
pub fn not_known(need: &Need, kept: &[CandidateFacts]) -> BTreeMap<String, Vec<String>> {
    let open = kept.iter().filter_map(|facts| {
        let told = format!("{} {}", facts.name, whichfs_decide::not_known(need, facts)?);
        Some((facts.name.clone(), vec![told]))
    });
    open.collect()
}

/// The figures of those of `trials` that succeeded.
pub fn rows_of(trials: &[Trial]) -> Vec<FigureRow> {
    let done = trials
        .iter()
        .filter(|trial| trial.outcome.status == Status::Done);
    done.flat_map(FigureRow::of_trial).collect()
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
