//! What campaigns run on in the swarm: a real store, an executor of scripted trials, archives of
//! cuts, each with the faults of the world; and, for canaries, with one part that is broken.

use super::world::{Fate, World};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_crash::{Checked, Cut, CutPlace, CutResult, FilesystemCondition};
use whichfs_engine::crash::campaign::{CutObserver, Cuts, Take};
use whichfs_engine::crash::series::share_out;
use whichfs_engine::executor::{
    Capabilities, Executor, Lease, Phases, Prepared, PreparedTrial, TrialSpec, WorkerSlot,
};
use whichfs_engine::images::Images;
use whichfs_engine::mock::{MockExecutor, MockTrial};
use whichfs_engine::trial_cache::TrialStore;
use whichfs_engine::{Error, Outcome};
use whichfs_store::{Filter, Put, Store, StoreError};
use whichfs_trial::{Identity, Status, Trial, TrialRecord};
use whichfs_units::Nanos;

/// A part of the engine that is broken on purpose, so that the swarm must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// The cache does not find the trial that was kept last.
    ForgetsTheLast,
    /// A trial is kept twice.
    KeepsTwice,
    /// The lease of a run that failed is not given back.
    HoldsTheLease,
    /// An interrupted run gives a verdict, as a finished one does.
    JudgesHalfARound,
    /// A trial that found no room counts as kept.
    SwallowsNoRoom,
    /// A trial is reported before it is stored.
    TellsFirst,
    /// The cache takes a trial of another seed for the one that is asked for.
    MixesSeeds,
    /// An archive of cuts goes on in a line that was cut short.
    JoinsTornLines,
    /// What writes the archive leaves its temporary file.
    LeavesAFile,
}

/// All of them.
pub const CANARIES: [Canary; 9] = [
    Canary::ForgetsTheLast,
    Canary::KeepsTwice,
    Canary::HoldsTheLease,
    Canary::JudgesHalfARound,
    Canary::SwallowsNoRoom,
    Canary::TellsFirst,
    Canary::MixesSeeds,
    Canary::JoinsTornLines,
    Canary::LeavesAFile,
];

/// A store on disk in the world.
pub struct FaultyStore {
    /// What really keeps the trials.
    pub inner: Store,
    /// Decides which operations fail.
    pub world: Arc<World>,
    /// Path of the store's file.
    pub path: PathBuf,
    /// What is broken above it.
    pub canary: Option<Canary>,
}

impl FaultyStore {
    fn killed(&self) -> StoreError {
        StoreError::Access {
            path: self.path.clone(),
            detail: "the process was killed".to_owned(),
        }
    }

    /// What the store itself does, and what the world notes of it.
    fn put_below(&mut self, trial: &Trial, wall_ns: u64, at: i64) -> Result<Put, StoreError> {
        let id = trial.identity.id();
        match self.world.write_moment("store: put") {
            Fate::Dead => return Err(self.killed()),
            Fate::Full => {
                return Err(StoreError::Full {
                    path: self.path.clone(),
                    detail: "no room".to_owned(),
                });
            }
            Fate::Done | Fate::Gone => {}
        }
        let done = trial.outcome.status == Status::Done;
        let put = self.inner.put(trial, wall_ns, at)?;
        if done && !self.world.look().kept.insert(id.clone()) {
            let name = &trial.identity.candidate;
            self.world.broken(format!("{name}, {id}, is kept twice"));
        }
        match self.world.moment("store: committed") {
            Fate::Dead => Err(self.killed()),
            _ => Ok(put),
        }
    }
}

impl TrialStore for FaultyStore {
    fn get(&self, id: &str) -> Result<Option<TrialRecord>, StoreError> {
        if self.world.moment("store: get") == Fate::Dead {
            return Err(self.killed());
        }
        let found = self.inner.get(id)?;
        match self.canary {
            Some(Canary::ForgetsTheLast) => {
                let all = self.inner.find(&Filter::default())?;
                let last = all.last().map(|stored| stored.id.clone());
                Ok(found.filter(|stored| Some(&stored.id) != last.as_ref()))
            }
            Some(Canary::MixesSeeds) if found.is_none() => {
                Ok(self.inner.find(&Filter::default())?.into_iter().next())
            }
            _ => Ok(found),
        }
    }

    fn put(&mut self, trial: &Trial, wall_ns: u64, at: i64) -> Result<Put, StoreError> {
        let put = self.put_below(trial, wall_ns, at);
        match (self.canary, &put) {
            (Some(Canary::KeepsTwice), Ok(_)) => self.put_below(trial, wall_ns, at),
            (Some(Canary::SwallowsNoRoom), Err(StoreError::Full { .. })) => Ok(Put::New),
            _ => put,
        }
    }

