//! Workload `packages`: `dpkg -i` of packages that were not installed.
//!
//! The calls of dpkg 1.21 without `--force-unsafe-io`, as strace shows them. For each package:
//! - control data are written to a directory of their own and made durable;
//! - the package's state goes to a small file of its own in `updates`, made durable and renamed,
//!   and the directory is made durable: once before and twice after its files;
//! - files are written beside their names (`NAME.dpkg-new`), 32 KiB at a time, and the kernel is
//!   asked at once to begin writing each (`sync_file_range`); directories, too, are made beside
//!   their names. When all are there, each file is waited for, and then, one after the other, made
//!   durable and renamed;
//! - the list of its files is made durable and renamed, its control data are renamed, and their
//!   directory is made durable after each.
//!
//! Then each package is configured, which is three more states, and the whole status database is
//! written beside its name, made durable and renamed, and all states are deleted. dpkg does that
//! also where there are 250 of them.
//!
//! Different: programs of packages are not run; a state is written once, where dpkg writes padding
//! first and then cuts it off; dpkg's locks and triggers are left out.

use crate::content::generated;
use crate::distribution::Distribution;
use crate::listing::{EntryKind, Listing, TreeEntry};
use crate::names::join;
use crate::phase::{Operations, Phase};
use crate::tree::{self, Size};
use crate::tree_ops::{Writer, create};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(120, &Packages)];

/// Directory of the status database; the generated tree leaves it free.
const DATABASE: &str = "dpkg-database";
/// Bytes of a package's paragraph: in the control data, the states, and what it adds to the status
/// database.
const PARAGRAPH: u64 = KIB;
/// Bytes of a line with a checksum, beside its path (`md5sums`).
const CHECKSUM: usize = 35;
/// States that dpkg gathers before it writes the status database (`MAXUPDATES`).
const STATES_MAX: u64 = 250;

/// Level of the status database: text with much repetition.
const LEVEL: u8 = 5;

/// The installation of Debian packages.
pub struct Packages;

const PARAMETERS: [Parameter; 4] = [
    Parameter {
        name: "bytes",
        default: 32 * MIB,
        unit: "B",
        meaning: "bytes of all files of all packages",
        min: KIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "files",
        default: 1_000,
        unit: "files",
        meaning: "regular files of all packages",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "packages",
        default: 20,
        unit: "packages",
        meaning: "packages that they are in, about as many in each",
        min: 1,
        max: 100_000,
    },
    Parameter {
        name: "status_bytes",
        default: 300 * KIB,
        unit: "B",
        meaning: "bytes of the status database before; each package adds 1 KiB",
        min: 1,
        max: GIB,
    },
];

const PHASES: [PhaseDef; 2] = [
    PhaseDef::warm(
        "packages_prepare",
        "make the status database, then syncfs",
        true,
        &[],
    ),
    PhaseDef::warm(
        "packages_install",
        "install packages as dpkg -i: files durable and renamed, states durable (files/s)",
        true,
        &MetricDef::one("packages_install", Rule::FileRate),
    )
    .then_space(),
];

impl Workload for Packages {
    fn name(&self) -> &'static str {
        "packages"
    }

    fn title(&self) -> &'static str {
        "package installation: many small files, each durable and renamed, as dpkg"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }

    fn generated_tree(
        &self,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Option<Listing>, WorkloadError> {
        self.check(spec)?;
        let size = Size {
            files: parameter(self, spec, "files"),
            bytes: parameter(self, spec, "bytes"),
        };
        let from = Distribution::rootfs();
        Ok(Some(tree::draw(from, size, seed, &[DATABASE])))
    }
}

