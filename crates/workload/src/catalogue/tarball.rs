//! Workload `tarball`: one large file that does not compress is written, then read cold.
//!
//! After LinuxPlanet (2010), which copied the tarball of a kernel tree onto a card and read it back
//! with empty caches; [`crate::source_tree`] is the other half, the tree itself. Calls are those of
//! cp (128 KiB); syncfs at the end of writing is inside the time.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(130, &Tarball)];

/// Level of a compressed archive.
const LEVEL: u8 = 0;

const FILE: &str = "linux.tar.xz";

/// One large file that does not compress.
pub struct Tarball;

const PARAMETERS: [Parameter; 1] = [Parameter {
    name: "bytes",
    default: 64 * MIB,
    unit: "B",
    meaning: "bytes of the file; Linux 6.12 has 141 MiB as linux-6.12.tar.xz",
    min: 1,
    max: 4 * GIB - 1,
}];

const PHASES: [PhaseDef; 2] = [
    PhaseDef::warm(
        "tarball_write",
        "write the file, then syncfs (MB/s)",
        true,
        &MetricDef::one("tarball_write", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::cold(
        "tarball_read",
        "read it, cold (MB/s)",
        &MetricDef::one("tarball_read", Rule::Throughput),
    ),
];

impl Workload for Tarball {
    fn name(&self) -> &'static str {
        "tarball"
    }

    fn title(&self) -> &'static str {
        "one large file that does not compress, written and read cold"
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

impl Operations for Tarball {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let path = FILE.to_owned();
        let create = || Op::Create {
            path: FILE.to_owned(),
            size: parameter(self, spec, "bytes"),
            content: generated(LEVEL, Rng::named(seed, "tarball").next_u64()),
            mode: None,
            pieces: None,
        };
        match phase {
            "tarball_write" => Ok(Box::new([create(), Op::SyncFs].into_iter())),
            "tarball_read" => Ok(Box::new(std::iter::once(Op::Read { path }))),
            other => Err(unknown_phase(self, other)),
        }
    }
}
