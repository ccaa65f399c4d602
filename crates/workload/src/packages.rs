//! Workload `packages`: packages are installed as dpkg does it.
//!
//! As dpkg 1.21 (`src/main/archives.c`, `lib/dpkg/atomic-file.c`) without `--force-unsafe-io`: all
//! files of a package are unpacked beside their names (`NAME.dpkg-new`), then each is made durable
//! (fsync) and renamed to its name, directories are made where they are missing, and the status
//! database, which grows with each package, is written anew beside its name, made durable, renamed,
//! and its directory made durable.
//!
//! Different: dpkg also asks the kernel to begin writing each file early (sync_file_range), writes
//! a list of files and checksums for each package, and goes through each package twice (unpacked,
//! then configured); programs of packages are not run.

use crate::content::generated;
use crate::distribution::Distribution;
use crate::listing::{Entry, Kind, Listing};
use crate::names::join;
use crate::tree::{self, Size};
use crate::tree_ops::{Writer, create};
use crate::workload::{
    Error, MetricDef, Parameter, PhaseDef, Rule, Workload, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// Directory of the status database; the generated tree leaves it free.
const DATABASE: &str = "dpkg-database";

/// Level of the status database: text with much repetition.
const LEVEL: u8 = 5;

/// The workload.
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
        "install packages: files durable and renamed, the status database replaced (files/s)",
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

    fn generated_tree(&self, spec: &WorkloadSpec, seed: u64) -> Result<Option<Listing>, Error> {
        self.check(spec)?;
        let size = Size {
            files: parameter(self, spec, "files"),
            bytes: parameter(self, spec, "bytes"),
        };
        let from = Distribution::rootfs();
        Ok(Some(tree::draw(from, size, seed, &[DATABASE])))
    }

    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, Error> {
        self.check(spec)?;
        let value = |name| parameter(self, spec, name);
        let mut rng = Rng::named(seed, phase);
        match phase {
            "packages_prepare" => {
                let directory = Op::Mkdir {
                    path: DATABASE.into(),
                    mode: None,
                };
                let status = Op::Create {
                    path: join(DATABASE, "status"),
                    size: value("status_bytes"),
                    content: generated(LEVEL, rng.next_u64()),
                    mode: None,
                    pieces: None,
                };
                Ok(Box::new([directory, status, Op::SyncFs].into_iter()))
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
                let mut ops = Vec::new();
                let mut status = value("status_bytes");
                for package in tree.entries.chunks(each) {
                    unpack(package, spec.unix, &mut ops);
                    status += KIB;
                    ops.extend(replace_status(status, &mut rng));
                }
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

/// One package: all of it beside its names, then file after file durable and renamed. Hard links
/// come when what they name is in its place.
fn unpack(package: &[Entry], unix: bool, ops: &mut Vec<Op>) {
    let is_link = |entry: &Entry| matches!(entry.kind, Kind::HardLink { .. });
    let (links, rest): (Vec<Entry>, Vec<Entry>) = package.iter().cloned().partition(is_link);
    for entries in [rest, links] {
        let mut beside = entries.clone();
        for entry in &mut beside {
            if entry.kind != Kind::Directory {
                entry.path = unpacked(&entry.path);
            }
        }
        ops.extend(create(&Listing { entries: beside }, unix, Writer::Dpkg));
        for Entry { path, kind, .. } in entries {
            let from = unpacked(&path);
            if matches!(kind, Kind::File { .. }) {
                let path = from.clone();
                ops.push(Op::SyncClose { path });
            }
            if kind != Kind::Directory {
                ops.push(Op::Rename { from, to: path });
            }
        }
    }
}

/// The status database is replaced by one of `size` bytes.
fn replace_status(size: u64, rng: &mut Rng) -> [Op; 3] {
    let from = join(DATABASE, "status-new");
    let save = Op::Save {
        path: from.clone(),
        size,
        content: generated(LEVEL, rng.next_u64()),
        mode: None,
    };
    let to = join(DATABASE, "status");
    let path = DATABASE.to_owned();
    [save, Op::Rename { from, to }, Op::SyncDir { path }]
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
        let mut named = 0;
        for op in ops(false) {
            match op {
                Op::SyncClose { path } | Op::Save { path, .. } => {
                    durable.insert(path);
                }
                Op::Rename { from, .. } => {
                    assert!(durable.remove(&from), "{from}");
                    named += 1;
                }
                _ => {}
            }
        }
        assert_eq!(named, 200 + 20);
    }

    #[test]
    fn the_status_database_is_replaced_once_a_package() {
        let is_status = |op: &&Op| matches!(op, Op::SyncDir { path } if path == DATABASE);
        for unix in [true, false] {
            assert_eq!(ops(unix).iter().filter(is_status).count(), 20);
        }
    }
}
