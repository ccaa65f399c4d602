//! Power cuts of a real device: the workload runs on a board, the board loses its power, and what
//! is found when it is back is judged as in the lab.
//!
//! The agent there goes on after each promise only when it was heard here
//! ([`whichfs_trial::Job::acknowledged`]). So a cut parts a run as it does in the lab: what was
//! promised and told counts, of what follows the next promise nothing had begun, and what lies
//! between may be there or not. The promises of a whole run are known from one without a cut.

use super::check::{MeasuredCut, Result};
use super::look::{Inspection, judged};
use super::power::Way;
use super::record::{no_contract, operate_phases, operations, promises, remedy, run_of};
use super::seen::Seen;
use super::spec::{CutDevice, Makers, Selection, Spec};
use crate::device::{Cuttable, DeviceExecutor, DeviceLease, stamped};
use crate::digest;
use crate::error::{Error, ErrorKind, Outcome};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_crash::{
    Contract, Cut, CutPlace, Faults, History, Judge, KernelMessage, RunTimeline, classify, in_flux,
    of_device,
};
use whichfs_device::sandboxed_agent::AgentEnd;
use whichfs_fs::{Candidate, Recipe};
use whichfs_lab::Stamped;
use whichfs_remote::{Cutting, Task};
use whichfs_trial::{Event, Job, REAL, StampedEvent, Step, WorkloadSpec};
use whichfs_units::{Nanos, Rng};
use whichfs_workload::environment;
use whichfs_workload::{Op, Workload};

/// How long a board may take to be off.
const DIES_WITHIN: Duration = Duration::from_secs(90);

/// A filesystem that is cut.
pub struct Subject {
    /// What is asked for.
    pub spec: Spec,
    /// Entry of the catalogue.
    pub candidate: &'static Candidate,
    /// What writes when the power is cut.
    pub workload: &'static dyn Workload,
    /// Device, partition and commands of the filesystem.
    pub place: Cuttable,
    /// Options it is mounted with.
    pub mount_options: String,
    /// What it promises.
    pub contract: Contract,
    /// Idle time before each run, in milliseconds.
    pub settle_ms: u64,
    /// Time after which a run is ended.
    pub wall_limit: Duration,
    /// Set by the caller when the runs are to end.
    pub interrupted: &'static AtomicBool,
}

/// What is asked of the power cuts of a device, whichever filesystem is on it.
pub struct CutRequest {
    /// What writes when the power is cut.
    pub workload: &'static dyn Workload,
    /// Sizes and counts of the workload, by name.
    pub parameters: BTreeMap<String, u64>,
    /// Operations of the user in its place.
    pub script: Option<Vec<Op>>,
    /// Mount options in place of the catalogue's; with a plus before them beside those.
    pub mount: Option<String>,
    /// Size of the partition in bytes; a smaller device has all of it.
    pub partition_bytes: u64,
    /// Which cuts.
    pub cuts: Selection,
    /// Whether the filesystem's own checker looks too.
    pub fsck: bool,
    /// Seed of the workload and of the moments.
    pub seed: u64,
    /// What takes the power, by the name that it has in results.
    pub power: String,
}

/// A whole run without a cut.
pub struct Rehearsed {
    history: History,
    /// Its promises and phases, by the time since the workload began.
    run: RunTimeline,
    phases: Vec<String>,
    counts: Vec<u64>,
    /// How long the workload took.
    time: Nanos,
    /// Bytes that reached the device.
    pub bytes: u64,
}

/// When the first phase of a workload began.
fn begin_of(events: &[Stamped], phases: &[String]) -> Nanos {
    let begins = |stamped: &&Stamped| begins(&stamped.event, phases);
    events
        .iter()
        .find(begins)
        .map_or(Nanos(0), |stamped| stamped.at)
}

fn begins(event: &Event, phases: &[String]) -> bool {
    matches!(event, Event::PhaseBegin { phase } if phases.first() == Some(phase))
}

/// Events from the first phase on, by the time since then.
fn since(told: &[StampedEvent], phases: &[String]) -> Vec<Stamped> {
    let mut events = stamped(told);
    let begin = begin_of(&events, phases);
    for event in &mut events {
        event.at = event.at.saturating_sub(begin);
    }
    events
}

