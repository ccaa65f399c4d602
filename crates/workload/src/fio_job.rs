//! Workload `fio-job`: the real fio with a job file of the user.
//!
//! The file is read as far as is needed to refuse what cannot work on a filesystem in the lab;
//! everything else is for fio to judge.

use crate::fio;
use crate::fio_output;
use crate::listing::Listing;
use crate::program::{Program, Told, no_operations};
use crate::workload::{Error, MetricDef, Parameter, PhaseDef, Rule, Workload, unknown_phase};
use std::collections::BTreeSet;
use whichfs_trial::{Op, WorkloadSpec};

/// The workload.
pub struct FioJob;

/// Its only phase, and its first metric.
const PHASE: &str = "fio_job";

const PHASES: [PhaseDef; 1] = [PhaseDef {
    name: PHASE,
    meaning: "all jobs of the file; also yields fio_JOB_read and fio_JOB_write, each with \
              _iops, _p50, _p99 and _p999",
    cold: false,
    writes: true,
    space_after: false,
    metrics: &[
        MetricDef {
            metric: PHASE,
            rule: Rule::Told {
                unit: "MB/s",
                lower_is_better: false,
            },
        },
        MetricDef {
            metric: "fio_job_iops",
            rule: Rule::Told {
                unit: "operations/s",
                lower_is_better: false,
            },
        },
        MetricDef {
            metric: "fio_job_p99",
            rule: Rule::Percentile99,
        },
    ],
}];

/// Engines of fio that do their I/O elsewhere than in files of a directory.
const ELSEWHERE: [&str; 17] = [
    "cpuio",
    "dev-dax",
    "guasi",
    "http",
    "libhdfs",
    "libiscsi",
    "libpmem",
    "libzbc",
    "nbd",
    "net",
    "netsplice",
    "nfs",
    "null",
    "rados",
    "rbd",
    "rdma",
    "sg",
];

/// A line of a job file that says something.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Section(&'a str),
    Option(&'a str, &'a str),
}

/// The lines of `job` that are neither empty nor comments, with their numbers from 1.
fn lines(job: &str) -> impl Iterator<Item = (usize, Line<'_>)> {
    job.lines().enumerate().filter_map(|(at, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            return None;
        }
        let section = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let said = match (section, line.split_once('=')) {
            (Some((name, _)), _) => Line::Section(name.trim()),
            (None, Some((key, value))) => Line::Option(key.trim(), value.trim()),
            (None, None) => match line.split_once(char::is_whitespace) {
                Some((key, value)) => Line::Option(key, value.trim()),
                None => Line::Option(line, ""),
            },
        };
        Some((at + 1, said))
    })
}

/// What in `job` cannot work, with its line and the remedy.
fn refuse(job: &str) -> Option<String> {
    let mut section = None;
    let mut jobs = 0;
    for (number, line) in lines(job) {
        match line {
            Line::Section(name) => {
                jobs += usize::from(name != "global");
                section = Some(name);
            }
            Line::Option(key, value) => {
                let why = match section {
                    None => Some("it stands before the first section: begin with [global]".into()),
                    Some(_) => refuse_option(key, value),
                };
                if let Some(why) = why {
                    let equals = if value.is_empty() { "" } else { "=" };
                    return Some(format!("line {number}: {key}{equals}{value}: {why}"));
                }
            }
        }
    }
    (jobs == 0).then(|| "no job in it: add a section such as [random-write]".to_owned())
}

