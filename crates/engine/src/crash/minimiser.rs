//! Makes a failing cut small: fewer operations, then fewer lost writes.

use super::check::{Checker, Result};
use super::record::{Recorded, RecordingPlan};
use super::reproducer::Reproducer;
use super::series;
use super::spec::{Makers, Selection, Spec};
use crate::error::{Error, ErrorKind, Outcome};
use crate::lab_executor::LabExecutor;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_crash::{Cut, PathFinding, all_cuts, minimise, random_cuts};
use whichfs_units::{counted, shell_word};
use whichfs_workload::{Op, SCRIPT, possible_script};

/// Cuts that are tried of each shorter run: where a run is cut decides whether it fails.
const CUTS: u64 = 24;
/// Cuts that are tried of the whole run as a script.
const FIRST_CUTS: u64 = 200;
/// The call of the promise that an unmount makes.
const UNMOUNT: &str = "umount";

/// How the shrinking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MinimiserEnd {
    /// Without any one of its operations or of the writes that it loses it failed no more, at the
    /// cuts that were tried.
    Minimal,
    /// As a script of its own the run never failed: its operations are those of the workload, and
    /// of the writes that are lost none can be left out.
    WholeRun,
    /// The time was over before.
    Budget,
    /// The user ended it.
    Interrupted,
}

/// The smallest reproducer that was found.
pub struct Small {
    /// The failing cut with what is still needed to see it fail.
    pub kept: Reproducer,
    /// How it ended.
    pub ended: MinimiserEnd,
    /// Writes that it loses; not known if it ended before these were looked at.
    pub lost_writes: Option<usize>,
}

impl Small {
    /// Whether the minimum was reached, and how to go on in the file `out` if not.
    pub fn told(&self, out: &Path) -> String {
        let operations = match &self.kept.spec.script {
            Some(ops) => counted(ops.len(), "operation"),
            None => "all operations of the workload".to_owned(),
        };
        let lost = match self.lost_writes {
            Some(lost) => counted(lost, "lost write"),
            None => "lost writes not looked at yet".to_owned(),
        };
        let go_on = format!(
            "to go on: whichfs crash minimise {}",
            shell_word(&out.display().to_string())
        );
        let how = match self.ended {
            MinimiserEnd::Minimal => {
                "minimal: without any one of them it failed no more at the cuts tried".to_owned()
            }
            MinimiserEnd::WholeRun => {
                "the operations stay, because as a script of its own the run never failed"
                    .to_owned()
            }
            MinimiserEnd::Budget => format!("the time ended before it was minimal; {go_on}"),
            MinimiserEnd::Interrupted => format!("interrupted before it was minimal; {go_on}"),
        };
        format!("{operations}, {lost}; {how}")
    }
}

/// What is made smaller, and how far that is.
pub struct Minimiser<'a> {
    bench: &'a LabExecutor,
    /// The smallest so far that fails.
    best: Reproducer,
    lost_writes: Option<usize>,
    /// Whether the failure shows only with the filesystem's checker, or after it.
    needs_fsck: bool,
    deadline: Instant,
    core: Option<usize>,
    cancelled: &'a AtomicBool,
    /// Hears of progress: what, how many are left, and the time that is left.
    told: &'a mut dyn FnMut(&str, usize, Duration),
}