impl Operations for Packages {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let mut rng = Rng::named(seed, phase);
        match phase {
            "packages_prepare" => {
                let directory = Op::Mkdir {
                    path: DATABASE.into(),
                    mode: None,
                };
                let inside = ["info", "updates"].map(|name| Op::Mkdir {
                    path: join(DATABASE, name),
                    mode: None,
                });
                let status = Op::Create {
                    path: join(DATABASE, "status"),
                    size: value("status_bytes"),
                    content: generated(LEVEL, rng.next_u64()),
                    mode: None,
                    pieces: None,
                };
                let ops = [directory]
                    .into_iter()
                    .chain(inside)
                    .chain([status, Op::SyncFs]);
                Ok(Box::new(ops))
            }
            "packages_install" => {
                let mut tree = match tree {
                    Some(tree) => tree.clone(),
                    None => self.generated_tree(spec, seed)?.unwrap_or_default(),
                };
                if !spec.unix {
                    tree = tree.without_unix();
                }
                let each = tree
                    .entries
                    .len()
                    .div_ceil(value("packages") as usize)
                    .max(1);
                let mut dpkg = Dpkg {
                    ops: Vec::new(),
                    rng,
                    status: value("status_bytes"),
                    has_old: false,
                    states: 0,
                };
                let packages: Vec<&[TreeEntry]> = tree.entries.chunks(each).collect();
                for (number, package) in packages.iter().enumerate() {
                    dpkg.unpack(number, package, spec.unix);
                }
                for _ in &packages {
                    (0..3).for_each(|_| dpkg.state());
                    dpkg.status += PARAGRAPH;
                }
                dpkg.checkpoint();
                let ops = dpkg.ops;
                Ok(Box::new(ops.into_iter()))
            }
            other => Err(unknown_phase(self, other)),
        }
    }
}

/// Where dpkg unpacks what will be at `path`.
fn unpacked(path: &str) -> String {
    format!("{path}.dpkg-new")
}

/// A run of dpkg.
struct Dpkg {
    ops: Vec<Op>,
    rng: Rng,
    /// Bytes of the status database.
    status: u64,
    /// There is one of before the last.
    has_old: bool,
    /// States since the status database was written.
    states: u64,
}

impl Dpkg {
    /// Package `number` with its files. Hard links come when what they name is in its place.
    fn unpack(&mut self, number: usize, package: &[TreeEntry], unix: bool) {
        let paths = || package.iter().map(|entry| entry.path.len());
        let is_file = |entry: &&TreeEntry| matches!(entry.kind, EntryKind::File { .. });
        let files = package.iter().filter(is_file);
        let sums: usize = files.clone().map(|entry| CHECKSUM + entry.path.len()).sum();
        let control = join(DATABASE, "tmp.ci");
        let path = control.clone();
        self.ops.push(Op::Mkdir { path, mode: None });
        let new = [("control", PARAGRAPH), ("md5sums", sums as u64)];
        for (name, bytes) in new {
            self.save(&join(&control, name), bytes);
        }
        self.sync_dir(&control);
        self.state();
        let is_link = |entry: &TreeEntry| matches!(entry.kind, EntryKind::HardLink { .. });
        let (links, rest): (Vec<TreeEntry>, Vec<TreeEntry>) =
            package.iter().cloned().partition(is_link);
        for entries in [rest, links] {
            self.unpack_entries(entries, unix);
        }
        let list = join(DATABASE, &format!("info/{number}.list"));
        // A slash before and a newline behind each.
        self.save(
            &format!("{list}-new"),
            paths().map(|path| path as u64 + 2).sum(),
        );
        self.rename(format!("{list}-new"), list);
        self.sync_dir(&join(DATABASE, "info"));
        let sums = join(DATABASE, &format!("info/{number}.md5sums"));
        self.rename(join(&control, "md5sums"), sums);
        self.sync_dir(&join(DATABASE, "info"));
        let path = join(&control, "control");
        self.ops.push(Op::Unlink { path });
        self.ops.push(Op::Rmdir { path: control });
        self.state();
        self.state();
    }

    fn unpack_entries(&mut self, entries: Vec<TreeEntry>, unix: bool) {
        let mut beside = entries.clone();
        for entry in &mut beside {
            entry.path = unpacked(&entry.path);
        }
        let made = create(&Listing { entries: beside }, unix, Writer::Dpkg);
        for (op, TreeEntry { path, kind, .. }) in made.into_iter().zip(&entries) {
            self.ops.push(op);
            let from = unpacked(path);
            match kind {
                EntryKind::Directory => self.rename(from, path.clone()),
                EntryKind::File { .. } => self.write_back(from, false),
                EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => {}
            }
        }
        let is_file = |entry: &&TreeEntry| matches!(entry.kind, EntryKind::File { .. });
        for entry in entries.iter().filter(is_file) {
            self.write_back(unpacked(&entry.path), true);
        }
        for TreeEntry { path, kind, .. } in entries {
            let from = unpacked(&path);
            if matches!(kind, EntryKind::File { .. }) {
                let path = from.clone();
                self.ops.push(Op::SyncClose { path });
            }
            if kind != EntryKind::Directory {
                self.rename(from, path);
            }
        }
    }

