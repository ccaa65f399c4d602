//! Workload `fio-parallel`: the real fio with several jobs at once, or with one job that keeps
//! several requests in flight.
//!
//! One job makes all files, so that they lie alike whatever the number of jobs. In the other phases
//! each job reads and writes an equal share of them, which no other job touches: what jobs wait for
//! is the filesystem and the card, not each other's files. All jobs together move `io_bytes`.

use super::fio::{figures, global, program, told};
use crate::fio_output;
use crate::phase::{Phase, Programs};
use crate::program::{Program, ProgramFigures};
use crate::workload::{MetricDef, Parameter, PhaseDef, Workload, WorkloadError, parameter};
use std::fmt::Write as _;
use whichfs_trial::WorkloadSpec;
use whichfs_units::{GIB, KIB, MIB};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(175, &FioParallel)];

/// fio with several jobs at once.
pub struct FioParallel;

const PARAMETERS: [Parameter; 6] = [
    Parameter {
        name: "bytes",
        default: 256 * MIB,
        unit: "B",
        meaning: "size of all files together",
        min: 64 * KIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "files",
        default: 16,
        unit: "files",
        meaning: "files of equal size; each job has the same number of them",
        min: 1,
        max: 10_000,
    },
    Parameter {
        name: "io_bytes",
        default: 16 * MIB,
        unit: "B",
        meaning: "read or written in each phase by all jobs together",
        min: 64 * KIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "block",
        default: 4 * KIB,
        unit: "B",
        meaning: "size of a read or write; at most a file",
        min: 4 * KIB,
        max: 64 * MIB,
    },
    Parameter {
        name: "jobs",
        default: 1,
        unit: "jobs",
        meaning: "threads that read and write at once",
        min: 1,
        max: 64,
    },
    Parameter {
        name: "depth",
        default: 1,
        unit: "requests",
        meaning: "direct I/O in flight of each job (libaio)",
        min: 1,
        max: 256,
    },
];

const PHASES: [PhaseDef; 5] = [
    phase(
        "fio_parallel_make",
        "one job writes the files, then fsync",
        &[],
    ),
    phase(
        "fio_parallel_read",
        "blocks in random order, direct",
        figures!("fio_parallel_read"),
    ),
    phase(
        "fio_parallel_write",
        "blocks overwritten in random order, direct",
        figures!("fio_parallel_write"),
    ),
    phase(
        "fio_parallel_mixed_direct",
        "half read and half overwritten in random order, direct",
        figures!(
            "fio_parallel_mixed_direct_read",
            "fio_parallel_mixed_direct_write"
        ),
    ),
    phase(
        "fio_parallel_mixed",
        "half read and half overwritten in random order, buffered, then fsync; the depth changes \
         nothing here",
        figures!("fio_parallel_mixed_read", "fio_parallel_mixed_write"),
    ),
];

/// A phase; all but the first find empty caches.
const fn phase(
    name: &'static str,
    meaning: &'static str,
    metrics: &'static [MetricDef],
) -> PhaseDef {
    PhaseDef {
        name,
        meaning,
        cold: !metrics.is_empty(),
        writes: true,
        space_after: false,
        metrics,
    }
}

/// The direction of `phase`, as fio calls it.
fn direction(phase: &str) -> &'static str {
    match phase {
        "fio_parallel_make" => "write",
        "fio_parallel_read" => "randread",
        "fio_parallel_write" => "randwrite",
        _ => "randrw",
    }
}

impl FioParallel {
    /// The job file of `phase`.
    fn job(&self, phase: &str, spec: &WorkloadSpec, seed: u64) -> String {
        let value = |name| parameter(self, spec, name);
        let (files, block) = (value("files"), value("block"));
        let file_bytes = value("bytes") / files / block * block;
        let rw = direction(phase);
        let makes = rw == "write";
        let jobs = if makes { 1 } else { value("jobs") };
        let each = files / jobs;
        let mut job = global(seed);
        // fallocate would give the first phase its blocks beforehand, and is not there in every
        // filesystem.
        let _ = write!(
            job,
            "filesize={file_bytes}\nfallocate=none\nsize={}\nbs={block}\nthread\n\
             group_reporting\nrw={rw}\n",
            each * file_bytes
        );
        match makes {
            true => job.push_str("file_service_type=sequential\n"),
            false => {
                let io_bytes = (value("io_bytes") / jobs).max(block);
                let _ = writeln!(job, "file_service_type=random\nio_size={io_bytes}");
            }
        }
        match makes || phase == "fio_parallel_mixed" {
            true => job.push_str("ioengine=psync\nend_fsync=1\n"),
            false => {
                let depth = value("depth");
                let _ = writeln!(job, "ioengine=libaio\niodepth={depth}\ndirect=1");
            }
        }
        for number in 0..jobs {
            let names = number * each..(number + 1) * each;
            let names: Vec<String> = names.map(|file| format!("parallel.{file}")).collect();
            let _ = writeln!(
                job,
                "[{phase}{number}]\nrandseed={}\nfilename={}",
                seed.wrapping_add(number) % (1 << 31),
                names.join(":")
            );
        }
        job
    }
}

