//! Runs a workload once and keeps all that a cut of it needs.

use super::spec::Spec;
use crate::error::{Error, ErrorKind, Outcome};
use crate::guest_places::{DEVICE, MOUNT_POINT};
use crate::lab_executor::trial_runner::judgeable;
use crate::lab_executor::{LabExecutor, not_in_userland};
use std::sync::atomic::AtomicBool;
use whichfs_blockdev::{Defects, Logged};
use whichfs_card::{Contents, Profile};
use whichfs_crash::{CardFacts, Contract, History, Promise, RunTimeline, Timeline};
use whichfs_fs::{Candidate, Geometry, Purpose, Recipe};
use whichfs_lab::{Disk, GuestRun, LabError, Stamped};
use whichfs_trial::{Event, Job, Step, WorkloadSpec};
use whichfs_units::{MIB, Nanos};
use whichfs_workload::environment;
use whichfs_workload::{Op, Workload};

/// What is run, on what, how.
pub struct RecordingPlan<'a> {
    /// Where it runs.
    pub bench: &'a LabExecutor,
    /// What is asked for.
    pub spec: &'a Spec,
    /// Entry of the catalogue.
    pub candidate: &'static Candidate,
    /// What writes to the filesystem.
    pub workload: &'static dyn Workload,
}

/// A run, and what is needed to make and judge images of it.
pub struct Recorded {
    /// The filesystem's commands.
    pub recipe: Recipe,
    /// Options it was mounted with.
    pub mount_options: String,
    /// What the filesystem promises.
    pub contract: Contract,
    /// All requests from the first mount on, and the card's content between them.
    pub timeline: Timeline,
    /// The first request of the workload itself.
    pub first: usize,
    /// The operations of the workload, in order.
    pub operations: Vec<Op>,
    /// What every path was at every moment.
    pub history: History,
    /// Promises and phases.
    pub run: RunTimeline,
    /// What of the card decides which data survive.
    pub card: CardFacts,
    /// The card after the seed's draw.
    pub profile: Profile,
    /// Virtual time of the run.
    pub time: Nanos,
    /// When the card refused a write in the run.
    pub refused: Vec<Nanos>,
    /// The call at which the run ended because of that, and what it said.
    pub ended: Option<String>,
    /// What it began with, where the card is to fail in runs that begin alike.
    pub clean: Option<Clean>,
    /// Bytes that the card programmed into its flash from the workload's first request on.
    pub programmed_bytes: u64,
}

/// What a run begins with.
pub struct Clean {
    /// The card with the new filesystem.
    pub disk: Disk,
    /// All that is done, from the first mount on.
    pub steps: Vec<Step>,
    /// Operations of each phase of the workload.
    pub counts: Vec<u64>,
    /// What the guest tells of its operations.
    pub(super) told: Told,
}

/// The workload called `name`, under which the power can be cut.
///
/// # Errors
/// If there is none of that name, or its phases are programs.
pub fn cuttable(name: &str) -> Outcome<&'static dyn Workload> {
    let workload = whichfs_workload::find(name).map_err(Error::input)?;
    if workload.runs_programs() {
        return Err(Error::input(format!(
            "workload {name}: its phases are programs, and what they write is not known \
             beforehand, so what a power cut leaves cannot be judged: take a workload of \
             operations, or a script of your own"
        )));
    }
    Ok(workload)
}

