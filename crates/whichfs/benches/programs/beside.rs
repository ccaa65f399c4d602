//! A phase of a workload and the real program, each in a guest of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_agent::{Manner, Time, operate};
use whichfs_engine::board::Board;
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::PrepareError;
use whichfs_engine::guest_places::MOUNT_POINT;
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::trial_runner::{self, figures};
use whichfs_engine::lab_executor::{LabExecutor, Prepared};
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_lab::{GuestSpec, SharedDirectory};
use whichfs_study::Variant;
use whichfs_trial::{PhaseFigures, Step, WorkloadSpec};
use whichfs_workload::environment;
use whichfs_workload::{EntryKind, Listing, Op, TreeEntry};

const SEED: u64 = 1;

/// Where guests see what the programs take.
const SHARED: &str = "programs";

/// The goal: time within 5 %, requests and bytes within 3 %.
const GOALS: [f64; 3] = [0.05, 0.03, 0.03];

/// A program beside the phase that stands for it.
pub struct Pair {
    /// Name in the table.
    pub program: &'static str,
    pub workload: &'static str,
    pub parameters: &'static [(&'static str, u64)],
    /// Phases and the line of a shell that does the same; `$T` is a directory with the tree, its
    /// archive `$T.tar`, its packages `$T.debs` beside dpkg's database `$T.dpkg`, its repository
    /// `$T.git`.
    pub phases: &'static [(&'static str, &'static str)],
}

/// The tree of a pair as the programs take it.
pub struct Tree {
    directory: PathBuf,
}

impl Tree {
    pub fn make(pair: &Pair, unix: bool, home: &Path) -> Tree {
        let name = format!("{}-{unix}", pair.program.replace([' ', ','], ""));
        let directory = home.join(name);
        std::fs::create_dir(&directory).unwrap();
        let workload = whichfs_workload::find(pair.workload).unwrap();
        let spec = spec(pair, unix);
        let text = directory.display();
        let Some(listing) = workload.generated_tree(&spec, SEED).unwrap() else {
            let phase = pair.phases[0].0;
            perform(
                workload.operations(phase, &spec, None, SEED).unwrap(),
                &directory,
            );
            return Tree { directory };
        };
        let listing = if unix {
            listing
        } else {
            listing.without_unix()
        };
        write(&listing, &directory);
        if pair.program.contains("dpkg") {
            let each = listing.entries.len().div_ceil(20);
            packages(listing.entries.chunks(each), &directory);
            database(&directory);
        } else if pair.program.contains("git") {
            shell(&format!(
                "cp -a {text} {text}.work && cd {text}.work && git init -q . && git add -f . && \
                 git -c user.name=x -c user.email=x commit -qm x && \
                 git clone -q --bare . {text}.git && rm -r {text}.work"
            ));
        } else if pair.program.contains("tar") {
            shell(&format!("tar --sort=name -cf {text}.tar -C {text} ."));
        }
        Tree { directory }
    }
}

fn spec(pair: &Pair, unix: bool) -> WorkloadSpec {
    let parameters = pair.parameters.iter();
    WorkloadSpec {
        name: pair.workload.into(),
        parameters: parameters
            .map(|&(name, value)| (name.to_owned(), value))
            .collect(),
        tree: None,
        unix,
        script: None,
        input: None,
    }
}

/// Makes `listing` in a directory of this machine.
fn write(listing: &Listing, directory: &Path) {
    let make = |entry: &TreeEntry| {
        let (path, mode) = (entry.path.clone(), Some(entry.mode));
        match entry.kind.clone() {
            EntryKind::Directory => Op::Mkdir { path, mode },
            EntryKind::File { size, content } => Op::Create {
                path,
                size,
                content,
                mode,
                pieces: None,
            },
            EntryKind::Symlink { target } => Op::Symlink { path, target },
            EntryKind::HardLink { existing } => Op::HardLink { path, existing },
        }
    };
    perform(listing.entries.iter().map(make), directory);
}

fn perform(ops: impl Iterator<Item = Op>, directory: &Path) {
    let manner = Manner::default();
    operate(
        ops,
        directory,
        None,
        &Time::still(),
        manner,
        &mut |_, _, _| Ok(()),
    )
    .unwrap();
}

/// The database of dpkg before: as large as the parameter `status_bytes`, with few packages.
fn database(tree: &Path) {
    const PACKAGES: usize = 20;
    const STATUS_BYTES: usize = 300 << 10;
    let home = PathBuf::from(format!("{}.dpkg", tree.display()));
    for directory in ["info", "updates"] {
        std::fs::create_dir_all(home.join(directory)).unwrap();
    }
    let words = "a package that was there before\n ".repeat(STATUS_BYTES / PACKAGES / 33);
    let one = |at: usize| {
        std::fs::write(home.join(format!("info/q{at}.list")), "/.\n").unwrap();
        format!(
            "Package: q{at}\nStatus: install ok installed\nMaintainer: x <x@x>\n\
             Architecture: all\nVersion: 1\nDescription: x\n {}.\n\n",
            words.trim_end()
        )
    };
    let status: String = (0..PACKAGES).map(one).collect();
    std::fs::write(home.join("status"), status).unwrap();
}

