//! Workload `logger`: a data logger appends short lines to a few files, makes them
//! durable now and then, rotates the files and deletes the oldest.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::collections::BTreeMap;
use whichfs_trial::Op;
use whichfs_trial::WorkloadSpec;
use whichfs_units::{GIB, KIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(20, &Logger)];

/// Level of log lines: text with much repetition.
const LEVEL: u8 = 5;

/// A data logger with a few rotated files.
pub struct Logger;

const PARAMETERS: [Parameter; 7] = [
    Parameter {
        name: "records",
        default: 4_000,
        unit: "records",
        meaning: "lines appended in all",
        min: 1,
        max: 100_000_000,
    },
    Parameter {
        name: "record_min",
        default: 100,
        unit: "B",
        meaning: "shortest line",
        min: 1,
        max: 64 * KIB,
    },
    Parameter {
        name: "record_max",
        default: 400,
        unit: "B",
        meaning: "longest line",
        min: 1,
        max: 64 * KIB,
    },
    Parameter {
        name: "logs",
        default: 3,
        unit: "files",
        meaning: "logs that are written in turn, at random",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "sync_every",
        default: 20,
        unit: "records",
        meaning: "fdatasync after every so many lines of a log",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "rotate_bytes",
        default: 64 * KIB,
        unit: "B",
        meaning: "a log that would grow beyond this is rotated first",
        min: 512,
        max: GIB,
    },
    Parameter {
        name: "keep",
        default: 4,
        unit: "files",
        meaning: "rotated files kept of each log; the oldest is deleted",
        min: 1,
        max: 1_000,
    },
];

const PHASES: [PhaseDef; 2] = [
    PhaseDef {
        name: "log_append",
        meaning: "append lines, fdatasync now and then, rotate (operations/s, ms)",
        cold: false,
        writes: true,
        space_after: true,
        metrics: &[
            MetricDef {
                metric: "log_append",
                rule: Rule::OperationRate,
            },
            MetricDef {
                metric: "log_append_p99",
                rule: Rule::Percentile99,
            },
        ],
    },
    PhaseDef {
        name: "log_read",
        meaning: "list the logs and read them all, cold (MB/s)",
        cold: true,
        writes: false,
        space_after: false,
        metrics: &[MetricDef {
            metric: "log_read",
            rule: Rule::Throughput,
        }],
    },
];

impl Workload for Logger {
    fn name(&self) -> &'static str {
        "logger"
    }

    fn title(&self) -> &'static str {
        "data logger: short lines, durable now and then, rotated"
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
        let [shortest, longest] =
            ["record_min", "record_max"].map(|name| parameter(self, spec, name));
        (shortest > longest)
            .then(|| format!("record_min = {shortest} is above record_max = {longest}"))
    }
}

impl Operations for Logger {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let mut records = Records::new(self, spec, seed);
        match phase {
            "log_append" => {
                let begin = Op::Mkdir {
                    path: DIR.to_owned(),
                    mode: None,
                };
                let all = std::iter::once(begin)
                    .chain(records.flatten())
                    .chain([Op::SyncFs]);
                Ok(Box::new(all))
            }
            "log_read" => {
                records.by_ref().for_each(drop);
                Ok(Box::new(records.logs.read().into_iter()))
            }
            other => Err(unknown_phase(self, other)),
        }
    }
}

/// The operations of each record, made one record at a time: a guest has no room for all.
struct Records {
    rng: Rng,
    logs: Logs,
    left: u64,
    shortest: u64,
    longest: u64,
    sync_every: u64,
}

impl Records {
    /// The records that a legal `spec` describes.
    fn new(workload: &Logger, spec: &WorkloadSpec, seed: u64) -> Records {
        let value = |name| parameter(workload, spec, name);
        Records {
            rng: Rng::named(seed, "logger"),
            logs: Logs::new(value("logs"), value("keep"), value("rotate_bytes")),
            left: value("records"),
            shortest: value("record_min"),
            longest: value("record_max"),
            sync_every: value("sync_every"),
        }
    }
}

impl Iterator for Records {
    type Item = Vec<Op>;

    fn next(&mut self) -> Option<Vec<Op>> {
        self.left = self.left.checked_sub(1)?;
        let log = self.rng.below(self.logs.logs.len() as u64);
        let len = self.shortest + self.rng.below(self.longest - self.shortest + 1);
        let seed = self.rng.next_u64();
        Some(self.logs.append(log, len, self.sync_every, seed))
    }
}

/// Directory of the logs.
const DIR: &str = "log";

/// What is on the filesystem.
struct Logs {
    keep: u64,
    rotate_bytes: u64,
    /// Of each log: bytes in the current file, lines since the last sync, rotated files.
    logs: BTreeMap<u64, (u64, u64, u64)>,
}

impl Logs {
    fn new(count: u64, keep: u64, rotate_bytes: u64) -> Logs {
        Logs {
            keep,
            rotate_bytes,
            logs: (0..count).map(|log| (log, (0, 0, 0))).collect(),
        }
    }

    /// The current file of `log` (age 0) or a rotated one.
    fn path(log: u64, age: u64) -> String {
        match age {
            0 => format!("{DIR}/sensor-{log}.log"),
            _ => format!("{DIR}/sensor-{log}.{age}.log"),
        }
    }

    /// Appends `len` bytes to `log`, which is rotated first if they do not fit.
    fn append(&mut self, log: u64, len: u64, sync_every: u64, seed: u64) -> Vec<Op> {
        let mut ops = Vec::new();
        let Some((bytes, unsynced, rotated)) = self.logs.get_mut(&log) else {
            unreachable!("logs are numbered from 0");
        };
        if *bytes > 0 && *bytes + len > self.rotate_bytes {
            if *rotated == self.keep {
                let path = Self::path(log, self.keep);
                ops.push(Op::Unlink { path });
                *rotated -= 1;
            }
            for age in (0..=*rotated).rev() {
                ops.push(Op::Rename {
                    from: Self::path(log, age),
                    to: Self::path(log, age + 1),
                });
            }
            *rotated += 1;
            *bytes = 0;
        }
        *bytes += len;
        *unsynced += 1;
        let sync = *unsynced == sync_every;
        if sync {
            *unsynced = 0;
        }
        ops.push(Op::Append {
            path: Self::path(log, 0),
            len,
            content: generated(LEVEL, seed),
            sync,
        });
        ops
    }

    fn read(&self) -> Vec<Op> {
        let mut ops = vec![Op::ReadDir {
            path: DIR.to_owned(),
        }];
        for (&log, &(bytes, _, rotated)) in &self.logs {
            let first = u64::from(bytes == 0);
            ops.extend((first..=rotated).map(|age| Op::Read {
                path: Self::path(log, age),
            }));
        }
        ops
    }
}