    fn find(&self, filter: &Filter) -> Result<Vec<TrialRecord>, StoreError> {
        match self.world.moment("store: find") {
            Fate::Dead => Err(self.killed()),
            _ => self.inner.find(filter),
        }
    }

    fn require_writable(&self) -> Result<(), StoreError> {
        match self.world.moment("store: is it writable?") {
            Fate::Dead => Err(self.killed()),
            _ => self.inner.require_writable(),
        }
    }
}

/// The mock in the world.
pub struct SwarmExecutor<'w> {
    /// What runs trials.
    pub mock: MockExecutor<'w>,
    /// Decides which operations fail.
    pub world: &'w World,
    /// What is broken.
    pub canary: Option<Canary>,
    /// Whether the counter of written bytes begins anew now and then, as of a board.
    pub restarts: bool,
}

/// A trial of the mock that tells the world what it is called.
pub struct SwarmTrial<'w> {
    inner: MockTrial,
    world: &'w World,
}

impl PreparedTrial for SwarmTrial<'_> {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn set_label(&mut self, label: String) {
        self.inner.set_label(label);
        self.note();
    }

    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn caveats(&self) -> &[String] {
        &[]
    }

    fn formats_bytes(&self) -> u64 {
        64 << 20
    }
}

impl SwarmTrial<'_> {
    fn note(&self) {
        let (label, id) = (self.label().to_owned(), self.identity().id());
        self.world.look().ids.insert(label, id);
    }
}

impl<'w> Executor for SwarmExecutor<'w> {
    type Prepared = SwarmTrial<'w>;
    type Lease<'l>
        = SwarmLease<'l, 'w>
    where
        'w: 'l;

    fn capabilities(&self) -> Capabilities {
        self.mock.capabilities()
    }

    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Prepared<SwarmTrial<'w>> {
        let trial = SwarmTrial {
            inner: self.mock.prepare(spec, images)?,
            world: self.world,
        };
        trial.note();
        Ok(trial)
    }

    fn lease(&self, _name: &str) -> Outcome<SwarmLease<'_, 'w>> {
        if self.world.moment("lease") == Fate::Dead {
            return Err(Error::environment("killed"));
        }
        let mut happened = self.world.look();
        if happened.leases > 0 {
            drop(happened);
            self.world.broken("a lease is still held".to_owned());
            return Err(Error::environment("somebody else uses the device"));
        }
        happened.leases += 1;
        Ok(SwarmLease {
            executor: self,
            ended: AtomicBool::new(false),
        })
    }
}

/// What trials of the swarm run on.
pub struct SwarmLease<'l, 'w> {
    executor: &'l SwarmExecutor<'w>,
    ended: AtomicBool,
}

impl SwarmLease<'_, '_> {
    /// Gives it back, once.
    fn give_back(&self) {
        let mut happened = self.executor.world.look();
        if !self.ended.swap(true, Ordering::Relaxed) && !happened.dead {
            happened.leases = happened.leases.saturating_sub(1);
        }
    }
}

impl Drop for SwarmLease<'_, '_> {
    fn drop(&mut self) {
        if self.executor.canary != Some(Canary::HoldsTheLease) {
            self.give_back();
        }
    }
}

impl<'w> Lease<SwarmTrial<'w>> for SwarmLease<'_, 'w> {
    fn run(
        &self,
        prepared: &SwarmTrial<'w>,
        slot: WorkerSlot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>> {
        let world = self.executor.world;
        let on_device = prepared.identity().measured.is_some();
        if !on_device && world.look().kept.contains(&prepared.identity().id()) {
            world.broken(format!("{} runs although it is kept", prepared.label()));
        }
        let mut fate = world.moment(&format!("run {}", prepared.label()));
        let mut hear = |phase: &str, at: Nanos| {
            let next = world.moment(phase);
            if fate == Fate::Done {
                fate = next;
            }
            on_phase(phase, at);
        };
        let mock = &self.executor.mock;
        let trial = (&mock).run(&prepared.inner, slot, interrupted, &mut hear)?;
        if interrupted.load(Ordering::Relaxed) && fate == Fate::Done {
            return Err(Error::interrupted());
        }
        match fate {
            Fate::Dead => Err(Error::environment("killed")),
            Fate::Gone => Err(Error::environment("the device is gone")),
            Fate::Done | Fate::Full => {
                let done = |trial: &&Trial| trial.outcome.status == Status::Done;
                let tells_first = self.executor.canary == Some(Canary::TellsFirst);
                if let Some(done) = trial.iter().find(done).filter(|_| tells_first) {
                    let told = (prepared.label().to_owned(), done.identity.id());
                    world.look().reported.push(told);
                }
                Ok(trial)
            }
        }
    }

    fn written(&self) -> Option<u64> {
        let moments = self.executor.world.look().moments;
        match (self.executor.restarts, moments % 5) {
            (true, 0) => None,
            (true, 1) => Some(0),
            _ => Some(moments << 20),
        }
    }

    fn end(self) -> Outcome {
        match self.executor.world.moment("lease ends") {
            Fate::Dead => Err(Error::environment("killed")),
            Fate::Gone => Err(Error::environment("the device is gone")),
            Fate::Done | Fate::Full => {
                self.give_back();
                Ok(())
            }
        }
    }
}

/// Cuts by a script: what becomes of one depends on its number.
pub struct SwarmCuts<'w> {
    /// Their world.
    pub world: &'w World,
    /// How many are made at once.
    pub workers: usize,
}

