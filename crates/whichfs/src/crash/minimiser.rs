//! Makes a failing cut small: fewer operations, then fewer lost writes.

use super::check::{Checker, Result};
use super::record::{Plan, Recorded};
use super::reproducer::{Reproducer, Signature};
use super::series;
use super::spec::{Makers, Selection, Spec};
use crate::bench::Bench;
use crate::failure::{Failure, Kind, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_crash::{Cut, all_cuts, minimise, random_cuts};
use whichfs_workload::{Op, SCRIPT, possible_script};

/// Cuts that are tried of each shorter run: where a run is cut decides whether it fails.
const CUTS: u64 = 24;
/// Cuts that are tried of the whole run as a script.
const FIRST_CUTS: u64 = 200;
/// The call of the promise that an unmount makes.
const UNMOUNT: &str = "umount";

/// What is made smaller, and how far that is.
pub struct Minimiser<'a> {
    bench: &'a Bench,
    signature: Signature,
    /// Whether the failure shows only with the filesystem's checker, or after it.
    needs_fsck: bool,
    /// The run of the failing cut.
    spec: &'a Spec,
    deadline: Instant,
    core: Option<usize>,
    cancelled: &'a AtomicBool,
    /// The smallest run so far that fails, and where.
    best: Option<(Spec, Cut)>,
    /// Hears of progress: what, and how many are left.
    told: &'a mut dyn FnMut(&str, usize),
}

impl<'a> Minimiser<'a> {
    /// A minimiser of the failure that `result` of `spec` shows; `None` if that breaks no promise.
    pub fn new(
        bench: &'a Bench,
        spec: &'a Spec,
        result: &Result,
        budget: Duration,
        core: Option<usize>,
        cancelled: &'a AtomicBool,
        told: &'a mut dyn FnMut(&str, usize),
    ) -> Option<Minimiser<'a>> {
        let signature = Signature::of(result)?;
        let first = result.checked.findings.iter();
        let later = !first.clone().any(|finding| finding.broken);
        Some(Minimiser {
            bench,
            needs_fsck: signature.needs_fsck() || later,
            signature,
            spec,
            deadline: Instant::now() + budget,
            core,
            cancelled,
            best: None,
            told,
        })
    }

    /// The smallest reproducer that the budget allows. `recorded` is the whole run, `result` what
    /// fails in it.
    ///
    /// # Errors
    /// What is not the filesystem's doing.
    pub fn run(mut self, recorded: &Recorded, result: &Result) -> Outcome<Reproducer> {
        // What comes after the cut does not matter.
        let begun = result.window.1 as usize;
        let before = recorded.operations.iter().take(begun).cloned().collect();
        let all = possible_script(before);
        if self.fails(&all, FIRST_CUTS)? {
            (self.told)("operations", all.len());
            minimise(all, &mut |ops: &[Op]| self.tried(ops))?;
        }
        match self.best.take() {
            Some((spec, cut)) => self.fewer_writes(&spec, &cut),
            // As a script of its own it never failed: its operations stay, at its own cut.
            None => {
                let spec = self.spec;
                self.fewer_writes(spec, &result.cut)
            }
        }
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
        if fails {
            (self.told)("operations", possible.len());
        }
        Ok(Some(fails))
    }

    /// Whether a run of `ops` fails at one of so many cuts; then it is the best so far.
    fn fails(&mut self, ops: &[Op], cuts: u64) -> Outcome<bool> {
        let spec = Spec {
            workload: SCRIPT.name().to_owned(),
            parameters: BTreeMap::new(),
            script: Some(ops.to_vec()),
            cuts: Selection::Random(cuts),
            fsck: self.spec.fsck && self.needs_fsck,
            ..self.spec.clone()
        };
        let plan = Plan::new(self.bench, &spec)?;
        let recorded = plan.record(self.core, self.cancelled)?;
        let cuts = match spec.is_whole() {
            true => spec.cuts(&recorded),
            false => likely(&recorded, &spec, cuts),
        };
        let mut found = None;
        let signature = &self.signature;
        let checked = series::check_all(
            &plan,
            &recorded,
            &cuts,
            None,
            self.cancelled,
            &mut |result| {
                if signature.is_shown_by(&result) {
                    found = Some(result.cut);
                    // Ends the series: one is enough.
                    return Err(Failure::new(Kind::No, "found"));
                }
                Ok(())
            },
        );
        match (found, checked) {
            (Some(cut), _) => {
                self.best = Some((spec, cut));
                Ok(true)
            }
            (None, checked) => checked.map(|()| false),
        }
    }

    /// Spares as many of the writes that `cut` hurts as can be, and tells of what is left.
    fn fewer_writes(mut self, spec: &Spec, cut: &Cut) -> Outcome<Reproducer> {
        let plan = Plan::new(self.bench, spec)?;
        let recorded = plan.record(self.core, self.cancelled)?;
        let hurt = recorded.timeline.hurt(&recorded.card, &spec.faults, cut);
        let all: BTreeSet<usize> = hurt.iter().map(|(index, _)| *index).collect();
        let check = |spared: BTreeSet<usize>| {
            let mut checker = Checker::new(&plan, &recorded).sparing(spared);
            checker.check_whole(cut, self.core, self.cancelled)
        };
        let (signature, deadline) = (self.signature.clone(), self.deadline);
        let told = &mut self.told;
        let lost = minimise(all.iter().copied().collect(), &mut |lost: &[usize]| {
            if Instant::now() >= deadline {
                return Ok::<_, Failure>(None);
            }
            let spared = all.iter().filter(|index| !lost.contains(index)).copied();
            let fails = signature.is_shown_by(&check(spared.collect())?);
            if fails {
                told("lost writes", lost.len());
            }
            Ok(Some(fails))
        })?;
        let spared: BTreeSet<usize> = all.into_iter().filter(|n| !lost.contains(n)).collect();
        let result = check(spared.clone())?;
        let mut findings = result.checked.findings;
        findings.retain(|finding| finding.broken);
        Ok(Reproducer {
            title: title(spec, &findings, &signature),
            spec: Spec {
                made_by: Makers::of(self.bench, &plan.recipe()?),
                ..spec.clone()
            },
            cut: *cut,
            spared,
            signature,
            findings,
        })
    }
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
fn title(spec: &Spec, findings: &[whichfs_crash::Finding], signature: &Signature) -> String {
    let what = match findings.first() {
        Some(finding) => format!("{}: {}", finding.path, finding.what),
        None => format!("{:?}", signature.condition),
    };
    let faults: Vec<&str> = spec.faults.iter().map(|fault| fault.name()).collect();
    let card = match faults[..] {
        [] => "an honest card".to_owned(),
        _ => format!("a card with {}", faults.join(", ")),
    };
    format!("{} on {card}: {what}", spec.fs)
}
