//! The steps of a trial, composed. Pure.

use crate::environment;
use crate::phase::{OnDevice, Phase};
use crate::workload::{PhaseDef, Workload, WorkloadError};
use std::collections::BTreeMap;
use whichfs_trial::{Step, WorkloadSpec};

/// Phase in which a filesystem is unmounted; those after the first carry a number.
const UNMOUNT: &str = "unmount";
/// Phase in which a filesystem writes what it kept back, where it is not unmounted.
pub(crate) const SYNC: &str = "sync";

/// Whether `phase` is an unmount, or what stands for it where nothing is unmounted: what a
/// filesystem kept back is written there at the latest.
pub(crate) fn is_unmount(phase: &str) -> bool {
    numbered(phase, UNMOUNT) || numbered(phase, SYNC)
}

/// Whether `phase` is `name`, or `name` with a number.
fn numbered(phase: &str, name: &str) -> bool {
    let rest = phase.strip_prefix(name);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('_');
        rest.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// The name of the phase `name` when it occurs for the `nth` time.
pub(crate) fn nth(name: &str, nth: usize) -> String {
    match nth {
        1 => name.to_owned(),
        _ => format!("{name}_{nth}"),
    }
}

/// What of a candidate decides the steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCandidate {
    /// Commands that part the disk before anything is made, in order; they are no phase.
    pub before: Vec<Vec<String>>,
    /// Commands that make the filesystem, in order; none if `image` is given.
    pub mkfs: Vec<Vec<String>>,
    /// The whole environment of these commands.
    pub env: BTreeMap<String, String>,
    /// Block device.
    pub device: String,
    /// The disk, if the device is a part of it: all of it counts as the filesystem's space.
    pub disk: Option<String>,
    /// Command that checks it without changing anything; empty if there is none.
    pub check: Vec<String>,
    /// Image that is written to the device: a read-only filesystem.
    pub image: Option<String>,
    /// Kernel name of the filesystem.
    pub kernel_fs: String,
    /// Mount options as in fstab.
    pub mount_options: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Its process in user space, if that is to run.
    pub helper: Option<StepHelper>,
    /// Files of the modules that mount it, in the order in which they are loaded; none where the
    /// kernel has it built in, or loads it by itself.
    pub modules: Vec<String>,
    /// What is laid over it from its second mount on (an image: from the first); none: nothing.
    pub upper: Option<StepUpper>,
}

/// The upper layer of overlayfs over a candidate. What fills the candidate goes into it directly:
/// the phases up to the first cold mount, or its image. What follows sees both layers, and writes
/// to the upper one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepUpper {
    /// Commands that make its filesystem; none in RAM.
    pub mkfs: Vec<Vec<String>>,
    /// Its block device; empty in RAM.
    pub device: String,
    /// Kernel name of its filesystem.
    pub kernel_fs: String,
    /// Mount options as in fstab.
    pub mount_options: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Where the candidate is mounted below it.
    pub lower_point: String,
}

/// A process in user space that a mounted filesystem has. Its commands go to the background by
/// themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepHelper {
    /// Command that starts it.
    pub start: Vec<String>,
    /// Whether that mounts the filesystem, by FUSE. Such a process ends with the unmount.
    pub mounts: bool,
    /// Command that ends one that runs beside the mounted filesystem.
    pub stop: Vec<String>,
}

