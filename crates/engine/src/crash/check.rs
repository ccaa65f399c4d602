//! Checks one image: mounts it in the lab, reads everything, uses it, repairs it.

use super::live_run::failed_run;
use super::look::{Inspection, MOUNT, attempt, judged};
use super::record::{Recorded, RecordingPlan, only_disk};
use super::seen::Seen;
use crate::error::{Error, ErrorKind, Outcome};
use crate::guest_places::{DEVICE, MOUNT_POINT};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use whichfs_blockdev::Logged;
use whichfs_card::Contents;
use whichfs_crash::{Checked, Cut, Faults, Judge, SystemOutcome, Timeline, in_flux, random_cuts};
use whichfs_lab::{Disk, GuestRun, LabError};
use whichfs_trial::{Event, Step};
use whichfs_units::Rng;

pub use whichfs_crash::{CutResult as Result, MeasuredCut};

/// A card's content after a cut, and where the power went again while it was recovered.
pub struct CutImage {
    /// What the whole card holds.
    pub contents: Contents,
    /// The cuts in recoveries.
    pub recovery: Vec<Cut>,
}

/// Makes images of a recorded run and checks them; one for each worker.
pub struct Checker<'a> {
    plan: &'a RecordingPlan<'a>,
    recorded: &'a Recorded,
    /// Judged instead of what the card would hold.
    given: Option<&'a Contents>,
    spared: BTreeSet<usize>,
    judge: Judge<'a>,
}

impl<'a> Checker<'a> {
    /// A checker of `recorded`, which came from `plan`.
    pub fn new(plan: &'a RecordingPlan<'a>, recorded: &'a Recorded) -> Self {
        Checker {
            plan,
            recorded,
            given: None,
            spared: BTreeSet::new(),
            judge: Judge::new(&recorded.history, &recorded.run, recorded.contract.clone()),
        }
    }

    /// Leaves the requests of these indices whole, whatever a cut would do to them.
    pub fn sparing(self, spared: BTreeSet<usize>) -> Self {
        Checker { spared, ..self }
    }

    /// Judges `given`, if there is one, as the content of the card after each cut.
    pub fn judging(self, given: Option<&'a Contents>) -> Self {
        Checker { given, ..self }
    }