/// Why the option cannot work, and the remedy.
fn refuse_option(key: &str, value: &str) -> Option<String> {
    let text = match key {
        "include" => "the job must be whole: put the text of that file here",
        "filename" if value.split(':').any(leaves) => {
            "files are made on the card under test: give a name without / or leave it out"
        }
        "opendir" | "read_iolog" | "merge_blktrace_file" => {
            "the card under test is empty: let fio make its files (nrfiles, filesize)"
        }
        "exec_prerun" | "exec_postrun" => {
            "it runs a command outside of the card under test: leave it out"
        }
        "clocksource" if value == "cpu" => {
            "the lab's time is virtual, the CPU's counter is not: leave it out"
        }
        "gtod_cpu" | "cpus_allowed" | "cpumask" | "numa_cpu_nodes" => {
            "the lab's guest has one CPU: leave it out"
        }
        "ioengine" if ELSEWHERE.contains(&value) => {
            "it does no I/O on a filesystem: psync, libaio, mmap and others do"
        }
        "rw" | "readwrite" if value.contains("trim") => {
            "fio trims block devices only: use read, write, randread, randwrite or randrw"
        }
        "write_bw_log" | "write_lat_log" | "write_iops_log" | "write_hist_log" | "write_iolog" => {
            "logs would go to the card under test: leave it out; latencies are kept as histograms"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether a file called `name` would be outside the directory under test.
fn leaves(name: &str) -> bool {
    name.starts_with('/') || name.split('/').any(|part| part == "..")
}

/// The job that is run: without the directory, which is the mounted card's.
fn for_the_card(job: &str, seed: u64) -> String {
    let elsewhere: BTreeSet<usize> = lines(job)
        .filter(|(_, line)| matches!(line, Line::Option("directory", _)))
        .map(|(number, _)| number)
        .collect();
    let mut text = fio::global(seed);
    for (at, line) in job.lines().enumerate() {
        if !elsewhere.contains(&(at + 1)) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// What fio `said` of `job`, after the line of the job that it names.
pub fn fio_complaint(job: &str, said: &str) -> String {
    let quoted = said.lines().find_map(|line| {
        let bracketed = line
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'));
        let parsed = line.split_once("failed parsing ").map(|(_, rest)| rest);
        bracketed.map(|(inside, _)| inside).or(parsed)
    });
    let wanted = quoted.map(|text| match text.split_once('=') {
        Some((key, value)) => Line::Option(key.trim(), value.trim()),
        None => Line::Option(text.trim(), ""),
    });
    let number = wanted.and_then(|wanted| lines(job).find(|(_, line)| *line == wanted));
    let said: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let said = said.join("; ");
    match number {
        Some((number, _)) => format!("line {number}: {said}"),
        None => said,
    }
}

/// The beginning of the names of a job's metrics: `fio_` and letters, digits and underscores.
fn metric_name(jobname: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let first: String = jobname.chars().map(plain).collect();
    let mut name = format!("fio_{first}");
    let mut number = 1;
    // Jobs of the same name: several of one section (numjobs), each with figures of its own.
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("fio_{first}_{number}");
    }
    name
}

impl Workload for FioJob {
    fn name(&self) -> &'static str {
        "fio-job"
    }

    fn title(&self) -> &'static str {
        "the real fio with a job file of yours (choose --fio FILE)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn input_flag(&self) -> Option<&'static str> {
        Some("a job file of fio: --fio FILE")
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        spec.input.as_deref().and_then(refuse)
    }

    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Option<Program>, Error> {
        self.check(spec)?;
        if phase != PHASE {
            return Err(unknown_phase(self, phase));
        }
        let job = spec.input.as_deref().unwrap_or_default();
        Ok(Some(fio::program(for_the_card(job, seed))))
    }

    fn told(&self, _phase: &str, output: &str) -> Result<Option<Told>, String> {
        let jobs = fio_output::jobs(output)?;
        let mut told = fio_output::done(&jobs);
        told.metrics = fio_output::overall(PHASE, &jobs);
        // A job called "job" does not take the names of the whole.
        let mut taken = BTreeSet::from([PHASE.to_owned()]);
        for job in &jobs {
            let name = metric_name(&job.jobname, &mut taken);
            let of = |direction, what| fio_output::figures(&format!("{name}_{what}"), direction);
            told.metrics.extend(of(&job.read, "read"));
            told.metrics.extend(of(&job.write, "write"));
        }
        Ok(Some(told))
    }

    fn operations(
        &self,
        phase: &str,
        _spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        _seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, Error> {
        Err(no_operations(self, phase))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fio_output::tests::document;

    const JOB: &str = "; a comment\n[global]\ndirectory=/mnt/sd\nsize=1m\n\n[w]\nrw=write\n\
                       fsync_on_close\n";

    fn spec(job: Option<&str>) -> WorkloadSpec {
        WorkloadSpec {
            name: "fio-job".into(),
            parameters: std::collections::BTreeMap::new(),
            tree: None,
            unix: true,
            script: None,
            input: job.map(str::to_owned),
        }
    }

    #[test]
    fn the_directory_is_ours_and_all_else_is_kept() {
        let program = FioJob.program(PHASE, &spec(Some(JOB)), 3).unwrap().unwrap();
        assert!(program.stdin.starts_with("[global]\nrandseed=3\n"));
        assert!(!program.stdin.contains("directory"));
        assert!(program.stdin.ends_with("[w]\nrw=write\nfsync_on_close\n"));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_line() {
        for (line, word) in [
            ("filename=/dev/mmcblk0", "on the card under test"),
            ("filename=a:../b", "on the card under test"),
            ("include x.fio", "must be whole"),
            ("exec_prerun=touch /tmp/x", "outside of the card"),
            ("clocksource=cpu", "virtual"),
            ("cpus_allowed = 0-3", "one CPU"),
            ("ioengine=net", "no I/O on a filesystem"),
            ("rw=randtrim", "block devices"),
            ("write_lat_log=x", "logs would go to"),
        ] {
            let error = FioJob
                .check(&spec(Some(&format!("{JOB}{line}\n"))))
                .unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains("line 9: ") && error.contains(word),
                "{error}"
            );
        }
        FioJob.check(&spec(Some(JOB))).unwrap();
        for (job, word) in [
            (Some("size=1m\n[a]\n"), "line 1: size=1m"),
            (Some("[global]\nsize=1m\n"), "no job"),
            (Some(""), "no job"),
            (None, "--fio FILE"),
        ] {
            let error = FioJob.check(&spec(job)).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn what_fio_says_is_told_with_the_line() {
        let job = format!("{JOB}bsx = 4\nrw=foo\n");
        let bad = "Bad option <bsx=4>\nDid you mean bs?\nfio: job w dropped\n";
        let expected = "line 9: Bad option <bsx=4>; Did you mean bs?; fio: job w dropped";
        assert_eq!(fio_complaint(&job, bad), expected);
        let bad = fio_complaint(&job, "fio: failed parsing rw=foo\n");
        assert_eq!(bad, "line 10: fio: failed parsing rw=foo");
        assert_eq!(fio_complaint(&job, "a: no size\n"), "a: no size");
    }

    #[test]
    fn each_job_has_figures_of_its_own() {
        let text = document(&[("job", 0, 0, 9), ("Read/1", 0, 9, 0), ("Read/1", 0, 9, 0)]);
        let told = FioJob.told(PHASE, &text).unwrap().unwrap();
        let has = |name: &str| told.metrics.iter().filter(|m| m.metric == name).count();
        for name in [
            "fio_job",
            "fio_job_iops",
            "fio_job_2_write_p99",
            "fio_read_1_read",
            "fio_read_1_2_read",
        ] {
            assert_eq!(has(name), 1, "{name}: {:?}", told.metrics);
        }
    }
}