impl Workload for FioParallel {
    fn name(&self) -> &'static str {
        "fio-parallel"
    }

    fn title(&self) -> &'static str {
        "the real fio: several jobs at once, or several requests in flight of one job"
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
            "what several jobs gain from several cores is not measurable in the lab, which has \
             one CPU: there the queue depth of one job is varied",
        )
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let [bytes, files, block, jobs] =
            ["bytes", "files", "block", "jobs"].map(|name| parameter(self, spec, name));
        if files % jobs != 0 {
            return Some(format!(
                "files = {files} are no equal shares of jobs = {jobs}: take a multiple"
            ));
        }
        (bytes / files < block).then(|| {
            format!(
                "bytes = {bytes} in files = {files} are less for each than block = {block}: fewer \
                 files, or smaller blocks"
            )
        })
    }
}

impl Programs for FioParallel {
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
        Some(match direction(phase) {
            "write" => value("bytes"),
            "randread" => 0,
            "randrw" => value("io_bytes") / 2,
            _ => value("io_bytes"),
        })
    }

    fn told(&self, phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        let jobs = fio_output::jobs(output)?;
        let mut told = fio_output::done(&jobs);
        let both = |job: &fio_output::Job| match direction(phase) {
            "write" => Vec::new(),
            "randrw" => [("read", &job.read), ("write", &job.write)]
                .map(|(way, of)| fio_output::figures(&format!("{phase}_{way}"), of))
                .concat(),
            "randread" => fio_output::figures(phase, &job.read),
            _ => fio_output::figures(phase, &job.write),
        };
        told.metrics.extend(jobs.iter().flat_map(both));
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check_metrics;
    use crate::fio_output::tests::document;
    use std::collections::BTreeSet;

    fn spec(parameters: &[(&str, u64)]) -> WorkloadSpec {
        let each = parameters.iter();
        WorkloadSpec {
            name: "fio-parallel".into(),
            parameters: each
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    fn job(phase: &str, parameters: &[(&str, u64)]) -> String {
        FioParallel
            .program(phase, &spec(parameters), 7)
            .unwrap()
            .stdin
    }

    fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines
            .filter(|(k, _)| *k == key)
            .map(|(_, value)| value)
            .collect()
    }

    #[test]
    fn jobs_share_files_and_bytes_evenly_and_no_file_twice() {
        let made = job("fio_parallel_make", &[("jobs", 4)]);
        let all: BTreeSet<&str> = values(&made, "filename")[0].split(':').collect();
        assert_eq!(all.len(), 16);
        for jobs in [1, 2, 4, 8, 16] {
            let text = job("fio_parallel_write", &[("jobs", jobs)]);
            let files: Vec<&str> = values(&text, "filename")
                .into_iter()
                .flat_map(|names| names.split(':'))
                .collect();
            assert_eq!(files.len(), 16, "each file once: {text}");
            assert_eq!(files.into_iter().collect::<BTreeSet<_>>(), all);
            let io: u64 = values(&text, "io_size")[0].parse().unwrap();
            assert_eq!(io * jobs, 16 * MIB);
            assert_eq!(values(&text, "iodepth"), ["1"]);
        }
        // Its own random places for each job.
        let seeds = job("fio_parallel_read", &[("jobs", 2)]);
        assert_eq!(values(&seeds, "randseed"), ["7", "7", "8"]);
    }

    #[test]
    fn the_depth_is_of_direct_phases() {
        let deep = job("fio_parallel_read", &[("depth", 16)]);
        assert_eq!(values(&deep, "iodepth"), ["16"]);
        let buffered = job("fio_parallel_mixed", &[("depth", 16)]);
        assert!(values(&buffered, "iodepth").is_empty() && buffered.contains("end_fsync=1"));
    }

    #[test]
    fn shares_that_are_not_equal_are_refused() {
        let refused = |parameters: &[(&str, u64)]| {
            let checked = FioParallel.check(&spec(parameters));
            checked.unwrap_err().to_string()
        };
        assert!(refused(&[("jobs", 3)]).contains("take a multiple"));
        assert!(refused(&[("bytes", MIB), ("block", MIB)]).contains("smaller blocks"));
        FioParallel
            .check(&spec(&[("jobs", 16), ("depth", 16)]))
            .unwrap();
    }

    #[test]
    fn every_figure_that_is_told_is_defined() {
        for phase in &PHASES {
            let output = match direction(phase.name) {
                "randrw" => document(&[(phase.name, 0, 5, 5)]),
                "randread" => document(&[(phase.name, 0, 5, 0)]),
                _ => document(&[(phase.name, 0, 0, 5)]),
            };
            let told = FioParallel.told(phase.name, &output).unwrap().unwrap();
            let names: Vec<&str> = told.metrics.iter().map(|m| m.metric.as_str()).collect();
            let defined: Vec<&str> = phase.metrics.iter().map(|def| def.metric).collect();
            assert_eq!(names, defined);
            check_metrics(&FioParallel, names).unwrap();
        }
    }
}
