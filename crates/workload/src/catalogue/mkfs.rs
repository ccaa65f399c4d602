//! Workload `mkfs`: what a filesystem costs before anything is stored, as ELC 2015 asked: the bytes
//! that it takes for itself, the time to make it, to check it and to mount it, and the threads that
//! the kernel starts for it.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{OnDevice, Operations, Phase, Programs};
use crate::program::{Program, ProgramFigures, shell};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Metric, Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(210, &Mkfs)];

/// The cost of an empty filesystem: space, time and kernel threads.
pub struct Mkfs;

const BEFORE: &str = "threads_before";
const EMPTY: &str = "empty";
const FILL: &str = "fill";
const CHECK: &str = "fsck_clean";
const FIRST: &str = "first_read";

/// Level of what is written: it hardly compresses.
const LEVEL: u8 = 0;

const PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "bytes",
        default: 600 * MIB,
        unit: "B",
        meaning: "bytes of the files that are on it when it is checked and mounted",
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

const PHASES: [PhaseDef; 5] = [
    PhaseDef::warm(
        BEFORE,
        "list the kernel's threads, made and not yet mounted",
        false,
        &[],
    ),
    PhaseDef::warm(
        EMPTY,
        "the new filesystem, mounted: the threads that the kernel has started for it, without \
         those of its worker pools (kernel_threads: threads), and the bytes of the partition that \
         are not free any more (mkfs_used: B)",
        false,
        &[
            MetricDef {
                metric: "kernel_threads",
                rule: Rule::Told {
                    unit: "threads",
                    lower_is_better: true,
                },
            },
            MetricDef {
                metric: "mkfs_used",
                rule: Rule::Space,
            },
        ],
    )
    .then_space(),
    PhaseDef::warm(
        FILL,
        "write the files, then syncfs (MB/s)",
        true,
        &MetricDef::one(FILL, Rule::Throughput),
    ),
    PhaseDef::warm(
        CHECK,
        "its own checker on the filesystem, which was unmounted cleanly, with empty caches; nilfs2 \
         has none (s)",
        false,
        &MetricDef::one(CHECK, Rule::Seconds),
    ),
    PhaseDef::cold(
        FIRST,
        "read the first MiB of the first file after the mount, cold (s); the mount is timed apart",
        &MetricDef::one(FIRST, Rule::Seconds),
    ),
];