/// The steps of `workload` on `candidate`: make or deploy, mount, the phases with cold
/// remounts where they ask for it, unmount.
///
/// `mount` is timed where a filesystem that holds the data is mounted for the first time: by a
/// cold phase, or once more at the end where no phase is cold.
///
/// # Errors
/// If `spec` is not legal.
pub fn steps(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
    candidate: &StepCandidate,
) -> Result<Vec<Step>, WorkloadError> {
    workload.check(spec)?;
    if candidate.upper.is_some() && !workload.phases().iter().any(|phase| phase.cold) {
        return Err(WorkloadError::Conflict {
            workload: workload.name(),
            reason: "it has no phase after a cold mount, so nothing would be written to the layer \
                     over its filesystem"
                .to_owned(),
        });
    }
    let mut steps = Vec::new();
    let read_only = candidate.image.is_some();
    // What an image holds was written when it was made; a layer over it takes the rest.
    let mut writes = !read_only;
    let mut composer = Composer {
        candidate,
        mount_timed: false,
        mounts: 0,
        unmounts: 0,
        in_ram: false,
    };
    steps.extend(composer.load(workload));
    steps.extend(composer.before());
    if let Some(image) = &candidate.image {
        steps.push(Step::Deploy {
            phase: "deploy".to_owned(),
            image: image.clone(),
            device: candidate.device.clone(),
        });
        steps.push(Step::DropCaches);
        steps.extend(composer.timed_mount());
        steps.push(composer.space());
    } else {
        steps.extend(composer.mkfs());
    }
    let mut fresh = read_only;
    let mut mounted = read_only;
    for phase in workload.phases() {
        writes = writes || phase.cold && candidate.upper.is_some();
        if phase.writes && !writes {
            continue;
        }
        if let Phase::OnDevice(what) = workload.phase(phase) {
            let step = match what {
                OnDevice::Modules => continue,
                OnDevice::Check => composer.check(phase.name),
                OnDevice::Program(programs) => {
                    let program = programs.program(phase.name, spec, seed)?;
                    Some(program.step(phase.name, "/"))
                }
            };
            let Some(step) = step else {
                continue;
            };
            if mounted {
                steps.extend(composer.unmount());
                steps.push(Step::DropCaches);
            }
            (mounted, fresh) = (false, false);
            steps.push(step);
            continue;
        }
        if !mounted {
            // What was checked is mounted with empty caches by a cold phase.
            fresh = phase.cold && composer.unmounts > 0;
            if fresh {
                steps.push(Step::DropCaches);
                steps.extend(composer.timed_mount());
            } else {
                steps.extend(composer.mount(None));
            }
            mounted = true;
        }
        if phase.cold && !fresh {
            steps.extend(composer.unmount());
            steps.push(Step::DropCaches);
            steps.extend(composer.timed_mount());
        }
        fresh = false;
        steps.extend(step_in(
            workload,
            phase,
            spec,
            seed,
            &candidate.mount_point,
        )?);
        if phase.space_after {
            steps.push(composer.space());
        }
    }
    if mounted {
        steps.extend(composer.unmount());
        steps.extend(composer.late_mount());
    }
    Ok(steps)
}

/// The step that is `phase` in the directory `dir`; none if it is done to the device.
pub(crate) fn step_in(
    workload: &dyn Workload,
    phase: &PhaseDef,
    spec: &WorkloadSpec,
    seed: u64,
    dir: &str,
) -> Result<Option<Step>, WorkloadError> {
    Ok(match workload.phase(phase) {
        Phase::Operations(_) => Some(Step::Operate {
            phase: phase.name.to_owned(),
            workload: spec.clone(),
            dir: dir.to_owned(),
        }),
        Phase::Program(programs) => {
            let program = programs.program(phase.name, spec, seed)?;
            Some(program.step(phase.name, dir))
        }
        Phase::OnDevice(_) => None,
    })
}

/// Makes the steps that depend on the candidate only.
struct Composer<'a> {
    candidate: &'a StepCandidate,
    /// The one mount that yields a figure has been composed.
    mount_timed: bool,
    /// Mounts composed so far.
    mounts: usize,
    /// Unmounts composed so far.
    unmounts: usize,
    /// A layer in RAM is mounted, and stays: what is in it would be lost.
    in_ram: bool,
}

