//! A real device as the place of trials: the same jobs as in the lab, under this machine's kernel.
//!
//! [`DeviceExecutor`] is the device with all that its trials share, [`DeviceExecutor::prepare`]
//! makes a [`DeviceRun`] of a candidate, and a [`DeviceSession`] has the agent do them, one at a
//! time.

mod cuttable;
mod described;
mod host;
mod inside;
mod run;
mod session;

pub use cuttable::Cuttable;
pub use host::{DeviceLease, confirm};
pub use run::{DeviceRun, stamped};
pub use session::DeviceSession;

use crate::consent::Consent;
use crate::error::{Error, Outcome};
use crate::images::{HostTools, Images};
use crate::medium::{self, CardKnowledge, KernelReport};
use crate::prepare_error::PrepareError;
use crate::trial_recipe::{apply_variant, missing_tools, require_tree};
use crate::workload_run::WorkloadRun;
use crate::{helper, partition, places, program};
use host::DeviceHost;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_device::Inside;
use whichfs_format::{Span, only_partition};
use whichfs_fs::Recipe;
use whichfs_layout::Medium;
use whichfs_remote::{DevicePlace, Machine, RemoteDisk};
use whichfs_study::Variant;
use whichfs_trial::{Identity, Job, REAL, Step, WorkloadSpec};
use whichfs_units::{Bytes, MIB};

/// Idle time before each trial where none is given: cards that tidy up when idle begin within a
/// second or two (research/flash.md 2.6).
const SETTLE: Duration = Duration::from_secs(5);
/// Partitions begin on the first allocation unit from here on, as in the lab.
const FIRST_BYTE: u64 = 4 * MIB;
/// The copy of a GUID partition table at the end of a disk: 33 sectors, and to spare.
const TABLE_BYTES: u64 = MIB;

/// How a filesystem came to be, as far as it decides results.
struct Made<'a> {
    commands: Vec<Vec<String>>,
    mount_options: &'a str,
    tools: Vec<&'a str>,
}

/// Lets the one maker keep rights that needs them: mkfs.xfs sets the block size of the device
/// (`BLKBSZSET`), which takes `CAP_SYS_ADMIN`, and does nothing without it.
pub(crate) fn grant_rights(steps: &mut [Step]) {
    for step in steps {
        if let Step::Run {
            argv, keeps_rights, ..
        } = step
            && argv.first().is_some_and(|name| name == "mkfs.xfs")
        {
            *keeps_rights = true;
        }
    }
}

/// What removes the signatures of the last trial from `device`: `mkfs.btrfs` refuses a UUID that it
/// finds anywhere, and trials of one seed have the same.
fn wipe(candidate: &str, device: &str) -> Vec<Vec<String>> {
    let argv = ["wipefs", "--all", "--quiet", device].map(str::to_owned);
    let wanted = (candidate == "btrfs").then(|| argv.to_vec());
    wanted.into_iter().collect()
}

/// What `recipe` makes.
fn made_of(recipe: &Recipe) -> Made<'_> {
    let built = recipe.image.iter().map(|build| build.argv.clone());
    Made {
        commands: (recipe.mkfs.iter().cloned())
            .chain(built)
            .chain(helper::command(recipe))
            .collect(),
        mount_options: &recipe.mount_options,
        tools: recipe.tools.clone(),
    }
}

/// How trials on a device are made.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Name or file of the device's profile, to which filesystems are tuned.
    pub profile: Option<String>,
    /// Its allocation unit in bytes, if nothing else is known of it.
    pub au: Option<u64>,
    /// Idle time before each trial, in which the device tidies up; `None`: 5 s.
    pub settle: Option<Duration>,
    /// Largest device that may be overwritten, in bytes; `None`: the guard's own limit.
    pub max_bytes: Option<u64>,
    /// Whether a device that nobody takes out may be overwritten: eMMC, SATA, NVMe.
    pub internal: bool,
    /// The ID that the user gave for the device beforehand.
    pub destroy: Option<String>,
    /// How long a board may be out of reach, or take to start; `None`: 10 minutes.
    pub board_timeout: Option<Duration>,
}

impl DeviceOptions {
    /// The first option that is given although it concerns whole devices alone.
    fn of_devices(&self) -> Option<&'static str> {
        let given = [
            ("an ID to destroy", self.destroy.is_some()),
            ("a profile", self.profile.is_some()),
            ("an allocation unit", self.au.is_some()),
            ("a largest size", self.max_bytes.is_some()),
        ];
        given
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(option, _)| option)
    }
}

