//! Workload `rootfs`: the root filesystem of an embedded Debian is installed, read by a boot and by
//! a backup, updated, and written to by a small database.
//!
//! It is written in the order of an archive and read whole as `tar -c` reads: the filesystem's own
//! order. A boot opens files by name in an order that neither the archive nor the filesystem knows;
//! which and how many is assumed (`boot_permille`). Here it reads them whole: a real one maps
//! programs and libraries and reads the pages that it needs.
//!
//! The database is no part of the tree: what is installed, imaged, read and counted as space
//! is the same for filesystems that can be written and for those that cannot.

use crate::content::generated;
use crate::distribution::Distribution;
use crate::listing::{EntryKind, Listing, TreeEntry};
use crate::names::join;
use crate::phase::{Operations, Phase};
use crate::tree::{self, Size};
use crate::tree_ops::{Writer, create, read};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use whichfs_trial::WorkloadSpec;
use whichfs_trial::{Content, Op};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(10, &Rootfs)];

/// Directory of the files that `random_update` writes to; a tree that has it is refused.
const DATABASE: &str = "whichfs-database";

/// Bytes of a random update: a page of a database.
const UPDATE: u64 = 4 * KIB;

/// Level of a database's content: it compresses about 2.9-fold under zstd.
const DATABASE_LEVEL: u8 = 4;

/// Shares are given in parts of this.
const PERMILLE: u64 = 1000;

/// The root filesystem of an embedded Debian, from installation to daily use.
pub struct Rootfs;

const PARAMETERS: [Parameter; 8] = [
    Parameter {
        name: "bytes",
        default: 192 * MIB,
        unit: "B",
        meaning: "bytes of all files, the database's included; a user's tree has its own",
        min: MIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "files",
        default: 6_000,
        unit: "files",
        meaning: "regular files of the tree; sizes are scaled to bytes; a user's tree has its own",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "database_files",
        default: 4,
        unit: "files",
        meaning: "files that random_update writes to",
        min: 1,
        max: 100,
    },
    Parameter {
        name: "database_bytes",
        default: 2 * MIB,
        unit: "B",
        meaning: "bytes of each of them",
        min: UPDATE,
        max: GIB,
    },
    Parameter {
        name: "updates",
        default: 200,
        unit: "operations",
        meaning: "random 4 KiB overwrites, each followed by fsync",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "boot_permille",
        default: 100,
        unit: "permille",
        meaning: "share of the files that boot_read reads",
        min: 1,
        max: PERMILLE,
    },
    Parameter {
        name: "rewrite_permille",
        default: 200,
        unit: "permille",
        meaning: "share of the files that rewrite overwrites in place",
        min: 1,
        max: PERMILLE,
    },
    Parameter {
        name: "delete_permille",
        default: 500,
        unit: "permille",
        meaning: "share of the files that delete removes, whole directories first (rm -r)",
        min: 1,
        max: PERMILLE,
    },
];

const PHASES: [PhaseDef; 7] = [
    PhaseDef {
        name: "tree_write",
        meaning: "write the whole tree, then syncfs (MB/s)",
        cold: false,
        writes: true,
        space_after: true,
        metrics: &[MetricDef {
            metric: "tree_write",
            rule: Rule::Throughput,
        }],
    },
    PhaseDef::cold(
        "boot_read",
        "read part of the files, in an order of its own, cold (MB/s)",
        &MetricDef::one("boot_read", Rule::Throughput),
    ),
    PhaseDef::cold(
        "tree_read",
        "read all as tar -c does, in the order in which the filesystem lists it, cold (MB/s)",
        &MetricDef::one("tree_read", Rule::Throughput),
    ),
    PhaseDef {
        name: "rewrite",
        meaning: "overwrite part of the files in place, then syncfs (MB/s)",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[MetricDef {
            metric: "rewrite",
            rule: Rule::Throughput,
        }],
    },
    PhaseDef {
        name: "database_write",
        meaning: "write the files that random_update writes to, then syncfs",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[],
    },
    PhaseDef {
        name: "random_update",
        meaning: "overwrite random 4 KiB of a few files, fsync after each (operations/s, ms)",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[
            MetricDef {
                metric: "random_update",
                rule: Rule::OperationRate,
            },
            MetricDef {
                metric: "random_update_p99",
                rule: Rule::Percentile99,
            },
        ],
    },
    PhaseDef {
        name: "delete",
        meaning: "delete part of the tree, then syncfs (files/s)",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[MetricDef {
            metric: "delete",
            rule: Rule::FileRate,
        }],
    },
];