impl<'a> RecordingPlan<'a> {
    /// The plan of `spec` on `bench`.
    ///
    /// # Errors
    /// A filesystem or workload that is not known, or programs as a workload.
    pub fn new(bench: &'a LabExecutor, spec: &'a Spec) -> Outcome<RecordingPlan<'a>> {
        Ok(RecordingPlan {
            bench,
            spec,
            candidate: whichfs_fs::find(&spec.fs).map_err(Error::input)?,
            workload: cuttable(&spec.workload)?,
        })
    }

    /// The mount options, and what they promise.
    ///
    /// # Errors
    /// As [`promises`].
    pub fn promises(&self, recipe: &Recipe) -> Outcome<(String, Contract)> {
        promises(self.candidate.name, recipe, self.spec.mount.as_deref())
    }

    /// Makes the filesystem, then runs the workload on it.
    ///
    /// # Errors
    /// What does not go together, a missing tool, or a run that fails.
    pub fn record(&self, core: Option<usize>, cancelled: &AtomicBool) -> Outcome<Recorded> {
        let recipe = self.recipe()?;
        let (mount_options, contract) = self.promises(&recipe)?;
        let spec = WorkloadSpec {
            name: self.workload.name().to_owned(),
            parameters: self.spec.parameters.clone(),
            tree: None,
            unix: self.candidate.facts().unix_permissions,
            script: self.spec.script.clone(),
            input: None,
        };
        let (mkfs, rest) = self.steps(&recipe, &mount_options, &spec)?;
        let profile = self.bench.card.of_seed(self.spec.seed);
        let mut disk = self.bench.disk(&profile, self.spec.seed)?;
        disk.geometry.bytes = self.spec.partition_bytes;
        let made = self.live(mkfs, Told::Nothing, disk, core, cancelled)?;
        let mut disk = only_disk(made)?;
        let base = disk.contents().clone();
        disk = disk.recording();
        let phases = operate_phases(&rest);
        let by_contract = contract.returned_writes || contract.returned_names;
        let told = match by_contract || self.spec.returns {
            true => Told::Returns,
            false => Told::Promises,
        };
        if whichfs_crash::fails_writes(&self.spec.faults) {
            let twin = disk.twin().recording();
            let rehearsal = self.live(rest.clone(), told, twin, core, cancelled)?;
            disk = disk.with_defects(Some(self.refusals(rehearsal, &phases)?));
        }
        let clean = whichfs_crash::is_live(&self.spec.faults).then(|| (disk.twin(), rest.clone()));
        let life = self.live(rest, told, disk, core, cancelled)?;
        let ended = match &life.result {
            Err(LabError::Agent { message, .. }) => Some(message.clone()),
            _ => None,
        };
        let (operations, counts) = operations(self.workload, &phases, &spec, self.spec.seed)?;
        let history = History::of(operations.iter().cloned()).map_err(Error::input)?;
        let run = run_of(&life.events, &phases, &counts);
        let time = life.time;
        let before = programmed_before(&life.events, &phases);
        let disk = only_disk(life)?;
        let programmed_bytes = disk.figures().programmed_bytes - before;
        let refused = disk.refused().to_vec();
        let log = disk.into_log();
        let begin = run.phases.first().map_or(Nanos(0), |(begin, _)| *begin);
        Ok(Recorded {
            first: log.partition_point(|request| request.arrived < begin),
            card: facts(&profile),
            recipe,
            mount_options,
            contract,
            timeline: self.timeline(base, log)?,
            operations,
            history,
            run,
            profile,
            time,
            programmed_bytes,
            refused,
            ended,
            clean: clean.map(|(disk, steps)| Clean {
                disk,
                steps,
                counts,
                told,
            }),
        })
    }

    /// What the card refuses of what was written in `rehearsal`, the same run on a good card.
    fn refusals(&self, rehearsal: GuestRun, phases: &[String]) -> Outcome<Defects> {
        let begin = begin_of(&rehearsal.events, phases).map_or(Nanos(0), |stamped| stamped.at);
        let log = only_disk(rehearsal)?.into_log();
        let first = log.partition_point(|request| request.arrived < begin);
        Ok(whichfs_crash::refusals(
            &log,
            first,
            &self.spec.faults,
            self.spec.seed,
        ))
    }

    /// The timeline of a run, whose data lie in a file for the most part.
    pub(super) fn timeline(&self, base: Contents, log: Vec<Logged>) -> Outcome<Timeline> {
        let bytes: u64 = log.iter().map(|request| request.data.len() as u64).sum();
        let store = self.bench.contents(bytes.next_multiple_of(MIB).max(MIB))?;
        Timeline::storing(base, log, store).map_err(Error::environment)
    }

    /// The filesystem's commands, if its tools are there.
    ///
    /// # Errors
    /// A partition that does not suit it, a missing tool.
    pub fn recipe(&self) -> Outcome<Recipe> {
        let geometry = Geometry {
            partition_bytes: self.spec.partition_bytes,
            ..self.bench.geometry()
        };
        let name = self.candidate.name;
        let recipe = self
            .candidate
            .recipe(
                &geometry,
                Purpose::Lab {
                    seed: self.spec.seed,
                },
            )
            .map_err(|why| Error::input(format!("{name}: {why}; try a larger partition")))?;
        if recipe.image.is_some() {
            return Err(no_contract(name));
        }
        let missing = recipe.tools.iter().find(|tool| !self.bench.has(tool));
        match missing {
            None => Ok(recipe),
            Some(tool) => Err(Error::environment(not_in_userland(tool))),
        }
    }

    /// The steps that make the filesystem, and those from its first mount on.
    fn steps(
        &self,
        recipe: &Recipe,
        mount_options: &str,
        spec: &WorkloadSpec,
    ) -> Outcome<(Vec<Step>, Vec<Step>)> {
        let candidate = whichfs_workload::StepCandidate {
            upper: None,
            before: Vec::new(),
            disk: None,
            mkfs: recipe
                .mkfs
                .iter()
                .map(|argv| Recipe::on_device(argv, DEVICE))
                .collect(),
            env: environment(&recipe.mkfs_env),
            device: DEVICE.to_owned(),
            check: Vec::new(),
            image: None,
            kernel_fs: recipe.kernel_fs.to_owned(),
            mount_options: mount_options.to_owned(),
            mount_point: MOUNT_POINT.to_owned(),
            helper: None,
            modules: Vec::new(),
        };
        let mut steps = whichfs_workload::steps(self.workload, spec, self.spec.seed, &candidate)
            .map_err(Error::input)?;
        let made = steps
            .iter()
            .position(|step| !matches!(step, Step::Run { .. }))
            .unwrap_or(steps.len());
        let rest = steps.split_off(made);
        Ok((steps, rest))
    }

    /// One guest's life on `disk`; it must end well, or at a call that failed because the card
    /// had refused a request.
    fn live(
        &self,
        steps: Vec<Step>,
        told: Told,
        disk: Disk,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<GuestRun> {
        let job = self.job(steps, told);
        let life = whichfs_lab::run(
            &self.bench.guest(&job, core),
            vec![disk],
            cancelled,
            &mut |_| {},
        )
        .map_err(Error::environment)?;
        let life = judgeable(life).map_err(|failure| failure.about(self.candidate.name))?;
        let refused = life.disks.iter().any(|disk| !disk.refused().is_empty());
        match &life.result {
            Ok(()) => Ok(life),
            Err(LabError::Agent { .. }) if refused => Ok(life),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The job of a run.
    pub(super) fn job(&self, steps: Vec<Step>, told: Told) -> Job {
        Job {
            promises: told != Told::Nothing,
            returns: told == Told::Returns,
            ignores_sync: self.spec.faults.iter().any(|fault| fault.ignores_sync()),
            ..self.bench.job(steps, self.spec.seed)
        }
    }

    /// Why there is no run to cut.
    fn failed(&self, error: &LabError) -> Error {
        let name = self.candidate.name;
        if let (
            Some(options),
            LabError::Agent {
                message,
                kernel_log,
            },
        ) = (&self.spec.mount, error)
            && message.starts_with("mount ")
        {
            let said = kernel_log.last().map_or(String::new(), |line| {
                format!("; the kernel says: {}", without_priority(line))
            });
            return Error::input(format!(
                "mount options {options}: {message}{said}; correct the options (whichfs fs show \
                 {name} has the catalogue's)"
            ));
        }
        let text = format!("{name}: the run to be cut failed: {error}");
        match remedy(&text, self.spec.script.is_some()) {
            Some(remedy) => Error::input(format!("{text}; {remedy}")),
            None => Error::new(ErrorKind::Trial, text),
        }
    }
}

/// The options that the filesystem `name` is mounted with if `asked` is asked for, and what they
/// promise.
///
/// # Errors
/// Options with which nothing is left to be judged.
pub fn promises(name: &str, recipe: &Recipe, asked: Option<&str>) -> Outcome<(String, Contract)> {
    let options = mounted(&recipe.mount_options, asked);
    if let Some(why) = whichfs_crash::gives_up(name, &options) {
        return Err(Error::input(format!(
            "mount options: {why}; there is nothing to judge: leave that option out"
        )));
    }
    let contract = whichfs_crash::contract(name, &options).ok_or_else(|| no_contract(name))?;
    Ok((options, contract))
}

/// The operations of the `phases` of `workload`, and the number of those of each.
///
/// # Errors
/// The workload does not take `spec`.
pub fn operations(
    workload: &dyn Workload,
    phases: &[String],
    spec: &WorkloadSpec,
    seed: u64,
) -> Outcome<(Vec<Op>, Vec<u64>)> {
    let listing = workload.generated_tree(spec, seed);
    let listing = listing.map_err(Error::input)?;
    let mut all = Vec::new();
    let mut counts = Vec::new();
    for phase in phases {
        let before = all.len();
        let operations = workload.operations(phase, spec, listing.as_ref(), seed);
        all.extend(operations.map_err(Error::input)?);
        counts.push((all.len() - before) as u64);
    }
    Ok((all, counts))
}

/// What to change where a run failed by what was asked for, told by the number of the error that
/// a call gave; none where the filesystem or its card failed.
pub fn remedy(text: &str, is_script: bool) -> Option<&'static str> {
    use rustix::io::Errno as E;
    let number = text.rsplit_once("(os error ")?.1.split(')').next()?;
    let errno = E::from_raw_os_error(number.parse().ok()?);
    match errno {
        E::NOSPC if is_script => Some("take a larger partition, or write less in the script"),
        E::NOSPC => Some("take a larger partition or a smaller size"),
        E::NAMETOOLONG
        | E::INVAL
        | E::EXIST
        | E::NOENT
        | E::MLINK
        | E::FBIG
        | E::OPNOTSUPP
        | E::PERM
        | E::ILSEQ
            if is_script =>
        {
            Some(
                "this filesystem cannot do that: change the line of the script, or leave the \
                 filesystem out",
            )
        }
        _ => None,
    }
}

/// A line of the kernel's log without the number that it begins with (`<3>`).
fn without_priority(line: &str) -> &str {
    let numbered = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    numbered.map_or(line, |(_, text)| text).trim()
}

/// What a guest tells of its operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// Calls that made something durable.
    Promises,
    /// Also that an operation returned.
    Returns,
}

