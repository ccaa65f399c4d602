//! Workload `bonnie`: what Bonnie++ does, in its order and with its sizes, so that its published
//! figures can be compared.
//!
//! After the source of bonnie++ 2.00a (Debian 12: `bonnie++.cpp`, `bon_io.cpp`, `bon_file.cpp`)
//! run with `-f` (no tests byte by byte).
//!
//! The same:
//! - **Order and caches.** One file is written, rewritten, read and sought in, then files are made,
//!   asked for and deleted twice. Nothing is dropped from the caches between: how much of the file
//!   they hold decides what reads and seeks cost, so a figure holds for one ratio of `bytes` to
//!   memory. Bonnie++ wants twice the memory.
//! - **Calls.** A call for each block (write; read, then write in place; read), on one open file.
//!   fsync at the end of each of these phases, seeks included, is inside the time.
//! - **Seeks.** Random blocks of the whole file are read, and those whose random number divides by
//!   ten are written back, dirty. Three seconds pass before, in which the card
//!   is idle.
//! - **Files.** Empty files, so many in each directory and one more (it counts from 0 and compares
//!   with `>`; the last directory gets fewer). Names are ten hexadecimal digits and up to twelve
//!   random letters and digits behind them, or before them where the order is random.
//!   In order: a directory is listed, and each entry is asked for or deleted as it comes. At
//!   random: by path, in an order drawn for each phase. `sync` after creating and after deleting
//!   is inside the time (versions before 1.91 have none: `sync=0`); making the directories is not,
//!   deleting them is.
//!
//! Different:
//! - **Seekers.** Bonnie++ has five threads that seek; a trial has one, which tells the system
//!   early what it will read (POSIX_FADV_WILLNEED), so that five reads are on their way at any
//!   time, as with five threads. With one at a time the processor and the host would be idle while
//!   the card reads, and the card while they work: up to a tenth fewer seeks.
//! - **Content.** Its blocks are counters, almost empty for a compressor. Ours compress as `level`
//!   says, and a rewritten block has new bytes instead of one that changed.
//! - **sync** is syncfs of the filesystem under test: there is no other.
//! - **Repeats.** Bonnie++ is called again by its user; here `discarded` runs go before the one
//!   that counts, on the same filesystem, each after a sync and a pause of `pause_s` seconds.
//! - **Units** are MB/s of 10^6 bytes; bonnie++ prints units of 1,024 bytes a second.

use crate::content::generated;
use crate::listing::Listing;
use crate::names::join;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::collections::VecDeque;
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(70, &Bonnie)];

/// Bonnie++ with its order and sizes, without the tests byte by byte.
pub struct Bonnie;

/// The file of the tests in blocks.
const FILE: &str = "bonnie.file";

/// Directory of the files.
const DIR: &str = "bonnie";

/// One seek in so many writes (`UpdateSeek`).
const UPDATE_SEEK: u64 = 10;

/// One more than the largest random number of a seek (`RAND_MAX`).
const TICKETS: u64 = 1 << 31;

/// Time before the seeks (`sleep(3)` in `seek_test`).
const SETTLE_NS: u64 = 3_000_000_000;

/// Most random letters of a name (`RandExtraLen`).
const EXTRA: u64 = 12;

/// What they are (`rand_chars`).
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