impl Workload for Rootfs {
    fn name(&self) -> &'static str {
        "rootfs"
    }

    fn title(&self) -> &'static str {
        "root filesystem: install, boot, update, a small database"
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

    fn takes_tree(&self) -> bool {
        true
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let (bytes, database) = (parameter(self, spec, "bytes"), self.database_bytes(spec));
        (spec.tree.is_none() && bytes <= database).then(|| {
            format!(
                "bytes = {bytes} does not hold database_files x database_bytes = {database} \
                 and a tree"
            )
        })
    }

    fn generated_tree(
        &self,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Option<Listing>, WorkloadError> {
        self.check(spec)?;
        if spec.tree.is_some() {
            return Ok(None);
        }
        let value = |name| parameter(self, spec, name);
        let size = Size {
            files: value("files"),
            bytes: value("bytes") - self.database_bytes(spec),
        };
        Ok(Some(tree::draw(
            Distribution::rootfs(),
            size,
            seed,
            &[DATABASE],
        )))
    }

    fn check_tree(&self, tree: &Listing) -> Result<(), WorkloadError> {
        if tree.entries.iter().all(|entry| entry.path != DATABASE) {
            return Ok(());
        }
        Err(WorkloadError::Conflict {
            workload: self.name(),
            reason: format!(
                "the tree has {DATABASE} at its top, where the workload puts its database: \
                 rename it or leave it out"
            ),
        })
    }
}

impl Operations for Rootfs {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let tree = match tree {
            Some(listed) => Some(Cow::Borrowed(listed)),
            None => self.generated_tree(spec, seed)?.map(Cow::Owned),
        };
        let Some(mut tree) = tree else {
            return Err(WorkloadError::Conflict {
                workload: self.name(),
                reason: "a tree of the user is named, but its listing is missing".to_owned(),
            });
        };
        self.check_tree(&tree)?;
        if !spec.unix {
            tree = Cow::Owned(tree.into_owned().without_unix());
        }
        let value = |name| parameter(self, spec, name);
        let ops = match phase {
            "tree_write" => {
                let mut ops = create(&tree, spec.unix, Writer::Tar);
                ops.push(Op::SyncFs);
                ops
            }
            "boot_read" => boot(&tree, value("boot_permille"), seed),
            "tree_read" => vec![read()],
            "rewrite" => rewrite(&tree, value("rewrite_permille"), seed),
            "database_write" => {
                let mut ops = create(&self.database(spec, seed), spec.unix, Writer::Copy);
                ops.push(Op::SyncFs);
                ops
            }
            "random_update" => {
                let files = value("database_files");
                let pages = value("database_bytes") / UPDATE;
                return Ok(updates(value("updates"), files, pages, seed));
            }
            "delete" => delete(&tree, value("delete_permille"), seed),
            other => return Err(unknown_phase(self, other)),
        };
        Ok(Box::new(ops.into_iter()))
    }
}

impl Rootfs {
    /// Bytes of all files that `random_update` writes to.
    fn database_bytes(&self, spec: &WorkloadSpec) -> u64 {
        parameter(self, spec, "database_files") * parameter(self, spec, "database_bytes")
    }

    /// The files that `random_update` writes to.
    fn database(&self, spec: &WorkloadSpec, seed: u64) -> Listing {
        let mut rng = Rng::named(seed, "database");
        let mut entries = vec![TreeEntry {
            path: DATABASE.to_owned(),
            mode: 0o755,
            kind: EntryKind::Directory,
        }];
        for at in 0..parameter(self, spec, "database_files") {
            entries.push(TreeEntry {
                path: database_path(at),
                mode: 0o644,
                kind: EntryKind::File {
                    size: parameter(self, spec, "database_bytes"),
                    content: generated(DATABASE_LEVEL, rng.next_u64()),
                },
            });
        }
        Listing { entries }
    }
}