impl Composer<'_> {
    fn before(&self) -> impl Iterator<Item = Step> {
        let commands = self.candidate.before.iter();
        commands.map(|argv| Step::Run {
            phase: None,
            argv: argv.clone(),
            env: self.candidate.env.clone(),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        })
    }

    fn mkfs(&self) -> impl Iterator<Item = Step> {
        self.candidate
            .mkfs
            .iter()
            .enumerate()
            .map(|(at, argv)| Step::Run {
                phase: Some(nth("mkfs", at + 1)),
                argv: argv.clone(),
                env: self.candidate.env.clone(),
                dir: "/".to_owned(),
                stdin: String::new(),
                show: false,
                any_status: false,
                keeps_rights: false,
            })
    }

    /// The phases that load modules: nothing can be mounted before.
    fn load(&self, workload: &dyn Workload) -> Vec<Step> {
        let modules = &self.candidate.modules;
        let loads =
            |phase: &&PhaseDef| matches!(workload.phase(phase), Phase::OnDevice(OnDevice::Modules));
        let phases = workload.phases().iter();
        let phases = phases.filter(|phase| !modules.is_empty() && loads(phase));
        let load = |phase: &PhaseDef| Step::LoadModules {
            phase: phase.name.to_owned(),
            modules: modules.clone(),
        };
        phases.map(load).collect()
    }

    /// The filesystem's own checker, if it has one.
    fn check(&self, phase: &str) -> Option<Step> {
        let argv = self.candidate.check.clone();
        (!argv.is_empty()).then(|| Step::Run {
            phase: Some(phase.to_owned()),
            argv,
            env: self.candidate.env.clone(),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        })
    }

    /// A command of the filesystem's helper.
    fn help(phase: Option<&str>, argv: Vec<String>) -> Step {
        Step::Run {
            phase: phase.map(str::to_owned),
            argv,
            env: environment(&BTreeMap::new()),
            dir: "/".to_owned(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: true,
        }
    }

    /// The layer over what is mounted now.
    fn upper(&self) -> Option<&StepUpper> {
        let from = if self.candidate.image.is_some() { 1 } else { 2 };
        let upper = self.candidate.upper.as_ref();
        upper.filter(|_| self.mounts >= from)
    }

    /// Where the candidate itself is mounted now.
    fn own_point(&self) -> String {
        let upper = self.upper().map(|upper| &upper.lower_point);
        upper.unwrap_or(&self.candidate.mount_point).clone()
    }

    fn mount(&mut self, phase: Option<&str>) -> Vec<Step> {
        self.mounts += 1;
        let options = &self.candidate.mount_options;
        let by_kernel = Step::Mount {
            phase: phase.map(str::to_owned),
            source: self.candidate.device.clone(),
            target: self.own_point(),
            kernel_fs: self.candidate.kernel_fs.clone(),
            options: match (self.upper(), options.as_str()) {
                (None, options) => options.to_owned(),
                (Some(_), "") => "ro".to_owned(),
                (Some(_), options) => format!("ro,{options}"),
            },
        };
        if let Some(upper) = self.upper().cloned() {
            return [vec![by_kernel], self.lay(&upper)].concat();
        }
        match &self.candidate.helper {
            None => vec![by_kernel],
            Some(helper) if helper.mounts => {
                let make = ["mkdir", "-p", &self.candidate.mount_point].map(str::to_owned);
                let first = (self.mounts == 1).then(|| Self::help(None, make.to_vec()));
                let mount = Self::help(phase, helper.start.clone());
                first.into_iter().chain([mount]).collect()
            }
            Some(helper) => vec![by_kernel, Self::help(None, helper.start.clone())],
        }
    }

    /// Mounts `upper` and lays it over the candidate.
    fn lay(&mut self, upper: &StepUpper) -> Vec<Step> {
        let is_ram = upper.device.is_empty();
        let directory = |name: &str| format!("{}/{name}", upper.mount_point);
        let mount = |source: &str, target: &str, kernel_fs: &str, options: &str| Step::Mount {
            phase: None,
            source: source.to_owned(),
            target: target.to_owned(),
            kernel_fs: kernel_fs.to_owned(),
            options: options.to_owned(),
        };
        let mut steps = Vec::new();
        if !self.in_ram {
            let source = if is_ram { "none" } else { &upper.device };
            let (point, options) = (&upper.mount_point, &upper.mount_options);
            steps.push(mount(source, point, &upper.kernel_fs, options));
            let make = ["mkdir", "-p", &directory("upper"), &directory("work")];
            steps.push(Self::help(None, make.map(str::to_owned).to_vec()));
            self.in_ram = is_ram;
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            upper.lower_point,
            directory("upper"),
            directory("work")
        );
        steps.push(mount(
            "none",
            &self.candidate.mount_point,
            "overlay",
            &options,
        ));
        steps
    }

    /// The first time as the phase `mount`, then without one.
    fn timed_mount(&mut self) -> Vec<Step> {
        let phase = (!self.mount_timed).then_some("mount");
        self.mount_timed = true;
        self.mount(phase)
    }

    /// The timed mount of what the phases left, if none of them began with one.
    fn late_mount(&mut self) -> Vec<Step> {
        match self.mount_timed {
            true => Vec::new(),
            false => {
                let steps = [vec![Step::DropCaches], self.timed_mount(), self.unmount()];
                steps.concat()
            }
        }
    }

    fn unmount(&mut self) -> Vec<Step> {
        self.unmounts += 1;
        let beside = self.candidate.helper.iter().filter(|helper| !helper.mounts);
        let stop = beside.map(|helper| Self::help(None, helper.stop.clone()));
        let unmount = Step::Unmount {
            phase: Some(nth(UNMOUNT, self.unmounts)),
            target: self.candidate.mount_point.clone(),
        };
        let mut steps: Vec<Step> = stop.chain([unmount]).collect();
        let layers = self.upper().map(|upper| {
            let on_card = Some(upper.mount_point.clone()).filter(|_| !self.in_ram);
            on_card.into_iter().chain([upper.lower_point.clone()])
        });
        for target in layers.into_iter().flatten().collect::<Vec<_>>() {
            self.unmounts += 1;
            steps.push(Step::Unmount {
                phase: Some(nth(UNMOUNT, self.unmounts)),
                target,
            });
        }
        steps
    }

    fn space(&self) -> Step {
        Step::Space {
            dir: self.own_point(),
            device: self
                .candidate
                .disk
                .as_ref()
                .unwrap_or(&self.candidate.device)
                .clone(),
        }
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
