//! The lab as an executor: the card, board, kernel, agent and userland that all trials of one run
//! share.

mod disks;
mod prepared;
mod programs;
mod second_card;
pub mod trial_runner;

pub use crate::trial_recipe::{apply_variant, missing_tools, require_tree};
pub(crate) use disks::CONTENTS_MIN_BYTES;
pub use prepared::Prepared;
pub use programs::not_in_userland;

use crate::board::{Board, Host};
use crate::cards::{self, CardState, NamedProfile};
use crate::clock::Clock;
use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::executor::{Capabilities, Executor, Lease, Phases, TrialSpec, WorkerSlot};
use crate::images::Images;
use crate::modules::WithModules;
use crate::prepare_error::PrepareError;
use crate::tools::{Versions, cpu_features_sha256};
use crate::{memory, places, possible_cards};
use disks::resident_bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Card;
use whichfs_decide::sustained::is_sustained;
use whichfs_decide::{CardKind, FigureOrigin, Need, PossibleCards};
use whichfs_fs::Geometry;
use whichfs_lab::{Agent, CoreClaim, GuestLimits, GuestSpec, HostView, Kernel, Userland};
use whichfs_trial::{Job, Step, Trial};
use whichfs_units::MIB;

/// What all trials of one run share.
pub struct LabExecutor {
    /// Name and profile of the modelled card.
    pub card: NamedProfile,
    /// State in which it begins.
    pub card_state: CardState,
    /// The computer around it.
    pub board: Board,
    /// Which time counts.
    pub clock: Clock,
    /// The lab kernel.
    pub kernel: Kernel,
    /// The program that a guest runs as its first process.
    pub agent: Agent,
    /// Where programs of trials come from; none where they are the host's.
    pub userland: Option<Userland>,
    /// What guests see of the host that have no sealed userland.
    view: HostView,
    /// When a guest is stopped.
    pub limits: GuestLimits,
    /// Trials that this machine has memory for at once, at most as many as were asked for.
    pub jobs: usize,
    /// Directory of the guests' memory.
    pub memory: PathBuf,
    /// Card contents of a trial that stay in memory; the rest goes to an unlinked file.
    resident_bytes: u64,
    versions: Mutex<Versions>,
    cpu_features_sha256: String,
    /// Cards by name and seed: all candidates of a seed begin with clones of one.
    used: Mutex<BTreeMap<(String, u64), Card>>,
    /// The kernel with modules, opened when it is first asked for; or why there is none.
    with_modules: OnceLock<Result<WithModules, String>>,
}

impl LabExecutor {
    /// What decides figures beside options and seeds: each part with its SHA-256.
    pub fn digests(&self) -> Vec<(&'static str, String)> {
        let sealed = self.userland_sha256();
        let mut all = vec![
            ("card profile", sha256(self.card.canonical().as_bytes())),
            ("board", sha256(self.board.text.as_bytes())),
            ("lab kernel", self.kernel.sha256.clone()),
            ("agent", self.agent.sha256.clone()),
        ];
        all.extend(sealed.map(|sha256| ("sealed userland", sha256)));
        all
    }

    /// An executor with kernel, agent and sealed userland from their usual places, for `jobs`
    /// trials at once or as many as there is memory for.
    ///
    /// # Errors
    /// Something of these is missing.
    pub fn new(
        card: NamedProfile,
        card_state: CardState,
        board: Board,
        clock: Clock,
        wall_limit: Duration,
        jobs: usize,
    ) -> Outcome<LabExecutor> {
        let view = HostView::default();
        let host =
            LabExecutor::seeing_host(card, card_state, board, clock, wall_limit, jobs, view)?;
        Ok(LabExecutor {
            userland: Some(places::userland()?),
            kernel: host.kernel.for_userland().map_err(Error::environment)?,
            ..host
        })
    }

    /// The same with guests that run programs of this machine, and see `view` of it.
    ///
    /// # Errors
    /// Kernel or agent are missing.
    pub fn seeing_host(
        card: NamedProfile,
        card_state: CardState,
        board: Board,
        clock: Clock,
        wall_limit: Duration,
        jobs: usize,
        view: HostView,
    ) -> Outcome<LabExecutor> {
        let card = match card_state {
            CardState::Sustained => card.cut_down()?,
            CardState::Used | CardState::Fresh => card,
        };
        let guest_bytes = board.file.memory.mib * MIB;
        let (jobs, memory) = memory::side_by_side(jobs, guest_bytes, CONTENTS_MIN_BYTES)?;
        let resident_bytes = resident_bytes(guest_bytes, jobs as u64);
        Ok(LabExecutor {
            jobs,
            memory,
            resident_bytes,
            card,
            card_state,
            board,
            clock,
            kernel: places::kernel()?,
            agent: places::agent()?,
            userland: None,
            view,
            limits: GuestLimits::of_wall(wall_limit),
            versions: Mutex::default(),
            cpu_features_sha256: cpu_features_sha256(),
            used: Mutex::default(),
            with_modules: OnceLock::new(),
        })
    }