/// The mount options: the recipe's, those asked for, or, if these begin with `+`, both.
pub fn mounted(recipe: &str, asked: Option<&str>) -> String {
    match asked.map(|asked| (asked, asked.strip_prefix('+'))) {
        None => recipe.to_owned(),
        Some((_, Some(more))) if recipe.is_empty() => more.to_owned(),
        Some((_, Some(more))) => format!("{recipe},{more}"),
        Some((asked, None)) => asked.to_owned(),
    }
}

/// The error that `name` is mounted read-only, so that no promise of it can break.
pub fn no_contract(name: &str) -> Error {
    Error::input(format!("{name}: nothing is written to it"))
}

/// The one disk of a guest that has ended.
pub fn only_disk(life: GuestRun) -> Outcome<Disk> {
    let disk = life.disks.into_iter().next();
    disk.ok_or_else(|| Error::new(ErrorKind::Trial, "the guest gave its disk not back"))
}

fn facts(profile: &Profile) -> CardFacts {
    CardFacts {
        cache_bytes: profile.cache.bytes.value,
        page_bytes: profile.page_bytes(),
        au_bytes: profile.au_bytes(),
        small_write_bytes: profile.small_write_bytes(),
    }
}

/// Names of the workload's phases in the order of the steps.
pub fn operate_phases(steps: &[Step]) -> Vec<String> {
    let phases = steps.iter().filter_map(|step| match step {
        Step::Operate { phase, .. } => Some(phase.clone()),
        _ => None,
    });
    phases.collect()
}

