//! Workload `sustained`: what a filesystem writes in the long run, on a card without room.
//!
//! Files fill the filesystem to `peak_bytes`, and are deleted down to `bytes`. As after years of
//! use, the card still holds the deleted data, unless the filesystem discards them. Then rounds of
//! the same mix of writes follow, each of `round_bytes`: overwrites of random 4 KiB with fsync,
//! records appended to a log with fdatasync, and whole files, which replace others or are
//! overwritten in place. The bytes that are kept stay the same. The figures are those of the last
//! four rounds; they are trusted if the first two and the last two of these agree and enough was
//! written before (`whichfs_decide::sustained`).
//!
//! Sizes of files are spread evenly over the octaves from `file_min` to `file_max`.

use super::aged::octave_size;
use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(155, &Sustained)];

/// Bytes of an overwrite: a page of a database.
const UPDATE: u64 = 4 * KIB;
/// Directory of the files.
const DIR: &str = "files";
/// Directory of the logs.
const LOGS: &str = "logs";
/// Full logs that are kept.
const KEPT: u64 = 4;
/// Shares are given in parts of this.
const PERMILLE: u64 = 1000;
/// Rounds of each of the two phases that are measured: one alone varies by some percent.
const PAIR: u64 = 2;
/// Rounds that are no ageing: the first one, and those that are measured.
const OWN: u64 = 1 + 2 * PAIR;

/// Rounds of one mix of writes on a filesystem that stays full.
pub struct Sustained;

const PARAMETERS: [Parameter; 14] = [
    Parameter {
        name: "bytes",
        default: 128 * MIB,
        unit: "B",
        meaning: "bytes of the files that are kept",
        min: MIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "peak_bytes",
        default: 0,
        unit: "B",
        meaning: "bytes to which files fill it before they are deleted down to bytes; 0: to bytes",
        min: 0,
        max: 1024 * GIB,
    },
    Parameter {
        name: "round_bytes",
        default: 32 * MIB,
        unit: "B",
        meaning: "bytes that each round writes into files",
        min: 64 * KIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "rounds",
        default: 8,
        unit: "rounds",
        meaning: "how often; the last four are measured",
        min: OWN,
        max: 1_000,
    },
    Parameter {
        name: "file_min",
        default: 4 * KIB,
        unit: "B",
        meaning: "smallest file",
        min: UPDATE,
        max: GIB,
    },
    Parameter {
        name: "file_max",
        default: 2 * MIB,
        unit: "B",
        meaning: "largest file",
        min: UPDATE,
        max: GIB,
    },
    Parameter {
        name: "level",
        default: 0,
        unit: "level",
        meaning: "how well content compresses: a level of workloads/content.toml; 0 does not",
        min: 0,
        max: 6,
    },
    Parameter {
        name: "update_permille",
        default: 0,
        unit: "permille",
        meaning: "share of what is written that overwrites random 4 KiB, each followed by fsync",
        min: 0,
        max: PERMILLE,
    },
    Parameter {
        name: "append_permille",
        default: 0,
        unit: "permille",
        meaning: "share of what is written that is appended to a log, each time with fdatasync",
        min: 0,
        max: PERMILLE,
    },
    Parameter {
        name: "append_bytes",
        default: 4 * KIB,
        unit: "B",
        meaning: "bytes that are appended at a time",
        min: 16,
        max: GIB,
    },
    Parameter {
        name: "log_bytes",
        default: 64 * KIB,
        unit: "B",
        meaning: "size from which on a log is closed; four full ones are kept",
        min: 512,
        max: GIB,
    },
    Parameter {
        name: "oldest",
        default: 0,
        unit: "0 or 1",
        meaning: "1: the oldest file is replaced first; 0: any, at random",
        min: 0,
        max: 1,
    },
    Parameter {
        name: "in_place",
        default: 0,
        unit: "0 or 1",
        meaning: "1: files are overwritten; 0: a file is deleted and another one is made",
        min: 0,
        max: 1,
    },
    Parameter {
        name: "durable",
        default: 0,
        unit: "0 or 1",
        meaning: "1: each file that is made is made durable (fsync) before the next",
        min: 0,
        max: 1,
    },
];