/// Real packages of the entries, each with the directories that it needs. A hard link to a file of
/// another package is left out.
fn packages<'a>(parts: impl Iterator<Item = &'a [TreeEntry]>, tree: &Path) {
    let debs = PathBuf::from(format!("{}.debs", tree.display()));
    std::fs::create_dir(&debs).unwrap();
    for (at, entries) in parts.enumerate() {
        let root = tree.with_extension(format!("part{at}"));
        std::fs::create_dir_all(root.join("DEBIAN")).unwrap();
        let control = format!(
            "Package: p{at:03}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\n\
             Description: x\n"
        );
        std::fs::write(root.join("DEBIAN/control"), control).unwrap();
        let list: String = entries
            .iter()
            .map(|entry| format!("{}\n", entry.path))
            .collect();
        let names = root.with_extension("names");
        std::fs::write(&names, list).unwrap();
        let [tree, root, names, debs] =
            [tree, &root, &names, &debs].map(|path| path.display().to_string());
        shell(&format!(
            "tar -C {tree} --no-recursion -T {names} -cf - | tar -C {root} -xf - 2>/dev/null; \
             dpkg-deb -Znone --root-owner-group -b {root} {debs}/p{at:03}.deb > /dev/null"
        ));
    }
}

fn shell(line: &str) {
    let status = Command::new("/bin/sh").args(["-c", line]).status().unwrap();
    assert!(status.success(), "{line}: {status}");
}

/// How well a phase agrees with a program.
pub struct Agreement {
    pub phase: &'static str,
    /// Ours divided by the program's: time, requests, bytes.
    pub ratios: [f64; 3],
    /// The program's seconds.
    pub seconds: f64,
}

impl Agreement {
    /// Whether the goal is met.
    pub fn is_good(&self) -> bool {
        let mut all = self.ratios.iter().zip(GOALS);
        all.all(|(ratio, goal)| (*ratio - 1.0).abs() <= goal)
    }
}

pub fn compare(
    pair: &Pair,
    filesystem: &str,
    card: &str,
    tree: &Tree,
) -> Result<Vec<Agreement>, String> {
    let lab = LabExecutor::new(
        cards::open(card).unwrap(),
        CardState::Used,
        Board::open("generic-1ghz").unwrap(),
        Clock::Device,
        Duration::from_secs(300),
        1,
    )
    .unwrap();
    let given: BTreeMap<String, u64> = spec(pair, true).parameters;
    let work = WorkloadRun::named(pair.workload, &given).unwrap();
    let candidate = whichfs_fs::find(filesystem).unwrap();
    let images = Images::new(&|_| ());
    let prepared = lab.prepare(candidate, &work, &Variant::default(), SEED, &images);
    let mut prepared = prepared.map_err(|error| match error {
        PrepareError::Excluded { why, .. } => why,
        PrepareError::Failed(error) => error.to_string(),
    })?;
    let ours = run(&lab, &prepared)?;
    prepared.shared.push(SharedDirectory {
        name: SHARED,
        path: tree.directory.parent().unwrap().to_owned(),
    });
    for step in &mut prepared.job.steps {
        replace(step, pair, tree);
    }
    let real = run(&lab, &prepared)?;
    let found = |figures: &[PhaseFigures], name: &str| {
        let phase = figures.iter().find(|phase| phase.phase == name)?;
        let device = &phase.device;
        Some([
            phase.seconds(),
            (device.reads + device.writes) as f64,
            (device.read_bytes + device.write_bytes) as f64,
        ])
    };
    let agreement = |&(phase, _): &(&'static str, &str)| {
        let (ours, real) = (found(&ours, phase)?, found(&real, phase)?);
        Some(Agreement {
            phase,
            ratios: [0, 1, 2].map(|at| ours[at] / real[at]),
            seconds: real[0],
        })
    };
    Ok(pair.phases.iter().filter_map(agreement).collect())
}

/// Has the program do what the phase of `step` does.
fn replace(step: &mut Step, pair: &Pair, tree: &Tree) {
    let Step::Operate { phase, .. } = step else {
        return;
    };
    let Some((_, line)) = pair.phases.iter().find(|(name, _)| name == phase) else {
        return;
    };
    let name = tree.directory.file_name().unwrap().to_string_lossy();
    let line = line.replace("$T", &format!("/mnt/.host/{SHARED}/{name}"));
    *step = Step::Run {
        phase: Some(phase.clone()),
        argv: ["/bin/sh", "-c", &line].map(str::to_owned).to_vec(),
        env: environment(&BTreeMap::new()),
        dir: MOUNT_POINT.into(),
        stdin: String::new(),
        show: false,
        any_status: false,
        keeps_rights: false,
    };
}

fn run(lab: &LabExecutor, prepared: &Prepared) -> Result<Vec<PhaseFigures>, String> {
    let images = prepared.images().map_err(|error| error.to_string())?;
    let spec = GuestSpec {
        images: &images,
        shared: &prepared.shared,
        ..lab.guest(&prepared.job, None)
    };
    let disks = prepared.disks(lab).map_err(|error| error.to_string())?;
    let never = AtomicBool::new(false);
    let guest = whichfs_lab::run(&spec, disks, &never, &mut |_| ());
    let guest = guest.map_err(|error| error.to_string())?;
    let guest = trial_runner::judgeable(guest).map_err(|error| error.to_string())?;
    if let Err(error) = &guest.result {
        return Err(error.to_string());
    }
    Ok(figures(&guest.events, &spec.cpu).0)
}
