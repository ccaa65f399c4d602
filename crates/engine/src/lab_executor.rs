//! The lab as an executor: what all trials of one run share, and how a trial is prepared in it.
//!
//! tidy: long: one thing, from the card and board of a run to the guest of a trial

use crate::board::{Board, Host};
use crate::cards::{self, CardState, NamedProfile, in_state};
use crate::clock::Clock;
use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::executor::{
    Capabilities, Executor, Lease, Phases, PrepareError, PreparedTrial, Slot, TrialSpec,
};
use crate::images::Images;
use crate::modules::{ToLoad, WithModules};
use crate::partition::{self, Partition};
use crate::tools::{PATH, Versions, cpu_features_sha256, find};
use crate::workload_run::WorkloadRun;
use crate::{external_journal, helper, memory, places, program, shared, trial_runner, visible};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use whichfs_card::{Card, Contents, Profile};
use whichfs_decide::{CardKind, Origin};
use whichfs_fs::{Geometry, ImageBuild, Recipe};
use whichfs_lab::{
    Agent, BlockGeometry, Disk, GuestSpec, HostView, ImageDisk, Kernel, Limits, Root,
    SharedDirectory, Userland, available_cores,
};
use whichfs_spill::SpillFile;
use whichfs_study::Variant;
use whichfs_trial::{BlockQueue, Identity, Job, Step, Trial, WorkloadSpec};
use whichfs_units::{MIB, Nanos};
use whichfs_workload::{Program, Workload};

pub use whichfs_workload::environment;

/// Memory up to which card contents stay in memory beside the guests of all trials.
const MEMORY_BYTES: u64 = 2048 * MIB;
/// Card contents that each trial keeps in memory at least.
const CONTENTS_MIN_BYTES: u64 = 64 * MIB;
/// Part of it for everything else: mapping state of cards, the program itself.
const OVERHEAD_BYTES: u64 = 256 * MIB;
/// Part of each trial's version: raised where the same job on the same kernel comes to give
/// other figures, so that trials of both kinds are never compared.
const METHOD: u32 = 6;
/// Cards of a trial.
const CARDS: usize = 1;
/// Where the filesystem under test is mounted in the guest.
pub const MOUNT_POINT: &str = "/mnt/test";
/// The card's device in the guest.
pub const DEVICE: &str = "/dev/vda";

/// Version of the program and of its method of measuring.
pub fn version() -> String {
    format!("{}+{METHOD}", env!("CARGO_PKG_VERSION"))
}

/// What all trials of one run share.
pub struct LabExecutor {
    /// The card.
    pub card: NamedProfile,
    /// State in which it begins.
    pub card_state: CardState,
    /// The computer around it.
    pub board: Board,
    /// Which time counts.
    pub clock: Clock,
    /// The lab kernel.
    pub kernel: Kernel,
    /// The agent.
    pub agent: Agent,
    /// Where programs of trials come from; none where they are the host's.
    pub userland: Option<Userland>,
    /// What guests see of the host that have no sealed userland.
    view: HostView,
    /// When a guest is stopped.
    pub limits: Limits,
    /// Trials that this machine has memory for at once, at most as many as were asked for.
    pub jobs: usize,
    /// Directory of the guests' memory.
    pub memory: PathBuf,
    /// Card contents of a trial that stay in memory; the rest goes to an unlinked file.
    resident_bytes: u64,
    versions: Mutex<Versions>,
    cpu_features_sha256: String,
    /// Used cards by seed: all candidates of a seed begin with clones of one.
    used: Mutex<BTreeMap<u64, Card>>,
    /// The kernel with modules, opened when it is first asked for; or why there is none.
    with_modules: OnceLock<Result<WithModules, String>>,
}

/// A trial that can be run.
pub struct Prepared {
    /// Candidate and seed, for people.
    pub label: String,
    /// What is measured.
    pub workload: &'static dyn Workload,
    /// Everything that decides its result.
    pub identity: Identity,
    /// What the agent does.
    pub job: Job,
    /// Directories of this machine that it needs.
    pub shared: Vec<SharedDirectory>,
    /// The image that it puts on the card.
    pub image: Option<PathBuf>,
    /// It runs programs of this machine.
    sees_host: bool,
    /// What the figures leave out, where they do.
    pub caveats: Vec<String>,
    /// The kernel, if it is not the bench's.
    kernel: Option<Kernel>,
    /// The card after the seed's parameter draw.
    profile: Profile,
    /// Where on the card.
    partition: Partition,
}