/// The phases whose figures last.
const MEASURED: [&str; 2] = ["sustained_before", "sustained_last"];

const PHASES: [PhaseDef; 5] = [
    PhaseDef::warm(
        "sustained_fill",
        "fill the filesystem with files, syncfs, delete some, syncfs (MB/s)",
        true,
        &MetricDef::one("sustained_fill", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::warm(
        "sustained_first",
        "the first round, then syncfs (MB/s)",
        true,
        &MetricDef::one("sustained_begin", Rule::Throughput),
    ),
    PhaseDef::warm("sustained_age", "further rounds, then syncfs", true, &[]),
    PhaseDef::warm(
        "sustained_before",
        "the two rounds before the last two, then syncfs",
        true,
        &[],
    ),
    PhaseDef::warm(
        "sustained_last",
        "the last two rounds, then syncfs (MB/s)",
        true,
        &[
            MetricDef {
                metric: "sustained_write",
                rule: Rule::Throughput,
            },
            MetricDef {
                metric: "sustained_write_amplification",
                rule: Rule::Amplification(&MEASURED),
            },
            MetricDef {
                metric: "sustained_erases",
                rule: Rule::Erases(&MEASURED),
            },
        ],
    ),
];

impl Workload for Sustained {
    fn name(&self) -> &'static str {
        "sustained"
    }

    fn title(&self) -> &'static str {
        "a full filesystem that is written on and on, as its use writes it"
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
        let (smallest, largest) = (value("file_min"), value("file_max"));
        if smallest > largest {
            return Some(format!(
                "file_min = {smallest} is above file_max = {largest}"
            ));
        }
        let shares = value("update_permille") + value("append_permille");
        if shares > PERMILLE {
            return Some(format!(
                "update_permille and append_permille are {shares} together"
            ));
        }
        let bytes = value("bytes");
        (bytes < 2 * largest).then(|| format!("bytes = {bytes} does not hold two files"))
    }
}

impl Operations for Sustained {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let mut use_of = Use::new(self, spec, seed);
        let fill = use_of.fill();
        let rounds = value("rounds");
        let (skipped, done) = match phase {
            "sustained_fill" => return Ok(Box::new(fill.into_iter())),
            "sustained_first" => (0, 1),
            "sustained_age" => (1, rounds - OWN),
            "sustained_before" => (rounds - 2 * PAIR, PAIR),
            "sustained_last" => (rounds - PAIR, PAIR),
            other => return Err(unknown_phase(self, other)),
        };
        for _ in 0..skipped {
            use_of.round();
        }
        // A round at a time: a guest has no room for all.
        Ok(Box::new((0..done).flat_map(move |_| use_of.round())))
    }
}

/// A filesystem in use.
struct Use {
    rng: Rng,
    bytes: u64,
    peak_bytes: u64,
    round_bytes: u64,
    sizes: [u64; 2],
    level: u8,
    update_permille: u64,
    append_permille: u64,
    append_bytes: u64,
    log_bytes: u64,
    oldest: bool,
    in_place: bool,
    durable: bool,
    /// Number and size of each file that is there, the oldest first unless places are random.
    files: std::collections::VecDeque<(u64, u64)>,
    used: u64,
    /// Files made so far.
    made: u64,
    /// Number of the log that is written, and its bytes.
    log: (u64, u64),
}

impl Use {
    fn new(workload: &Sustained, spec: &WorkloadSpec, seed: u64) -> Use {
        let value = |name| parameter(workload, spec, name);
        Use {
            rng: Rng::named(seed, "sustained"),
            bytes: value("bytes"),
            peak_bytes: value("peak_bytes").max(value("bytes")),
            round_bytes: value("round_bytes"),
            sizes: [value("file_min"), value("file_max")],
            level: value("level") as u8,
            update_permille: value("update_permille"),
            append_permille: value("append_permille"),
            append_bytes: value("append_bytes"),
            log_bytes: value("log_bytes"),
            oldest: value("oldest") == 1,
            in_place: value("in_place") == 1,
            durable: value("durable") == 1,
            files: std::collections::VecDeque::new(),
            used: 0,
            made: 0,
            log: (0, 0),
        }
    }

