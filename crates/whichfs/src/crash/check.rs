//! Checks one image: mounts it in the lab, reads everything, uses it, repairs it.

use super::record::{Plan, Recorded, on_device, only_disk};
use super::seen::{Seen, how_it_ended};
use crate::bench::{DEVICE, MOUNT_POINT, environment};
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use whichfs_card::{Contents, Logged};
use whichfs_crash::{
    Checked, Condition, Cut, Faults, Finding, Judge, Message, Outcome as Became, Timeline, Window,
    classify, in_flux, random_cuts, verdict,
};
use whichfs_lab::{Disk, Life};
use whichfs_trial::{Event, Step};
use whichfs_units::{Nanos, Rng};

/// Names of the attempts in the job, and of their phases.
pub const MOUNT: &str = "mount";
pub const USE: &str = "use";
pub const CHECK: &str = "check";
pub const REPAIR: &str = "repair";
pub const AGAIN: &str = "mount_again";

/// Findings that a result keeps; a replay of the cut shows all.
const KEPT: usize = 20;

/// One cut and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Result {
    /// Where the power went.
    pub cut: Cut,
    /// Where it went again, in the recovery of the cut before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Cut>,
    /// Operations that were durable, and that had begun.
    pub window: (u64, u64),
    /// What became of the filesystem.
    pub condition: Condition,
    /// It breaks what the filesystem promises.
    pub broken: bool,
    /// Time of the first mount, recovery included.
    pub mount: Option<Nanos>,
    /// Time of the filesystem's checker when it changes nothing; none if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsck_check: Option<Nanos>,
    /// Time of its repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsck_repair: Option<Nanos>,
    /// What became of how many paths.
    pub outcomes: BTreeMap<Became, u64>,
    /// All that was seen; of the findings those that matter most.
    #[serde(flatten)]
    pub checked: Checked,
}

impl Result {
    /// Keeps of the findings only those that matter, and few of them.
    fn shorten(&mut self) {
        for findings in [&mut self.checked.findings, &mut self.checked.findings_again] {
            findings.retain(Finding::matters);
            findings.sort_by_key(|finding| !finding.broken);
            findings.truncate(KEPT);
        }
    }
}

/// A card's content after a cut, and where the power went again while it was recovered.
pub struct Image {
    /// The content.
    pub contents: Contents,
    /// The cuts in recoveries.
    pub recovery: Vec<Cut>,
}

/// Makes images of a recorded run and checks them; one for each worker.
pub struct Checker<'a> {
    plan: &'a Plan<'a>,
    recorded: &'a Recorded,
    /// Judged instead of what the card would hold.
    given: Option<&'a Contents>,
    spared: BTreeSet<usize>,
    judge: Judge<'a>,
}

