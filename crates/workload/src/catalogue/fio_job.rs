//! Workload `fio-job`: the real fio with a job file of the user.
//!
//! Only options that can do nothing outside of the card under test are passed on
//! (`fio_options.rs`); whether their values make sense is for fio to judge.

use super::fio;
use crate::fio_options::{Judgement, judge, refuse_section};
use crate::fio_output;
use crate::phase::{Phase, Programs};
use crate::program::{Program, ProgramFigures};
use crate::workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use whichfs_trial::WorkloadSpec;

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(250, &FioJob)];

/// fio with a job file of the user.
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

/// A line of a job file that says something.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Section(&'a str),
    Option(&'a str, &'a str),
}

/// The lines of `job` that are neither empty nor comments, with their numbers from 1. As in fio, a
/// comment may also end a line.
fn lines(job: &str) -> impl Iterator<Item = (usize, Line<'_>)> {
    job.lines().enumerate().filter_map(|(at, line)| {
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
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

/// What in `job` is refused, with its line and the remedy.
fn refuse(job: &str) -> Option<String> {
    let mut section = None;
    let mut jobs = 0;
    for (number, line) in lines(job) {
        match line {
            Line::Section(name) => {
                jobs += usize::from(name != "global");
                section = Some(name);
                if let Some(why) = refuse_section(name) {
                    return Some(format!("line {number}: [{name}]: {why}"));
                }
            }
            Line::Option(key, value) => {
                let judgement = match section {
                    None => Judgement::Refused(
                        "it stands before the first section: begin with [global]".into(),
                    ),
                    Some(_) => judge(key, value),
                };
                if let Judgement::Refused(why) = judgement {
                    let equals = if value.is_empty() { "" } else { "=" };
                    return Some(format!("line {number}: {key}{equals}{value}: {why}"));
                }
            }
        }
    }
    (jobs == 0).then(|| "no job in it: add a section such as [random-write]".to_owned())
}

/// The job that fio reads: the options of `job` that are passed on, written anew, so that fio
/// cannot read them differently from how they were judged.
fn for_the_card(job: &str, seed: u64) -> String {
    let mut text = fio::global(seed);
    for (_, line) in lines(job) {
        let _ = match line {
            Line::Section(name) => writeln!(text, "[{name}]"),
            Line::Option(key, value) => match (judge(key, value), value) {
                (Judgement::Passed, "") => writeln!(text, "{key}"),
                (Judgement::Passed, value) => writeln!(text, "{key}={value}"),
                _ => Ok(()),
            },
        };
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

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }

    fn input_flag(&self) -> Option<&'static str> {
        Some("a job file of fio: --fio FILE")
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        spec.input.as_deref().and_then(refuse)
    }
}

impl Programs for FioJob {
    fn program(
        &self,
        _phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        let job = spec.input.as_deref().unwrap_or_default();
        Ok(fio::program(for_the_card(job, seed)))
    }

    fn told(&self, _phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
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
    fn the_directory_is_ours_and_the_rest_is_written_anew() {
        let program = FioJob.program(PHASE, &spec(Some(JOB)), 3).unwrap();
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
            ("clocksource=cpu", "one of clock_gettime"),
            ("cpus_allowed = 0-3", "one CPU"),
            ("ioengine=net", "one of falloc"),
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
            (
                Some("[../../x]\nsize=1m\n"),
                "line 1: [../../x]: files are named",
            ),
            (Some("[a]\nnumjob=2\n"), "did you mean 'numjobs'?"),
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