    /// Makes files as long as the next one fits, then syncfs; deletes those that are too many, then
    /// syncfs. What is kept does not become less afterwards.
    fn fill(&mut self) -> Vec<Op> {
        let mkdir = |path: &str| Op::Mkdir {
            path: path.into(),
            mode: None,
        };
        let mut ops = vec![mkdir(DIR), mkdir(LOGS)];
        loop {
            let size = octave_size(&mut self.rng, self.sizes);
            if self.used + size > self.peak_bytes {
                break;
            }
            ops.push(self.make(size, false));
        }
        ops.push(Op::SyncFs);
        if self.used > self.bytes {
            self.delete_down_to(self.bytes, &mut ops);
            ops.push(Op::SyncFs);
        }
        ops
    }

    /// Deletes files until at most `bytes` are there.
    fn delete_down_to(&mut self, bytes: u64, ops: &mut Vec<Op>) {
        while self.used > bytes {
            let (number, size) = self.victim();
            ops.push(Op::Unlink { path: path(number) });
            self.used -= size;
        }
    }

    /// A round, then syncfs.
    fn round(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        let (mut written, mut updated, mut appended) = (0, 0, 0);
        while written < self.round_bytes {
            // What is behind its share comes next.
            let due = |done: u64, permille: u64| done * PERMILLE < permille * (written + 1);
            if due(updated, self.update_permille) {
                ops.push(self.update());
                (updated, written) = (updated + UPDATE, written + UPDATE);
            } else if due(appended, self.append_permille) {
                self.append(&mut ops);
                appended += self.append_bytes;
                written += self.append_bytes;
            } else {
                written += self.replace(&mut ops);
            }
        }
        ops.push(Op::SyncFs);
        ops
    }

    /// Makes a file.
    fn make(&mut self, size: u64, durable: bool) -> Op {
        let (path, content) = (path(self.made), generated(self.level, self.rng.next_u64()));
        self.files.push_back((self.made, size));
        self.used += size;
        self.made += 1;
        match durable {
            true => Op::Save {
                path,
                size,
                content,
                mode: None,
            },
            false => Op::Create {
                path,
                size,
                content,
                mode: None,
                pieces: None,
            },
        }
    }

    /// Overwrites a page of all that is there, each as likely as any other.
    fn update(&mut self) -> Op {
        let (number, pages) = loop {
            let (number, size) = self.files[self.rng.below(self.files.len() as u64) as usize];
            if self.rng.below(self.sizes[1]) < size {
                break (number, size / UPDATE);
            }
        };
        Op::Update {
            path: path(number),
            offset: self.rng.below(pages) * UPDATE,
            len: UPDATE,
            content: generated(self.level, self.rng.next_u64()),
        }
    }

    /// Appends to the log, and begins another one where it is full.
    fn append(&mut self, ops: &mut Vec<Op>) {
        let log = |number: u64| format!("{LOGS}/log-{number:07}");
        let (number, bytes) = self.log;
        ops.push(Op::Append {
            path: log(number),
            len: self.append_bytes,
            content: generated(self.level, self.rng.next_u64()),
            sync: true,
        });
        self.log.1 = bytes + self.append_bytes;
        if self.log.1 >= self.log_bytes {
            self.log = (number + 1, 0);
            if let Some(old) = number.checked_sub(KEPT) {
                ops.push(Op::Unlink { path: log(old) });
            }
        }
    }

    /// Overwrites a file, or deletes files until another one has room and makes that; bytes
    /// written.
    fn replace(&mut self, ops: &mut Vec<Op>) -> u64 {
        if self.in_place {
            let (number, len) = self.victim();
            self.files.push_back((number, len));
            ops.push(Op::Overwrite {
                path: path(number),
                offset: 0,
                len,
                content: generated(self.level, self.rng.next_u64()),
            });
            if self.durable {
                ops.push(Op::SyncClose { path: path(number) });
            }
            return len;
        }
        let size = octave_size(&mut self.rng, self.sizes);
        self.delete_down_to(self.bytes - size, ops);
        ops.push(self.make(size, self.durable));
        size
    }

