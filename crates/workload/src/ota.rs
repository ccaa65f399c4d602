//! Workload `ota`: an update over the air. A device runs from one file (its system), of which it
//! reads pieces now and then, while the image of the next system arrives and is written over the
//! other slot; then it is made durable and verified.
//!
//! The system is read past the page cache, as pages that are needed for the first time are; the image
//! is written through it, as updaters do. What counts is how long a read takes while the image
//! is written, beside how long it takes when nothing is.

use crate::content::generated;
use crate::listing::Listing;
use crate::workload::{
    Error, MetricDef, Parameter, PhaseDef, Rule, Workload, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// The workload.
pub struct Ota;

/// Level of images: compressed already.
const LEVEL: u8 = 0;
/// Bytes that arrive at a time.
const BLOCK: u64 = MIB;
/// Bytes of a read: what a fault of an application reads ahead.
const READ: u64 = 64 * KIB;

const SYSTEM: &str = "system.img";
const SLOT: &str = "slot.img";

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "image_bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the image",
        min: MIB,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "system_bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the system that runs",
        min: MIB,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "bytes_per_second",
        default: 8_000_000,
        unit: "B/s",
        meaning: "how fast the image arrives",
        min: 10_000,
        max: 1_000_000_000,
    },
    Parameter {
        name: "reads",
        default: 4,
        unit: "operations",
        meaning: "reads of the system for each MiB of the image",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "sync_every",
        default: 16,
        unit: "MiB",
        meaning: "the slot is made durable (fsync) after so much",
        min: 1,
        max: 4_096,
    },
];