fn database_path(at: u64) -> String {
    join(DATABASE, &format!("data-{at}.db"))
}

/// A share of the files that are not empty, in random order.
fn share<'a>(tree: &'a Listing, permille: u64, rng: &mut Rng) -> Vec<(&'a str, u64, &'a Content)> {
    let mut files: Vec<_> = tree.files().filter(|file| file.1 > 0).collect();
    rng.shuffle(&mut files);
    files.truncate((files.len() as u64 * permille).div_ceil(PERMILLE) as usize);
    files
}

/// Reads a share of the files.
fn boot(tree: &Listing, permille: u64, seed: u64) -> Vec<Op> {
    let files = share(tree, permille, &mut Rng::named(seed, "boot_read"));
    let read = |(path, _, _): (&str, u64, &Content)| Op::Read { path: path.into() };
    files.into_iter().map(read).collect()
}

/// Overwrites a share of the files, whole and in place.
fn rewrite(tree: &Listing, permille: u64, seed: u64) -> Vec<Op> {
    let mut rng = Rng::named(seed, "rewrite");
    let mut ops: Vec<Op> = share(tree, permille, &mut rng)
        .into_iter()
        .map(|(path, len, content)| Op::Overwrite {
            path: path.to_owned(),
            offset: 0,
            len,
            content: match content {
                Content::Generated { level, .. } => generated(*level, rng.next_u64()),
                file @ Content::File { .. } => file.clone(),
            },
        })
        .collect();
    ops.push(Op::SyncFs);
    ops
}

/// Overwrites random pages of the database.
fn updates(count: u64, files: u64, pages: u64, seed: u64) -> Box<dyn Iterator<Item = Op>> {
    let mut rng = Rng::named(seed, "random_update");
    Box::new((0..count).map(move |_| Op::Update {
        path: database_path(rng.below(files)),
        offset: rng.below(pages) * UPDATE,
        len: UPDATE,
        content: generated(DATABASE_LEVEL, rng.next_u64()),
    }))
}

/// Deletes a share of the files: directories with all that is in them (`rm -r`), in random order,
/// as long as they fit into the share, then single files.
fn delete(tree: &Listing, permille: u64, seed: u64) -> Vec<Op> {
    let mut rng = Rng::named(seed, "delete");
    let files = tree.files().count() as u64;
    let mut left = (files * permille).div_ceil(PERMILLE);
    let mut present: BTreeMap<&str, &TreeEntry> = tree
        .entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry))
        .collect();
    let is_directory = |entry: &&TreeEntry| entry.kind == EntryKind::Directory;
    let mut directories: Vec<&TreeEntry> = tree.entries.iter().filter(is_directory).collect();
    rng.shuffle(&mut directories);
    let mut ops = Vec::new();
    for TreeEntry { path, .. } in directories {
        let prefix = format!("{path}/");
        let inside: Vec<(&str, &TreeEntry)> = present
            .range(prefix.as_str()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, entry)| (*path, *entry))
            .collect();
        let count = inside.iter().filter(|(_, entry)| is_file(entry)).count() as u64;
        if count <= left && present.remove(path.as_str()).is_some() {
            left -= count;
            for (path, _) in inside {
                present.remove(path);
            }
            ops.push(Op::RemoveTree { path: path.clone() });
        }
    }
    let mut single: Vec<&str> = present
        .iter()
        .filter(|(_, entry)| is_file(entry))
        .map(|(path, _)| *path)
        .collect();
    rng.shuffle(&mut single);
    single.truncate(left as usize);
    single.sort_unstable();
    let unlink = |path: &str| Op::Unlink { path: path.into() };
    ops.extend(single.into_iter().map(unlink));
    ops.push(Op::SyncFs);
    ops
}

fn is_file(entry: &TreeEntry) -> bool {
    matches!(entry.kind, EntryKind::File { .. })
}