const PARAMETERS: [Parameter; 10] = [
    Parameter {
        name: "bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the file; Bonnie++ wants twice the memory, the Pandora study had 1 GiB",
        min: MIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "block",
        default: 8 * KIB,
        unit: "B",
        meaning: "bytes of a read or write call",
        min: 256,
        max: MIB,
    },
    Parameter {
        name: "seeks",
        default: 8_000,
        unit: "operations",
        meaning: "random seeks, one of ten of which writes",
        min: 1,
        max: 100_000_000,
    },
    Parameter {
        name: "seekers",
        default: 5,
        unit: "reads",
        meaning: "reads on their way at any time while seeking; Bonnie++ has 5 threads",
        min: 1,
        max: 64,
    },
    Parameter {
        name: "files",
        default: 10_240,
        unit: "files",
        meaning: "empty files; the Pandora study had 102,400, with dirsync 10,240",
        min: 1,
        max: 10_000_000,
    },
    Parameter {
        name: "directories",
        default: 10,
        unit: "directories",
        meaning: "directories that they are in; the Pandora study had 100, with dirsync 10",
        min: 1,
        max: 99_999,
    },
    Parameter {
        name: "level",
        default: 6,
        unit: "level",
        meaning: "how well the file compresses: 0 not at all, 6 about ten-fold",
        min: 0,
        max: 6,
    },
    Parameter {
        name: "discarded",
        default: 0,
        unit: "runs",
        meaning: "whole runs before the one that counts, thrown away; the Pandora study had 1",
        min: 0,
        max: 10,
    },
    Parameter {
        name: "pause_s",
        default: 0,
        unit: "s",
        meaning: "pause after a sync before each run; the Pandora study had 60",
        min: 0,
        max: 3_600,
    },
    Parameter {
        name: "sync",
        default: 1,
        unit: "",
        meaning: "1: files that are made or deleted are synced in the time; 0: not, as before \
                  Bonnie++ 1.91",
        min: 0,
        max: 1,
    },
];

/// The phase of the runs that do not count.
const DISCARDED: &str = "discarded_runs";
/// The phase before the run that counts.
const PAUSE: &str = "pause";

const PHASES: [PhaseDef; 15] = [
    PhaseDef::warm(
        DISCARDED,
        "all that follows, in runs that do not count (discarded), each after a sync and the pause",
        true,
        &[],
    ),
    PhaseDef::warm(
        PAUSE,
        "sync and wait, before the run that counts",
        true,
        &[],
    ),
    PhaseDef::warm(
        "sequential_write",
        "write the file in blocks, then fsync (MB/s)",
        true,
        &MetricDef::one("sequential_write", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::warm(
        "rewrite",
        "read each block and write it back, then fsync (MB/s of the file)",
        true,
        &MetricDef::one("rewrite", Rule::Throughput),
    ),
    PhaseDef::warm(
        "sequential_read",
        "read the file in blocks (MB/s)",
        false,
        &MetricDef::one("sequential_read", Rule::Throughput),
    ),
    PhaseDef::warm("settle", "three seconds without work", false, &[]),
    PhaseDef::warm(
        "random_seeks",
        "read blocks at random, write one of ten back, fsync at the end (operations/s)",
        true,
        &MetricDef::one("random_seeks", Rule::OperationRate),
    ),
    PhaseDef::warm(
        "sequential_directories",
        "delete the file, make the directories",
        true,
        &[],
    ),
    PhaseDef::warm(
        "sequential_create",
        "create empty files in alphabetical order, then syncfs (files/s)",
        true,
        &MetricDef::one("sequential_create", Rule::FileRate),
    ),
    PhaseDef::warm(
        "sequential_stat",
        "list each directory and stat each file as it comes (files/s)",
        false,
        &MetricDef::one("sequential_stat", Rule::FileRate),
    ),
    PhaseDef::warm(
        "sequential_delete",
        "list each directory and delete each file as it comes, then syncfs (files/s)",
        true,
        &MetricDef::one("sequential_delete", Rule::FileRate),
    ),
    PhaseDef::warm(
        "random_directories",
        "make the directories again",
        true,
        &[],
    ),
    PhaseDef::warm(
        "random_create",
        "create empty files with names in no order, then syncfs (files/s)",
        true,
        &MetricDef::one("random_create", Rule::FileRate),
    ),
    PhaseDef::warm(
        "random_stat",
        "stat every file, in random order (files/s)",
        false,
        &MetricDef::one("random_stat", Rule::FileRate),
    ),
    PhaseDef::warm(
        "random_delete",
        "delete every file, in another random order, then syncfs (files/s)",
        true,
        &MetricDef::one("random_delete", Rule::FileRate),
    ),
];

/// A stream of operations.
type Ops = Box<dyn Iterator<Item = Op>>;

impl Workload for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie"
    }

    fn title(&self) -> &'static str {
        "Bonnie++: one file in blocks and seeks, many empty files"
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

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        let (bytes, block) = (value("bytes"), value("block"));
        let (files, directories) = (value("files"), value("directories"));
        if !bytes.is_multiple_of(block) {
            return Some(format!("bytes = {bytes} is no multiple of block = {block}"));
        }
        (files < directories)
            .then(|| format!("files = {files} is less than directories = {directories}"))
    }
}