impl LabExecutor {
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
            limits: Limits::of_wall(wall_limit),
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

    /// Prepares one trial of `candidate`, mounted as `variant`, with `seed`.
    ///
    /// # Errors
    /// Why this candidate cannot run here: too small a card, a tool that is missing.
    pub fn prepare(
        &self,
        candidate: &whichfs_fs::Candidate,
        work: &WorkloadRun,
        variant: &Variant,
        seed: u64,
        images: &Images,
    ) -> Result<Prepared, PrepareError> {
        let card = &self.card.profile;
        let partition =
            Partition::of(card, variant, work.partition_bytes).map_err(PrepareError::Failed)?;
        let disk = external_journal::disk(&partition, variant, card.au_bytes())
            .map_err(PrepareError::Failed)?;
        let (bytes, any, data) = (disk.bytes, work.any_size, work.data_seed(seed));
        let mut recipe = partition::recipe(candidate, card, bytes, &variant.tuning, data, any)
            .map_err(PrepareError::Failed)??;
        apply_variant(&mut recipe, variant, candidate.name)?;
        let sees_host = self.userland.is_none() || work.workload.runs_host_programs();
        self.require_tools(candidate, &recipe, sees_host)?;
        require_tree(&recipe, work.workload)?;
        let spec = WorkloadSpec {
            name: work.workload.name().to_owned(),
            parameters: work.parameters.clone(),
            tree: work.tree.as_ref().map(|_| format!("/{}", shared::TREE)),
            unix: candidate.facts().unix_permissions,
            script: None,
            input: work.input.clone(),
        };
        let programs = whichfs_workload::programs(work.workload, &spec, data).map_err(Error::input);
        let programs = programs.map_err(PrepareError::Failed)?;
        self.require_programs(&programs, sees_host)
            .map_err(PrepareError::Failed)?;
        let image = images.of(candidate, &recipe, work, &spec, data, self)?;
        let modules = self.modules(work.workload, &recipe)?;
        let shared = shared::directories(
            work.tree.as_deref(),
            modules.as_ref().map(|modules| modules.directory.as_path()),
        );
        let mkfs: Vec<Vec<String>> = recipe
            .mkfs
            .iter()
            .map(|argv| with_device(argv, &disk.device))
            .collect();
        let built = recipe.image.iter().map(|build| build.argv.clone());
        let runs = helper::command(&recipe);
        let parted = disk.before.clone().into_iter();
        let commands = parted
            .chain(mkfs.clone())
            .chain(built)
            .chain(runs)
            .collect();
        let steps = whichfs_workload::steps(
            work.workload,
            &spec,
            data,
            &whichfs_workload::Candidate {
                mkfs,
                env: environment(&recipe.mkfs_env),
                check: with_device(&recipe.fsck_check, &disk.device),
                image: image.as_ref().map(|_| whichfs_lab::image_device(CARDS)),
                kernel_fs: recipe.kernel_fs.to_owned(),
                mount_options: recipe.mount_options.clone(),
                mount_point: MOUNT_POINT.to_owned(),
                helper: helper::of(&recipe, &disk.device, MOUNT_POINT),
                before: disk.before,
                device: disk.device,
                disk: disk.whole,
                modules: modules.as_ref().map_or(Vec::new(), ToLoad::in_guest),
            },
        )
        .map_err(|e| PrepareError::Failed(Error::input(e)))?;
        let profile = self.card.of_seed(seed);
        let mut identity = self.identity(candidate.name, &recipe, commands, work, seed, &profile);
        identity.partition_offset = partition.offset;
        identity.partition_bytes = partition.bytes;
        if sees_host {
            identity.userland_sha256 = None;
            identity.tools = self.host_versions(&recipe, &programs);
        }
        if let Some(modules) = &modules {
            modules.identify(&mut identity);
        }
        Ok(Prepared {
            label: format!("{}, seed {seed}", candidate.name),
            workload: work.workload,
            identity,
            job: Job {
                counts_work: true,
                acknowledged: false,
                ..self.job(steps, data)
            },
            shared,
            image,
            sees_host,
            caveats: self.caveats(candidate.name, &recipe, &programs, sees_host),
            kernel: modules.map(|modules| modules.kernel),
            profile,
            partition,
        })
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

    /// Where programs of guests come from; of this machine where they must see it.
    fn root(&self, sees_host: bool) -> Root<'_> {
        let sealed = self.userland.as_ref().filter(|_| !sees_host);
        sealed.map_or(Root::Host(&self.view), Root::Sealed)
    }

