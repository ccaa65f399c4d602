//! Workload `fio`: the real fio with the jobs of a talk at ELC 2015 (Adeneo): 500 MB in 50 files,
//! read and written in sequence and at random, in blocks of 4 KiB and 4 MiB, buffered and direct,
//! by one thread, and by several that read and write mixed.

use crate::fio_output;
use crate::phase::{Phase, Programs};
use crate::program::{Program, ProgramFigures};
use crate::workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_trial::WorkloadSpec;
use whichfs_units::{GIB, KIB, MIB};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(170, &Fio)];

/// fio with the jobs of a talk at ELC 2015.
pub struct Fio;

const PARAMETERS: [Parameter; 7] = [
    Parameter {
        name: "bytes",
        default: 500 * MIB,
        unit: "B",
        meaning: "size of all files together",
        min: 64 * KIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "files",
        default: 50,
        unit: "files",
        meaning: "files of equal size",
        min: 1,
        max: 10_000,
    },
    Parameter {
        name: "io_bytes",
        default: 500 * MIB,
        unit: "B",
        meaning: "read or written in each phase, at most what the files hold",
        min: 64 * KIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "large_block",
        default: 4 * MIB,
        unit: "B",
        meaning: "block of the phases called 4m; at most a file",
        min: 4 * KIB,
        max: 64 * MIB,
    },
    Parameter {
        name: "threads",
        default: 4,
        unit: "threads",
        meaning: "threads of the mixed phases",
        min: 1,
        max: 64,
    },
    Parameter {
        name: "depth",
        default: 8,
        unit: "requests",
        meaning: "direct I/O in flight of each thread (libaio); 0: one at a time (psync)",
        min: 0,
        max: 256,
    },
    Parameter {
        name: "compressible",
        default: 0,
        unit: "percent",
        meaning: "how much of what is written compresses away",
        min: 0,
        max: 100,
    },
];

pub(super) const fn told(
    metric: &'static str,
    unit: &'static str,
    lower_is_better: bool,
) -> MetricDef {
    MetricDef {
        metric,
        rule: Rule::Told {
            unit,
            lower_is_better,
        },
    }
}

/// The figures of one direction, under names that begin with `$name`.
macro_rules! figures {
    ($($name:expr),*) => {
        &[$(
            told($name, "MB/s", false),
            told(concat!($name, "_iops"), "operations/s", false),
            told(concat!($name, "_p50"), "ms", true),
            told(concat!($name, "_p99"), "ms", true),
            told(concat!($name, "_p999"), "ms", true),
        )*]
    };
}
pub(super) use figures;

/// A phase that reads or writes, or does both at once.
macro_rules! phase {
    (write $name:literal, $meaning:literal) => {
        PhaseDef {
            name: $name,
            meaning: $meaning,
            cold: false,
            writes: true,
            space_after: false,
            metrics: figures!($name),
        }
    };
    (read $name:literal, $meaning:literal) => {
        PhaseDef {
            name: $name,
            meaning: $meaning,
            cold: true,
            writes: false,
            space_after: false,
            metrics: figures!($name),
        }
    };
    (mixed $name:literal, $meaning:literal) => {
        PhaseDef {
            name: $name,
            meaning: $meaning,
            cold: true,
            writes: true,
            space_after: false,
            metrics: figures!(concat!($name, "_read"), concat!($name, "_write")),
        }
    };
}