impl Operations for Bonnie {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Ops, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let large = Large {
            bytes: value("bytes"),
            block: value("block"),
            level: value("level") as u8,
        };
        let small = Small {
            files: value("files"),
            directories: value("directories"),
            random: phase.starts_with("random"),
            sync: value("sync") == 1,
            seed,
        };
        Ok(match phase {
            DISCARDED => self.discarded(spec, value("discarded"), seed)?,
            PAUSE => pause(value("pause_s")),
            "sequential_write" => large.write(Rng::named(seed, phase)),
            "rewrite" => large.rewrite(Rng::named(seed, phase)),
            "sequential_read" => large.read(),
            "settle" => Box::new(std::iter::once(Op::Pause {
                nanoseconds: SETTLE_NS,
            })),
            "random_seeks" => {
                large.seeks(value("seeks"), value("seekers"), Rng::named(seed, phase))
            }
            "sequential_directories" => {
                let unlink = Op::Unlink { path: FILE.into() };
                Box::new(std::iter::once(unlink).chain(small.make_directories()))
            }
            "random_directories" => small.make_directories(),
            "sequential_create" | "random_create" => small.create(),
            "sequential_stat" | "random_stat" => small.stat(),
            "sequential_delete" | "random_delete" => small.delete(),
            other => return Err(unknown_phase(self, other)),
        })
    }
}

impl Bonnie {
    /// So many whole runs; each leaves nothing behind.
    fn discarded(&self, spec: &WorkloadSpec, runs: u64, seed: u64) -> Result<Ops, WorkloadError> {
        let mut all: Vec<Ops> = Vec::new();
        for run in 0..runs {
            // Names and contents are not those of the run that counts.
            let seed = seed.wrapping_add((run + 1) << 32);
            for phase in PHASES.iter().filter(|phase| phase.name != DISCARDED) {
                all.push(self.operations(phase.name, spec, None, seed)?);
            }
        }
        Ok(Box::new(all.into_iter().flatten()))
    }
}

/// A sync and a pause of so many seconds, if there is to be one.
fn pause(seconds: u64) -> Ops {
    let nanoseconds = seconds * 1_000_000_000;
    let ops = [Op::SyncFs, Op::Pause { nanoseconds }];
    Box::new(ops.into_iter().filter(move |_| seconds > 0))
}

/// The file of the tests in blocks.
#[derive(Clone, Copy)]
struct Large {
    bytes: u64,
    block: u64,
    level: u8,
}

impl Large {
    fn write(self, mut rng: Rng) -> Ops {
        self.then_close(Op::WriteAt {
            path: FILE.into(),
            offset: 0,
            len: self.bytes,
            block: self.block,
            direct: false,
            content: generated(self.level, rng.next_u64()),
        })
    }

    fn rewrite(self, mut rng: Rng) -> Ops {
        self.then_close(Op::Rewrite {
            path: FILE.into(),
            offset: 0,
            len: self.bytes,
            block: self.block,
            content: generated(self.level, rng.next_u64()),
        })
    }

    fn read(self) -> Ops {
        self.then_close(Op::ReadAt {
            path: FILE.into(),
            offset: 0,
            len: self.bytes,
            block: self.block,
            direct: false,
        })
    }

    /// `count` seeks, `seekers` of which are on their way at any time.
    fn seeks(self, count: u64, seekers: u64, mut rng: Rng) -> Ops {
        let mut ahead = VecDeque::new();
        let mut left = count;
        let each = move |_| {
            let mut ops = Vec::new();
            while (ahead.len() as u64) < seekers && left > 0 {
                left -= 1;
                let seek = self.seek(&mut rng);
                ops.extend(announce(&seek).filter(|_| seekers > 1));
                ahead.push_back(seek);
            }
            ops.extend(ahead.pop_front());
            ops
        };
        Box::new((0..count).flat_map(each).chain([close()]))
    }

    fn seek(self, rng: &mut Rng) -> Op {
        let ticket = rng.below(TICKETS);
        let (path, offset) = (
            FILE.to_owned(),
            ticket % (self.bytes / self.block) * self.block,
        );
        let (len, block) = (self.block, self.block);
        match ticket.is_multiple_of(UPDATE_SEEK) {
            true => Op::Rewrite {
                path,
                offset,
                len,
                block,
                content: generated(self.level, rng.next_u64()),
            },
            false => Op::ReadAt {
                path,
                offset,
                len,
                block,
                direct: false,
            },
        }
    }

