//! Phases that are programs of this machine: whether they are there, which they are, what they
//! told.

use crate::error::{Error, Outcome};
use crate::tools::{self, PATH};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use whichfs_lab::{GuestRun, LabError, Stamped};
use whichfs_trial::{Event, Metric, PhaseFigures, WorkloadSpec};
use whichfs_workload::{Phase, Program, Workload, environment, fio_complaint};

/// The programs of `workload` for `spec`, which must be on this machine.
///
/// # Errors
/// If `spec` is not legal, or a program is missing, with the command that installs it.
pub fn programs(workload: &dyn Workload, spec: &WorkloadSpec, seed: u64) -> Outcome<Vec<Program>> {
    let programs = whichfs_workload::programs(workload, spec, seed).map_err(Error::input)?;
    for program in &programs {
        require(program)?;
    }
    Ok(programs)
}

/// Checks that `program` is on this machine.
///
/// # Errors
/// It is not, with the command that installs it.
pub fn require(program: &Program) -> Outcome {
    let Some(name) = program.argv.first() else {
        return Err(Error::input("an empty command: name a program"));
    };
    if tools::find(name).is_some() {
        return Ok(());
    }
    let remedy = match program.package {
        "" => "install it, or name its full path".to_owned(),
        package => format!("apt-get install {package}"),
    };
    Err(Error::environment(format!(
        "{name} is not on this machine (looked in {PATH}): {remedy}"
    )))
}

/// What the clock `cpu` leaves out where a trial's phases are programs: the lab counts what its
/// kernel does, and what a program does by itself is done by the host's processor.
pub fn uncharged(programs: &[Program]) -> Option<String> {
    let mut names: Vec<&str> = programs
        .iter()
        .filter_map(|program| program.argv.first()?.rsplit('/').next())
        .collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "what {} computes costs no virtual time, only what the kernel does for it \
             (cpu_user_uncharged in docs/limits.md)",
            names.join(" and ")
        )
    })
}

/// What decides what `programs` do: themselves and their files.
pub fn parts(programs: &[Program]) -> impl Iterator<Item = &str> {
    programs.iter().flat_map(|program| {
        let name = program.argv.first().map(String::as_str);
        name.into_iter()
            .chain(program.files.iter().map(String::as_str))
    })
}

/// Puts what the programs of `workload` told into the figures of their `phases`.
///
/// # Errors
/// What a program told that cannot be understood.
pub fn tell(
    workload: &dyn Workload,
    events: &[Stamped],
    phases: &mut [PhaseFigures],
) -> Result<Vec<Metric>, String> {
    let mut metrics = Vec::new();
    if !workload.runs_programs() {
        return Ok(metrics);
    }
    let outputs = outputs(events);
    for figures in phases {
        let phase = workload.phase_called(&figures.phase).ok();
        let programs = phase.and_then(Phase::programs);
        let output = outputs.get(figures.phase.as_str());
        let (Some(programs), Some(output)) = (programs, output) else {
            continue;
        };
        let told = programs
            .told(&figures.phase, output)
            .map_err(|why| format!("phase {}: {why}", figures.phase))?;
        if let Some(told) = told {
            figures.counts = told.counts;
            figures.latency = told.latency;
            metrics.extend(told.metrics);
        }
    }
    Ok(metrics)
}

/// What was written to standard output in each phase.
fn outputs(events: &[Stamped]) -> BTreeMap<&str, String> {
    let mut outputs: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = None;
    for stamped in events {
        match &stamped.event {
            Event::PhaseBegin { phase } => {
                outputs.entry(phase).or_default();
                current = Some(phase.as_str());
            }
            Event::PhaseEnd { .. } => current = None,
            Event::Output { stream, text } if stream == "stdout" => {
                let output = current.and_then(|phase| outputs.get_mut(phase));
                if let Some(output) = output {
                    output.push_str(text);
                }
            }
            _ => {}
        }
    }
    outputs
}

/// The sentence on a `life` that ended at its wall limit because a program of `workload` did not
/// end: that is no fault of this machine.
pub fn overran(workload: &dyn Workload, life: &GuestRun) -> Option<String> {
    let Err(error @ LabError::WallLimit(_)) = &life.result else {
        return None;
    };
    let last = life
        .events
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            Event::PhaseBegin { phase } => Some(Some(phase)),
            Event::PhaseEnd { .. } => Some(None),
            _ => None,
        });
    let phase = last.flatten()?;
    let own = workload.phases().iter().any(|known| known.name == phase);
    (workload.runs_programs() && own)
        .then(|| format!("phase {phase}: its program did not end: {error}"))
}

/// Lets this machine's fio judge the user's job, as far as it does that without running it; the
/// fio of the sealed userland judges it in its first trial where this machine has none.
///
/// # Errors
/// What fio says, after the line of `job` that it says it of.
pub fn check_fio(job: &str, program: &Program) -> Outcome {
    let Some(fio) = tools::find("fio") else {
        return Ok(());
    };
    let ended = parse_only(&fio, program)
        .map_err(|e| Error::environment(format!("{}: {e}: apt-get install fio", fio.display())))?;
    match ended.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(Error::input(fio_complaint(job, &said)))
        }
    }
}