    /// What guests see of this machine that have no sealed userland.
    pub fn view(&self) -> &HostView {
        &self.view
    }

    /// Whether guests find the program `name`: in the sealed userland, or on this machine.
    pub fn has(&self, name: &str) -> bool {
        self.has_in(name, self.userland.is_none())
    }

    fn has_in(&self, name: &str, on_host: bool) -> bool {
        match self.userland.as_ref().filter(|_| !on_host) {
            Some(userland) => userland.has(name, PATH),
            None => find(name).is_some(),
        }
    }

    /// Checks that guests find the tools of `recipe`.
    fn require_tools(
        &self,
        candidate: &whichfs_fs::Candidate,
        recipe: &Recipe,
        on_host: bool,
    ) -> Result<(), PrepareError> {
        let tools = recipe.tools.iter().copied();
        let missing: Vec<&str> = tools.filter(|tool| !self.has_in(tool, on_host)).collect();
        match on_host || missing.is_empty() {
            true => missing_tools(candidate, &missing, None),
            false => Err(PrepareError::Excluded {
                why: not_in_userland(&missing.join(", ")),
                source: None,
            }),
        }
    }

    /// Checks that guests find `programs`, and those of this machine the files that they name.
    fn require_programs(&self, programs: &[Program], on_host: bool) -> Outcome {
        for program in programs {
            let name = program.argv.first().map_or("", String::as_str);
            if on_host {
                program::require(program)?;
                visible::check(&program.argv, &self.view)?;
            } else if !self.has(name) {
                return Err(Error::environment(not_in_userland(name)));
            }
        }
        Ok(())
    }

    /// A job with the board's queue for this card.
    pub fn job(&self, steps: Vec<Step>, seed: u64) -> Job {
        let host = self.host();
        Job {
            seed,
            queues: vec![BlockQueue {
                disk: "vda".into(),
                rotational: host.rotational,
                scheduler: host.scheduler.clone(),
                max_request_kib: host.largest_request_kib,
                requests: host.nr_requests,
                read_ahead_kib: host.read_ahead_kib,
            }],
            steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        }
    }

    /// What the figures of a trial leave out, where they do.
    fn caveats(
        &self,
        name: &str,
        recipe: &Recipe,
        programs: &[Program],
        sees_host: bool,
    ) -> Vec<String> {
        let is_free = matches!(self.clock, Clock::Cpu);
        let helper = helper::caveat(name, recipe, is_free);
        let user = is_free.then(|| program::uncharged(programs)).flatten();
        let host = sees_host.then(|| {
            "programs and libraries of this machine ran, not the sealed userland: another machine \
             or a changed one may give other figures"
                .to_owned()
        });
        helper.into_iter().chain(user).chain(host).collect()
    }

    fn identity(
        &self,
        candidate: &str,
        recipe: &Recipe,
        mkfs: Vec<Vec<String>>,
        work: &WorkloadRun,
        seed: u64,
        profile: &Profile,
    ) -> Identity {
        let partition = Partition::whole(&self.card.profile);
        Identity {
            card: self.card.name.clone(),
            card_sha256: sha256(profile.canonical().as_bytes()),
            card_state: self.card_state.name().into(),
            board: self.board.name.clone(),
            board_sha256: sha256(self.board.text.as_bytes()),
            clock: self.clock.name(&self.board),
            kernel: self.kernel.release.clone(),
            kernel_sha256: self.kernel.sha256.clone(),
            candidate: candidate.to_owned(),
            mkfs,
            mount_options: recipe.mount_options.clone(),
            workload: work.workload.name().to_owned(),
            parameters: work.parameters.clone(),
            tree_sha256: work.tree_sha256.clone(),
            input: work.input.clone(),
            partition_offset: partition.offset,
            partition_bytes: partition.bytes,
            memory_mib: self.board.file.memory.mib,
            version: version(),
            agent_sha256: self.agent.sha256.clone(),
            userland_sha256: self.userland_sha256(),
            tools: self.tool_versions(recipe),
            cpu_features_sha256: self.cpu_features_sha256.clone(),
            seed,
            data_seed: work.other_data_seed(seed),
            measured: None,
        }
    }

