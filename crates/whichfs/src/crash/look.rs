//! What is done with a filesystem after a cut, wherever it is, and what is seen of it: mounted
//! before any check, read, used, checked, repaired, mounted and read again.

use super::check::Result;
use crate::bench::{environment, with_device};
use std::collections::BTreeMap;
use whichfs_crash::{
    Checked, Contract, Cut, Finding, Found, Judge, Message, Outcome as Became, Window, classify,
    verdict,
};
use whichfs_fs::Recipe;
use whichfs_lab::Stamped;
use whichfs_trial::{Event, Step};
use whichfs_units::Nanos;

/// Names of the attempts in the job, and of their phases.
pub const MOUNT: &str = "mount";
const USE: &str = "use";
const CHECK: &str = "check";
const REPAIR: &str = "repair";
const AGAIN: &str = "mount_again";

/// How a filesystem is looked at.
pub struct Look<'a> {
    /// Its commands.
    pub recipe: &'a Recipe,
    /// Options it is mounted with.
    pub mount_options: &'a str,
    /// Where it is.
    pub device: &'a str,
    /// Where it is mounted.
    pub mount_point: &'a str,
    /// Whether its checker is run.
    pub fsck: bool,
}

impl Look<'_> {
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
            argv: with_device(argv, self.device),
            env: environment(&BTreeMap::new()),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: true,
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
    if matches!(seen.checked.mounted, Some(Ok(()))) {
        (seen.checked.findings, right) = judge.judge(window, &seen.found, warned);
    }
    let mut right_again = 0;
    if matches!(seen.checked.mounted_again, Some(Ok(()))) {
        let judged = judge.judge(window, &seen.found_again, warned_again);
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
        checked: seen.checked,
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

/// Unmounts `mount_point`, if it is mounted.
pub fn unmount(mount_point: &str) -> Step {
    let step = Step::Unmount {
        phase: None,
        target: mount_point.to_owned(),
    };
    attempt("unmount", vec![step])
}

/// What the agent said of an image.
#[derive(Default)]
pub struct Seen {
    /// What was done with it.
    pub checked: Checked,
    found: Found,
    found_again: Found,
    mount: Option<Nanos>,
    fsck_check: Option<Nanos>,
    fsck_repair: Option<Nanos>,
    /// The last phase was that of the checker or of the repair.
    in_checker: bool,
}

impl Seen {
    /// A hang while its checker or its repair runs is theirs.
    pub fn is_of_checker(&mut self) {
        if self.in_checker {
            self.checked.checker_hung = self.checked.hung.take();
        }
    }

    /// Whether its repair was run and refused, and it mounts neither before nor after that.
    pub fn wants_rescue(&self) -> bool {
        let checked = &self.checked;
        let refused = checked.repair.is_some_and(|status| status != 0);
        let fails =
            |mounted: &Option<std::result::Result<(), String>>| matches!(mounted, Some(Err(_)));
        refused && fails(&checked.mounted) && fails(&checked.mounted_again)
    }

    /// Takes up events in their order.
    pub fn hear_events(&mut self, events: &[Stamped]) {
        let seen = self;
        let mut phase = String::new();
        let mut begun = Nanos(0);
        let mut again = false;
        for stamped in events {
            match &stamped.event {
                Event::PhaseBegin { phase: name } => {
                    phase.clone_from(name);
                    begun = stamped.at;
                    again |= name == AGAIN;
                }
                Event::PhaseEnd { phase: name, .. } => match name.as_str() {
                    MOUNT => {
                        seen.checked.mounted = Some(Ok(()));
                        seen.checked.usable = Some(Ok(()));
                        seen.mount = Some(stamped.at.saturating_sub(begun));
                    }
                    AGAIN => seen.checked.mounted_again = Some(Ok(())),
                    CHECK => seen.fsck_check = Some(stamped.at.saturating_sub(begun)),
                    REPAIR => {
                        // With the last resort, where it came to that.
                        let before = seen.fsck_repair.unwrap_or_default();
                        seen.fsck_repair = Some(before + stamped.at.saturating_sub(begun));
                    }
                    _ => {}
                },
                Event::Failed { attempt, message } => seen.failed(attempt, message),
                Event::Metric { name, value, .. } if name == "exit_status" => {
                    let status = Some(*value as i64);
                    match phase.as_str() {
                        CHECK => seen.checked.check = status,
                        REPAIR => seen.checked.repair = status,
                        _ => {}
                    }
                }
                Event::KernelLog { lines } => seen.log(&phase).extend_from_slice(lines),
                Event::Found { entries } => {
                    let found = seen.current(again);
                    for entry in entries {
                        let what = (entry.node.clone(), entry.mode);
                        if found.entries.insert(entry.path.clone(), what).is_some() {
                            found.repeated.insert(entry.path.clone());
                        }
                        if !entry.zeros.is_empty() {
                            let zeros = entry.zeros.clone();
                            found.zeros.insert(entry.path.clone(), zeros);
                        }
                        if !entry.sectors.is_empty() {
                            let sectors = entry.sectors.clone();
                            found.sectors.insert(entry.path.clone(), sectors);
                        }
                    }
                }
                Event::Sectors {
                    path,
                    first,
                    digests,
                } => {
                    let found = seen.current(again);
                    let all = found.sectors.entry(path.clone()).or_default();
                    if *first == 0 {
                        all.clear();
                    }
                    all.extend_from_slice(digests);
                }
                _ => {}
            }
        }
        seen.in_checker = matches!(phase.as_str(), CHECK | REPAIR);
    }

    /// The messages of the first mount, or those after it.
    fn log(&mut self, phase: &str) -> &mut Vec<String> {
        match phase {
            CHECK | REPAIR | AGAIN => &mut self.checked.messages_again,
            _ => &mut self.checked.messages,
        }
    }

    fn current(&mut self, again: bool) -> &mut Found {
        if again {
            &mut self.found_again
        } else {
            &mut self.found
        }
    }

    fn failed(&mut self, attempt: &str, message: &str) {
        let failed = Some(Err(message.to_owned()));
        match attempt {
            MOUNT if self.checked.mounted.is_none() => self.checked.mounted = failed,
            USE => self.checked.usable = failed,
            AGAIN => self.checked.mounted_again = failed,
            // An unmount that fails, a checker that cannot be started.
            _ => self.checked.messages.push(format!("{attempt}: {message}")),
        }
    }
}