fn parse_only(fio: &Path, program: &Program) -> std::io::Result<std::process::Output> {
    let job = memfd_create("job", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut job = File::from(job);
    job.write_all(program.stdin.as_bytes())?;
    job.rewind()?;
    Command::new(fio)
        .args(["--parse-only", "-"])
        .env_clear()
        .envs(environment(&BTreeMap::new()))
        .current_dir("/")
        .stdin(Stdio::from(job))
        .output()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;
    use whichfs_trial::{Counts, DeviceFigures, LatencyHistogram};
    use whichfs_units::Nanos;

    #[test]
    fn programs_whose_own_time_is_free_are_named_once() {
        let program = |name: &str| Program {
            argv: vec![name.to_owned()],
            env: BTreeMap::new(),
            stdin: String::new(),
            told: false,
            files: Vec::new(),
            package: "",
        };
        let words = uncharged(&[program("/usr/bin/fio"), program("perl"), program("fio")]).unwrap();
        assert!(words.contains("what fio and perl computes"), "{words}");
        assert!(
            words.starts_with("what ") && words.contains("cpu_user_uncharged"),
            "{words}"
        );
        assert_eq!(uncharged(&[]), None);
    }

    fn stamped(event: Event) -> Stamped {
        Stamped {
            at: Nanos(1),
            event,
            device: DeviceFigures::default(),
            others: Vec::new(),
        }
    }

    fn begin(phase: &str) -> Stamped {
        let phase = phase.to_owned();
        stamped(Event::PhaseBegin { phase })
    }

    fn end(phase: &str) -> Stamped {
        stamped(Event::PhaseEnd {
            phase: phase.to_owned(),
            counts: Counts::default(),
            latency: LatencyHistogram::default(),
        })
    }

    fn said(stream: &str, text: &str) -> Stamped {
        stamped(Event::Output {
            stream: stream.to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn output_belongs_to_the_phase_in_which_it_came() {
        let events = [
            said("stdout", "before"),
            begin("a"),
            said("stdout", "1"),
            said("stderr", "no"),
            said("stdout", "2"),
            end("a"),
            said("stdout", "between"),
            begin("b"),
            end("b"),
        ];
        let found = outputs(&events);
        let expected = [("a", "12".to_owned()), ("b", String::new())];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn phases_that_are_no_programs_tell_nothing() {
        let fio = whichfs_workload::find("fio").unwrap();
        let figures = |phase: &str| PhaseFigures {
            phase: phase.to_owned(),
            begin: Nanos(0),
            end: Nanos(1),
            counts: Counts::default(),
            latency: LatencyHistogram::default(),
            device: DeviceFigures::default(),
            cpu: None,
            second_card: None,
        };
        let events = [begin("mkfs"), end("mkfs")];
        assert_eq!(tell(fio, &events, &mut [figures("mkfs")]), Ok(Vec::new()));
        let name = "fio_mixed_4k";
        let events = [begin(name), said("stdout", "no document"), end(name)];
        let why = tell(fio, &events, &mut [figures(name)]).unwrap_err();
        assert!(
            why.contains("phase fio_mixed_4k: fio told no figures"),
            "{why}"
        );
    }

    #[test]
    fn only_a_program_that_does_not_end_is_its_own_fault() {
        let fio = whichfs_workload::find("fio").unwrap();
        let rootfs = whichfs_workload::find("rootfs").unwrap();
        let life = |result, events| GuestRun {
            result,
            events,
            trace_sha256: String::new(),
            requests: 0,
            time: Nanos(0),
            console: Vec::new(),
            disks: Vec::new(),
        };
        let slow = || Err(LabError::WallLimit(Duration::from_secs(9)));
        let in_phase = || vec![begin("fio_random_read_4k")];
        let why = overran(fio, &life(slow(), in_phase())).unwrap();
        assert!(
            why.contains("fio_random_read_4k") && why.contains("the wall limit"),
            "{why}"
        );
        let ended = vec![begin("fio_random_read_4k"), end("fio_random_read_4k")];
        assert_eq!(overran(fio, &life(slow(), ended)), None);
        assert_eq!(overran(fio, &life(slow(), vec![begin("mount")])), None);
        assert_eq!(
            overran(rootfs, &life(slow(), vec![begin("tree_write")])),
            None
        );
        assert_eq!(overran(fio, &life(Ok(()), in_phase())), None);
    }

    #[test]
    fn a_missing_program_has_its_remedy() {
        let program = |name: &str, package| Program {
            argv: vec![name.to_owned()],
            env: BTreeMap::new(),
            stdin: String::new(),
            told: false,
            files: Vec::new(),
            package,
        };
        assert!(require(&program("sh", "")).is_ok());
        let missing = |package| {
            require(&program("no-such-tool", package))
                .unwrap_err()
                .message
        };
        assert!(missing("some-package").contains("apt-get install some-package"));
        assert!(missing("").contains("full path"));
    }
}