    /// The kernel with modules and those that mount `recipe`, if `workload` loads such.
    fn modules(
        &self,
        workload: &dyn Workload,
        recipe: &Recipe,
    ) -> Result<Option<ToLoad>, PrepareError> {
        if !workload.loads_modules() {
            return Ok(None);
        }
        let open = || WithModules::open(&self.kernel);
        let left_out = |why| PrepareError::Excluded { why, source: None };
        let found = self.with_modules.get_or_init(open).as_ref();
        let found = found.map_err(|why| left_out(why.clone()))?;
        found.to_load(recipe).map(Some).map_err(left_out)
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

    /// SHA-256 of the sealed userland, if guests have one.
    pub fn userland_sha256(&self) -> Option<String> {
        Some(self.userland.as_ref()?.sha256.clone())
    }

    /// Versions of the tools of this machine that `recipe` runs; none where guests run those of the
    /// sealed userland, whose digest says it.
    pub fn tool_versions(&self, recipe: &Recipe) -> BTreeMap<String, String> {
        match self.userland {
            Some(_) => BTreeMap::new(),
            None => self.host_versions(recipe, &[]),
        }
    }

    /// Versions of what of this machine decides what `recipe` and `programs` do.
    fn host_versions(&self, recipe: &Recipe, programs: &[Program]) -> BTreeMap<String, String> {
        let tools = recipe.tools.iter().copied();
        let parts: Vec<&str> = tools.chain(program::parts(programs)).collect();
        lock(&self.versions).of(&parts)
    }

    /// The disk of a trial: all of the card in its state, empty contents.
    pub fn disk(&self, profile: &Profile, seed: u64) -> Outcome<Disk> {
        self.disk_of(profile, seed, Partition::whole(&self.card.profile))
    }

    /// Where a trial's disk begins on the card, in bytes.
    pub fn disk_offset(&self) -> u64 {
        Partition::whole(&self.card.profile).offset
    }

    /// A disk at the beginning of the partition, of so many bytes.
    pub fn disk_of_bytes(&self, profile: &Profile, seed: u64, bytes: u64) -> Outcome<Disk> {
        let whole = Partition::whole(&self.card.profile);
        self.disk_of(profile, seed, Partition { bytes, ..whole })
    }

    fn disk_of(&self, profile: &Profile, seed: u64, partition: Partition) -> Outcome<Disk> {
        let host = self.board.host(profile.interface());
        let contents = self.contents(profile.capacity_bytes())?;
        let geometry = BlockGeometry {
            bytes: partition.bytes,
            segments_max: host.segments.min(254),
            write_cache: profile.has_cache(),
            discard_bytes: profile.discard_supported().then_some(profile.au_bytes()),
        };
        Ok(Disk::new(
            self.card_of(profile, seed),
            contents.laid_out(profile.layout()),
            partition.offset,
            geometry,
            Nanos(host.request_cost_ns),
        ))
    }

    /// Empty contents of so many bytes, of which only some stay in memory.
    pub fn contents(&self, bytes: u64) -> Outcome<Contents> {
        let directory = places::cache_directory("spill")?;
        let spill = SpillFile::new(&directory).map_err(Error::environment)?;
        Ok(Contents::bounded(
            bytes,
            self.resident_bytes,
            Box::new(spill),
        ))
    }

    fn card_of(&self, profile: &Profile, seed: u64) -> Card {
        let mut used = lock(&self.used);
        let card = used
            .entry(seed)
            .or_insert_with(|| in_state(profile, self.card_state, seed));
        card.clone()
    }
}

impl Prepared {
    /// The kernel that this trial runs on.
    pub fn kernel<'a>(&'a self, bench: &'a LabExecutor) -> &'a Kernel {
        self.kernel.as_ref().unwrap_or(&bench.kernel)
    }