/// The first makes the files, the others use them.
const PHASES: [PhaseDef; 20] = [
    phase!(write "fio_sequential_write_4m", "write the files one after the other, then fsync"),
    phase!(read "fio_sequential_read_4m", "read them one after the other, cold"),
    phase!(write "fio_sequential_write_4k", "overwrite them in small blocks, then fsync"),
    phase!(read "fio_sequential_read_4k", "read them in small blocks, cold"),
    phase!(write "fio_random_write_4m", "overwrite blocks in random order, then fsync"),
    phase!(read "fio_random_read_4m", "read blocks in random order, cold"),
    phase!(write "fio_random_write_4k", "overwrite small blocks in random order, then fsync"),
    phase!(read "fio_random_read_4k", "read small blocks in random order, cold"),
    phase!(write "fio_sequential_write_4m_direct", "write in order past the page cache"),
    phase!(read "fio_sequential_read_4m_direct", "read in order past the page cache"),
    phase!(write "fio_sequential_write_4k_direct", "the same in small blocks"),
    phase!(read "fio_sequential_read_4k_direct", "the same in small blocks"),
    phase!(write "fio_random_write_4m_direct", "write blocks in random order, direct"),
    phase!(read "fio_random_read_4m_direct", "read blocks in random order, direct"),
    phase!(write "fio_random_write_4k_direct", "write small blocks in random order, direct"),
    phase!(read "fio_random_read_4k_direct", "read small blocks in random order, direct"),
    phase!(mixed "fio_mixed_4m", "several threads, each reads and writes at random, then fsync"),
    phase!(mixed "fio_mixed_4k", "the same in small blocks"),
    phase!(mixed "fio_mixed_4m_direct", "several threads read and write at random, direct"),
    phase!(mixed "fio_mixed_4k_direct", "the same in small blocks"),
];

/// What a phase does, as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    rw: &'static str,
    small: bool,
    direct: bool,
}

impl Shape {
    fn of(phase: &str) -> Shape {
        let has = |word: &str| phase.split('_').any(|part| part == word);
        Shape {
            rw: match (has("mixed"), has("random"), has("write")) {
                (true, _, _) => "randrw",
                (_, true, true) => "randwrite",
                (_, true, false) => "randread",
                (_, false, true) => "write",
                (_, false, false) => "read",
            },
            small: has("4k"),
            direct: has("direct"),
        }
    }
}

/// The command that reads a job from its standard input. The host's time-stamp counter, which
/// fio takes by itself, knows nothing of virtual time.
pub(crate) fn command() -> Vec<String> {
    [
        "fio",
        "--clocksource=clock_gettime",
        "--eta=never",
        "--output-format=json+",
        "-",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// fio with `job`.
pub(crate) fn program(job: String) -> Program {
    Program {
        argv: command(),
        env: BTreeMap::new(),
        stdin: job,
        told: true,
        files: Vec::new(),
        package: "fio",
    }
}

/// Lines of a `[global]` section that every job begins with: `seed` decides what is random, and
/// nothing is looked up in sysfs.
pub(crate) fn global(seed: u64) -> String {
    // fio takes the seed as an int.
    let seed = seed % (1 << 31);
    format!("[global]\nrandseed={seed}\ndisk_util=0\npercentile_list=50:99:99.9\n")
}

impl Fio {
    /// The job file of `phase`.
    fn job(&self, phase: &str, spec: &WorkloadSpec, seed: u64) -> String {
        let value = |name| parameter(self, spec, name);
        let shape = Shape::of(phase);
        let file_bytes = value("bytes") / value("files");
        let bytes = file_bytes * value("files");
        let threads = if shape.rw == "randrw" {
            value("threads")
        } else {
            1
        };
        let io_bytes = value("io_bytes").min(bytes) / threads;
        let block = if shape.small {
            4 * KIB
        } else {
            value("large_block")
        };
        let random = shape.rw.starts_with("rand");
        let order = if random { "random" } else { "sequential" };
        let mut job = global(seed);
        // Files have one name in all phases and threads. fallocate would give the first phase
        // its blocks beforehand, and is not there in every filesystem.
        let _ = write!(
            job,
            "filename_format=fio.$filenum\nnrfiles={}\nfilesize={file_bytes}\nfallocate=none\n\
             size={bytes}\nio_size={io_bytes}\nbs={block}\nfile_service_type={order}\n\
             thread\nnumjobs={threads}\ngroup_reporting\n",
            value("files"),
        );
        match (shape.direct, value("depth")) {
            (false, _) => job.push_str("ioengine=psync\nend_fsync=1\n"),
            (true, 0) => job.push_str("ioengine=psync\ndirect=1\n"),
            (true, depth) => {
                let _ = writeln!(job, "ioengine=libaio\niodepth={depth}\ndirect=1");
            }
        }
        if value("compressible") > 0 {
            let percent = value("compressible");
            let _ = writeln!(job, "buffer_compress_percentage={percent}\nrefill_buffers");
        }
        let _ = writeln!(job, "[{phase}]\nrw={}", shape.rw);
        job
    }
}

impl Workload for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn title(&self) -> &'static str {
        "the real fio: sequential and random, small and large, buffered and direct (ELC 2015)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }

    fn caveat(&self) -> Option<&'static str> {
        Some(
            "what several threads gain from several cores is not measurable in the lab, which has \
             one CPU; its threads queue requests side by side",
        )
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let [bytes, files, block] =
            ["bytes", "files", "large_block"].map(|name| parameter(self, spec, name));
        (bytes / files < block).then(|| {
            format!(
                "bytes = {bytes} in files = {files} are less for each than \
                 large_block = {block}: fewer files, or smaller blocks"
            )
        })
    }
}