/// The run `whole` as far as it was `heard`: what was not comes after every cut.
///
/// # Errors
/// It is another run.
fn parted(whole: &RunTimeline, heard: &RunTimeline) -> Outcome<RunTimeline> {
    const NEVER: Nanos = Nanos(u64::MAX);
    let mut run = heard.clone();
    let same = heard
        .promises
        .iter()
        .zip(&whole.promises)
        .all(|(a, b)| (&a.call, &a.path, a.operations) == (&b.call, &b.path, b.operations));
    if !same || heard.promises.len() > whole.promises.len() {
        return Err(Error::new(
            ErrorKind::Trial,
            "the workload promised other things than without a cut: do the device and the board \
             do the same each time?",
        ));
    }
    let rest = whole.promises.iter().skip(heard.promises.len()).cloned();
    run.promises.extend(rest.map(|mut promise| {
        promise.at = NEVER;
        promise
    }));
    let rest = whole.phases.iter().skip(heard.phases.len());
    run.phases.extend(rest.map(|(_, before)| (NEVER, *before)));
    Ok(run)
}

impl Subject {
    /// `candidate` on the device of `site`, cut as `request` asks until `interrupted` is set.
    ///
    /// # Errors
    /// It cannot be there, or promises nothing that a cut could break.
    pub fn of(
        site: &DeviceExecutor,
        candidate: &'static Candidate,
        request: &CutRequest,
        interrupted: &'static AtomicBool,
    ) -> Outcome<Subject> {
        let place = site.cuttable(candidate, request.partition_bytes, request.seed)?;
        if place.recipe.image.is_some() {
            return Err(no_contract(candidate.name));
        }
        let (mount_options, contract) =
            promises(candidate.name, &place.recipe, request.mount.as_deref())?;
        let machine = &site.machine;
        let spec = Spec {
            fs: candidate.name.to_owned(),
            mount: request.mount.clone(),
            card: site.id().to_owned(),
            card_state: "as found".to_owned(),
            board: machine.name.clone(),
            clock: REAL.to_owned(),
            workload: request.workload.name().to_owned(),
            parameters: request.parameters.clone(),
            script: request.script.clone(),
            returns: false,
            partition_bytes: place.span.bytes,
            faults: Faults::new(),
            cuts: request.cuts.clone(),
            recovery: 0,
            fsck: request.fsck,
            seed: request.seed,
            measured: Some(CutDevice {
                device: site.device.identity.clone(),
                power: request.power.clone(),
                partition_offset: place.span.start,
                kernel: machine.kernel.clone(),
            }),
            made_by: Makers {
                version: crate::version::version(),
                card_sha256: digest::sha256(site.device.identity.as_bytes()),
                board_sha256: machine.sha256.clone(),
                kernel_sha256: machine.kernel_sha256.clone(),
                agent_sha256: site.around.agent_sha256().to_owned(),
                userland_sha256: None,
                tools: place.tools.clone(),
            },
        };
        Ok(Subject {
            spec,
            candidate,
            workload: request.workload,
            place,
            mount_options,
            contract,
            settle_ms: site.settle_ms(),
            wall_limit: site.wall_limit,
            interrupted,
        })
    }

    fn workload_spec(&self) -> WorkloadSpec {
        WorkloadSpec {
            name: self.workload.name().to_owned(),
            parameters: self.spec.parameters.clone(),
            tree: None,
            unix: self.candidate.facts().unix_permissions,
            script: self.spec.script.clone(),
            input: None,
        }
    }

    /// Makes the filesystem durably, then runs the workload on it.
    fn steps(&self) -> Outcome<Vec<Step>> {
        let (place, recipe) = (&self.place, &self.place.recipe);
        let candidate = whichfs_workload::StepCandidate {
            upper: None,
            before: Vec::new(),
            disk: None,
            mkfs: self.mkfs(),
            env: environment(&recipe.mkfs_env),
            device: place.device.clone(),
            check: Vec::new(),
            image: None,
            kernel_fs: recipe.kernel_fs.to_owned(),
            mount_options: self.mount_options.clone(),
            mount_point: place.mount_point.clone(),
            helper: None,
            modules: Vec::new(),
        };
        let spec = self.workload_spec();
        let steps = whichfs_workload::steps(self.workload, &spec, self.spec.seed, &candidate);
        let mut steps = steps.map_err(Error::input)?;
        let made = steps
            .iter()
            .position(|step| !matches!(step, Step::Run { .. }))
            .unwrap_or(steps.len());
        // What mkfs wrote may be in the card's cache: that a cut takes it away is nobody's fault.
        let flush = Step::Run {
            phase: None,
            argv: vec!["sync".to_owned(), place.device.clone()],
            env: environment(&BTreeMap::new()),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        };
        steps.insert(made, flush);
        let milliseconds = self.settle_ms;
        let before = [Step::DropCaches, Step::Settle { milliseconds }];
        Ok(before.into_iter().chain(steps).collect())
    }

    /// The commands that make the filesystem.
    pub fn mkfs(&self) -> Vec<Vec<String>> {
        let mkfs = self.place.recipe.mkfs.iter();
        mkfs.map(|argv| Recipe::on_device(argv, &self.place.device))
            .collect()
    }