impl<'a> Minimiser<'a> {
    /// A minimiser of what `kept` shows.
    pub fn new(
        bench: &'a LabExecutor,
        kept: Reproducer,
        budget: Duration,
        core: Option<usize>,
        cancelled: &'a AtomicBool,
        told: &'a mut dyn FnMut(&str, usize, Duration),
    ) -> Minimiser<'a> {
        let later = kept.findings.is_empty();
        Minimiser {
            bench,
            needs_fsck: kept.signature.needs_fsck() || later,
            best: kept,
            lost_writes: None,
            deadline: Instant::now() + budget,
            core,
            cancelled,
            told,
        }
    }

    /// The smallest reproducer that the budget allows. `recorded` is the run as it is now, `result`
    /// what fails in it. An interrupt ends it with the smallest so far.
    ///
    /// # Errors
    /// What is not the filesystem's doing.
    pub fn run(mut self, recorded: &Recorded, result: &Result) -> Outcome<Small> {
        if recorded.clean.is_some() {
            return Err(Error::input(
                "its card failed while it ran: there is no cut to make smaller; `whichfs crash \
                 replay` shows the run",
            ));
        }
        let ended = match self.shrink(recorded, result) {
            Err(failure) if failure.kind == ErrorKind::Interrupted => MinimiserEnd::Interrupted,
            ended => ended?,
        };
        let spec = &mut self.best.spec;
        let recipe = RecordingPlan::new(self.bench, spec)?.recipe()?;
        spec.made_by = Makers::of(self.bench, &recipe);
        self.best.title = title(&self.best);
        Ok(Small {
            kept: self.best,
            ended,
            lost_writes: self.lost_writes,
        })
    }

    /// Makes the run smaller, then what is lost of its writes.
    fn shrink(&mut self, recorded: &Recorded, result: &Result) -> Outcome<MinimiserEnd> {
        let operations = self.fewer_operations(recorded, result)?;
        let writes = self.fewer_writes()?;
        Ok(match writes {
            true => operations,
            false => MinimiserEnd::Budget,
        })
    }

    /// Leaves out operations; how that ended.
    fn fewer_operations(&mut self, recorded: &Recorded, result: &Result) -> Outcome<MinimiserEnd> {
        // What comes after the cut does not matter.
        let begun = result.window.1 as usize;
        let before = recorded.operations.iter().take(begun).cloned().collect();
        let all = possible_script(before);
        if self.best.spec.script.is_none() {
            match self.fails(&all, FIRST_CUTS)? {
                Some(true) => {}
                Some(false) => return Ok(MinimiserEnd::WholeRun),
                None => return Ok(MinimiserEnd::Budget),
            }
        }
        self.tell("operations", all.len());
        let found = minimise(all, &mut |ops: &[Op]| self.tried(ops))?;
        Ok(match found.minimal {
            true => MinimiserEnd::Minimal,
            false => MinimiserEnd::Budget,
        })
    }

    fn tell(&mut self, what: &str, left: usize) {
        let time = self.deadline.saturating_duration_since(Instant::now());
        (self.told)(what, left, time);
    }

    /// Whether the possible ones of `ops` fail; `None` when the time is over.
    fn tried(&mut self, ops: &[Op]) -> Outcome<Option<bool>> {
        if Instant::now() >= self.deadline {
            return Ok(None);
        }
        let possible = possible_script(ops.to_vec());
        if possible.is_empty() {
            return Ok(Some(false));
        }
        let fails = self.fails(&possible, CUTS)?;
        if fails == Some(true) {
            self.tell("operations", possible.len());
        }
        Ok(fails)
    }

    /// Whether a run of `ops` fails at one of so many cuts; then it is the best so far. `None` when
    /// the time is over.
    fn fails(&mut self, ops: &[Op], cuts: u64) -> Outcome<Option<bool>> {
        let own = &self.best.spec;
        let spec = Spec {
            workload: SCRIPT.name().to_owned(),
            parameters: BTreeMap::new(),
            script: Some(ops.to_vec()),
            cuts: Selection::Random(cuts),
            fsck: own.fsck && self.needs_fsck,
            ..own.clone()
        };
        let plan = RecordingPlan::new(self.bench, &spec)?;
        let recorded = plan.record(self.core, self.cancelled)?;
        let cuts = match spec.is_whole() {
            true => spec.cuts(&recorded),
            false => likely(&recorded, &spec, cuts),
        };
        let (mut found, mut over) = (None, false);
        let (signature, deadline) = (&self.best.signature, self.deadline);
        let checked = series::check_all(
            &plan,
            &recorded,
            &cuts,
            None,
            self.cancelled,
            &mut |result| {
                if signature.is_shown_by(&result) {
                    found = Some(result);
                    // Ends the series: one is enough.
                    return Err(Error::new(ErrorKind::No, "found"));
                }
                over = Instant::now() >= deadline;
                match over {
                    true => Err(Error::new(ErrorKind::No, "the time is over")),
                    false => Ok(()),
                }
            },
        );
        match (found, checked) {
            (Some(result), _) => {
                self.best = Reproducer {
                    title: String::new(),
                    cut: result.cut,
                    spared: BTreeSet::new(),
                    signature: self.best.signature.clone(),
                    findings: broken(&result),
                    spec,
                };
                Ok(Some(true))
            }
            (None, Err(failure)) if over && failure.kind == ErrorKind::No => Ok(None),
            (None, checked) => checked.map(|()| Some(false)),
        }
    }

    /// Spares as many of the writes that the best cut so far hurts as can be; whether none of the
    /// others can be.
    fn fewer_writes(&mut self) -> Outcome<bool> {
        let spec = self.best.spec.clone();
        let cut = self.best.cut;
        let plan = RecordingPlan::new(self.bench, &spec)?;
        let recorded = plan.record(self.core, self.cancelled)?;
        let hurt = recorded.timeline.hurt(&recorded.card, &spec.faults, &cut);
        let all: BTreeSet<usize> = hurt.iter().map(|(index, _)| *index).collect();
        let lost: Vec<usize> = all.difference(&self.best.spared).copied().collect();
        self.lost_writes = Some(lost.len());
        let found = minimise(lost, &mut |lost: &[usize]| {
            if Instant::now() >= self.deadline {
                return Ok::<_, Error>(None);
            }
            let spared: BTreeSet<usize> =
                all.iter().filter(|n| !lost.contains(n)).copied().collect();
            let mut checker = Checker::new(&plan, &recorded).sparing(spared.clone());
            let result = checker.check_whole(&cut, self.core, self.cancelled)?;
            let fails = self.best.signature.is_shown_by(&result);
            if fails {
                self.best.spared = spared;
                self.best.findings = broken(&result);
                self.lost_writes = Some(lost.len());
                self.tell("lost writes", lost.len());
            }
            Ok(Some(fails))
        })?;
        Ok(found.minimal)
    }
}

