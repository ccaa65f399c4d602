//! Workload `exchange`: a card that carries videos and photos between machines.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::Op;
use whichfs_trial::WorkloadSpec;
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(30, &Exchange)];

/// Level of media: compressed already.
const LEVEL: u8 = 0;

/// A card that carries large and small media files between machines.
pub struct Exchange;

const PARAMETERS: [Parameter; 6] = [
    Parameter {
        name: "videos",
        default: 4,
        unit: "files",
        meaning: "large files",
        min: 1,
        max: 10_000,
    },
    Parameter {
        name: "video_bytes",
        default: 16 * MIB,
        unit: "B",
        meaning: "bytes of each large file",
        min: 1,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "photos",
        default: 36,
        unit: "files",
        meaning: "photos; 36 have about 128 MB",
        min: 1,
        max: 100_000,
    },
    Parameter {
        name: "photo_min",
        default: 2_000 * KIB,
        unit: "B",
        meaning: "smallest photo",
        min: 1,
        max: GIB,
    },
    Parameter {
        name: "photo_max",
        default: 5_000 * KIB,
        unit: "B",
        meaning: "largest photo",
        min: 1,
        max: GIB,
    },
    Parameter {
        name: "delete_permille",
        default: 500,
        unit: "permille",
        meaning: "share of the photos that delete removes, at random",
        min: 1,
        max: 1000,
    },
];

/// A phase whose one metric has its name.
const fn phase(
    name: &'static str,
    meaning: &'static str,
    metrics: &'static [MetricDef],
) -> PhaseDef {
    PhaseDef {
        name,
        meaning,
        cold: false,
        writes: true,
        space_after: false,
        metrics,
    }
}

const PHASES: [PhaseDef; 6] = [
    phase(
        "video_write",
        "write the large files (MB/s without the sync)",
        &MetricDef::one("video_write_unsynced", Rule::Throughput),
    ),
    phase(
        "video_sync",
        "syncfs (MB/s of the large files with it)",
        &MetricDef::one(
            "video_write",
            Rule::Together(&["video_write", "video_sync"], &Rule::Throughput),
        ),
    ),
    PhaseDef {
        space_after: true,
        ..phase(
            "photo_write",
            "write the photos, then syncfs (MB/s)",
            &[MetricDef {
                metric: "photo_write",
                rule: Rule::Throughput,
            }],
        )
    },
    PhaseDef {
        cold: true,
        writes: false,
        ..phase(
            "video_read",
            "list and read the large files, cold (MB/s)",
            &[MetricDef {
                metric: "video_read",
                rule: Rule::Throughput,
            }],
        )
    },
    PhaseDef {
        writes: false,
        ..phase(
            "photo_read",
            "list and read the photos, not read before (MB/s)",
            &[MetricDef {
                metric: "photo_read",
                rule: Rule::Throughput,
            }],
        )
    },
    phase(
        "delete",
        "delete part of the photos, then syncfs (files/s)",
        &[MetricDef {
            metric: "delete",
            rule: Rule::FileRate,
        }],
    ),
];

impl Workload for Exchange {
    fn name(&self) -> &'static str {
        "exchange"
    }

    fn title(&self) -> &'static str {
        "exchange of media: a few videos, many photos"
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
        let [smallest, largest] =
            ["photo_min", "photo_max"].map(|name| parameter(self, spec, name));
        (smallest > largest)
            .then(|| format!("photo_min = {smallest} is above photo_max = {largest}"))
    }
}

impl Operations for Exchange {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let (smallest, largest) = (value("photo_min"), value("photo_max"));
        let mut rng = Rng::named(seed, phase);
        let ops = match phase {
            "video_write" => {
                let sizes = vec![value("video_bytes"); value("videos") as usize];
                write("video", "clip", "mp4", &sizes, &mut rng)
            }
            "video_sync" => vec![Op::SyncFs],
            "photo_write" => {
                let sizes: Vec<u64> = (0..value("photos"))
                    .map(|_| smallest + rng.below(largest - smallest + 1))
                    .collect();
                let all = write("photo", "img", "jpg", &sizes, &mut rng);
                all.into_iter().chain([Op::SyncFs]).collect()
            }
            "video_read" => read("video", "clip", "mp4", value("videos")),
            "photo_read" => read("photo", "img", "jpg", value("photos")),
            "delete" => {
                let mut all: Vec<u64> = (0..value("photos")).collect();
                rng.shuffle(&mut all);
                let count = (value("photos") * value("delete_permille")).div_ceil(1000);
                all.truncate(count as usize);
                all.sort_unstable();
                let unlink = |&at: &u64| Op::Unlink {
                    path: path("photo", "img", "jpg", at),
                };
                all.iter().map(unlink).chain([Op::SyncFs]).collect()
            }
            other => return Err(unknown_phase(self, other)),
        };
        Ok(Box::new(ops.into_iter()))
    }
}

fn path(dir: &str, stem: &str, extension: &str, at: u64) -> String {
    format!("{dir}/{stem}_{at:04}.{extension}")
}

/// Makes the directory and its files.
fn write(dir: &str, stem: &str, extension: &str, sizes: &[u64], rng: &mut Rng) -> Vec<Op> {
    let mut ops = vec![Op::Mkdir {
        path: dir.to_owned(),
        mode: None,
    }];
    ops.extend(sizes.iter().enumerate().map(|(at, &size)| Op::Create {
        path: path(dir, stem, extension, at as u64),
        size,
        content: generated(LEVEL, rng.next_u64()),
        mode: None,
        pieces: None,
    }));
    ops
}

fn read(dir: &str, stem: &str, extension: &str, count: u64) -> Vec<Op> {
    let list = Op::ReadDir {
        path: dir.to_owned(),
    };
    let files = (0..count).map(|at| Op::Read {
        path: path(dir, stem, extension, at),
    });
    std::iter::once(list).chain(files).collect()
}