impl<'a> Checker<'a> {
    /// A checker of `recorded`, which came from `plan`.
    pub fn new(plan: &'a Plan<'a>, recorded: &'a Recorded) -> Self {
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
    pub fn image(&self, cut: &Cut, core: Option<usize>, cancelled: &AtomicBool) -> Outcome<Image> {
        if let Some(given) = self.given {
            return Ok(Image {
                contents: given.clone(),
                recovery: Vec::new(),
            });
        }
        let recorded = self.recorded;
        let faults = &self.plan.spec.faults;
        let timeline = &recorded.timeline;
        let contents = timeline.image_sparing(&recorded.card, faults, cut, &self.spared);
        let mut image = Image {
            contents: contents.map_err(Failure::environment)?,
            recovery: Vec::new(),
        };
        for depth in 0..self.plan.spec.recovery {
            let log = self.recovery(&image.contents, core, cancelled)?;
            let seed = Rng::named(cut.seed, &format!("crash/recovery/{depth}")).next_u64();
            // A recovery that writes nothing cannot be cut.
            let Some(again) = random_cuts(&log, 0, 1, seed).pop() else {
                break;
            };
            let timeline = Timeline::new(image.contents, log).map_err(Failure::environment)?;
            let faults: Faults = (faults.iter().copied())
                .filter(|fault| !fault.is_without_cut())
                .collect();
            let contents = timeline.image(&recorded.card, &faults, &again);
            image.contents = contents.map_err(Failure::environment)?;
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
        let mut disk = self.disk(contents.clone())?;
        disk.log = Some(Vec::new());
        let steps = vec![attempt(MOUNT, vec![self.mount(MOUNT)])];
        let life = self.live(steps, disk, core, cancelled)?;
        how_it_ended(&life, &mut Checked::default())?;
        let ended = life
            .events
            .iter()
            .find(|stamped| matches!(stamped.event, Event::PhaseEnd { .. } | Event::Failed { .. }));
        let ended = ended.map_or(life.time, |stamped| stamped.at);
        let log = only_disk(life)?.log.unwrap_or_default();
        let until = log.partition_point(|request| request.arrived <= ended);
        Ok(log.into_iter().take(until).collect())
    }

    /// The disk with `contents`.
    fn disk(&self, contents: Contents) -> Outcome<Disk> {
        let spec = self.plan.spec;
        let mut disk = self.plan.bench.disk(&self.recorded.profile, spec.seed)?;
        disk.contents = contents;
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
        let image = self.image(cut, core, cancelled)?;
        let mut disk = self.disk(image.contents)?;
        disk.defects = recorded.timeline.defects(&self.plan.spec.faults, cut);
        let window = recorded.run.window(cut.at);
        let flux = in_flux(&recorded.history, &recorded.run, window, &recorded.contract);
        let mut seen = Seen::default();
        let mut life = self.live(self.steps(&flux), disk, core, cancelled)?;
        seen.hear(&mut life)?;
        if seen.wants_rescue() && !recorded.recipe.fsck_rescue.is_empty() {
            let mut life = self.live(self.rescue(&flux), only_disk(life)?, core, cancelled)?;
            seen.hear(&mut life)?;
        }
        let refused = recorded.refused.partition_point(|at| *at <= cut.at);
        seen.checked.refused_writes = refused as u64;
        let mut result = self.result(cut, window, seen)?;
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

    /// One guest's life on `disk`, however it ends.
    fn live(
        &self,
        steps: Vec<Step>,
        disk: Disk,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<Life> {
        let bench = self.plan.bench;
        let job = bench.job(steps, self.plan.spec.seed);
        whichfs_lab::run(&bench.guest(&job, core), vec![disk], cancelled, &mut |_| {})
            .map_err(Failure::environment)
    }

    fn result(&mut self, cut: &Cut, window: Window, mut seen: Seen) -> Outcome<Result> {
        let warned = speaks_of_damage(&seen.checked.messages);
        let warned_again = warned || speaks_of_damage(&seen.checked.messages_again);
        let mut right = 0;
        let is_mounted = matches!(seen.checked.mounted, Some(Ok(())));
        if is_mounted {
            (seen.checked.findings, right) = self.judge.judge(window, &seen.found(), warned);
        }
        let mut right_again = 0;
        if matches!(seen.checked.mounted_again, Some(Ok(()))) {
            let judged = match is_mounted && warned_again == warned && seen.found_the_same() {
                true => (seen.checked.findings.clone(), right),
                false => self.judge.judge(window, &seen.found_again(), warned_again),
            };
            (seen.checked.findings_again, right_again) = judged;
        }
        // What could be read at first; else what the repair made readable.
        let outcomes = match &seen.checked.mounted {
            Some(Ok(())) => outcomes(right, &seen.checked.findings),
            _ => outcomes(right_again, &seen.checked.findings_again),
        };
        let (condition, broken) = verdict(&seen.checked, &self.recorded.contract);
        Ok(Result {
            cut: *cut,
            recovery: Vec::new(),
            window: (window.durable, window.begun),
            condition,
            broken,
            mount: seen.mount,
            fsck_check: seen.fsck_check,
            fsck_repair: seen.fsck_repair,
            outcomes,
            checked: seen.checked,
        })
    }

    /// Everything, in its order.
    fn steps(&self, flux: &[String]) -> Vec<Step> {
        let exercise = Step::Exercise {
            dir: MOUNT_POINT.to_owned(),
        };
        let first = vec![
            self.mount(MOUNT),
            inspect(flux),
            attempt(USE, vec![exercise]),
        ];
        let mut steps = vec![attempt(MOUNT, first), unmount(), Step::KernelLog];
        if self.plan.spec.fsck {
            let recipe = &self.recorded.recipe;
            for (name, argv) in [(CHECK, &recipe.fsck_check), (REPAIR, &recipe.fsck_repair)] {
                if !argv.is_empty() {
                    steps.push(attempt(name, vec![run(name, argv)]));
                }
            }
            steps.push(attempt(AGAIN, vec![self.mount(AGAIN), inspect(flux)]));
            steps.extend([unmount(), Step::KernelLog]);
        }
        steps
    }

    /// The last resort, and what follows it.
    fn rescue(&self, flux: &[String]) -> Vec<Step> {
        let argv = &self.recorded.recipe.fsck_rescue;
        vec![
            attempt(REPAIR, vec![run(REPAIR, argv)]),
            attempt(AGAIN, vec![self.mount(AGAIN), inspect(flux)]),
            unmount(),
            Step::KernelLog,
        ]
    }

    fn mount(&self, phase: &str) -> Step {
        Step::Mount {
            phase: Some(phase.to_owned()),
            source: DEVICE.to_owned(),
            target: MOUNT_POINT.to_owned(),
            kernel_fs: self.recorded.recipe.kernel_fs.to_owned(),
            options: self.recorded.mount_options.clone(),
        }
    }
}

/// What became of how many files, of which `right` are right.
fn outcomes(right: u64, findings: &[Finding]) -> BTreeMap<Became, u64> {
    let mut outcomes = BTreeMap::from([(Became::Right, right)]);
    for finding in findings {
        *outcomes.entry(finding.outcome).or_default() += 1;
    }
    outcomes
}

fn speaks_of_damage(messages: &[String]) -> bool {
    let mut lines = messages.iter();
    lines.any(|line| classify(line) >= Message::Damage)
}

/// `steps`, of which a failure ends only themselves.
pub fn attempt(name: &str, steps: Vec<Step>) -> Step {
    Step::Try {
        name: name.to_owned(),
        steps,
    }
}

fn inspect(flux: &[String]) -> Step {
    Step::Inspect {
        dir: MOUNT_POINT.to_owned(),
        sectors: flux.to_vec(),
    }
}

/// Unmounts, if it is mounted.
pub fn unmount() -> Step {
    let step = Step::Unmount {
        phase: None,
        target: MOUNT_POINT.to_owned(),
    };
    attempt("unmount", vec![step])
}

fn run(phase: &str, argv: &[String]) -> Step {
    Step::Run {
        phase: Some(phase.to_owned()),
        argv: on_device(argv),
        env: environment(&BTreeMap::new()),
        dir: "/".to_owned(),
        stdin: String::new(),
        show: false,
        any_status: true,
    }
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_crash::Place;

    /// What became of cut `number`: one file was lost.
    pub fn result(number: u64) -> Result {
        Result {
            cut: Cut {
                number,
                request: 7,
                place: Place::Inside,
                at: Nanos(5),
                seed: number,
            },
            recovery: Vec::new(),
            window: (3, 4),
            condition: Condition::DurableLost,
            broken: true,
            mount: Some(Nanos(9)),
            fsck_check: Some(Nanos(7)),
            fsck_repair: None,
            outcomes: BTreeMap::from([(Became::Right, 5), (Became::Missing, 1)]),
            checked: Checked {
                mounted: Some(Ok(())),
                findings: vec![finding("a", true)],
                ..Checked::default()
            },
        }
    }

    fn finding(path: &str, broken: bool) -> Finding {
        Finding {
            path: path.into(),
            outcome: Became::Missing,
            broken,
            durable: broken,
            what: "it was durable".into(),
        }
    }

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
        assert_eq!(long.checked.findings.len(), KEPT);
        assert!(long.checked.findings.iter().all(|f| f.broken));
    }
}