impl Programs for Fio {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        Ok(program(self.job(phase, spec, seed)))
    }

    fn writes(&self, phase: &str, spec: &WorkloadSpec) -> Option<u64> {
        let value = |name| parameter(self, spec, name);
        let all = value("io_bytes").min(value("bytes"));
        // A mixed phase writes half of what it moves; the first makes the files.
        match Shape::of(phase).rw {
            "randrw" => Some(all / 2),
            _ if phase == PHASES[0].name => Some(value("bytes")),
            _ => Some(all),
        }
    }

    fn told(&self, phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        let jobs = fio_output::jobs(output)?;
        let mut told = fio_output::done(&jobs);
        for job in &jobs {
            let (read, write) = match Shape::of(phase).rw {
                "randrw" => (format!("{phase}_read"), format!("{phase}_write")),
                _ => (phase.to_owned(), phase.to_owned()),
            };
            told.metrics.extend(fio_output::figures(&read, &job.read));
            told.metrics.extend(fio_output::figures(&write, &job.write));
        }
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check_metrics;
    use crate::fio_output::tests::document;

    fn spec(parameters: &[(&str, u64)]) -> WorkloadSpec {
        WorkloadSpec {
            name: "fio".into(),
            parameters: parameters
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    fn job(phase: &str, parameters: &[(&str, u64)]) -> String {
        let program = Fio.program(phase, &spec(parameters), 7).unwrap();
        program.stdin
    }

    #[test]
    fn the_published_method_is_the_default() {
        let text = job("fio_random_write_4k_direct", &[]);
        for line in [
            "rw=randwrite",
            "bs=4096",
            "direct=1",
            "ioengine=libaio",
            "iodepth=8",
            "nrfiles=50",
            "size=524288000",
            "numjobs=1",
            "randseed=7",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
        let mixed = job("fio_mixed_4m", &[]);
        for line in ["rw=randrw", "numjobs=4", "io_size=131072000", "bs=4194304"] {
            assert!(mixed.lines().any(|l| l == line), "{line} in {mixed}");
        }
        assert!(!mixed.contains("direct=1"));
    }

    #[test]
    fn parameters_change_the_job() {
        let parameters = [("depth", 0), ("compressible", 50), ("io_bytes", MIB)];
        let text = job("fio_sequential_read_4k_direct", &parameters);
        for line in [
            "ioengine=psync",
            "buffer_compress_percentage=50",
            "io_size=1048576",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
        let small = spec(&[("bytes", 50 * MIB)]);
        let error = Fio.check(&small).unwrap_err().to_string();
        assert!(error.contains("fewer files"), "{error}");
        Fio.check(&spec(&[("bytes", 50 * MIB), ("files", 5)]))
            .unwrap();
    }

    #[test]
    fn a_seed_of_any_size_is_one_for_fio() {
        assert!(global(u64::MAX).contains("randseed=2147483647"));
    }

    #[test]
    fn every_figure_that_is_told_is_defined() {
        for phase in &PHASES {
            let output = match Shape::of(phase.name).rw {
                "randrw" => document(&[(phase.name, 0, 5, 5)]),
                rw if rw.contains("write") => document(&[(phase.name, 0, 0, 5)]),
                _ => document(&[(phase.name, 0, 5, 0)]),
            };
            let told = Fio.told(phase.name, &output).unwrap().unwrap();
            let names: Vec<&str> = told.metrics.iter().map(|m| m.metric.as_str()).collect();
            let defined: Vec<&str> = phase.metrics.iter().map(|def| def.metric).collect();
            assert_eq!(names, defined);
            check_metrics(&Fio, names).unwrap();
        }
    }
}