    /// Where its programs come from.
    pub fn root<'a>(&self, bench: &'a LabExecutor) -> Root<'a> {
        bench.root(self.sees_host)
    }

    /// What its guest reads as disks.
    ///
    /// # Errors
    /// The image is gone, or too many files are open.
    pub fn images(&self) -> Outcome<Vec<ImageDisk>> {
        let open = |path: &PathBuf| {
            ImageDisk::open(path)
                .map_err(|e| Error::environment(format!("{}: {e}", path.display())))
        };
        self.image.iter().map(open).collect()
    }

    /// The disk that this trial runs on.
    pub fn disk(&self, bench: &LabExecutor) -> Outcome<Disk> {
        bench.disk_of(&self.profile, self.identity.seed, self.partition)
    }
}

impl PreparedTrial for Prepared {
    fn label(&self) -> &str {
        &self.label
    }

    fn set_label(&mut self, label: String) {
        self.label = label;
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn caveats(&self) -> &[String] {
        &self.caveats
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
            origin: Origin::Modelled,
            slots: self.jobs,
            card_uncertainty: self.card.uncertainty(),
            fit_error: cards::fit_error(profile),
        }
    }

    fn card_kind(&self, seed: u64) -> Option<CardKind> {
        self.card.kind_of_seed(seed)
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
        slot: Slot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>> {
        let cores = available_cores();
        let core = Some(cores[slot.worker % cores.len()]);
        trial_runner::run(self, prepared, core, interrupted, on_phase).map(Some)
    }
}

/// Changes `recipe` as `variant` says.
pub fn apply_variant(
    recipe: &mut Recipe,
    variant: &Variant,
    name: &str,
) -> Result<(), PrepareError> {
    let wrong =
        |why| PrepareError::Failed(Error::input(format!("{name}, {}: {why}", variant.name)));
    recipe.mount_options = variant.options(&recipe.mount_options);
    helper::apply_variant(recipe, variant, name)?;
    external_journal::apply_variant(recipe, variant, name)?;
    for argv in &mut recipe.mkfs {
        *argv = variant.command(argv, Recipe::DEVICE).map_err(wrong)?;
    }
    if let Some(build) = &mut recipe.image {
        // mksquashfs takes its options last, the others before the image.
        let place = match build.argv.first().map(String::as_str) {
            Some("mksquashfs") => "",
            _ => ImageBuild::IMAGE,
        };
        build.argv = variant.command(&build.argv, place).map_err(wrong)?;
    }
    Ok(())
}

/// Contents that each of `jobs` trials may keep in memory beside its guest.
fn resident_bytes(guest_bytes: u64, jobs: u64) -> u64 {
    let left = MEMORY_BYTES.saturating_sub(OVERHEAD_BYTES + jobs * guest_bytes);
    (left / jobs).max(CONTENTS_MIN_BYTES)
}

/// Checks that `workload` has a tree if `recipe` is one for an image.
pub fn require_tree(recipe: &Recipe, workload: &dyn Workload) -> Result<(), PrepareError> {
    if recipe.image.is_none() || Images::can_hold(workload) {
        return Ok(());
    }
    let name = workload.name();
    Err(PrepareError::Excluded {
        why: format!("it is read-only, and {name} has no tree to put into an image"),
        source: None,
    })
}

/// Why the sealed userland does not serve, and the remedy.
pub fn not_in_userland(names: &str) -> String {
    format!("{names} is not in the sealed userland: update whichfs, or userland/build --force")
}

/// Leaves out a candidate some of whose tools are `missing`: here, or on the board `board`.
pub fn missing_tools(
    candidate: &whichfs_fs::Candidate,
    missing: &[&str],
    board: Option<&str>,
) -> Result<(), PrepareError> {
    if missing.is_empty() {
        return Ok(());
    }
    let place = board.map_or(String::new(), |board| format!(" on {board}"));
    Err(PrepareError::Excluded {
        why: format!(
            "{} is not installed{place}: apt-get install {}",
            missing.join(", "),
            candidate.facts().packages.join(" ")
        ),
        source: None,
    })
}

/// `argv` with `device` in place of the placeholder.
pub fn with_device(argv: &[String], device: &str) -> Vec<String> {
    argv.iter()
        .map(|word| word.replace(Recipe::DEVICE, device))
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic elsewhere does not make a cache of clones wrong.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_side_by_side_share_the_memory() {
        assert_eq!(resident_bytes(512 * MIB, 1), 1280 * MIB);
        assert_eq!(resident_bytes(512 * MIB, 2), 384 * MIB);
        assert_eq!(
            resident_bytes(512 * MIB, 64),
            64 * MIB,
            "never too little to work"
        );
    }
}
