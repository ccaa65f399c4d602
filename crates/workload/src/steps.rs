//! The steps of a trial, composed. Pure.

use crate::environment;
use crate::inside::SYNC;
use crate::phase::{OnDevice, Phase};
use crate::workload::{PhaseDef, Workload, WorkloadError};
use std::collections::BTreeMap;
use whichfs_trial::{Step, WorkloadSpec};

/// Phase in which a filesystem is unmounted; those after the first carry a number.
const UNMOUNT: &str = "unmount";

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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{every, find};

    fn candidate(image: Option<&str>) -> StepCandidate {
        StepCandidate {
            before: Vec::new(),
            mkfs: vec![vec!["mkfs.ext4".into(), "/dev/vda".into()]],
            env: BTreeMap::new(),
            device: "/dev/vda".into(),
            disk: None,
            check: vec!["e2fsck".into(), "-n".into(), "/dev/vda".into()],
            image: image.map(str::to_owned),
            kernel_fs: "ext4".into(),
            mount_options: "noatime".into(),
            mount_point: "/mnt/test".into(),
            helper: None,
            modules: Vec::new(),
            upper: None,
        }
    }

    fn spec(name: &str) -> WorkloadSpec {
        WorkloadSpec {
            name: name.into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    /// One word a step: its kind, with the phase if it has one.
    fn words(steps: &[Step]) -> Vec<String> {
        let with = |word: &str, phase: &Option<String>| match phase {
            Some(phase) => format!("{word}:{phase}"),
            None => word.to_owned(),
        };
        let word = |step: &Step| match step {
            Step::Run { phase, .. } => with("run", phase),
            Step::Mount { phase, .. } => with("mount", phase),
            Step::Unmount { phase, .. } => with("unmount", phase),
            Step::DropCaches => "drop".into(),
            Step::Deploy { phase, .. } => format!("deploy:{phase}"),
            Step::LoadModules { phase, modules } => format!("{phase}:{}", modules.join("+")),
            Step::Operate { phase, .. } => phase.clone(),
            Step::Space { .. } => "space".into(),
            other => panic!("{other:?}"),
        };
        steps.iter().map(word).collect()
    }

    #[test]
    fn rootfs_on_a_writable_filesystem() {
        let steps = steps(
            find("rootfs").unwrap(),
            &spec("rootfs"),
            1,
            &candidate(None),
        )
        .unwrap();
        let expected = "run:mkfs mount tree_write space unmount:unmount drop mount:mount boot_read \
                        unmount:unmount_2 drop mount tree_read rewrite database_write \
                        random_update delete unmount:unmount_3";
        assert_eq!(words(&steps).join(" "), expected);
    }

    #[test]
    fn rootfs_on_a_read_only_filesystem() {
        let candidate = candidate(Some("/tmp/image"));
        let steps = steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &candidate).unwrap();
        let expected = "deploy:deploy drop mount:mount space boot_read unmount:unmount drop mount \
                        tree_read unmount:unmount_2";
        assert_eq!(words(&steps).join(" "), expected);
    }

    #[test]
    fn a_helper_runs_while_it_is_mounted_or_mounts_itself() {
        let with = |mounts| StepCandidate {
            helper: Some(StepHelper {
                start: vec!["start".into()],
                mounts,
                stop: vec!["stop".into()],
            }),
            ..candidate(None)
        };
        let steps = |mounts| steps(find("tree").unwrap(), &spec("tree"), 1, &with(mounts)).unwrap();
        let beside = words(&steps(false)).join(" ");
        let expected = "run:mkfs mount run tree_write space run unmount:unmount drop mount:mount \
                        run tree_read";
        assert!(beside.starts_with(expected), "{beside}");
        assert!(beside.ends_with("run unmount:unmount_2"), "{beside}");
        let alone = words(&steps(true)).join(" ");
        let expected = "run:mkfs run run tree_write space unmount:unmount drop run:mount tree_read";
        assert!(alone.starts_with(expected), "{alone}");
        let kernels = |step: &&Step| matches!(step, Step::Mount { .. });
        assert_eq!(
            steps(true).iter().filter(kernels).count(),
            0,
            "no kernel driver"
        );
    }

    #[test]
    fn every_workload_times_one_mount_of_its_data() {
        for workload in every().filter(|one| one.input_flag().is_none() && !one.takes_script()) {
            let all = steps(workload, &spec(workload.name()), 1, &candidate(None)).unwrap();
            let all = words(&all);
            let timed = |word: &&String| *word == "mount:mount";
            let count = all.iter().filter(timed).count();
            assert_eq!(count, 1, "{}: {all:?}", workload.name());
            assert!(all.last().unwrap().starts_with("unmount:"), "{all:?}");
        }
        let camera = steps(
            find("camera").unwrap(),
            &spec("camera"),
            1,
            &candidate(None),
        )
        .unwrap();
        let expected = "run:mkfs mount camera_bursts space unmount:unmount drop mount:mount \
                        unmount:unmount_2";
        assert_eq!(words(&camera).join(" "), expected);
    }

    #[test]
    fn what_needs_the_device_alone_has_it() {
        let mkfs = |candidate: &StepCandidate| {
            words(&steps(find("mkfs").unwrap(), &spec("mkfs"), 1, candidate).unwrap()).join(" ")
        };
        let checked = "run:mkfs run:threads_before mount run:empty space fill unmount:unmount drop \
                       run:fsck_clean drop mount:mount first_read unmount:unmount_2";
        assert_eq!(mkfs(&candidate(None)), checked);
        let mut unchecked = candidate(None);
        unchecked.check.clear();
        let without = "run:mkfs run:threads_before mount run:empty space fill unmount:unmount drop \
                       mount:mount first_read unmount:unmount_2";
        assert_eq!(mkfs(&unchecked), without);
    }

    #[test]
    fn a_disk_is_parted_before_and_all_of_it_is_the_filesystems_space() {
        let parted = StepCandidate {
            before: vec![vec!["addpart".into()]],
            device: "/dev/vda1".into(),
            disk: Some("/dev/vda".into()),
            ..candidate(None)
        };
        let steps = steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &parted).unwrap();
        assert!(words(&steps).join(" ").starts_with("run run:mkfs mount "));
        let mut spaces = steps.iter().filter_map(|step| match step {
            Step::Space { device, .. } => Some(device.as_str()),
            _ => None,
        });
        assert_eq!(spaces.next(), Some("/dev/vda"));
    }

    fn upper(device: &str) -> StepUpper {
        StepUpper {
            mkfs: Vec::new(),
            device: device.into(),
            kernel_fs: if device.is_empty() { "tmpfs" } else { "ext4" }.into(),
            mount_options: String::new(),
            mount_point: "/mnt/upper".into(),
            lower_point: "/mnt/lower".into(),
        }
    }

    #[test]
    fn a_layer_lies_over_what_was_filled() {
        let on = |device: &str, image| {
            let candidate = StepCandidate {
                upper: Some(upper(device)),
                ..candidate(image)
            };
            steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &candidate).unwrap()
        };
        // What is mounted of what, and unmounted, by target.
        let mounts = |steps: &[Step]| {
            let told = steps.iter().filter_map(|step| match step {
                Step::Mount {
                    source,
                    target,
                    options,
                    ..
                } => Some(format!("{source} on {target} {options}")),
                Step::Unmount { target, .. } => Some(format!("- {target}")),
                _ => None,
            });
            told.collect::<Vec<_>>()
        };
        let all = on("/dev/vdb", None);
        let told = mounts(&all);
        let layers = "lowerdir=/mnt/lower,upperdir=/mnt/upper/upper,workdir=/mnt/upper/work";
        let right = [
            "/dev/vda on /mnt/test noatime",
            "- /mnt/test",
            "/dev/vda on /mnt/lower ro,noatime",
            "/dev/vdb on /mnt/upper ",
            &format!("none on /mnt/test {layers}"),
            "- /mnt/test",
            "- /mnt/upper",
            "- /mnt/lower",
        ];
        assert_eq!(told[..8], right);
        assert!(words(&all).last().unwrap().starts_with("unmount:unmount_"));
        let ram = mounts(&on("", None));
        let of_ram = ram
            .iter()
            .filter(|told| told.contains("none on /mnt/upper"));
        assert_eq!(of_ram.count(), 1, "it stays mounted: {ram:?}");
        assert!(!ram.contains(&"- /mnt/upper".to_owned()), "{ram:?}");
        let image = words(&on("", Some("/tmp/image"))).join(" ");
        assert!(
            !image.contains("tree_write") && image.contains("rewrite") && image.contains("delete"),
            "an image has its tree, and can be changed: {image}"
        );
        let layered = StepCandidate {
            upper: Some(upper("")),
            ..candidate(None)
        };
        let refused = steps(find("camera").unwrap(), &spec("camera"), 1, &layered);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("no phase after a cold mount"), "{refused}");
    }

    #[test]
    fn modules_are_loaded_before_anything_is_mounted() {
        let boot = |candidate: &StepCandidate| {
            words(&steps(find("boot").unwrap(), &spec("boot"), 1, candidate).unwrap()).join(" ")
        };
        let with = |image| StepCandidate {
            modules: vec!["/m/jbd2.ko".into(), "/m/ext4.ko".into()],
            ..candidate(image)
        };
        let rest = "run:mkfs mount tree_write unmount:unmount drop mount:mount first_read \
                    unmount:unmount_2";
        let load = "module_load:/m/jbd2.ko+/m/ext4.ko";
        assert_eq!(boot(&with(None)), format!("{load} {rest}"));
        assert_eq!(boot(&candidate(None)), rest, "none are known");
        let read_only =
            format!("{load} deploy:deploy drop mount:mount space first_read unmount:unmount");
        assert_eq!(boot(&with(Some("/i"))), read_only);
    }

    #[test]
    fn every_phase_has_a_name_of_its_own() {
        for workload in every().filter(|one| one.input_flag().is_none() && !one.takes_script()) {
            let mut two = candidate(None);
            two.mkfs.push(vec!["tune2fs".into()]);
            let steps = steps(workload, &spec(workload.name()), 1, &two).unwrap();
            let mut phases: Vec<String> = words(&steps);
            phases.retain(|word| !["mount", "unmount", "drop", "space"].contains(&word.as_str()));
            let count = phases.len();
            phases.sort();
            phases.dedup();
            assert_eq!(phases.len(), count, "{}: {phases:?}", workload.name());
        }
    }

    #[test]
    fn unmounts_are_known_by_their_names() {
        for at in [1, 2, 10] {
            assert!(is_unmount(&nth(UNMOUNT, at)), "{at}");
        }
        for other in ["mount", "unmounted", "unmount_", "unmount_x"] {
            assert!(!is_unmount(other), "{other}");
        }
    }

    #[test]
    fn an_illegal_specification_has_no_steps() {
        let mut bad = spec("rootfs");
        bad.parameters.insert("files".into(), 0);
        assert!(steps(find("rootfs").unwrap(), &bad, 1, &candidate(None)).is_err());
    }
}
