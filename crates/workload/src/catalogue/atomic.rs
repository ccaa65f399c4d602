//! Workload `atomic`: a device that replaces its configuration files and keeps a small database.
//!
//! A file is replaced as applications are told to (rename(2), fsync(2)): the new content goes to a
//! temporary file, fsync, rename over the old one, fsync of the directory. A share of the
//! replacements leaves out both fsyncs, as careless programs do. Between them transactions with a
//! rollback journal take place, all written with O_SYNC: the old page goes to the journal, the
//! new one to the database, deleting the journal commits.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(40, &Atomic)];

/// Level of configuration files and of the database: text with repetition.
const LEVEL: u8 = 4;

/// Directory of the files that are replaced.
const FILES: &str = "etc";

/// Directory of the database, and the files in it.
const DATA: &str = "var";
const DATABASE: &str = "var/data.db";
const JOURNAL: &str = "var/data.db-journal";

/// Bytes of the database, and of a page of it.
const DATABASE_BYTES: u64 = 256 * KIB;
const PAGE: u64 = 4 * KIB;

/// Bytes of a journal's header.
const HEADER: u64 = 512;

/// Shares are given in parts of this.
const PERMILLE: u64 = 1000;

/// A device that replaces configuration files and keeps a small database.
pub struct Atomic;

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "bytes",
        default: 16 * MIB,
        unit: "B",
        meaning: "bytes of all files that are replaced, before the first round",
        min: MIB,
        max: 4 * GIB,
    },
    Parameter {
        name: "files",
        default: 256,
        unit: "files",
        meaning: "files that are replaced; their mean size is bytes / files",
        min: 1,
        max: 100_000,
    },
    Parameter {
        name: "rounds",
        default: 200,
        unit: "operations",
        meaning: "files replaced, at random",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "transaction_every",
        default: 4,
        unit: "operations",
        meaning: "a transaction of the database after every so many rounds",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "careless_permille",
        default: 250,
        unit: "permille",
        meaning: "share of the replacements without any fsync",
        min: 0,
        max: PERMILLE,
    },
];

const PHASES: [PhaseDef; 2] = [
    PhaseDef {
        name: "prepare",
        meaning: "write the files and the database, then syncfs",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[],
    },
    PhaseDef {
        name: "atomic_update",
        meaning: "replace files, with transactions; calls that make durable (operations/s, ms)",
        cold: false,
        writes: true,
        space_after: true,
        metrics: &[
            MetricDef {
                metric: "atomic_update",
                rule: Rule::OperationRate,
            },
            MetricDef {
                metric: "atomic_update_p99",
                rule: Rule::Percentile99,
            },
        ],
    },
];

impl Workload for Atomic {
    fn name(&self) -> &'static str {
        "atomic"
    }

    fn title(&self) -> &'static str {
        "files replaced by rename, a database with a journal"
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
}

impl Operations for Atomic {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let rounds = Rounds {
            rng: Rng::named(seed, phase),
            files: value("files"),
            mean: (value("bytes") / value("files")).max(1),
            careless_permille: value("careless_permille"),
            transaction_every: value("transaction_every"),
            mode: spec.unix.then_some(0o644),
        };
        match phase {
            "prepare" => Ok(Box::new(rounds.prepare().into_iter())),
            "atomic_update" => Ok(Box::new(rounds.all(value("rounds")).chain([Op::SyncFs]))),
            other => Err(unknown_phase(self, other)),
        }
    }
}

/// What makes the operations, one round at a time.
struct Rounds {
    rng: Rng,
    files: u64,
    /// Mean size of a file in bytes.
    mean: u64,
    careless_permille: u64,
    transaction_every: u64,
    /// Permissions of every file.
    mode: Option<u32>,
}

impl Rounds {
    fn prepare(mut self) -> Vec<Op> {
        let directory = |path: &str| Op::Mkdir {
            path: path.to_owned(),
            mode: self.mode.map(|_| 0o755),
        };
        let mut ops = vec![directory(FILES), directory(DATA)];
        for at in 0..self.files {
            ops.push(self.create(path(at)));
        }
        ops.push(Op::Create {
            path: DATABASE.to_owned(),
            size: DATABASE_BYTES,
            content: generated(LEVEL, self.rng.next_u64()),
            mode: self.mode,
            pieces: None,
        });
        ops.push(Op::SyncFs);
        ops
    }

    fn all(mut self, rounds: u64) -> impl Iterator<Item = Op> {
        (1..=rounds).flat_map(move |round| {
            let mut ops = self.replace();
            if round % self.transaction_every == 0 {
                ops.extend(self.transaction());
            }
            ops
        })
    }

    /// A file of 1 byte to twice the mean.
    fn create(&mut self, path: String) -> Op {
        Op::Create {
            path,
            size: 1 + self.rng.below(2 * self.mean),
            content: generated(LEVEL, self.rng.next_u64()),
            mode: self.mode,
            pieces: None,
        }
    }

    /// Puts a new file in the place of one that is there.
    fn replace(&mut self) -> Vec<Op> {
        let to = path(self.rng.below(self.files));
        let from = format!("{to}.new");
        let careless = self.rng.below(PERMILLE) < self.careless_permille;
        let create = self.create(from.clone());
        let rename = Op::Rename {
            from: from.clone(),
            to,
        };
        if careless {
            return vec![create, rename];
        }
        let directory = Op::SyncDir {
            path: FILES.to_owned(),
        };
        vec![create, Op::SyncFile { path: from }, rename, directory]
    }

    /// Changes a page of the database.
    fn transaction(&mut self) -> Vec<Op> {
        let write = |path: &str, offset, len, seed| Op::WriteSync {
            path: path.to_owned(),
            offset,
            len,
            content: generated(LEVEL, seed),
        };
        let directory = || Op::SyncDir {
            path: DATA.to_owned(),
        };
        let page = self.rng.below(DATABASE_BYTES / PAGE) * PAGE;
        vec![
            Op::Create {
                path: JOURNAL.to_owned(),
                size: 0,
                content: generated(LEVEL, 0),
                mode: self.mode,
                pieces: None,
            },
            write(JOURNAL, HEADER, PAGE, self.rng.next_u64()),
            write(JOURNAL, 0, HEADER, self.rng.next_u64()),
            directory(),
            write(DATABASE, page, PAGE, self.rng.next_u64()),
            Op::Unlink {
                path: JOURNAL.to_owned(),
            },
            directory(),
        ]
    }
}

fn path(at: u64) -> String {
    format!("{FILES}/device-{at:03}.conf")
}
