//! Phases that are programs of the host: what is run, and what it tells.

use crate::workload::{Workload, WorkloadError};
use std::collections::BTreeMap;
use whichfs_trial::{Counts, LatencyHistogram, Metric, Step, WorkloadSpec};

/// The directories that programs of a trial are found in; the host's PATH does not matter.
pub const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that is a phase; it runs in the mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Program and arguments. It must end with status 0.
    pub argv: Vec<String>,
    /// Its environment, beside what [`environment`] gives to all.
    pub env: BTreeMap<String, String>,
    /// What it reads from its standard input.
    pub stdin: String,
    /// Whether what it writes to its standard output is wanted ([`crate::Programs::told`]).
    pub told: bool,
    /// Files of the host beside the program itself that decide what it does, such as its
    /// library: by absolute path.
    pub files: Vec<String>,
    /// Debian package that has it; empty for the user's own.
    pub package: &'static str,
}

impl Program {
    /// The step of a trial that is this program, as `phase`, in the directory `dir`.
    pub(crate) fn step(self, phase: &str, dir: &str) -> Step {
        Step::Run {
            phase: Some(phase.to_owned()),
            argv: self.argv,
            env: environment(&self.env),
            dir: dir.to_owned(),
            stdin: self.stdin,
            show: self.told,
            any_status: false,
            keeps_rights: false,
        }
    }
}

/// What a program tells of its phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramFigures {
    /// What it did.
    pub counts: Counts,
    /// Latencies of its operations.
    pub latency: LatencyHistogram,
    /// Figures under the names that the workload defines, and more.
    pub metrics: Vec<Metric>,
}

/// The program that runs `script` by the shell with these arguments.
pub(crate) fn shell(script: &str, arguments: impl Iterator<Item = String>, told: bool) -> Program {
    let begin = ["/bin/sh", "-c", script, "sh"].map(str::to_owned);
    Program {
        argv: begin.into_iter().chain(arguments).collect(),
        env: BTreeMap::new(),
        stdin: String::new(),
        told,
        files: Vec::new(),
        package: "dash",
    }
}

/// Runs `program` on this machine, in `dir`.
#[cfg(test)]
pub(crate) fn run_for_test(program: &Program, dir: &std::path::Path) -> std::process::Output {
    #![allow(clippy::unwrap_used)]
    let mut command = std::process::Command::new(&program.argv[0]);
    command.args(&program.argv[1..]).current_dir(dir);
    command.env_clear().envs(environment(&program.env));
    command.output().unwrap()
}

/// All programs that `workload` runs for `spec` and `seed`, in order.
///
/// # Errors
/// If `spec` is not legal.
pub fn programs(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
) -> Result<Vec<Program>, WorkloadError> {
    workload.check(spec)?;
    let mut programs = Vec::new();
    for phase in workload.phases() {
        if let Some(all) = workload.phase(phase).programs() {
            programs.push(all.program(phase.name, spec, seed)?);
        }
    }
    Ok(programs)
}

/// The whole environment of a program in a trial: what all have, and `extra`.
pub fn environment(extra: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fixed = [
        ("PATH", PATH),
        ("LC_ALL", "C"),
        ("HOME", "/tmp"),
        ("TZ", "UTC"),
    ];
    let mut all: BTreeMap<String, String> = fixed
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    all.extend(extra.clone());
    all
}
