//! Planned trials, wherever they were planned: each is checked to be the same trial here, run in
//! the lab, and its record told.

use crate::campaign::{Campaign, Cell, InOrder, NextTrial, Schedule, State, Use, Wanted};
use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::{Executor, PreparedTrial, TrialSpec};
use crate::images::Images;
use crate::json_lines::{NumberedLines, RefusedLine, document};
use crate::lab_executor::LabExecutor;
use crate::observer::{Observer, ProgressEvent};
use crate::portable_files::placed;
use crate::prepare_error::PrepareError;
use crate::study_run::bench;
use crate::tree;
use crate::trial_cache::{TrialCache, now_unix};
use crate::workload_run::WorkloadRun;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_study::{TrialInputs, TrialRequest, Tuning};
use whichfs_trial::{Status, Trial, TrialRecord};

/// Lines that are read before their trials run: so many are prepared at once.
const AHEAD: usize = 256;

/// How planned trials are run.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRun {
    /// Trials at once.
    pub jobs: usize,
    /// Wall time after which a trial is stopped.
    pub wall_limit: Duration,
    /// Only check that this machine would make the same trials.
    pub check_only: bool,
}

/// What became of a line.
pub enum LineResult<'r> {
    /// The trial ran, to its end or until it failed.
    Ran(&'r TrialRecord),
    /// This machine would make the same trial, and only that was asked.
    Checked(&'r TrialRequest),
    /// It was not run.
    Refused(&'r RefusedLine),
}

/// How many lines became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedRunCounts {
    /// Trials that ran to an end, or were only checked.
    pub done: usize,
    /// Trials that ran and failed: they have records too.
    pub failed: usize,
    /// Lines that this machine cannot run, and another one may.
    pub foreign: usize,
    /// Lines that nobody can run.
    pub malformed: usize,
}

/// Hears what became of each line, as soon as that is known.
pub type Hear<'h> = dyn FnMut(LineResult<'_>) -> Outcome + 'h;

/// Runs the planned trials in `lines` and tells `hear` the record of each. A line that is refused
/// keeps no other from running. `about_images` hears what images are being built.
///
/// # Errors
/// What is no trial's own failure: this machine, `lines` or `hear`; the caller's interruption. What
/// was told before holds.
pub fn run(
    mut lines: NumberedLines<'_>,
    how: PlannedRun,
    interrupted: &AtomicBool,
    about_images: &(dyn Fn(&str) + Sync),
    observer: &mut dyn Observer,
    hear: &mut Hear<'_>,
) -> Outcome<PlannedRunCounts> {
    let mut lab = Lab {
        how,
        benches: BTreeMap::new(),
        trees: BTreeMap::new(),
    };
    let mut counts = PlannedRunCounts::default();
    loop {
        let mut read = 0;
        let mut groups: BTreeMap<BenchKey, Vec<Request>> = BTreeMap::new();
        while read < AHEAD
            && let Some(line) = lines.next_line()?
        {
            read += 1;
            match lab.request(&line) {
                Ok(request) if how.check_only => {
                    counts.done += 1;
                    hear(LineResult::Checked(&request.planned))?;
                }
                Ok(request) => groups
                    .entry(request.bench.clone())
                    .or_default()
                    .push(request),
                Err(Why::Refused(why, foreign)) => {
                    match foreign {
                        true => counts.foreign += 1,
                        false => counts.malformed += 1,
                    }
                    hear(LineResult::Refused(&lines.refused(why, foreign)))?;
                }
                Err(Why::Failed(error)) => return Err(error),
            }
        }
        if read == 0 {
            return Ok(counts);
        }
        for (key, requests) in &groups {
            let mut order = Recorder {
                order: InOrder::default(),
                wall: Duration::ZERO,
                counts: &mut counts,
                hear,
            };
            let mut campaign = Campaign::new(TrialCache::over(Box::new(()), false), interrupted);
            let bench = &lab.benches[key];
            let images = Images::new(about_images);
            let wanted = requests
                .iter()
                .map(Request::wanted)
                .collect::<Outcome<Vec<_>>>()?;
            let about = |label: &String, error: Error| error.about(label);
            campaign.plan(bench, wanted, &images, &about)?;
            observer.hear(&ProgressEvent::RoundBegun {
                trials: campaign.missing().count(),
                slots: bench.capabilities().slots,
                later: 0,
            });
            campaign.run(bench, "planned trials", &mut order, observer)?;
            observer.hear(&ProgressEvent::RoundEnded);
        }
    }
}

/// Why a line is not run.
enum Why {
    /// For this reason; whether another machine may run it.
    Refused(String, bool),
    /// Something else is wrong.
    Failed(Error),
}

/// A wrong line is refused; what this machine lacks ends the run.
impl From<Error> for Why {
    fn from(error: Error) -> Why {
        match error.kind {
            ErrorKind::Input => Why::Refused(error.message, false),
            _ => Why::Failed(error),
        }
    }
}

/// What the trials of one executor share: card, board, clock, version of the kernel.
type BenchKey = (String, String, String, Option<String>);

/// A planned trial that this machine makes as it was planned.
struct Request {
    planned: TrialRequest,
    bench: BenchKey,
    work: WorkloadRun,
}

impl Request {
    fn spec(&self) -> Outcome<TrialSpec<'_>> {
        let identity = &self.planned.identity;
        Ok(TrialSpec {
            candidate: whichfs_fs::find_of_trial(&identity.candidate).map_err(Error::input)?,
            work: &self.work,
            variant: &self.planned.inputs.variant,
            seed: identity.seed,
        })
    }

    fn wanted(&self) -> Outcome<Wanted<'_, String>> {
        let label = &self.planned.label;
        Ok(Wanted {
            label: Some(label.clone()),
            ..Wanted::of(label.clone(), self.spec()?)
        })
    }
}

