//! What a workload is: name, parameters, phases.

use crate::listing::Listing;
use crate::phase::Phase;
use whichfs_trial::WorkloadSpec;
use whichfs_units::UnknownName;

/// A parameter of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name, as in a study file.
    pub name: &'static str,
    /// Value where none is given.
    pub default: u64,
    /// Unit: `B`, `files`, `operations`, `permille` …
    pub unit: &'static str,
    /// What it decides.
    pub meaning: &'static str,
    /// Smallest legal value.
    pub min: u64,
    /// Largest legal value.
    pub max: u64,
}

/// How a figure comes out of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Duration; in `s`.
    Seconds,
    /// Bytes of content divided by the duration; in `MB/s` (10^6 bytes).
    Throughput,
    /// Timed operations (those with a latency) divided by the duration; in `operations/s`.
    OperationRate,
    /// Files divided by the duration; in `files/s`.
    FileRate,
    /// The latency that 99 % of the timed operations do not exceed; in `ms`.
    Percentile99,
    /// The latency that half of the timed operations do not exceed; in `ms`.
    Median,
    /// The longest latency of a timed operation, rounded up by at most 1/32; in `ms`.
    Longest,
    /// Timed operations that took longer than a second, or less than 1/32 short of it; in
    /// `stalls`.
    Stalls,
    /// This rule on the phases of these names together, as if they were one. Nothing if one did not
    /// happen.
    Together(&'static [&'static str], &'static Rule),
    /// Bytes that the filesystem no longer has free after the phase; in `B`.
    Space,
    /// Bytes that the card programs for each byte that these phases together write into files; in
    /// `1`.
    Amplification(&'static [&'static str]),
    /// Blocks (AUs) that the card erases for each GB (10^9 bytes) that they write into files; in
    /// `erases/GB`.
    Erases(&'static [&'static str]),
    /// What the phase's program tells ([`crate::Programs::told`]).
    Told {
        /// Unit of the figure.
        unit: &'static str,
        /// True for durations and space, false for rates.
        lower_is_better: bool,
    },
}

/// A metric that a phase yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDef {
    /// Name, as in results.csv.
    pub metric: &'static str,
    /// How it comes out of the phase.
    pub rule: Rule,
}

/// A phase of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseDef {
    /// Name of the workload or parameter, as on the command line.
    pub name: &'static str,
    /// What is done, in words, with the unit of its figure.
    pub meaning: &'static str,
    /// The filesystem is mounted anew with empty caches before it.
    pub cold: bool,
    /// It changes the filesystem: impossible on a read-only one.
    pub writes: bool,
    /// Used space is taken right after it.
    pub space_after: bool,
    /// What it yields.
    pub metrics: &'static [MetricDef],
}

impl PhaseDef {
    /// A phase that finds the caches as the one before left them.
    pub(crate) const fn warm(
        name: &'static str,
        meaning: &'static str,
        writes: bool,
        metrics: &'static [MetricDef],
    ) -> PhaseDef {
        PhaseDef {
            name,
            meaning,
            cold: false,
            writes,
            space_after: false,
            metrics,
        }
    }

    /// A phase that changes nothing and begins with empty caches.
    pub(crate) const fn cold(
        name: &'static str,
        meaning: &'static str,
        metrics: &'static [MetricDef],
    ) -> PhaseDef {
        PhaseDef {
            cold: true,
            ..PhaseDef::warm(name, meaning, false, metrics)
        }
    }

    /// The same, after which used space is taken.
    pub(crate) const fn then_space(self) -> PhaseDef {
        PhaseDef {
            space_after: true,
            ..self
        }
    }
}

impl MetricDef {
    /// The one metric of a phase.
    pub(crate) const fn one(metric: &'static str, rule: Rule) -> [MetricDef; 1] {
        [MetricDef { metric, rule }]
    }
}

/// What cannot be done with a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A name that does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A parameter out of its range.
    #[error("workload {workload}: {name} = {value} is not legal: {min} to {max} {unit}")]
    Range {
        /// Name of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
        /// Unit of `min` and `max`: `B`, `files`, `permille` …
        unit: &'static str,
    },
    /// Parameters that contradict each other.
    #[error("workload {workload}: {reason}")]
    Conflict {
        /// Name of the workload.
        workload: &'static str,
        /// What contradicts what.
        reason: String,
    },
}

/// A named, seeded sequence of operations in phases.
pub trait Workload: Sync {
    /// Name, as on the command line.
    fn name(&self) -> &'static str;

    /// What it stands for, in one line.
    fn title(&self) -> &'static str;

    /// What can be set, with default and legal range; the same in every call.
    fn parameters(&self) -> &'static [Parameter];

    /// Its phases in order.
    fn phases(&self) -> &'static [PhaseDef];

    /// What `phase` is, one of [`Workload::phases`].
    fn phase(&self, phase: &PhaseDef) -> Phase<'_>;

    /// Whether it can use a tree of the user instead of a generated one.
    fn takes_tree(&self) -> bool {
        false
    }

    /// Whether its operations come with the specification.
    fn takes_script(&self) -> bool {
        false
    }