/// The directory of this machine that `place` is, if it is one.
fn directory(place: &DevicePlace) -> Option<&Path> {
    match place {
        DevicePlace::Here(path) if path.is_dir() => Some(path),
        _ => None,
    }
}

/// A device with all that its trials share.
pub struct DeviceExecutor {
    /// Identity and sizes of the disk under test.
    pub device: RemoteDisk,
    /// The machine that it is in.
    pub around: DeviceHost,
    /// What is known of it.
    pub medium: Medium,
    /// What of that machine decides results.
    pub machine: Machine,
    /// Time after which a trial is ended.
    pub wall_limit: Duration,
    /// Which of the series on this device the trials belong to.
    pub session: u64,
    settle: Duration,
    mount_point: PathBuf,
}

impl DeviceExecutor {
    /// The device at `place`, if nothing but the user's word speaks against losing its data. The
    /// caller sets `interrupted` to end the wait for a board that starts.
    ///
    /// # Errors
    /// The first reason against it, with its remedy; what this machine lacks.
    pub fn open(
        place: &DevicePlace,
        options: &DeviceOptions,
        wall_limit: Duration,
        interrupted: &AtomicBool,
    ) -> Outcome<DeviceExecutor> {
        let (around, device, machine) = match directory(place) {
            Some(dir) => inside::open(dir, options)?,
            None => DeviceHost::open(place, options, interrupted)?,
        };
        let told = KernelReport {
            erase_bytes: device.erase_bytes,
            discard: device.discard,
            sector_bytes: Some(device.sector_bytes),
        };
        let known = CardKnowledge {
            card: options.profile.clone(),
            au: options.au,
        };
        Ok(DeviceExecutor {
            medium: medium::of(&known, Some(device.bytes), told)?,
            device,
            around,
            machine,
            wall_limit,
            session: 1,
            settle: options.settle.unwrap_or(SETTLE),
            mount_point: places::cache_directory("mount")?,
        })
    }

    /// Asks for the consent to destroy what is on the device.
    ///
    /// # Errors
    /// Not named, another one named, in use.
    pub fn confirm(&mut self, consent: &dyn Consent) -> Outcome {
        self.around.confirm(&self.device, consent)
    }

    /// What the device is called in results.
    pub fn id(&self) -> &str {
        &self.device.id
    }

    /// The partition that trials run on, if they do not ask for another: from the first
    /// allocation unit at or after 4 MiB to the last whole one before the end of the table.
    ///
    /// # Errors
    /// The device is too small.
    pub fn whole(&self) -> Outcome<Span> {
        let unit = self.medium.unit.bytes;
        let start = FIRST_BYTE.next_multiple_of(unit);
        let room = self.device.bytes.saturating_sub(start + TABLE_BYTES);
        match room - room % unit {
            0 => Err(Error::input(format!(
                "{} has {}, which is too little for a partition of allocation units of {}: take \
                 a larger device, or say its allocation unit",
                self.shown(),
                Bytes(self.device.bytes),
                Bytes(unit)
            ))),
            bytes => Ok(Span { start, bytes }),
        }
    }

    /// The partition of a trial as `variant` lays it, `bytes` of it if that is said.
    fn span(&self, variant: &Variant, bytes: Option<u64>) -> Outcome<Span> {
        let whole = self.whole()?;
        let offset = variant
            .offset
            .map(|offset| offset.bytes(self.medium.unit.bytes));
        let start = offset.unwrap_or(whole.start);
        let room = (whole.start + whole.bytes).saturating_sub(start);
        let span = Span {
            start,
            bytes: bytes.unwrap_or(whole.bytes.min(room)),
        };
        // The first sectors are the table's own.
        if span.bytes > room || start < MIB {
            return Err(Error::input(format!(
                "a partition of {} at {} does not fit the device, which has {} and a partition \
                 table: take a larger device",
                Bytes(span.bytes),
                Bytes(start),
                Bytes(self.device.bytes)
            )));
        }
        Ok(span)
    }

    /// Refuses a partition that the workload's data do not fit, before anything is lost for it.
    /// What is compressed may fit all the same, and of a tree the size is not known here.
    fn require_room(&self, work: &WorkloadRun, recipe: &Recipe, span: Span) -> Outcome {
        let data = work.parameters.get("bytes").copied().unwrap_or(0);
        let compressed = recipe.image.is_some() || recipe.mount_options.contains("compress");
        if data < span.bytes || compressed || work.tree.is_some() || work.any_size {
            return Ok(());
        }
        Err(Error::input(format!(
            "the workload {} has {} of data, and the partition on {} has {}: take a larger device, \
             or less data (a smaller size, a quick form, a study of your own)",
            work.workload.name(),
            Bytes(data),
            self.shown(),
            Bytes(span.bytes)
        )))
    }