    /// The card's content after `cut`, and after the cuts in the recovery from it.
    ///
    /// # Errors
    /// If it cannot be kept, or the lab cannot run.
    pub fn image(
        &self,
        cut: &Cut,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<CutImage> {
        if let Some(given) = self.given {
            return Ok(CutImage {
                contents: given.clone(),
                recovery: Vec::new(),
            });
        }
        let recorded = self.recorded;
        let faults = &self.plan.spec.faults;
        if recorded.clean.is_some() {
            let failed = failed_run(self.plan, recorded, cut, core, cancelled)?;
            let checker = Checker::new(self.plan, &failed.recorded);
            return checker.image(&failed.cut, core, cancelled);
        }
        let timeline = &recorded.timeline;
        let contents = timeline.image_sparing(&recorded.card, faults, cut, &self.spared);
        let mut image = CutImage {
            contents: contents.map_err(Error::environment)?,
            recovery: Vec::new(),
        };
        for depth in 0..self.plan.spec.recovery {
            let log = self.recovery(&image.contents, core, cancelled)?;
            let seed = Rng::named(cut.seed, &format!("crash/recovery/{depth}")).next_u64();
            // A recovery that writes nothing cannot be cut.
            let Some(again) = random_cuts(&log, 0, 1, seed).pop() else {
                break;
            };
            let timeline = Timeline::new(image.contents, log).map_err(Error::environment)?;
            let faults: Faults = (faults.iter().copied())
                .filter(|fault| !fault.is_without_cut())
                .collect();
            let contents = timeline.image(&recorded.card, &faults, &again);
            image.contents = contents.map_err(Error::environment)?;
            image.recovery.push(again);
        }
        Ok(image)
    }

    /// The requests of a mount of `contents`.
    fn recovery(
        &self,
        contents: &Contents,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<Vec<Logged>> {
        let disk = self.disk(contents.clone())?.recording();
        let steps = vec![attempt(MOUNT, vec![self.look().mount(MOUNT)])];
        let life = self.live(steps, disk, core, cancelled)?;
        how_it_ended(&life, &mut Checked::default())?;
        let ended = life
            .events
            .iter()
            .find(|stamped| matches!(stamped.event, Event::PhaseEnd { .. } | Event::Failed { .. }));
        let ended = ended.map_or(life.time, |stamped| stamped.at);
        let log = only_disk(life)?.into_log();
        let until = log.partition_point(|request| request.arrived <= ended);
        Ok(log.into_iter().take(until).collect())
    }

    /// The disk with `contents`.
    fn disk(&self, contents: Contents) -> Outcome<Disk> {
        let spec = self.plan.spec;
        let disk = self.plan.bench.disk(&self.recorded.profile, spec.seed)?;
        let mut disk = disk.with_contents(contents);
        disk.geometry.bytes = spec.partition_bytes;
        Ok(disk)
    }

    /// Checks the image of `cut`; all findings are told.
    ///
    /// # Errors
    /// Only what is not the filesystem's doing.
    pub fn check_whole(
        &mut self,
        cut: &Cut,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<Result> {
        let recorded = self.recorded;
        if recorded.clean.is_some() && self.given.is_none() {
            let failed = failed_run(self.plan, recorded, cut, core, cancelled)?;
            let mut checker = Checker::new(self.plan, &failed.recorded);
            let mut result = checker.check_whole(&failed.cut, core, cancelled)?;
            result.broken |= failed.run.outcome == SystemOutcome::Oops;
            result.live = Some(failed.run);
            return Ok(result);
        }
        let image = self.image(cut, core, cancelled)?;
        let defects = recorded.timeline.defects(&self.plan.spec.faults, cut);
        let disk = self.disk(image.contents)?.with_defects(defects);
        let window = recorded.run.window(cut.at);
        let flux = in_flux(&recorded.history, &recorded.run, window, &recorded.contract);
        let mut seen = Seen::default();
        let steps = self.look().steps(&flux);
        let mut life = self.live(steps, disk, core, cancelled)?;
        hear(&mut seen, &mut life)?;
        if seen.wants_rescue() && !recorded.recipe.fsck_rescue.is_empty() {
            let steps = self.look().rescue(&flux);
            let mut life = self.live(steps, only_disk(life)?, core, cancelled)?;
            hear(&mut seen, &mut life)?;
        }
        let refused = recorded.refused.partition_point(|at| *at <= cut.at);
        seen.checked.refused_writes = refused as u64;
        let mut result = judged(&mut self.judge, &recorded.contract, cut, window, seen);
        result.recovery = image.recovery;
        Ok(result)
    }

    /// Checks the image of `cut`; the result is short enough to keep thousands.
    ///
    /// # Errors
    /// Only what is not the filesystem's doing.
    pub fn check(
        &mut self,
        cut: &Cut,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<Result> {
        let mut result = self.check_whole(cut, core, cancelled)?;
        result.shorten();
        Ok(result)
    }

    /// How images are looked at.
    fn look(&self) -> Inspection<'_> {
        Inspection {
            recipe: &self.recorded.recipe,
            mount_options: &self.recorded.mount_options,
            device: DEVICE,
            mount_point: MOUNT_POINT,
            fsck: self.plan.spec.fsck,
        }
    }

    /// One guest's life on `disk`, however it ends.
    fn live(
        &self,
        steps: Vec<Step>,
        disk: Disk,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<GuestRun> {
        let bench = self.plan.bench;
        let job = bench.job(steps, self.plan.spec.seed);
        let guest = bench.guest(&job, core);
        whichfs_lab::run(&guest, vec![disk], cancelled, &mut |_| {}).map_err(Error::environment)
    }
}

/// Takes up what a guest said.
fn hear(seen: &mut Seen, life: &mut GuestRun) -> Outcome {
    seen.hear_events(std::mem::take(&mut life.events));
    how_it_ended(life, &mut seen.checked)?;
    seen.is_of_checker();
    if let Some(defects) = life.disks.first().and_then(|disk| disk.defects()) {
        seen.checked.failed_requests = defects.failed;
        seen.checked.corrupted_reads = defects.corrupted;
    }
    Ok(())
}

/// A guest that does not end well tells of the filesystem, or of this machine.
fn how_it_ended(life: &GuestRun, checked: &mut Checked) -> Outcome {
    let Err(error) = &life.result else {
        return Ok(());
    };
    if let Some(sentence) = error.blames_host() {
        return Err(Error::environment(sentence));
    }
    match error {
        LabError::Interrupted => return Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        LabError::Panic { line } => checked.panicked = Some(line.clone()),
        LabError::Spins(_)
        | LabError::SleepsForever
        | LabError::NoProgress(_)
        | LabError::VirtualLimit(_)
        | LabError::ConsoleFlood(_)
        | LabError::OutputFlood(_) => checked.hung = Some(error.to_string()),
        LabError::Agent { message, .. } => {
            return Err(Error::new(
                ErrorKind::Trial,
                format!("the check failed: {message}"),
            ));
        }
        other => return Err(Error::environment(other)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::{finding, result};

    #[test]
    fn a_result_is_kept_whole() {
        let text = serde_json::to_string(&result(1)).unwrap();
        assert_eq!(serde_json::from_str::<Result>(&text).unwrap(), result(1));
    }

    #[test]
    fn a_short_result_has_what_matters() {
        let mut long = result(1);
        long.checked.findings = (0..90)
            .map(|n| finding(&n.to_string(), n % 3 == 0))
            .collect();
        long.shorten();
        assert_eq!(long.checked.findings.len(), Result::KEPT);
        assert!(long.checked.findings.iter().all(|f| f.broken));
    }
}
