//! Workload `boot`: what a root filesystem takes of the time to start, as Bootlin (2023) and ELC
//! 2015 asked: its module is loaded with all that it depends on, then it is mounted, and the first
//! MiB is read.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{OnDevice, Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(240, &Boot)];

/// The part of a boot until the root filesystem is mounted and read.
pub struct Boot;

const LOAD: &str = "module_load";
/// Phase that writes the tree; every workload whose tree a read-only image can hold has it.
const FILL: &str = "tree_write";
const FIRST: &str = "first_read";

/// Level of what is written: zstd makes less than half of it (`workloads/content.toml`).
const LEVEL: u8 = 3;

const PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the files that are on it when it is mounted",
        min: 2 * MIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "file_bytes",
        default: MIB,
        unit: "B",
        meaning: "bytes of each of these files",
        min: 4 * KIB,
        max: GIB,
    },
];

const PHASES: [PhaseDef; 3] = [
    PhaseDef::warm(
        LOAD,
        "load the filesystem's module and all that it depends on, which are in memory (s); the \
         kernel has none of them built in",
        false,
        &MetricDef::one(LOAD, Rule::Seconds),
    ),
    PhaseDef::warm(FILL, "write the files, then syncfs", true, &[]),
    PhaseDef::cold(
        FIRST,
        "read the first MiB of the first file after the mount, cold (s); boot is the time to load \
         the modules and to mount together (s)",
        &[
            MetricDef {
                metric: "boot",
                rule: Rule::Together(&[LOAD, "mount"], &Rule::Seconds),
            },
            MetricDef {
                metric: FIRST,
                rule: Rule::Seconds,
            },
        ],
    ),
];

impl Workload for Boot {
    fn name(&self) -> &'static str {
        "boot"
    }

    fn title(&self) -> &'static str {
        "a root filesystem's part of starting: its module, mount, first MiB"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, phase: &PhaseDef) -> Phase<'_> {
        match phase.name {
            LOAD => Phase::OnDevice(OnDevice::Modules),
            _ => Phase::Operations(self),
        }
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        (value("file_bytes") > value("bytes"))
            .then(|| "file_bytes is larger than bytes: no file fits".to_owned())
    }
}

impl Operations for Boot {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let (bytes, size) = (
            parameter(self, spec, "bytes"),
            parameter(self, spec, "file_bytes"),
        );
        let name = |at: u64| format!("f{at:06}");
        match phase {
            FILL => {
                let mut rng = Rng::named(seed, "boot contents");
                let files = (0..bytes / size).map(move |at| Op::Create {
                    path: name(at),
                    size,
                    content: generated(LEVEL, rng.next_u64()),
                    mode: None,
                    pieces: None,
                });
                Ok(Box::new(files.chain([Op::SyncFs])))
            }
            FIRST => {
                let first = Op::ReadAt {
                    path: name(0),
                    offset: 0,
                    len: size.min(MIB),
                    block: MIB,
                    direct: false,
                };
                Ok(Box::new([first].into_iter()))
            }
            other => Err(unknown_phase(self, other)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metrics;
    use whichfs_trial::{Counts, DeviceFigures, LatencyHistogram, PhaseFigures};
    use whichfs_units::Nanos;

    fn spec(bytes: u64) -> WorkloadSpec {
        WorkloadSpec {
            name: "boot".into(),
            parameters: [("bytes".to_owned(), bytes)].into(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    fn phase(name: &str, ms: u64) -> PhaseFigures {
        PhaseFigures {
            phase: name.into(),
            begin: Nanos(5),
            end: Nanos(5 + ms * 1_000_000),
            counts: Counts::default(),
            latency: LatencyHistogram::default(),
            device: DeviceFigures::default(),
            cpu: None,
            second_card: None,
        }
    }

    #[test]
    fn it_is_filled_with_whole_files_and_the_first_is_read() {
        let of = |phase, bytes| -> Vec<Op> {
            let ops = Boot.operations(phase, &spec(bytes), None, 1).unwrap();
            ops.collect()
        };
        assert_eq!(of(FILL, 5 * MIB / 2).len(), 3, "two files and syncfs");
        assert!(matches!(
            &of(FIRST, 2 * MIB)[..],
            [Op::ReadAt { len: MIB, .. }]
        ));
        assert!(Boot.operations(LOAD, &spec(2 * MIB), None, 1).is_err());
        let mut wrong = spec(2 * MIB);
        wrong.parameters.insert("file_bytes".into(), 3 * MIB);
        assert!(Boot.check(&wrong).is_err());
    }

    #[test]
    fn boot_is_the_module_and_the_mount_and_nothing_without_one_of_them() {
        let boot = |figures: &[PhaseFigures]| {
            let found = metrics(&Boot, figures, &[]);
            let mut found = found.into_iter().filter(|metric| metric.metric == "boot");
            found.next().map(|metric| metric.value)
        };
        let all = [phase(LOAD, 30), phase("mount", 20), phase(FIRST, 7)];
        assert!((boot(&all).unwrap() - 0.05).abs() < 1e-12);
        assert_eq!(boot(&all[1..]), None, "on a device no module is loaded");
        assert_eq!(boot(&[all[0].clone(), all[2].clone()]), None);
    }
}