/// What becomes of cut `number`.
pub fn scripted_cut(number: u64) -> CutResult {
    CutResult {
        cut: Cut {
            number,
            request: number as usize,
            place: CutPlace::Inside,
            at: Nanos(number),
            seed: number,
        },
        recovery: Vec::new(),
        window: (3, 4),
        condition: FilesystemCondition::DurableLost,
        broken: number.is_multiple_of(3),
        mount: Some(Nanos(9)),
        fsck_check: None,
        fsck_repair: None,
        measured: None,
        live: None,
        outcomes: std::collections::BTreeMap::new(),
        checked: Checked::default(),
    }
}

impl SwarmCuts<'_> {
    fn one(&self, number: u64) -> Outcome<CutResult> {
        let world = self.world;
        if world.look().kept_cuts.contains(&number) {
            world.broken(format!("cut {number} is made although it is kept"));
        }
        match world.moment(&format!("cut {number}")) {
            Fate::Dead => Err(Error::environment("killed")),
            Fate::Gone => Err(Error::environment("the board is gone")),
            Fate::Done | Fate::Full => Ok(scripted_cut(number)),
        }
    }
}

impl Cuts for SwarmCuts<'_> {
    fn make(&mut self, numbers: &[u64], interrupted: &AtomicBool, take: Take<'_>) -> Outcome {
        if self.workers == 1 {
            // In the caller's thread: the seed alone decides what comes when.
            for number in numbers {
                if interrupted.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                take(self.one(*number)?)?;
            }
            return Ok(());
        }
        let cuts: Vec<Cut> = numbers.iter().map(|n| scripted_cut(*n).cut).collect();
        let one = |cut: &Cut| self.one(cut.number);
        let worker = |_| one;
        share_out(self.workers, &cuts, interrupted, &worker, take)
    }
}

/// Hears of cuts for the user.
pub struct CutEar<'w>(pub &'w World);

impl CutObserver for CutEar<'_> {
    fn known(&mut self, _known: usize, _all: usize) {}

    fn made(&mut self, result: &CutResult, _missing: usize) {
        let mut happened = self.0.look();
        if !happened.dead {
            happened.reported_cuts.insert(result.cut.number);
        }
    }
}

/// The file of an archive in the world.
pub struct FaultyFile {
    /// What really keeps the bytes.
    pub inner: File,
    /// Decides which operations fail.
    pub world: Arc<World>,
    /// What is broken.
    pub canary: Option<Canary>,
    /// Where the file is.
    pub directory: PathBuf,
    /// A line was cut short: the next write fails, as on a disk that is full.
    pub torn: bool,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let no_room = || std::io::Error::from_raw_os_error(28);
        if std::mem::take(&mut self.torn) {
            return Err(no_room());
        }
        let bytes = match (self.canary, bytes) {
            (Some(Canary::JoinsTornLines), [b'\n', rest @ ..]) => {
                self.inner.write_all(rest)?;
                return Ok(rest.len() + 1);
            }
            _ => bytes,
        };
        match self.world.write_moment("archive: write") {
            Fate::Dead if bytes.len() > 1 => {
                // The line that was under way at the kill, as far as it came; later ones never
                // were.
                let first = !std::mem::replace(&mut self.world.look().torn_at_death, true);
                if first {
                    self.inner.write_all(&bytes[..bytes.len() / 2])?;
                }
                Err(no_room())
            }
            Fate::Full if bytes.len() > 1 => {
                let half = bytes.len() / 2;
                self.inner.write_all(&bytes[..half])?;
                self.torn = true;
                Ok(half)
            }
            Fate::Dead | Fate::Full => Err(no_room()),
            Fate::Done | Fate::Gone => {
                self.inner.write_all(bytes)?;
                let text = String::from_utf8_lossy(bytes);
                if let Ok(result) = serde_json::from_str::<CutResult>(text.trim()) {
                    self.world.look().kept_cuts.insert(result.cut.number);
                }
                if self.canary == Some(Canary::LeavesAFile) {
                    File::create(self.directory.join("series.new"))?;
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Names in `directory` that nobody should find there after a process.
pub fn remains(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| *name != "store.sqlite" && *name != "cuts" && !name.ends_with(".jsonl"))
        .collect()
}
