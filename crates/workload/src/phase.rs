//! What a phase of a workload is: operations, a program, or something done to the device.

use crate::listing::Listing;
use crate::program::{Program, ProgramFigures};
use crate::workload::{Workload, WorkloadError, unknown_phase};
use whichfs_trial::{Op, WorkloadSpec};

/// What a phase is.
#[derive(Clone, Copy)]
pub enum Phase<'w> {
    /// Operations on the mounted filesystem.
    Operations(&'w dyn Operations),
    /// A program in the mounted filesystem.
    Program(&'w dyn Programs),
    /// It is done while the filesystem is not mounted.
    OnDevice(OnDevice<'w>),
}

/// What a phase is for which the filesystem is unmounted.
#[derive(Clone, Copy)]
pub enum OnDevice<'w> {
    /// Programs that get the unmounted device.
    Program(&'w dyn Programs),
    /// The filesystem's own checker; the phase is left out where there is none.
    Check,
    /// Modules of the kernel are loaded before anything else; the phase is left out where they
    /// are not known: outside of the lab.
    Modules,
}

impl<'w> Phase<'w> {
    /// The programs of the workload, if the phase is one of them.
    pub fn programs(self) -> Option<&'w dyn Programs> {
        match self {
            Phase::Program(programs) | Phase::OnDevice(OnDevice::Program(programs)) => {
                Some(programs)
            }
            Phase::Operations(_) | Phase::OnDevice(OnDevice::Check | OnDevice::Modules) => None,
        }
    }
}

/// A workload some of whose phases are operations.
///
/// Callers ask for what is legal: `phase` is one for which [`Workload::phase`] is
/// [`Phase::Operations`], and `spec` has passed [`Workload::check`].
pub trait Operations {
    /// The operations of `phase`. `tree` is the listing of the user's tree if `spec` has one, else
    /// what [`Workload::generated_tree`] gives for the same `spec` and `seed`; without it the tree
    /// is drawn again.
    ///
    /// # Errors
    /// If the phase is unknown, or the user's tree is not listed or contradicts the workload.
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError>;
}

/// A workload some of whose phases are programs.
///
/// Callers ask for what is legal: `phase` is one for which [`Workload::phase`] is a program, and
/// `spec` has passed [`Workload::check`].
pub trait Programs {
    /// The program that is `phase`.
    ///
    /// # Errors
    /// If the phase is unknown.
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError>;

    /// Bytes that the program of `phase` writes, as far as `spec` says so; `None` if only the
    /// program knows.
    fn writes(&self, _phase: &str, _spec: &WorkloadSpec) -> Option<u64> {
        None
    }

    /// What the program of `phase` told on its standard output, if that is wanted.
    ///
    /// # Errors
    /// What is not as it should be, in a sentence.
    fn told(&self, _phase: &str, _output: &str) -> Result<Option<ProgramFigures>, String> {
        Ok(None)
    }

    /// Whether they are the user's own, of this machine: they do not run in the sealed userland,
    /// and the machine decides what they do.
    fn are_of_host(&self) -> bool {
        false
    }
}

impl dyn Workload + '_ {
    /// What its phase called `name` is.
    ///
    /// # Errors
    /// It has no such phase.
    pub fn phase_called(&self, name: &str) -> Result<Phase<'_>, WorkloadError> {
        let mut phases = self.phases().iter();
        match phases.find(|known| known.name == name) {
            Some(known) => Ok(self.phase(known)),
            None => Err(unknown_phase(self, name)),
        }
    }

    /// The operations of `phase`, as [`Operations::operations`].
    ///
    /// # Errors
    /// If `spec` is not legal, or the phase is unknown or not made of operations; else those of
    /// [`Operations::operations`].
    pub fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        match self.phase_called(phase)? {
            Phase::Operations(workload) => {
                self.check(spec)?;
                workload.operations(phase, spec, tree, seed)
            }
            Phase::Program(_) | Phase::OnDevice(_) => Err(WorkloadError::Conflict {
                workload: self.name(),
                reason: format!("phase {phase} is not made of operations"),
            }),
        }
    }

    /// Whether any phase is a program: such a workload can be measured, but as nobody knows
    /// what its programs write, what a power cut leaves cannot be judged.
    pub fn runs_programs(&self) -> bool {
        self.any(|phase| phase.programs().is_some())
    }

    /// Whether any phase is a program of the user's own, of this machine
    /// ([`Programs::are_of_host`]).
    pub fn runs_host_programs(&self) -> bool {
        self.any(|phase| phase.programs().is_some_and(Programs::are_of_host))
    }

    /// Whether any phase loads the filesystem's modules.
    pub fn loads_modules(&self) -> bool {
        self.any(|phase| matches!(phase, Phase::OnDevice(OnDevice::Modules)))
    }

    fn any(&self, is: impl Fn(Phase<'_>) -> bool) -> bool {
        let mut phases = self.phases().iter();
        phases.any(|phase| is(self.phase(phase)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{every, find};
    use std::collections::BTreeMap;

    fn refusal(workload: &dyn Workload, phase: &str) -> String {
        let spec = WorkloadSpec {
            name: workload.name().into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        let error = workload.operations(phase, &spec, None, 1).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn only_phases_of_operations_have_such() {
        for workload in every() {
            assert!(refusal(workload, "nothing").contains("unknown phase"));
            for phase in workload.phases() {
                let is_refused =
                    refusal(workload, phase.name).contains("is not made of operations");
                let is_made_of_them = matches!(workload.phase(phase), Phase::Operations(_));
                assert_ne!(is_refused, is_made_of_them, "{}", phase.name);
            }
        }
    }

    #[test]
    fn what_a_workload_runs_follows_from_its_phases() {
        let names = |is: fn(&dyn Workload) -> bool| -> Vec<&str> {
            let found = every().filter(|workload| is(*workload));
            found.map(|workload| workload.name()).collect()
        };
        let programs = [
            "fio",
            "fio-parallel",
            "sqlite",
            "appstart",
            "stack",
            "mkfs",
            "limits",
            "ota",
            "fio-job",
            "command",
        ];
        assert_eq!(names(|workload| workload.runs_programs()), programs);
        assert_eq!(names(|workload| workload.runs_host_programs()), ["command"]);
        assert_eq!(names(|workload| workload.loads_modules()), ["boot"]);
        assert!(find("mkfs").unwrap().phase_called("fsck").is_err());
    }
}