/// The executors that lines have asked for, and the trees that they name.
struct Lab {
    how: PlannedRun,
    benches: BTreeMap<BenchKey, LabExecutor>,
    /// Digests of trees, by directory and workload.
    trees: BTreeMap<(PathBuf, String), String>,
}

impl Lab {
    /// The trial that `line` plans, if this machine comes to the same identity.
    fn request(&mut self, line: &[u8]) -> Result<Request, Why> {
        let read = document(line, TrialRequest::DOCUMENT, TrialRequest::SCHEMA);
        let mut planned: TrialRequest = read.map_err(|why| Why::Refused(why, false))?;
        let wrong = |why: String| Why::Refused(format!("{}: {why}", planned.label), false);
        if planned.identity.id() != planned.id {
            let changed = "its id is not that of its identity: the line was changed; make the plan \
                           anew";
            return Err(wrong(changed.to_owned()));
        }
        planned.inputs.variant.validate().map_err(wrong)?;
        with_files(&mut planned.inputs)?;
        let inputs = &planned.inputs;
        let kernel = inputs.variant.kernel.clone();
        let key = (
            inputs.card.clone(),
            inputs.board.clone(),
            inputs.clock.clone(),
            kernel,
        );
        if !self.benches.contains_key(&key) {
            let place = (key.0.as_str(), key.1.as_str(), key.3.as_deref());
            let new = bench(place, &key.2, self.how.wall_limit, self.how.jobs)?;
            self.benches.insert(key.clone(), new);
        }
        let request = Request {
            work: self.work(&planned)?,
            bench: key,
            planned,
        };
        let refused = |why: String, foreign| {
            Why::Refused(format!("{}: {why}", request.planned.label), foreign)
        };
        let bench = &self.benches[&request.bench];
        let prepared = Executor::prepare(bench, &request.spec()?, &Images::unbuilt());
        let prepared = prepared.map_err(|error| match error {
            PrepareError::Excluded { why, .. } => {
                refused(format!("it cannot run here: {why}"), true)
            }
            PrepareError::Failed(error) => Why::from(error.about(&request.planned.label)),
        })?;
        match request.planned.difference(prepared.identity()) {
            Some(difference) => Err(refused(
                format!("this machine makes another trial of it: {difference}"),
                true,
            )),
            None => Ok(request),
        }
    }

    /// What the trial `planned` measures.
    fn work(&mut self, planned: &TrialRequest) -> Result<WorkloadRun, Why> {
        let identity = &planned.identity;
        let mut work = WorkloadRun::named(&identity.workload, &identity.parameters)?;
        work.data_seed = identity.data_seed;
        work.partition_bytes = planned.inputs.partition_bytes;
        if let Some(path) = &planned.inputs.tree {
            let path = tree::absolute(path)?;
            let key = (path.clone(), identity.workload.clone());
            if !self.trees.contains_key(&key) {
                let digest = tree::digest(&path, work.workload)?;
                self.trees.insert(key.clone(), digest);
            }
            work.tree_sha256 = self.trees[&key].clone();
            work.tree = Some(path);
        }
        Ok(work)
    }
}

/// Names the files that `inputs` hold as they are in the cache.
///
/// # Errors
/// As [`placed`].
fn with_files(inputs: &mut TrialInputs) -> Outcome {
    let files = std::mem::take(&mut inputs.files);
    let tuned = match &mut inputs.variant.tuning {
        Tuning::Card(card) => Some(card),
        Tuning::ThisCard | Tuning::Nothing => None,
    };
    let second = inputs.variant.second_card.as_mut();
    let second = second.map(|second| &mut second.card);
    let named = [
        Some(&mut inputs.card),
        Some(&mut inputs.board),
        tuned,
        second,
    ];
    for named in named.into_iter().flatten() {
        *named = placed(named, &files)?;
    }
    Ok(())
}

/// The order of the lab, which tells each record when its trial ends.
struct Recorder<'r, 'h> {
    order: InOrder,
    /// Wall time of the trial that ended last.
    wall: Duration,
    counts: &'r mut PlannedRunCounts,
    hear: &'r mut Hear<'h>,
}

impl<K, P> Schedule<K, P> for Recorder<'_, '_> {
    fn next(&mut self, matrix: &[Cell<K, P>], written: Option<u64>) -> Option<NextTrial> {
        self.order.next(matrix, written)
    }

    fn ended(&mut self, _turn: &NextTrial, _trial: &mut Trial, wall: Duration) -> Use {
        self.wall = wall;
        Use::Result
    }

    fn kept(&mut self, trial: &Trial, _used: Use, _written: Option<u64>) -> Outcome {
        let wall_ns = u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX);
        match trial.outcome.status {
            Status::Done => self.counts.done += 1,
            Status::Failed { .. } => self.counts.failed += 1,
        }
        let record = TrialRecord::new(trial.clone(), wall_ns, now_unix());
        (self.hear)(LineResult::Ran(&record))
    }

    fn over_limit(&mut self, written: Option<u64>) {
        Schedule::<K, P>::over_limit(&mut self.order, written);
    }

    fn explain(&self, error: Error, what: Option<&str>, _state: &State<'_, K, P>) -> Error {
        match what {
            Some(what) => error.about(what),
            None => error,
        }
    }
}
