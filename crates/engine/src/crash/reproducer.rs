//! A failing cut as a file: few operations, few lost writes, and what went wrong.

use super::check::{Checker, Result};
use super::record::{Recorded, RecordingPlan};
use super::spec::Spec;
use crate::error::{Error, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use whichfs_crash::{Cut, FilesystemCondition, PathFinding, PathOutcome, all_cuts};

/// What went wrong: two results with the same signature show the same failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Signature {
    /// What became of the filesystem.
    pub condition: FilesystemCondition,
    /// What became of files against a promise.
    pub outcomes: BTreeSet<PathOutcome>,
}

impl Signature {
    /// That of a result that breaks a promise; `None` for others.
    pub fn of(result: &Result) -> Option<Signature> {
        let checked = &result.checked;
        let findings = checked.findings.iter().chain(&checked.findings_again);
        result.broken.then(|| Signature {
            condition: result.condition,
            outcomes: findings
                .filter(|finding| finding.broken)
                .map(|finding| finding.outcome)
                .collect(),
        })
    }

    /// Whether `result` shows the same failure: the same condition and, where files suffered, one
    /// in the same way.
    pub fn is_shown_by(&self, result: &Result) -> bool {
        Signature::of(result).is_some_and(|other| {
            let files = self.outcomes.is_empty() || !self.outcomes.is_disjoint(&other.outcomes);
            other.condition == self.condition && files
        })
    }

    /// Whether it takes the filesystem's checker to see it.
    pub fn needs_fsck(&self) -> bool {
        !matches!(
            self.condition,
            FilesystemCondition::DurableLost
                | FilesystemCondition::SilentCorruption
                | FilesystemCondition::ReadOnly
        )
    }
}

/// A failing cut as a JSON file from which the failure can be seen again.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Reproducer {
    /// What it shows, in words.
    pub title: String,
    /// The run; its operations are those of `spec.script`.
    pub spec: Spec,
    /// Where the power goes.
    pub cut: Cut,
    /// Requests that the cut would hurt, but need not.
    pub spared: BTreeSet<usize>,
    /// What goes wrong.
    pub signature: Signature,
    /// Findings that break a promise.
    pub findings: Vec<PathFinding>,
}

impl Reproducer {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that is not there or is no reproducer.
    pub fn read(path: &Path) -> Outcome<Reproducer> {
        let name = path.display();
        let text = crate::input::read_text(path)
            .map_err(|e| Error::input(format!("{name}: {e}; name a file of crash minimise")))?;
        serde_json::from_str(&text).map_err(|e| {
            Error::input(format!(
                "{name} is no reproducer: {e}; crash minimise writes them"
            ))
        })
    }

    /// Shows the failure again: at its own cut or, as another kernel or other tools make other
    /// requests, at any boundary of the run. The last result, and whether it is the failure.
    ///
    /// # Errors
    /// Only what is not the filesystem's doing.
    pub fn show(
        &self,
        plan: &RecordingPlan,
        recorded: &Recorded,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<(Result, bool)> {
        let spared = self.spared.clone();
        let mut own = Checker::new(plan, recorded).sparing(spared);
        let result = own.check_whole(&self.cut, core, cancelled)?;
        if self.signature.is_shown_by(&result) {
            return Ok((result, true));
        }
        let mut others = Checker::new(plan, recorded);
        let cuts = match self.spec.is_whole() {
            true => self.spec.cuts(recorded),
            false => all_cuts(recorded.timeline.log(), recorded.first, self.spec.seed),
        };
        for cut in cuts {
            let result = others.check_whole(&cut, core, cancelled)?;
            if self.signature.is_shown_by(&result) {
                return Ok((result, true));
            }
        }
        Ok((result, false))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::result;
    use crate::crash::fixture::spec;

    #[test]
    fn the_same_failure_is_known_again() {
        let lost = result(1);
        let signature = Signature::of(&lost).unwrap();
        assert!(signature.is_shown_by(&result(2)) && !signature.needs_fsck());
        let mut other = result(3);
        other.checked.findings[0].outcome = PathOutcome::Truncated;
        assert!(
            !signature.is_shown_by(&other),
            "a file suffers in another way"
        );
        let mut legal = result(4);
        legal.broken = false;
        assert!(!signature.is_shown_by(&legal) && Signature::of(&legal).is_none());
        let mut worse = result(5);
        worse.condition = FilesystemCondition::Unfixable;
        assert!(!signature.is_shown_by(&worse));
        assert!(Signature::of(&worse).unwrap().needs_fsck());
    }

    #[test]
    fn a_file_is_read_again_and_another_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lost.json");
        let kept = Reproducer {
            title: "a file is lost".into(),
            spec: spec(),
            cut: result(1).cut,
            spared: [3, 5].into(),
            signature: Signature::of(&result(1)).unwrap(),
            findings: result(1).checked.findings,
        };
        std::fs::write(&path, serde_json::to_string_pretty(&kept).unwrap()).unwrap();
        assert_eq!(Reproducer::read(&path).unwrap(), kept);
        std::fs::write(&path, "{}").unwrap();
        let error = Reproducer::read(&path).unwrap_err();
        assert!(error.message.contains("crash minimise writes"), "{error}");
    }
}