const PHASES: [PhaseDef; 4] = [
    PhaseDef::warm(
        "ota_install",
        "write the system and the old image in the other slot, then syncfs (MB/s)",
        true,
        &MetricDef::one("ota_install", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::cold(
        "ota_calm",
        "read 64 KiB pieces of the system, past the page cache, at the same times as during the \
         update (half and 99 % of the reads take no longer than so many ms)",
        &[
            MetricDef {
                metric: "ota_calm_read",
                rule: Rule::Median,
            },
            MetricDef {
                metric: "ota_calm_read_p99",
                rule: Rule::Percentile99,
            },
        ],
    ),
    PhaseDef::warm(
        "ota_update",
        "write the image over the slot as it arrives, 1 MiB at a time, with fsync in between and at \
         the end (s), while the same pieces of the system are read (ms)",
        true,
        &[
            MetricDef {
                metric: "ota_update",
                rule: Rule::Seconds,
            },
            MetricDef {
                metric: "ota_read",
                rule: Rule::Median,
            },
            MetricDef {
                metric: "ota_read_p99",
                rule: Rule::Percentile99,
            },
            MetricDef {
                metric: "ota_read_longest",
                rule: Rule::Longest,
            },
        ],
    ),
    PhaseDef::cold(
        "ota_verify",
        "read the whole slot, cold (MB/s)",
        &MetricDef::one("ota_verify", Rule::Throughput),
    ),
];

impl Workload for Ota {
    fn name(&self) -> &'static str {
        "ota"
    }

    fn title(&self) -> &'static str {
        "an image is updated while the system is read"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, Error> {
        self.check(spec)?;
        let plan = Plan::of(self, spec);
        match phase {
            "ota_install" => Ok(Box::new(install(&plan, seed))),
            "ota_calm" => Ok(Box::new(plan.arrivals(seed, false))),
            "ota_update" => Ok(Box::new(plan.arrivals(seed, true))),
            "ota_verify" => Ok(Box::new([Op::Read { path: SLOT.into() }].into_iter())),
            other => Err(unknown_phase(self, other)),
        }
    }
}

/// The parameters.
#[derive(Clone, Copy)]
struct Plan {
    image: u64,
    system: u64,
    rate: u64,
    reads: u64,
    sync_every: u64,
}

impl Plan {
    fn of(workload: &Ota, spec: &WorkloadSpec) -> Plan {
        let value = |name| parameter(workload, spec, name);
        Plan {
            image: value("image_bytes"),
            system: value("system_bytes"),
            rate: value("bytes_per_second"),
            reads: value("reads"),
            sync_every: value("sync_every"),
        }
    }

    /// What happens as the image arrives: each block at its time, then the reads; without the
    /// writes if not `update`. Both forms read the same pieces.
    fn arrivals(self, seed: u64, update: bool) -> impl Iterator<Item = Op> {
        let mut contents = Rng::named(seed, "ota image");
        let mut places = Rng::named(seed, "ota reads");
        let blocks = self.image.div_ceil(BLOCK);
        let steps = (0..blocks).flat_map(move |at| {
            let offset = at * BLOCK;
            let wait = Op::WaitUntil {
                nanoseconds: due(offset, self.rate),
            };
            let write = Op::Overwrite {
                path: SLOT.into(),
                offset,
                len: BLOCK.min(self.image - offset),
                content: generated(LEVEL, contents.next_u64()),
            };
            let sync = (at + 1) % self.sync_every == 0 && at + 1 < blocks;
            let sync = sync.then(|| durable(SLOT));
            let pieces = self.system / READ;
            let reads: Vec<Op> = (0..self.reads)
                .map(|_| piece(places.below(pieces.max(1))))
                .collect();
            let writes = update.then_some(write).into_iter();
            let writes = writes.chain(sync.filter(|_| update));
            [wait].into_iter().chain(writes).chain(reads)
        });
        steps.chain(update.then(|| durable(SLOT)))
    }
}

/// When byte `offset` of the image has arrived, in nanoseconds.
fn due(offset: u64, rate: u64) -> u64 {
    let ns = u128::from(offset) * 1_000_000_000 / u128::from(rate);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn durable(path: &str) -> Op {
    Op::SyncClose { path: path.into() }
}

fn piece(at: u64) -> Op {
    Op::ReadAt {
        path: SYSTEM.into(),
        offset: at * READ,
        len: READ,
        block: READ,
        direct: true,
    }
}

fn install(plan: &Plan, seed: u64) -> impl Iterator<Item = Op> + use<> {
    let mut contents = Rng::named(seed, "ota install");
    let files = [(SYSTEM, plan.system), (SLOT, plan.image)];
    let files = files.map(|(path, size)| Op::Create {
        path: path.into(),
        size,
        content: generated(LEVEL, contents.next_u64()),
        mode: None,
    });
    files.into_iter().chain([Op::SyncFs])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ops(phase: &str, seed: u64) -> Vec<Op> {
        let given = [
            ("image_bytes", 5 * MIB / 2),
            ("sync_every", 1),
            ("reads", 2),
        ];
        let spec = WorkloadSpec {
            name: "ota".into(),
            parameters: given.map(|(name, value)| (name.to_owned(), value)).into(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        Ota.operations(phase, &spec, None, seed).unwrap().collect()
    }

    #[test]
    fn the_image_is_written_whole_and_made_durable_at_the_end() {
        let update = ops("ota_update", 1);
        let written = update.iter().map(|op| match op {
            Op::Overwrite { len, .. } => *len,
            _ => 0,
        });
        assert_eq!(written.sum::<u64>(), 5 * MIB / 2);
        let syncs = update
            .iter()
            .filter(|op| matches!(op, Op::SyncClose { .. }));
        assert_eq!(syncs.count(), 3);
        assert!(matches!(update.last(), Some(Op::SyncClose { .. })));
        let times: Vec<u64> = update
            .iter()
            .filter_map(|op| match op {
                Op::WaitUntil { nanoseconds } => Some(*nanoseconds),
                _ => None,
            })
            .collect();
        assert_eq!(times, [0, 131_072_000, 262_144_000], "8 MB/s");
    }

    #[test]
    fn the_same_pieces_are_read_with_and_without_the_update() {
        let reads = |phase, seed| {
            let mut all = ops(phase, seed);
            all.retain(|op| matches!(op, Op::ReadAt { .. }));
            all
        };
        assert_eq!(reads("ota_calm", 1), reads("ota_update", 1));
        assert_eq!(reads("ota_calm", 1).len(), 6);
        assert_ne!(reads("ota_calm", 1), reads("ota_calm", 2));
        assert!(!ops("ota_calm", 1).iter().any(Op::changes));
    }
}