    /// Prepares one trial of `candidate`, mounted as `variant`; `seed` is the number of the repeat.
    ///
    /// # Errors
    /// Why this candidate cannot run here: too small a device, or what the kernel or the tools
    /// lack.
    pub fn prepare(
        &self,
        candidate: &whichfs_fs::Candidate,
        work: &WorkloadRun,
        variant: &Variant,
        seed: u64,
        images: &Images,
    ) -> Result<DeviceRun, PrepareError> {
        if let Some(second) = &variant.second_card {
            let why = format!(
                "{}: a second card is modelled in the lab alone, as one device is measured here",
                second.told()
            );
            return Err(PrepareError::Excluded { why, source: None });
        }
        if let Some(dir) = self.inside() {
            return self.prepare_inside(dir, candidate, work, seed);
        }
        let span = self
            .span(variant, work.partition_bytes)
            .map_err(PrepareError::Failed)?;
        let geometry = self.medium.geometry(span.bytes);
        let (tuning, any) = (&variant.tuning, work.any_size);
        let data = work.data_seed(seed);
        let recipe = partition::recipe_on(candidate, geometry, tuning, data, any);
        let mut recipe = recipe.map_err(PrepareError::Failed)??;
        if variant.journal.is_some() {
            let why = "an external journal is measured in the lab alone".to_owned();
            return Err(PrepareError::Excluded { why, source: None });
        }
        apply_variant(&mut recipe, variant, candidate.name)?;
        self.require(candidate, &recipe)?;
        require_tree(&recipe, work.workload)?;
        self.require_room(work, &recipe, span)
            .map_err(PrepareError::Failed)?;
        let spec = WorkloadSpec {
            name: work.workload.name().to_owned(),
            parameters: work.parameters.clone(),
            tree: work.tree.as_ref().map(|tree| tree.display().to_string()),
            unix: candidate.facts().unix_permissions,
            script: None,
            input: work.input.clone(),
        };
        self.require_programs(work, &spec, data)
            .map_err(PrepareError::Failed)?;
        let image = images.of(candidate, &recipe, work, &spec, data, &HostTools)?;
        let device = only_partition(&self.device.name);
        let mount_point = self.mount_point.display().to_string();
        let mount_point = self.around.mount_point(&mount_point);
        let on_device = |argv: &Vec<String>| Recipe::on_device(argv, &device);
        let mkfs: Vec<Vec<String>> = recipe.mkfs.iter().map(on_device).collect();
        let steps = whichfs_workload::steps(
            work.workload,
            &spec,
            data,
            &whichfs_workload::StepCandidate {
                upper: None,
                before: wipe(candidate.name, &device),
                disk: None,
                mkfs: mkfs.clone(),
                env: whichfs_workload::environment(&recipe.mkfs_env),
                check: Recipe::on_device(&recipe.fsck_check, &device),
                device: device.clone(),
                image: image.map(|image| image.display().to_string()),
                kernel_fs: recipe.kernel_fs.to_owned(),
                mount_options: recipe.mount_options.clone(),
                helper: helper::of(&recipe, &device, &mount_point),
                // A machine that runs has loaded what it needs: loading it is not timed here.
                modules: Vec::new(),
                mount_point,
            },
        );
        let mut steps = steps.map_err(|e| PrepareError::Failed(Error::input(e)))?;
        grant_rights(&mut steps);
        Ok(DeviceRun {
            label: format!("{}, repeat {seed}", candidate.name),
            workload: work.workload,
            identity: self
                .identity(candidate.name, &made_of(&recipe), work, span, seed)
                .map_err(PrepareError::Failed)?,
            job: self.job(steps, data),
            span,
            caveat: helper::caveat(candidate.name, &recipe, false),
            commands: mkfs,
            as_owner: false,
        })
    }

    /// The directory that trials are run in, if the device stays as it is formatted.
    pub fn inside(&self) -> Option<&Inside> {
        match &self.around {
            DeviceHost::Inside(within) => Some(&within.inside),
            _ => None,
        }
    }

    /// The device as a person names it.
    pub fn shown(&self) -> String {
        self.around.shown(&self.device)
    }

    /// The machine as a person names it.
    fn whose(&self) -> &str {
        self.around.board().unwrap_or("this machine")
    }