    fn task(&self, label: String, mut steps: Vec<Step>, keeps: bool) -> Task {
        crate::device::grant_rights(&mut steps);
        let returns = self.contract.returned_writes || self.contract.returned_names;
        Task {
            span: self.place.span,
            label,
            job: Job {
                seed: self.spec.seed,
                queues: Vec::new(),
                steps,
                promises: !keeps,
                returns: !keeps && returns,
                ignores_sync: false,
                counts_work: false,
                acknowledged: !keeps,
            },
            wall_limit_s: self.wall_limit.as_secs(),
            write_limit: None,
            keeps,
        }
    }

    /// Runs it once without a cut, in which `most` bytes may be written.
    ///
    /// # Errors
    /// It fails.
    pub fn rehearse(&self, field: &mut DeviceLease<'_>, most: Option<u64>) -> Outcome<Rehearsed> {
        let name = self.candidate.name;
        let steps = self.steps()?;
        let phases = operate_phases(&steps);
        let task = Task {
            write_limit: most,
            ..self.task(format!("{name}, no cut"), steps, false)
        };
        let (ended, told) = field.once(task, self.interrupted)?;
        match ended {
            Some(AgentEnd::Done) => {}
            None => {
                let text = format!("{name}: the board restarted in a run without a cut");
                return Err(Error::new(ErrorKind::Trial, text));
            }
            Some(AgentEnd::Failed { message, .. }) => return Err(self.failed(&message)),
            Some(AgentEnd::TooLong(limit)) => {
                let text = format!(
                    "it took more than {} s: raise the wall limit",
                    limit.as_secs()
                );
                return Err(self.failed(&text));
            }
            Some(AgentEnd::TooMuch) => {
                let text = "the run without a cut wrote more than the limit and was ended: allow \
                            more bytes, or take less data";
                return Err(self.failed(text));
            }
            Some(AgentEnd::Interrupted) => {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
        }
        let spec = self.workload_spec();
        let (all, counts) = operations(self.workload, &phases, &spec, self.spec.seed)?;
        let events = since(&told, &phases);
        let run = run_of(&events, &phases, &counts);
        let last = run.promises.iter().map(|promise| promise.at).max();
        let written = told.iter().skip_while(|told| !begins(&told.event, &phases));
        let written: Vec<u64> = written
            .filter_map(|told| Some(told.reading.as_ref()?.device.write_bytes))
            .collect();
        let first = written.first().copied().unwrap_or(0);
        Ok(Rehearsed {
            history: History::of(all).map_err(Error::input)?,
            time: last.unwrap_or(Nanos(0)),
            bytes: written.last().map_or(0, |last| last.saturating_sub(first)),
            run,
            phases,
            counts,
        })
    }

    fn failed(&self, message: &str) -> Error {
        let text = format!(
            "{}: the run to be cut failed: {message}",
            self.candidate.name
        );
        match remedy(&text, self.spec.script.is_some()) {
            Some(remedy) => Error::input(format!("{text}; {remedy}")),
            None => Error::new(ErrorKind::Trial, text),
        }
    }

    /// Runs it again, cuts the power at the moment of cut `number`, and judges what is left.
    ///
    /// # Errors
    /// Only what is not the filesystem's doing.
    pub fn cut(
        &self,
        field: &mut DeviceLease<'_>,
        whole: &Rehearsed,
        way: &Way,
        number: u64,
    ) -> Outcome<Result> {
        let name = self.candidate.name;
        let seed = Rng::named(self.spec.seed, &format!("crash/measured/{number}")).next_u64();
        let moment = Rng::named(seed, "crash/moment").below(whole.time.0.max(1));
        let after = Duration::from_nanos(moment).saturating_sub(way.lead());
        let act = || way.act();
        let cutting = Cutting {
            begins: &|told: &StampedEvent| begins(&told.event, &whole.phases),
            after: (self.spec.cuts != Selection::End).then_some(after),
            power: way.power(&act),
            dies_within: DIES_WITHIN + way.lead(),
        };
        let task = self.task(format!("{name}, cut {number}"), self.steps()?, false);
        let gone = field
            .cut(task, &cutting, self.interrupted)
            .map_err(|failure| failure.about(name))?;
        let events = since(&gone.told, &whole.phases);
        let begin = begin_of(&stamped(&gone.told), &whole.phases);
        let heard = run_of(&events, &whole.phases, &whole.counts);
        let mut run = parted(&whole.run, &heard)?;
        run.operations = whole.run.operations;
        let cut = Cut {
            number,
            request: 0,
            place: CutPlace::Unseen,
            at: gone.at.saturating_sub(begin),
            seed,
        };
        let window = run.window(cut.at);
        let flux = in_flux(&whole.history, &run, window, &self.contract);
        let seen = self.seen(field, &flux, number)?;
        let mut judge = Judge::new(&whole.history, &run, self.contract.clone());
        let mut result = judged(&mut judge, &self.contract, &cut, window, seen);
        result.measured = Some(MeasuredCut {
            power: way.name(),
            promises: heard.promises.len() as u64,
            of_promises: whole.run.promises.len() as u64,
            operations: whole.run.operations,
            ended: gone.ended.is_some(),
            away: Nanos(u64::try_from(gone.away.as_nanos()).unwrap_or(u64::MAX)),
            run: whole.time,
            run_bytes: whole.bytes,
        });
        result.shorten();
        Ok(result)
    }

    /// Looks at what the cut left.
    fn seen(&self, field: &mut DeviceLease<'_>, flux: &[String], number: u64) -> Outcome<Seen> {
        let look = Inspection {
            recipe: &self.place.recipe,
            mount_options: &self.mount_options,
            device: &self.place.device,
            mount_point: &self.place.mount_point,
            fsck: self.spec.fsck,
        };
        let mut seen = Seen::default();
        self.ask(field, &mut seen, look.steps(flux), number)?;
        if seen.wants_rescue() && !self.place.recipe.fsck_rescue.is_empty() {
            self.ask(field, &mut seen, look.rescue(flux), number)?;
        }
        Ok(seen)
    }

    /// Has the board do `steps` with what is on the device, and takes up what it tells.
    fn ask(
        &self,
        field: &mut DeviceLease<'_>,
        seen: &mut Seen,
        steps: Vec<Step>,
        number: u64,
    ) -> Outcome {
        let name = self.candidate.name;
        let task = self.task(format!("{name}, what cut {number} left"), steps, true);
        let (ended, told) = match field.once(task, self.interrupted) {
            Ok(answer) => answer,
            // The table was synced before the run: a device that loses that has failed as one.
            Err(failure) if failure.kind == ErrorKind::Trial => {
                seen.checked.mounted = Some(Err(failure.message));
                return Ok(());
            }
            Err(failure) => return Err(failure.about(name)),
        };
        let device = self.place.device.trim_start_matches("/dev/");
        let mut events = stamped(&told);
        for event in &mut events {
            if let Event::KernelLog { lines, times_us } = &mut event.event {
                times_us.clear();
                *lines = of_device(device, lines);
            }
        }
        seen.hear_events(events);
        match ended {
            Some(AgentEnd::Done) => {}
            Some(AgentEnd::Failed { message, .. }) => {
                let text = format!("{name}: the check failed: {message}");
                return Err(Error::new(ErrorKind::Trial, text));
            }
            Some(AgentEnd::TooLong(limit)) => {
                seen.checked.hung = Some(format!("it took more than {} s", limit.as_secs()));
            }
            Some(AgentEnd::TooMuch | AgentEnd::Interrupted) => {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            None => {
                let text = "the board restarted while the filesystem was looked at";
                seen.checked.hung = Some(text.to_owned());
            }
        }
        seen.is_of_checker();
        let checked = &mut seen.checked;
        let lines = checked.messages.iter().chain(&checked.messages_again);
        let errors = lines.filter(|line| classify(line) == KernelMessage::DeviceError);
        checked.failed_requests = errors.count() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_crash::Promise;

    fn promise(at: u64, operations: u64) -> Promise {
        Promise {
            at: Nanos(at),
            call: "fsync".into(),
            path: "a".into(),
            operations,
        }
    }

    fn run(promises: &[(u64, u64)]) -> RunTimeline {
        RunTimeline {
            promises: promises
                .iter()
                .map(|(at, done)| promise(*at, *done))
                .collect(),
            phases: vec![(Nanos(0), 0)],
            operations: 20,
        }
    }

    #[test]
    fn what_was_not_heard_comes_after_the_cut() {
        let mut whole = run(&[(10, 5), (20, 8), (30, 12)]);
        whole.phases.push((Nanos(25), 10));
        let run = parted(&whole, &run(&[(11, 5)])).unwrap();
        let window = run.window(Nanos(1000));
        assert_eq!(
            (window.durable, window.begun),
            (0, 8),
            "bounded by the next promise"
        );
        assert_eq!(run.of_files(Nanos(1000)).count(), 1);
        let all = parted(&whole, &whole).unwrap();
        assert_eq!(all.window(Nanos(1000)).begun, 20);
    }

    #[test]
    fn another_run_is_not_judged_by_this_one() {
        let whole = run(&[(10, 5), (20, 8)]);
        assert!(parted(&whole, &run(&[(10, 6)])).is_err());
        assert!(parted(&whole, &run(&[(1, 5), (2, 8), (3, 9)])).is_err());
    }
}