    /// The same with another lab kernel.
    pub fn under(self, kernel: Kernel) -> LabExecutor {
        LabExecutor {
            kernel,
            with_modules: OnceLock::new(),
            ..self
        }
    }

    /// The executor of sustained trials beside this one, on the same card, cut down; none if `need`
    /// has no long run or no weight on it, or all trials are sustained ones.
    ///
    /// # Errors
    /// The card cannot be cut down.
    pub fn sustained(&self, need: &Need) -> Outcome<Option<LabExecutor>> {
        let mut weights = need.weights.iter();
        let counts = weights.any(|(metric, one)| is_sustained(metric) && one.weight > 0.0);
        if !counts || need.sustained.is_none() || self.card_state == CardState::Sustained {
            return Ok(None);
        }
        Ok(Some(LabExecutor {
            card: self.card.clone().cut_down()?,
            card_state: CardState::Sustained,
            board: self.board.clone(),
            clock: self.clock.clone(),
            kernel: self.kernel.clone(),
            agent: self.agent.clone(),
            userland: self.userland.clone(),
            view: self.view.clone(),
            limits: self.limits,
            jobs: self.jobs,
            memory: self.memory.clone(),
            resident_bytes: self.resident_bytes,
            versions: Mutex::default(),
            cpu_features_sha256: self.cpu_features_sha256.clone(),
            used: Mutex::default(),
            with_modules: OnceLock::new(),
        }))
    }

    /// The same with at most `bytes` of each card's contents in memory.
    pub fn holding(self, bytes: u64) -> LabExecutor {
        LabExecutor {
            resident_bytes: self.resident_bytes.min(bytes),
            ..self
        }
    }

    /// The geometry that filesystems are tuned to.
    pub fn geometry(&self) -> Geometry {
        cards::geometry(&self.card.profile)
    }

    /// Size of the partition: from its offset to the last whole AU.
    pub fn partition_bytes(&self) -> u64 {
        self.geometry().partition_bytes
    }

    /// The board's controller for this card.
    pub fn host(&self) -> &Host {
        self.board.host(self.card.profile.interface())
    }

    /// A guest that does `job` on `core`.
    pub fn guest<'a>(&'a self, job: &'a Job, core: Option<usize>) -> GuestSpec<'a> {
        GuestSpec {
            kernel: &self.kernel,
            agent: &self.agent,
            memory_mib: self.board.file.memory.mib,
            memory: &self.memory,
            cpu: self.clock.prices(&self.board),
            queue_depth: Some(self.host().queue_depth),
            job,
            root: self.root(false),
            images: &[],
            shared: &[],
            core,
            limits: self.limits,
        }
    }

    /// A job with the board's queue for this card.
    pub fn job(&self, steps: Vec<Step>, seed: u64) -> Job {
        Job {
            seed,
            queues: vec![self.host().queue("vda")],
            steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        }
    }

    /// Its kernel, and the one with modules where a trial asked for that.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let other = self
            .with_modules
            .get()
            .and_then(|found| found.as_ref().ok());
        [&self.kernel]
            .into_iter()
            .chain(other.map(|found| &found.kernel))
    }
}

impl Executor for LabExecutor {
    type Prepared = Prepared;
    type Lease<'l> = &'l LabExecutor;

    fn capabilities(&self) -> Capabilities {
        let profile = &self.card.profile;
        Capabilities {
            card: self.card.name.clone(),
            geometry: self.geometry(),
            spare_bytes: profile.spare_bytes(),
            origin: FigureOrigin::Modelled,
            slots: self.jobs,
            card_uncertainty: self.card.uncertainty(),
            fit_error: cards::fit_error(profile),
        }
    }

    fn card_kind(&self, seed: u64) -> Option<CardKind> {
        self.card.kind_of_seed(seed)
    }

    fn possible_cards(&self) -> Option<PossibleCards> {
        possible_cards::of(&self.card)
    }

    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Result<Prepared, PrepareError> {
        LabExecutor::prepare(
            self,
            spec.candidate,
            spec.work,
            spec.variant,
            spec.seed,
            images,
        )
    }

    fn lease(&self, _name: &str) -> Outcome<&LabExecutor> {
        Ok(self)
    }
}

impl Lease<Prepared> for &LabExecutor {
    fn run(
        &self,
        prepared: &Prepared,
        slot: WorkerSlot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>> {
        let claim = CoreClaim::new(slot.worker);
        trial_runner::run(self, prepared, Some(claim.core), interrupted, on_phase).map(Some)
    }
}
