//! A trial that is prepared in the lab: what its guest is given, and everything that decides its
//! result.

use super::LabExecutor;
use super::second_card::SecondDisk;
use crate::clock::Clock;
use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::executor::PreparedTrial;
use crate::guest_places::MOUNT_POINT;
use crate::images::Images;
use crate::modules::{ToLoad, WithModules};
use crate::partition::{self, CardWindow};
use crate::prepare_error::PrepareError;
use crate::trial_recipe::{apply_variant, require_tree};
use crate::version::version;
use crate::workload_run::WorkloadRun;
use crate::{external_journal, helper, program, shared};
use std::path::PathBuf;
use whichfs_card::Profile;
use whichfs_fs::Recipe;
use whichfs_lab::{Disk, ImageDisk, Kernel, Root, SharedDirectory};
use whichfs_study::Variant;
use whichfs_trial::{Identity, Job, WorkloadSpec};
use whichfs_workload::{Program, Workload, environment};

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
    partition: CardWindow,
    /// The disk of the second card.
    second: Option<SecondDisk>,
}

impl LabExecutor {
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
            CardWindow::of(card, variant, work.partition_bytes).map_err(PrepareError::Failed)?;
        let mut disk = external_journal::disk(&partition, variant, card.au_bytes())
            .map_err(PrepareError::Failed)?;
        let (bytes, any, data) = (disk.bytes, work.any_size, work.data_seed(seed));
        let mut recipe = partition::recipe(candidate, card, bytes, &variant.tuning, data, any)
            .map_err(PrepareError::Failed)??;
        apply_variant(&mut recipe, variant, candidate.name)?;
        disk.before.extend(external_journal::made(&recipe, variant));
        let second = variant.second_card.as_ref();
        let second = second.map(|second| self.second(second, seed)).transpose()?;
        let upper = second.as_ref().and_then(|second| second.upper.clone());
        if let Some(upper) = &upper {
            require_lower(candidate, &recipe)?;
            disk.before.extend(upper.mkfs.clone());
        }
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
            .map(|argv| Recipe::on_device(argv, &disk.device))
            .collect();
        let built = recipe.image.iter().map(|build| build.argv.clone());
        let runs = helper::command(&recipe);
        let parted = disk.before.clone().into_iter();
        let commands = parted
            .chain(mkfs.clone())
            .chain(built)
            .chain(runs)
            .collect();
        let cards = 1 + usize::from(second.as_ref().is_some_and(|second| second.disk.is_some()));
        let mut env = recipe.mkfs_env.clone();
        env.extend(second.iter().flat_map(|second| second.env.clone()));
        let steps = whichfs_workload::steps(
            work.workload,
            &spec,
            data,
            &whichfs_workload::StepCandidate {
                mkfs,
                env: environment(&env),
                check: Recipe::on_device(&recipe.fsck_check, &disk.device),
                image: image.as_ref().map(|_| whichfs_lab::image_device(cards)),
                kernel_fs: recipe.kernel_fs.to_owned(),
                mount_options: recipe.mount_options.clone(),
                mount_point: MOUNT_POINT.to_owned(),
                helper: helper::of(&recipe, &disk.device, MOUNT_POINT),
                before: disk.before,
                device: disk.device,
                disk: disk.whole,
                modules: modules.as_ref().map_or(Vec::new(), ToLoad::in_guest),
                upper,
            },
        )
        .map_err(|e| PrepareError::Failed(Error::input(e)))?;
        let profile = self.card.of_seed(seed);
        let name = variant.candidate(candidate.name);
        let mut identity = self.identity(&name, &recipe, commands, work, seed, &profile);
        identity.partition_offset = partition.offset;
        identity.partition_bytes = partition.bytes;
        if sees_host {
            identity.userland_sha256 = None;
            identity.tools = self.host_versions(&recipe, &programs);
        }
        if let Some(modules) = &modules {
            modules.identify(&mut identity);
        }
        let mut job = self.job(steps, data);
        let (second, told) = match second {
            None => (None, None),
            Some(second) => (second.disk, Some(second.identity)),
        };
        job.queues
            .extend(second.as_ref().map(|disk| self.second_queue(disk)));
        identity.second_card = told;
        Ok(Prepared {
            label: format!("{name}, seed {seed}"),
            workload: work.workload,
            identity,
            job: Job {
                counts_work: true,
                acknowledged: false,
                ..job
            },
            shared,
            image,
            sees_host,
            caveats: self.caveats(candidate.name, &recipe, &programs, sees_host),
            kernel: modules.map(|modules| modules.kernel),
            profile,
            partition,
            second,
        })
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
        let partition = CardWindow::whole(&self.card.profile);
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
            second_card: None,
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

    /// The disks that this trial runs on: the card's, and that of the second card.
    ///
    /// # Errors
    /// As [`LabExecutor::disk`].
    pub fn disks(&self, bench: &LabExecutor) -> Outcome<Vec<Disk>> {
        let seed = self.identity.seed;
        let mut disks = vec![bench.disk_of(&self.profile, seed, self.partition)?];
        if let Some(second) = &self.second {
            disks.push(bench.second_disk(second, seed)?);
        }
        Ok(disks)
    }
}

/// Checks that overlayfs takes the filesystem of `candidate` as its lower layer.
fn require_lower(candidate: &whichfs_fs::Candidate, recipe: &Recipe) -> Result<(), PrepareError> {
    let why = match (&recipe.helper, candidate.facts().case_sensitive) {
        (Some(helper), _) if helper.runs => "a process in user space has it mounted",
        (_, false) => "overlayfs takes no lower layer that does not tell a from A",
        _ => return Ok(()),
    };
    Err(PrepareError::Excluded {
        why: format!("nothing can be laid over it: {why}"),
        source: None,
    })
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