    /// Takes a file out of those that are there.
    fn victim(&mut self) -> (u64, u64) {
        let at = match self.oldest {
            true => 0,
            false => self.rng.below(self.files.len() as u64) as usize,
        };
        let taken = match self.oldest {
            true => self.files.pop_front(),
            false => self.files.swap_remove_back(at),
        };
        taken.unwrap_or_else(|| unreachable!("two files fit at least"))
    }
}

fn path(number: u64) -> String {
    format!("{DIR}/file-{number:07}.bin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn use_of(parameters: &[(&str, u64)]) -> Use {
        let spec = WorkloadSpec {
            name: "sustained".into(),
            parameters: parameters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        Use::new(&Sustained, &spec, 1)
    }

    /// Bytes by operation.
    fn written(ops: &[Op]) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for op in ops {
            let (name, bytes) = match op {
                Op::Create { size, .. } | Op::Save { size, .. } => ("made", *size),
                Op::Overwrite { len, .. } => ("overwritten", *len),
                Op::Update { len, .. } => ("updated", *len),
                Op::Append { len, .. } => ("appended", *len),
                _ => continue,
            };
            *sums.entry(name).or_insert(0) += bytes;
        }
        sums
    }

    #[test]
    fn a_round_has_the_shares_that_were_asked_for() {
        let mut mixed = use_of(&[("update_permille", 250), ("append_permille", 250)]);
        mixed.fill();
        let sums = written(&mixed.round());
        let all: u64 = sums.values().sum();
        assert!((32 * MIB..35 * MIB).contains(&all), "{sums:?}");
        let share = |name| sums[name] as f64 / all as f64;
        assert!((share("updated") - 0.25).abs() < 0.03, "{sums:?}");
        assert!((share("appended") - 0.25).abs() < 0.03, "{sums:?}");
    }

    #[test]
    fn it_stays_full_and_is_not_overfull() {
        for extra in [("oldest", 1), ("in_place", 1), ("durable", 1), ("bytes", 64 * MIB)] {
            let mut full = use_of(&[extra, ("peak_bytes", 144 * MIB)]);
            let filled = full.fill();
            let made = written(&filled)["made"];
            assert!((142 * MIB..=144 * MIB).contains(&made), "{made}");
            for _ in 0..6 {
                full.round();
                assert!(
                    full.used <= full.bytes && full.used > full.bytes - 8 * MIB,
                    "{extra:?}: {}",
                    full.used
                );
            }
        }
    }

    #[test]
    fn the_oldest_go_first_if_that_is_asked_for() {
        let mut ring = use_of(&[("oldest", 1)]);
        ring.fill();
        let unlinked = |ops: &[Op]| -> Vec<String> {
            let path = |op: &Op| match op {
                Op::Unlink { path } => Some(path.clone()),
                _ => None,
            };
            ops.iter().filter_map(path).collect()
        };
        let gone = unlinked(&ring.round());
        let sorted: Vec<String> = (0..gone.len() as u64).map(path).collect();
        assert_eq!(gone, sorted);
    }

    #[test]
    fn phases_follow_one_another() {
        let spec = WorkloadSpec {
            parameters: [("update_permille".to_owned(), 500)].into(),
            ..WorkloadSpec {
                name: "sustained".into(),
                parameters: BTreeMap::new(),
                tree: None,
                unix: true,
                script: None,
                input: None,
            }
        };
        let of = |phase: &str| -> Vec<Op> {
            let ops = Sustained.operations(phase, &spec, None, 7);
            ops.map(Iterator::collect).unwrap_or_default()
        };
        let mut whole = Use::new(&Sustained, &spec, 7);
        assert_eq!(of("sustained_fill"), whole.fill());
        let rounds: Vec<Vec<Op>> = (0..8).map(|_| whole.round()).collect();
        assert_eq!(of("sustained_first"), rounds[0]);
        assert_eq!(of("sustained_age"), rounds[1..4].concat());
        assert_eq!(of("sustained_before"), rounds[4..6].concat());
        assert_eq!(of("sustained_last"), rounds[6..8].concat());
    }
}