    /// The flag of `whichfs choose` with which the user gives [`WorkloadSpec::input`], for a
    /// workload that needs one.
    fn input_flag(&self) -> Option<&'static str> {
        None
    }

    /// What its figures in the lab leave out, in a sentence.
    fn caveat(&self) -> Option<&'static str> {
        None
    }

    /// The tree that `spec` describes, if the workload has one and the user gave none.
    ///
    /// # Errors
    /// If a parameter is unknown or out of its range.
    fn generated_tree(
        &self,
        _spec: &WorkloadSpec,
        _seed: u64,
    ) -> Result<Option<Listing>, WorkloadError> {
        Ok(None)
    }

    /// Checks that the user's `tree` does not contradict the workload.
    ///
    /// # Errors
    /// What in it does, and the remedy.
    fn check_tree(&self, _tree: &Listing) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// What contradicts what in `spec`, whose parameters are in their ranges.
    fn contradiction(&self, _spec: &WorkloadSpec) -> Option<String> {
        None
    }

    /// Checks the names and values of `spec`'s parameters, each alone and all together.
    ///
    /// # Errors
    /// The first parameter that is unknown or out of its range, or what contradicts what.
    fn check(&self, spec: &WorkloadSpec) -> Result<(), WorkloadError> {
        let definitions = self.parameters();
        for (name, &value) in &spec.parameters {
            let Some(known) = definitions.iter().find(|known| known.name == name) else {
                let all: Vec<&str> = definitions.iter().map(|known| known.name).collect();
                let listed = format!("`whichfs workload show {}`", self.name());
                return Err(UnknownName::new("parameter", name, &all, Some(&listed)).into());
            };
            if !(known.min..=known.max).contains(&value) {
                return Err(WorkloadError::Range {
                    workload: self.name(),
                    name: known.name,
                    value,
                    min: known.min,
                    max: known.max,
                    unit: known.unit,
                });
            }
        }
        if spec.tree.is_some() && !self.takes_tree() {
            return Err(WorkloadError::Conflict {
                workload: self.name(),
                reason: "it cannot use a tree of yours; leave out --tree".to_owned(),
            });
        }
        if spec.script.is_some() && !self.takes_script() {
            return Err(WorkloadError::Conflict {
                workload: self.name(),
                reason: "it has operations of its own; a script needs the workload script"
                    .to_owned(),
            });
        }
        match (&spec.input, self.input_flag()) {
            (None, Some(flag)) => {
                return Err(WorkloadError::Conflict {
                    workload: self.name(),
                    reason: format!("it needs {flag}"),
                });
            }
            (Some(_), None) => {
                return Err(WorkloadError::Conflict {
                    workload: self.name(),
                    reason: "it takes neither a job file nor a command; leave out --fio and \
                             --command"
                        .to_owned(),
                });
            }
            _ => {}
        }
        match self.contradiction(spec) {
            None => Ok(()),
            Some(reason) => Err(WorkloadError::Conflict {
                workload: self.name(),
                reason,
            }),
        }
    }
}

/// The value of `workload`'s parameter `name` in `spec`, or its default.
///
/// # Panics
/// If the workload defines no such parameter: a fault of the caller.
pub fn parameter(workload: &dyn Workload, spec: &WorkloadSpec, name: &str) -> u64 {
    let definition = workload
        .parameters()
        .iter()
        .find(|known| known.name == name);
    let Some(definition) = definition else {
        unreachable!("{} defines no parameter {name}", workload.name())
    };
    spec.parameters
        .get(name)
        .copied()
        .unwrap_or(definition.default)
}

/// The error for a phase that `workload` does not have.
pub(crate) fn unknown_phase(workload: &dyn Workload, phase: &str) -> WorkloadError {
    let names: Vec<&str> = workload.phases().iter().map(|known| known.name).collect();
    let listed = format!("`whichfs workload show {}`", workload.name());
    UnknownName::new("phase", phase, &names, Some(&listed)).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{every, find};
    use std::collections::BTreeMap;

    /// A specification of `name` with `parameters`.
    fn spec(name: &str, parameters: &[(&str, u64)]) -> WorkloadSpec {
        WorkloadSpec {
            name: name.into(),
            parameters: parameters
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect::<BTreeMap<_, _>>(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    #[test]
    fn an_unknown_name_offers_the_nearest() {
        let error = find("rotfs").err().unwrap();
        assert_eq!(error.nearest, ["rootfs"]);
        let rootfs = find("rootfs").unwrap();
        let error = rootfs.check(&spec("rootfs", &[("file", 9)])).unwrap_err();
        assert!(error.to_string().contains("'files'"), "{error}");
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        let rootfs = find("rootfs").unwrap();
        let error = rootfs.check(&spec("rootfs", &[("files", 0)])).unwrap_err();
        assert!(
            error.to_string().contains("files = 0 is not legal"),
            "{error}"
        );
    }

    #[test]
    fn only_some_workloads_take_a_tree() {
        let mut logger = spec("logger", &[]);
        logger.tree = Some("/etc".into());
        assert!(find("logger").unwrap().check(&logger).is_err());
        logger.name = "rootfs".into();
        find("rootfs").unwrap().check(&logger).unwrap();
    }

    #[test]
    fn every_definition_is_legal_and_unique() {
        for workload in every() {
            let mut names = Vec::new();
            for parameter in workload.parameters() {
                assert!((parameter.min..=parameter.max).contains(&parameter.default));
                names.push(parameter.name);
            }
            for phase in workload.phases() {
                assert!(!phase.meaning.is_empty());
                names.push(phase.name);
            }
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "a name twice in {}", workload.name());
        }
    }
}
