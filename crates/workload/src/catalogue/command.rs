//! Workload `command`: a command line of the user on the mounted card. Its time is the figure.

use crate::phase::{Phase, Programs};
use crate::program::Program;
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, unknown_phase,
};
use std::collections::BTreeMap;
use whichfs_trial::WorkloadSpec;

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(260, &Command)];

/// A command line of the user.
pub struct Command;

/// The phase in which the command runs.
const PHASE: &str = "command";

/// The phase in which what it left in memory is written.
const SYNC: &str = "command_sync";

const PHASES: [PhaseDef; 2] = [
    PhaseDef {
        name: PHASE,
        meaning: "the command, by /bin/sh, with the card as working directory and the trial's \
                  seed as WHICHFS_SEED (s)",
        cold: false,
        writes: true,
        space_after: false,
        metrics: &[MetricDef {
            metric: PHASE,
            rule: Rule::Seconds,
        }],
    },
    PhaseDef {
        name: SYNC,
        meaning: "sync of what the command left in memory (s)",
        cold: false,
        writes: true,
        space_after: true,
        metrics: &[MetricDef {
            metric: SYNC,
            rule: Rule::Seconds,
        }],
    },
];

/// Words of a command line that may name programs and files of the host: all but paths that
/// begin at the working directory, which is the card.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let in_name = |c: char| c.is_alphanumeric() || "_./+-".contains(c);
    line.split(move |c| !in_name(c))
        .filter(|word| !word.is_empty() && !word.starts_with(['.', '-']))
        .filter(|word| word.starts_with('/') || !word.contains('/'))
}

impl Workload for Command {
    fn name(&self) -> &'static str {
        "command"
    }

    fn title(&self) -> &'static str {
        "a command line of yours on the mounted card (choose --command 'CMD…')"
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
        Some("a command line: --command 'CMD…'")
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let line = spec.input.as_deref().unwrap_or_default();
        if line.contains('\0') {
            return Some("the command has a character that no shell takes (NUL)".to_owned());
        }
        (line.trim().is_empty()).then(|| "the command is empty: name a program".to_owned())
    }
}

impl Programs for Command {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        let line = spec.input.as_deref().unwrap_or_default();
        let (argv, files) = match phase {
            PHASE => (
                ["/bin/sh", "-c", line],
                names(line).map(str::to_owned).collect(),
            ),
            SYNC => (["sync", "-f", "."], Vec::new()),
            other => return Err(unknown_phase(self, other)),
        };
        Ok(Program {
            argv: argv.map(str::to_owned).to_vec(),
            env: BTreeMap::from([("WHICHFS_SEED".to_owned(), seed.to_string())]),
            stdin: String::new(),
            told: false,
            files,
            package: "",
        })
    }

    fn are_of_host(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(line: Option<&str>) -> WorkloadSpec {
        WorkloadSpec {
            name: "command".into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: true,
            script: None,
            input: line.map(str::to_owned),
        }
    }

    #[test]
    fn the_line_is_the_shells_and_what_it_names_is_known() {
        let line = "tar -xf '/srv/a b.tar' -C ./x; /opt/tool --in=/srv/in.bin y/z > out";
        let program = Command.program(PHASE, &spec(Some(line)), 4).unwrap();
        assert_eq!(program.argv, ["/bin/sh", "-c", line]);
        assert_eq!(program.env["WHICHFS_SEED"], "4");
        for file in ["tar", "/opt/tool"] {
            assert!(program.files.iter().any(|name| name == file), "{file}");
        }
        assert!(!program.files.iter().any(|name| name.contains("y/z")));
        let sync = Command.program(SYNC, &spec(Some(line)), 4).unwrap();
        assert_eq!(sync.argv, ["sync", "-f", "."]);
    }

    #[test]
    fn no_command_is_refused() {
        for (line, word) in [
            (None, "--command"),
            (Some("  "), "name a program"),
            (Some("a\0b"), "NUL"),
        ] {
            let error = Command.check(&spec(line)).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