    fn then_close(self, op: Op) -> Ops {
        Box::new([op, close()].into_iter())
    }
}

/// Tells the system of a seek.
fn announce(seek: &Op) -> Option<Op> {
    match seek {
        Op::ReadAt {
            path, offset, len, ..
        }
        | Op::Rewrite {
            path, offset, len, ..
        } => Some(Op::WillRead {
            path: path.clone(),
            offset: *offset,
            len: *len,
        }),
        _ => None,
    }
}

fn close() -> Op {
    Op::SyncClose { path: FILE.into() }
}

/// The empty files, with names in order or not.
#[derive(Clone, Copy)]
struct Small {
    files: u64,
    directories: u64,
    random: bool,
    sync: bool,
    seed: u64,
}

impl Small {
    /// Paths of the directories; none where all files lie in one.
    fn subdirectories(self) -> impl DoubleEndedIterator<Item = String> {
        let count = match self.directories {
            1 => 0,
            many => many,
        };
        (0..count).map(subdirectory)
    }

    /// Directories that files are in.
    fn parents(self) -> Vec<String> {
        match self.directories {
            1 => vec![DIR.to_owned()],
            _ => self.subdirectories().collect(),
        }
    }

    /// Paths of the files in the order in which they are made.
    fn paths(self) -> impl Iterator<Item = String> {
        let each = self.files / self.directories + 1;
        let stream = match self.random {
            true => "random_names",
            false => "sequential_names",
        };
        let mut rng = Rng::named(self.seed, stream);
        (0..self.files).map(move |at| {
            let extra: String = (0..rng.below(EXTRA + 1))
                .map(|_| char::from(LETTERS[rng.below(LETTERS.len() as u64) as usize]))
                .collect();
            let name = match self.random {
                true => format!("{extra}{at:010x}"),
                false => format!("{at:010x}{extra}"),
            };
            match self.directories {
                1 => join(DIR, &name),
                _ => join(&subdirectory(at / each), &name),
            }
        })
    }

    /// The paths in an order of `phase`'s own.
    fn shuffled(self, phase: &'static str) -> Vec<String> {
        let mut paths: Vec<String> = self.paths().collect();
        Rng::named(self.seed, phase).shuffle(&mut paths);
        paths
    }

    fn make_directories(self) -> Ops {
        let all = std::iter::once(DIR.to_owned()).chain(self.subdirectories());
        Box::new(all.map(|path| Op::Mkdir { path, mode: None }))
    }

    fn create(self) -> Ops {
        let create = |path| Op::Create {
            path,
            size: 0,
            content: generated(0, 0),
            mode: None,
            pieces: None,
        };
        Box::new(self.paths().map(create).chain(self.synced()))
    }

    fn synced(self) -> Option<Op> {
        self.sync.then_some(Op::SyncFs)
    }

    fn stat(self) -> Ops {
        match self.random {
            true => Box::new(
                self.shuffled("random_stat")
                    .into_iter()
                    .map(|path| Op::Stat { path }),
            ),
            false => Box::new(self.parents().into_iter().map(|path| Op::StatAll { path })),
        }
    }

    fn delete(self) -> Ops {
        let rmdir = |path| Op::Rmdir { path };
        let top = std::iter::once(rmdir(DIR.to_owned())).chain(self.synced());
        if self.random {
            let unlink = |path| Op::Unlink { path };
            let files = self.shuffled("random_delete").into_iter().map(unlink);
            return Box::new(files.chain(self.subdirectories().map(rmdir)).chain(top));
        }
        let clear = move |path: String| {
            let below = (path != DIR).then(|| rmdir(path.clone()));
            std::iter::once(Op::Clear { path }).chain(below)
        };
        Box::new(self.parents().into_iter().flat_map(clear).chain(top))
    }
}

fn subdirectory(at: u64) -> String {
    join(DIR, &format!("{at:05}"))
}

#[cfg(test)]
#[path = "../bonnie_tests.rs"]
mod tests;