    /// Checks that the machine's kernel and tools know the filesystem, and have all that it needs.
    fn require(
        &self,
        candidate: &whichfs_fs::Candidate,
        recipe: &Recipe,
    ) -> Result<(), PrepareError> {
        let left_out = |why| Err(PrepareError::Excluded { why, source: None });
        if let Some(board) = self.around.board()
            && recipe.image.is_some()
        {
            return left_out(format!(
                "its image would be made here, and images are not sent to {board}: put the card \
                 into this machine"
            ));
        }
        let missing = self.around.missing(&recipe.tools);
        missing_tools(
            candidate,
            &missing.map_err(PrepareError::Failed)?,
            self.around.board(),
        )?;
        let (kernel, name) = (&self.machine.kernel, recipe.kernel_fs);
        if self.around.kernel_has(name).map_err(PrepareError::Failed)? {
            return Ok(());
        }
        let whose = self.whose();
        left_out(format!(
            "the kernel of {whose} ({kernel}) has no {name}: modprobe {name} finds none; \
             install one that has it"
        ))
    }

    /// Checks that the machine has the programs of the workload, and the files that they read.
    fn require_programs(&self, work: &WorkloadRun, spec: &WorkloadSpec, seed: u64) -> Outcome {
        let Some(board) = self.around.board() else {
            return program::programs(work.workload, spec, seed).map(drop);
        };
        if let Some(tree) = &work.tree {
            return Err(Error::input(format!(
                "{} is a tree of this machine, which is not sent to {board}: leave it out",
                tree.display()
            )));
        }
        let programs = whichfs_workload::programs(work.workload, spec, seed);
        let programs = programs.map_err(Error::input)?;
        let names: Vec<&str> = programs
            .iter()
            .filter_map(|program| program.argv.first().map(String::as_str))
            .collect();
        match self.around.missing(&names)?[..] {
            [] => Ok(()),
            [first, ..] => Err(Error::environment(format!(
                "{first} is not on {board}, and the workload {} needs it: install it there",
                work.workload.name()
            ))),
        }
    }

    /// The job of a trial: it begins with empty caches and a device that had time to tidy up.
    fn job(&self, steps: Vec<Step>, seed: u64) -> Job {
        let milliseconds = self.settle_ms();
        Self::job_of(
            [Step::DropCaches, Step::Settle { milliseconds }],
            steps,
            seed,
        )
    }

    /// Idle time before a trial, in milliseconds.
    pub fn settle_ms(&self) -> u64 {
        u64::try_from(self.settle.as_millis()).unwrap_or(u64::MAX)
    }

    /// The job that does `before`, then `steps`.
    fn job_of(before: [Step; 2], steps: Vec<Step>, seed: u64) -> Job {
        Job {
            seed,
            // The device's queue is as it is.
            queues: Vec::new(),
            steps: before.into_iter().chain(steps).collect(),
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        }
    }

    fn identity(
        &self,
        candidate: &str,
        made: &Made<'_>,
        work: &WorkloadRun,
        span: Span,
        seed: u64,
    ) -> Outcome<Identity> {
        let tools = self.around.versions(&made.tools)?;
        let machine = &self.machine;
        Ok(Identity {
            card: self.id().to_owned(),
            card_sha256: crate::digest::sha256(self.device.identity.as_bytes()),
            card_state: "as found".to_owned(),
            board: machine.name.clone(),
            board_sha256: machine.sha256.clone(),
            clock: REAL.to_owned(),
            kernel: machine.kernel.clone(),
            kernel_sha256: machine.kernel_sha256.clone(),
            candidate: candidate.to_owned(),
            // By the device's placeholder: its name in /dev changes from day to day.
            mkfs: made.commands.clone(),
            mount_options: made.mount_options.to_owned(),
            workload: work.workload.name().to_owned(),
            parameters: work.parameters.clone(),
            tree_sha256: work.tree_sha256.clone(),
            input: work.input.clone(),
            partition_offset: span.start,
            partition_bytes: span.bytes,
            memory_mib: machine.memory_mib,
            version: crate::version::version(),
            agent_sha256: self.around.agent_sha256().to_owned(),
            tools,
            userland_sha256: None,
            cpu_features_sha256: machine.cpu_features_sha256.clone(),
            seed,
            data_seed: work.other_data_seed(seed),
            second_card: None,
            measured: Some(whichfs_trial::Measured {
                device: self.device.identity.clone(),
                session: self.session,
                reference: None,
            }),
        })
    }
}