/// Lists the kernel's threads: children of the second process. Workers of the kernel's pools come
/// and go with the load and are left out; the rescuer of a work queue (kworker/R-NAME) stays and
/// belongs to it. The first argument is the file that keeps the list, the second what to do.
const THREADS: &str = r#"
list() {
    for dir in /proc/[0-9]*; do
        name= parent=
        while read -r key value; do
            case $key in
                Name:) name=$value ;;
                PPid:) parent=$value; break ;;
            esac
        done < "$dir/status" 2> /dev/null
        case $parent/$name in
            2/kworker/R-*) echo "${dir#/proc/} $name" ;;
            2/kworker*) ;;
            2/*) echo "${dir#/proc/} $name" ;;
        esac
    done
}
case $2 in
    keep) list > "$1" ;;
    new) list | grep -v -x -F -f "$1" | grep -c . || true ;;
esac
"#;
/// Where the list is kept between the two phases: not on the card.
const LIST: &str = "/tmp/whichfs-threads";

impl Workload for Mkfs {
    fn name(&self) -> &'static str {
        "mkfs"
    }

    fn title(&self) -> &'static str {
        "the cost of having it: space, time of mkfs, fsck and mount, kernel threads"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, phase: &PhaseDef) -> Phase<'_> {
        match phase.name {
            BEFORE => Phase::OnDevice(OnDevice::Program(self)),
            EMPTY => Phase::Program(self),
            CHECK => Phase::OnDevice(OnDevice::Check),
            _ => Phase::Operations(self),
        }
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        (value("file_bytes") > value("bytes"))
            .then(|| "file_bytes is larger than bytes: no file fits".to_owned())
    }
}

impl Programs for Mkfs {
    fn program(
        &self,
        phase: &str,
        _spec: &WorkloadSpec,
        _seed: u64,
    ) -> Result<Program, WorkloadError> {
        let threads = |what: &str, told| {
            let arguments = [LIST, what].map(str::to_owned);
            shell(THREADS, arguments.into_iter(), told)
        };
        match phase {
            BEFORE => Ok(threads("keep", false)),
            EMPTY => Ok(threads("new", true)),
            other => Err(unknown_phase(self, other)),
        }
    }

    fn writes(&self, _phase: &str, _spec: &WorkloadSpec) -> Option<u64> {
        // They count threads; what mkfs itself writes goes by the partition.
        Some(0)
    }

    fn told(&self, phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        if phase != EMPTY {
            return Ok(None);
        }
        let threads: u32 = output
            .trim()
            .parse()
            .map_err(|_| format!("the count of threads is '{}'", output.trim()))?;
        Ok(Some(ProgramFigures {
            metrics: vec![Metric {
                metric: "kernel_threads".to_owned(),
                value: f64::from(threads),
                unit: "threads".to_owned(),
                lower_is_better: true,
            }],
            ..ProgramFigures::default()
        }))
    }
}

impl Operations for Mkfs {
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
        match phase {
            FILL => {
                let mut rng = Rng::named(seed, "mkfs contents");
                let files = (0..bytes / size).map(move |at| Op::Create {
                    path: name(at),
                    size,
                    content: generated(LEVEL, rng.next_u64()),
                    mode: None,
                    pieces: None,
                });
                Ok(Box::new(files.chain([Op::SyncFs])))
            }
            FIRST => Ok(Box::new([read_first(size)].into_iter())),
            other => Err(unknown_phase(self, other)),
        }
    }
}

fn name(at: u64) -> String {
    format!("f{at:06}")
}

fn read_first(size: u64) -> Op {
    Op::ReadAt {
        path: name(0),
        offset: 0,
        len: size.min(MIB),
        block: MIB,
        direct: false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(bytes: u64) -> WorkloadSpec {
        WorkloadSpec {
            name: "mkfs".into(),
            parameters: [("bytes".to_owned(), bytes)].into(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    #[test]
    fn it_is_filled_with_whole_files_and_the_first_is_read() {
        let ops: Vec<Op> = Mkfs
            .operations(FILL, &spec(5 * MIB / 2), None, 1)
            .unwrap()
            .collect();
        assert_eq!(ops.len(), 3, "two files and syncfs: {ops:?}");
        let first: Vec<Op> = Mkfs
            .operations(FIRST, &spec(2 * MIB), None, 1)
            .unwrap()
            .collect();
        assert!(matches!(&first[..], [Op::ReadAt { len: MIB, .. }]));
        let mut wrong = spec(2 * MIB);
        wrong.parameters.insert("file_bytes".into(), 3 * MIB);
        assert!(Mkfs.check(&wrong).is_err());
    }

    #[test]
    fn threads_are_counted_as_the_script_tells_them() {
        let told = Mkfs.told(EMPTY, "2\n").unwrap().unwrap();
        assert_eq!(told.metrics[0].value, 2.0);
        assert!(Mkfs.told(EMPTY, "two").is_err());
        let base = std::env::temp_dir();
        let list = base.join(format!("whichfs-threads-{}", std::process::id()));
        let run = |what: &str| {
            let words = [list.to_string_lossy().into_owned(), what.to_owned()];
            let program = shell(THREADS, words.into_iter(), true);
            let output = crate::program::run_for_test(&program, &base);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run("keep");
        let count = run("new");
        // Without the list each thread is a new one.
        std::fs::write(&list, "").unwrap();
        let all = run("new");
        std::fs::remove_file(&list).unwrap();
        let number = |text: String| text.trim().parse::<u32>().unwrap();
        assert!(number(count) <= number(all));
    }
}