/// Bytes that the card had programmed when the first phase of the workload began.
fn programmed_before(events: &[Stamped], phases: &[String]) -> u64 {
    begin_of(events, phases).map_or(0, |stamped| stamped.device.programmed_bytes)
}

/// The event with which the first phase of the workload began.
fn begin_of<'a>(events: &'a [Stamped], phases: &[String]) -> Option<&'a Stamped> {
    events.iter().find(|stamped| match &stamped.event {
        Event::PhaseBegin { phase } => phases.first() == Some(phase),
        _ => false,
    })
}

/// Promises and phases out of what the agent said. `counts` are the operations of each phase.
pub fn run_of(events: &[Stamped], phases: &[String], counts: &[u64]) -> RunTimeline {
    let mut run = RunTimeline {
        operations: counts.iter().sum(),
        ..RunTimeline::default()
    };
    let mut next = 0;
    for stamped in events {
        match &stamped.event {
            Event::Promise {
                call,
                path,
                operations,
            } => run.promises.push(Promise {
                at: stamped.at,
                call: call.clone(),
                path: path.clone(),
                operations: *operations,
            }),
            Event::PhaseBegin { phase } if phases.get(next) == Some(phase) => {
                run.phases.push((stamped.at, counts[..next].iter().sum()));
                next += 1;
            }
            _ => {}
        }
    }
    run
}

#[cfg(test)]
mod tests {
    use super::{mounted, remedy, without_priority};

    #[test]
    fn what_was_asked_for_has_a_remedy_and_a_card_that_fails_has_none() {
        let long = "make directory /mnt/test/n: File name too long (os error 36)";
        assert!(remedy(long, true).is_some_and(|text| text.contains("of the script")));
        assert_eq!(
            remedy(long, false),
            None,
            "a workload of ours is not the user's fault"
        );
        let full = "write a: ENOSPC: No space left on device (os error 28)";
        assert!(remedy(full, true).is_some_and(|text| text.contains("write less")));
        assert!(remedy(full, false).is_some_and(|text| text.contains("smaller size")));
        assert_eq!(remedy("fsync a: EIO: I/O error (os error 5)", true), None);
        assert_eq!(remedy("it spins", true), None);
    }

    #[test]
    fn a_line_of_the_kernel_is_told_without_its_priority() {
        assert_eq!(without_priority("<3>ext4: Unknown"), "ext4: Unknown");
        assert_eq!(without_priority("a <b> c"), "a <b> c");
    }

    #[test]
    fn a_plus_adds_to_the_options_of_the_recipe() {
        assert_eq!(mounted("noatime,uid=0", None), "noatime,uid=0");
        assert_eq!(mounted("noatime,uid=0", Some("sync")), "sync");
        assert_eq!(
            mounted("noatime,uid=0", Some("+sync")),
            "noatime,uid=0,sync"
        );
        assert_eq!(mounted("", Some("+sync,dirsync")), "sync,dirsync");
    }
}