/// What of `result` breaks a promise.
pub fn broken(result: &Result) -> Vec<PathFinding> {
    let findings = result.checked.findings.iter();
    findings.filter(|finding| finding.broken).cloned().collect()
}

/// `count` cuts at which a run can fail: half of them those nearest to the last promise before
/// its unmount, since what came after the cut is not done; the others at random.
fn likely(recorded: &Recorded, spec: &Spec, count: u64) -> Vec<Cut> {
    let (log, first) = (recorded.timeline.log(), recorded.first);
    let promises = recorded.run.promises.iter();
    let last = promises
        .filter(|promise| promise.call != UNMOUNT)
        .map(|promise| promise.at)
        .max();
    let mut cuts = random_cuts(log, first, count / 2, spec.seed);
    if let Some(last) = last {
        let mut near = all_cuts(log, first, spec.seed);
        near.sort_by_key(|cut| cut.at.0.abs_diff(last.0));
        near.truncate((count / 2) as usize);
        // The likely ones first: one that fails is enough.
        cuts = near.into_iter().chain(cuts).collect();
    }
    cuts
}

/// What a reproducer shows, in words.
fn title(kept: &Reproducer) -> String {
    let what = match kept.findings.first() {
        Some(finding) => format!("{}: {}", finding.path, finding.what),
        None => format!("{:?}", kept.signature.condition),
    };
    let faults: Vec<&str> = kept.spec.faults.iter().map(|fault| fault.name()).collect();
    let card = match faults[..] {
        [] => "an honest card".to_owned(),
        _ => format!("a card with {}", faults.join(", ")),
    };
    format!("{} on {card}: {what}", kept.spec.fs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::{result, spec};
    use crate::crash::reproducer::Signature;
    use whichfs_workload::Op;

    fn told(ended: MinimiserEnd, lost_writes: Option<usize>) -> String {
        let kept = Reproducer {
            title: "a file is lost".into(),
            spec: Spec {
                script: Some(vec![Op::SyncFs]),
                ..spec()
            },
            cut: result(1).cut,
            spared: BTreeSet::new(),
            signature: Signature::of(&result(1)).unwrap(),
            findings: broken(&result(1)),
        };
        let small = Small {
            kept,
            ended,
            lost_writes,
        };
        small.told(Path::new("lost.json"))
    }

    #[test]
    fn whether_it_is_minimal_is_said_and_how_to_go_on() {
        let minimal = told(MinimiserEnd::Minimal, Some(2));
        assert!(
            minimal.starts_with("1 operation, 2 lost writes; minimal: "),
            "{minimal}"
        );
        for ended in [MinimiserEnd::Budget, MinimiserEnd::Interrupted] {
            let said = told(ended, None);
            assert!(
                said.ends_with("to go on: whichfs crash minimise lost.json"),
                "{said}"
            );
        }
    }
}
