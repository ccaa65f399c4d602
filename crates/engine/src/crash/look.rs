//! What is done with a filesystem after a cut, wherever it is: mounted before any check, read,
//! used, checked, repaired, mounted and read again; and what is made of what was seen.

use super::check::Result;
use super::seen::Seen;
use std::collections::BTreeMap;
use whichfs_crash::{
    Contract, Cut, Judge, KernelMessage, PathFinding, PathOutcome, Window, classify, verdict,
};
use whichfs_fs::Recipe;
use whichfs_trial::Step;
use whichfs_workload::environment;

/// Names of the attempts in the job, and of their phases.
pub const MOUNT: &str = "mount";
/// Phase in which files are made in the filesystem after the cut.
pub const USE: &str = "use";
/// Phase in which the checker looks at the image.
pub const CHECK: &str = "check";
/// Phase in which the checker repairs the image.
pub const REPAIR: &str = "repair";
/// Phase in which the repaired filesystem is mounted.
pub const AGAIN: &str = "mount_again";

/// How a filesystem is looked at.
pub struct Inspection<'a> {
    /// Commands that mount, check and repair the filesystem.
    pub recipe: &'a Recipe,
    /// Options it is mounted with.
    pub mount_options: &'a str,
    /// Path of the device that holds the filesystem.
    pub device: &'a str,
    /// Where it is mounted.
    pub mount_point: &'a str,
    /// Whether its checker is run.
    pub fsck: bool,
}

impl Inspection<'_> {
    /// Everything, in its order.
    pub fn steps(&self, flux: &[String]) -> Vec<Step> {
        let exercise = Step::Exercise {
            dir: self.mount_point.to_owned(),
        };
        let first = vec![
            self.mount(MOUNT),
            self.inspect(flux),
            attempt(USE, vec![exercise]),
        ];
        let mut steps = vec![
            attempt(MOUNT, first),
            unmount(self.mount_point),
            Step::KernelLog,
        ];
        if self.fsck {
            let recipe = self.recipe;
            for (name, argv) in [(CHECK, &recipe.fsck_check), (REPAIR, &recipe.fsck_repair)] {
                if !argv.is_empty() {
                    steps.push(attempt(name, vec![self.run(name, argv)]));
                }
            }
            steps.push(attempt(AGAIN, vec![self.mount(AGAIN), self.inspect(flux)]));
            steps.extend([unmount(self.mount_point), Step::KernelLog]);
        }
        steps
    }

    /// The last resort, and what follows it.
    pub fn rescue(&self, flux: &[String]) -> Vec<Step> {
        let argv = &self.recipe.fsck_rescue;
        vec![
            attempt(REPAIR, vec![self.run(REPAIR, argv)]),
            attempt(AGAIN, vec![self.mount(AGAIN), self.inspect(flux)]),
            unmount(self.mount_point),
            Step::KernelLog,
        ]
    }

    /// The mount as the phase `phase`.
    pub fn mount(&self, phase: &str) -> Step {
        Step::Mount {
            phase: Some(phase.to_owned()),
            source: self.device.to_owned(),
            target: self.mount_point.to_owned(),
            kernel_fs: self.recipe.kernel_fs.to_owned(),
            options: self.mount_options.to_owned(),
        }
    }

    fn inspect(&self, flux: &[String]) -> Step {
        Step::Inspect {
            dir: self.mount_point.to_owned(),
            sectors: flux.to_vec(),
        }
    }

    fn run(&self, phase: &str, argv: &[String]) -> Step {
        Step::Run {
            phase: Some(phase.to_owned()),
            argv: Recipe::on_device(argv, self.device),
            env: environment(&BTreeMap::new()),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: true,
            keeps_rights: false,
        }
    }
}

/// What became of the filesystem after `cut`, of which `window` may and must be there, by what was
/// `seen` of it.
pub fn judged(
    judge: &mut Judge<'_>,
    contract: &Contract,
    cut: &Cut,
    window: Window,
    mut seen: Seen,
) -> Result {
    let warned = speaks_of_damage(&seen.checked.messages);
    let warned_again = warned || speaks_of_damage(&seen.checked.messages_again);
    let mut right = 0;
    let is_mounted = matches!(seen.checked.mounted, Some(Ok(())));
    if is_mounted {
        (seen.checked.findings, right) = judge.judge(window, &seen.found(), warned);
    }
    let mut right_again = 0;
    if matches!(seen.checked.mounted_again, Some(Ok(()))) {
        let judged = match is_mounted && warned_again == warned && seen.found_the_same() {
            true => (seen.checked.findings.clone(), right),
            false => judge.judge(window, &seen.found_again(), warned_again),
        };
        (seen.checked.findings_again, right_again) = judged;
    }
    // What could be read at first; else what the repair made readable.
    let outcomes = match &seen.checked.mounted {
        Some(Ok(())) => outcomes(right, &seen.checked.findings),
        _ => outcomes(right_again, &seen.checked.findings_again),
    };
    let (condition, broken) = verdict(&seen.checked, contract);
    Result {
        cut: *cut,
        recovery: Vec::new(),
        window: (window.durable, window.begun),
        condition,
        broken,
        mount: seen.mount,
        fsck_check: seen.fsck_check,
        fsck_repair: seen.fsck_repair,
        outcomes,
        measured: None,
        live: None,
        checked: seen.checked,
    }
}

/// What became of how many files, of which `right` are right.
fn outcomes(right: u64, findings: &[PathFinding]) -> BTreeMap<PathOutcome, u64> {
    let mut outcomes = BTreeMap::from([(PathOutcome::Right, right)]);
    for finding in findings {
        *outcomes.entry(finding.outcome).or_default() += 1;
    }
    outcomes
}

fn speaks_of_damage(messages: &[String]) -> bool {
    let mut lines = messages.iter();
    lines.any(|line| classify(line) >= KernelMessage::Damage)
}

/// `steps`, of which a failure ends only themselves.
pub fn attempt(name: &str, steps: Vec<Step>) -> Step {
    Step::Try {
        name: name.to_owned(),
        steps,
    }
}

/// Unmounts `mount_point`, if it is mounted.
pub fn unmount(mount_point: &str) -> Step {
    let step = Step::Unmount {
        phase: None,
        target: mount_point.to_owned(),
    };
    attempt("unmount", vec![step])
}
