//! Commands in the lab on the card as a cut left it.

use super::look::{attempt, unmount};
use super::record::{Recorded, RecordingPlan, only_disk};
use crate::error::{Error, Outcome};
use crate::guest_places::MOUNT_POINT;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_card::Contents;
use whichfs_crash::Cut;
use whichfs_lab::Disk;
use whichfs_trial::{Event, Step};
use whichfs_workload::environment;

/// A card on which commands are run, each in a guest of its own; what one writes, the next finds.
pub struct Shell<'a> {
    plan: &'a RecordingPlan<'a>,
    recorded: &'a Recorded,
    /// `None` while a guest has it.
    disk: Option<Disk>,
}

impl<'a> Shell<'a> {
    /// A shell on `contents`, what the card holds after `cut`.
    ///
    /// # Errors
    /// If the card cannot be made.
    pub fn new(
        plan: &'a RecordingPlan<'a>,
        recorded: &'a Recorded,
        contents: Contents,
        cut: &Cut,
    ) -> Outcome<Shell<'a>> {
        let disk = plan.bench.disk(&recorded.profile, plan.spec.seed)?;
        let mut disk = disk
            .with_contents(contents)
            .with_defects(recorded.timeline.defects(&plan.spec.faults, cut));
        disk.geometry.bytes = plan.spec.partition_bytes;
        Ok(Shell {
            plan,
            recorded,
            disk: Some(disk),
        })
    }

    /// Name of the filesystem.
    pub fn name(&self) -> &str {
        self.plan.candidate.name
    }

    /// Runs `command` with `sh -c`: in the filesystem where it can be mounted (without that if the
    /// command begins with `!`, as fsck and debugfs want it), with all that it says to `say`.
    ///
    /// # Errors
    /// Where the lab fails; a command that fails only says so.
    pub fn run(
        &mut self,
        command: &str,
        core: Option<usize>,
        cancelled: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Outcome {
        let bench = self.plan.bench;
        let job = bench.job(self.steps(command), self.plan.spec.seed);
        let disk = self.disk.take().ok_or_else(|| {
            Error::environment("the card was lost with the guest before: replay the cut again")
        })?;
        let guest = bench.guest(&job, core);
        let life = whichfs_lab::run(&guest, vec![disk], cancelled, &mut |stamped| match &stamped
            .event
        {
            Event::Output { text, .. } => say(text),
            Event::Failed { attempt, message } => say(&format!("{attempt}: {message}\n")),
            Event::Metric { name, value, .. } if name == "exit_status" && *value != 0.0 => {
                say(&format!("exit status {value}\n"));
            }
            _ => {}
        })
        .map_err(Error::environment)?;
        if let Err(error) = &life.result {
            say(&format!("{error}\n"));
        }
        self.disk = Some(only_disk(life)?);
        Ok(())
    }

    fn steps(&self, command: &str) -> Vec<Step> {
        let run = |command: &str, dir: &str| Step::Run {
            phase: Some("shell".to_owned()),
            argv: vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()],
            env: environment(&BTreeMap::new()),
            dir: dir.to_owned(),
            stdin: String::new(),
            show: true,
            any_status: true,
            keeps_rights: false,
        };
        if let Some(command) = command.strip_prefix('!') {
            return vec![run(command, "/")];
        }
        let mount = Step::Mount {
            phase: None,
            source: crate::guest_places::DEVICE.to_owned(),
            target: MOUNT_POINT.to_owned(),
            kernel_fs: self.recorded.recipe.kernel_fs.to_owned(),
            options: self.recorded.mount_options.clone(),
        };
        vec![
            attempt("mount", vec![mount, run(command, MOUNT_POINT)]),
            unmount(MOUNT_POINT),
        ]
    }
}