    /// The state of a package is another one now.
    fn state(&mut self) {
        let new = join(DATABASE, "updates/tmp.i");
        self.save(&new, PARAGRAPH);
        self.rename(new, state_path(self.states));
        self.sync_dir(&join(DATABASE, "updates"));
        self.states += 1;
        if self.states == STATES_MAX {
            self.checkpoint();
        }
    }

    /// All states become part of the status database.
    fn checkpoint(&mut self) {
        let [new, status, old] = ["status-new", "status", "status-old"].map(|n| join(DATABASE, n));
        self.save(&new, self.status);
        if std::mem::replace(&mut self.has_old, true) {
            let path = old.clone();
            self.ops.push(Op::Unlink { path });
        }
        // dpkg makes a second name of it, which not every filesystem has, and replaces the first.
        self.rename(status.clone(), old);
        self.rename(new, status);
        self.sync_dir(DATABASE);
        let states = 0..std::mem::take(&mut self.states);
        let unlink = |state| Op::Unlink {
            path: state_path(state),
        };
        self.ops.extend(states.map(unlink));
        self.sync_dir(&join(DATABASE, "updates"));
    }

    /// A new file, made durable.
    fn save(&mut self, path: &str, bytes: u64) {
        self.ops.push(Op::Save {
            path: path.to_owned(),
            size: bytes,
            content: generated(LEVEL, self.rng.next_u64()),
            mode: None,
        });
    }

    fn write_back(&mut self, path: String, wait: bool) {
        self.ops.push(Op::WriteBack { path, wait });
    }

    fn rename(&mut self, from: String, to: String) {
        self.ops.push(Op::Rename { from, to });
    }

    fn sync_dir(&mut self, path: &str) {
        let path = path.to_owned();
        self.ops.push(Op::SyncDir { path });
    }
}

/// Where the state of number `state` since the last status database is.
fn state_path(state: u64) -> String {
    join(DATABASE, &format!("updates/{state:04}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ops(unix: bool) -> Vec<Op> {
        let spec = WorkloadSpec {
            name: "packages".into(),
            parameters: [("files".to_owned(), 200)].into(),
            tree: None,
            unix,
            script: None,
            input: None,
        };
        let ops = Packages.operations("packages_install", &spec, None, 3);
        ops.unwrap().collect()
    }

    #[test]
    fn every_file_is_durable_before_it_has_its_name() {
        let mut durable = std::collections::BTreeSet::new();
        let mut directories = std::collections::BTreeSet::new();
        let mut named = 0;
        for op in ops(false) {
            match op {
                Op::Mkdir { path, .. } => drop(directories.insert(path)),
                Op::SyncClose { path } | Op::Save { path, .. } => {
                    durable.insert(path);
                }
                // The old status database is there already.
                Op::Rename { from, to }
                    if !to.ends_with("status-old") && !directories.contains(&from) =>
                {
                    assert!(durable.remove(&from), "{from}");
                    named += 1;
                }
                _ => {}
            }
        }
        // Files, six states, the list and the checksums of each package, and the database.
        assert_eq!(named, 200 + 20 * (6 + 2) + 1);
    }

    #[test]
    fn the_status_database_is_replaced_at_the_end_and_after_250_states() {
        let count = |ops: &[Op]| {
            let is_status = |op: &&Op| matches!(op, Op::SyncDir { path } if path == DATABASE);
            ops.iter().filter(is_status).count()
        };
        for unix in [true, false] {
            assert_eq!(count(&ops(unix)), 1);
        }
        let mut dpkg = Dpkg {
            ops: Vec::new(),
            rng: Rng::named(1, "test"),
            status: 1,
            has_old: false,
            states: 0,
        };
        (0..251).for_each(|_| dpkg.state());
        assert_eq!((count(&dpkg.ops), dpkg.states), (1, 1));
    }

    #[test]
    fn writing_begins_before_any_file_of_the_package_is_waited_for() {
        let mut begun = std::collections::BTreeSet::new();
        for op in ops(true) {
            match op {
                Op::WriteBack { path, wait: false } => drop(begun.insert(path)),
                Op::WriteBack { path, wait: true } => assert!(begun.contains(&path)),
                Op::SyncClose { path } => assert!(begun.remove(&path), "{path}"),
                _ => {}
            }
        }
        assert!(begun.is_empty());
    }
}
