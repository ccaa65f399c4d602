//! Workloads `onefile` and `manyfiles`: the two that were cut by hand with dm-flakey for a talk at
//! ELC 2015: one file of 30 MB is written, and many files of 1 MB.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(50, &OneFile), (60, &ManyFiles)];

/// Level of what is written: it hardly compresses.
const LEVEL: u8 = 0;

/// One large file that a power cut may hit.
pub struct OneFile;

/// Files of equal size, written one after the other, that a power cut may hit.
pub struct ManyFiles;

const BYTES: Parameter = Parameter {
    name: "bytes",
    default: 30 * MIB,
    unit: "B",
    meaning: "bytes written in all",
    min: 1,
    max: 4 * GIB - 1,
};

const MANY: [Parameter; 2] = [
    BYTES,
    Parameter {
        name: "file_bytes",
        default: MIB,
        unit: "B",
        meaning: "bytes of each file; the last one may have less",
        min: 4 * KIB,
        max: 4 * GIB - 1,
    },
];

/// A phase that writes and yields its rate under its own name.
const fn phase(
    name: &'static str,
    meaning: &'static str,
    metrics: &'static [MetricDef],
) -> [PhaseDef; 1] {
    [PhaseDef {
        name,
        meaning,
        cold: false,
        writes: true,
        space_after: true,
        metrics,
    }]
}

const ONE_PHASE: [PhaseDef; 1] = phase(
    "onefile_write",
    "write the file, then syncfs (MB/s)",
    &[MetricDef {
        metric: "onefile_write",
        rule: Rule::Throughput,
    }],
);

const MANY_PHASE: [PhaseDef; 1] = phase(
    "manyfiles_write",
    "write the files one after the other, then syncfs (MB/s)",
    &[MetricDef {
        metric: "manyfiles_write",
        rule: Rule::Throughput,
    }],
);

impl Workload for OneFile {
    fn name(&self) -> &'static str {
        "onefile"
    }

    fn title(&self) -> &'static str {
        "one large file is written"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[BYTES]
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &ONE_PHASE
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }
}

impl Operations for OneFile {
    fn operations(
        &self,
        _phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let size = parameter(self, spec, "bytes");
        let ops = [create("onefile.bin".to_owned(), size, seed), Op::SyncFs];
        Ok(Box::new(ops.into_iter()))
    }
}

impl Workload for ManyFiles {
    fn name(&self) -> &'static str {
        "manyfiles"
    }

    fn title(&self) -> &'static str {
        "many files of one size are written"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &MANY
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &MANY_PHASE
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }
}

impl Operations for ManyFiles {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        const DIR: &str = "many";
        let [bytes, each] = ["bytes", "file_bytes"].map(|name| parameter(self, spec, name));
        let mut rng = Rng::named(seed, phase);
        let begin = Op::Mkdir {
            path: DIR.to_owned(),
            mode: None,
        };
        let files = (0..bytes.div_ceil(each)).map(move |at| {
            let size = each.min(bytes - at * each);
            create(format!("{DIR}/file-{at:05}.bin"), size, rng.next_u64())
        });
        Ok(Box::new(
            std::iter::once(begin).chain(files).chain([Op::SyncFs]),
        ))
    }
}

fn create(path: String, size: u64, seed: u64) -> Op {
    Op::Create {
        path,
        size,
        content: generated(LEVEL, seed),
        mode: None,
        pieces: None,
    }
}
