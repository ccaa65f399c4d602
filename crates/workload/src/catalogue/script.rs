//! Workload `script`: operations that come as data, one JSON object a line.

use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::script_syntax::operation;
use crate::script_tree::Tree;
use crate::workload::{Parameter, PhaseDef, Workload, WorkloadError};
use whichfs_trial::{Op, WorkloadSpec};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(270, &Script)];

/// A list of operations that the user supplies.
pub struct Script;

const PHASES: [PhaseDef; 1] = [PhaseDef {
    name: "script",
    meaning: "the operations of the script, in order",
    cold: false,
    writes: true,
    space_after: false,
    metrics: &[],
}];

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn title(&self) -> &'static str {
        "operations from a file (crash run --script)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }

    fn takes_script(&self) -> bool {
        true
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let ops = spec.script.as_deref().unwrap_or_default();
        if let Err(error) = check_script(ops) {
            return Some(error.to_string());
        }
        let links = |op: &&Op| {
            matches!(
                op,
                Op::Symlink { .. } | Op::HardLink { .. } | Op::ReadLink { .. }
            )
        };
        ops.iter().find(links).filter(|_| !spec.unix).map(|op| {
            format!("the filesystem has no links: leave out {op:?}, or take another filesystem")
        })
    }
}

impl Operations for Script {
    fn operations(
        &self,
        _phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        _seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let unix = spec.unix;
        let ops = spec.script.clone().unwrap_or_default();
        Ok(Box::new(ops.into_iter().map(move |op| suited(op, unix))))
    }
}

/// `op` without permissions where the filesystem has none.
fn suited(mut op: Op, unix: bool) -> Op {
    if let Op::Mkdir { mode, .. } | Op::Create { mode, .. } = &mut op
        && !unix
    {
        *mode = None;
    }
    op
}

/// Why a script cannot be performed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A line that is no operation.
    #[error("line {line}: {reason}; right would be {example} (docs/crash.md has them all)")]
    Syntax {
        /// Number of the line, from 1.
        line: usize,
        /// What was expected, and what is there.
        reason: String,
        /// The nearest line that is an operation.
        example: &'static str,
    },
    /// An operation that cannot be done there.
    #[error("{}{number}: {reason}", if *.is_line { "line " } else { "operation " })]
    Impossible {
        /// Number of the line or operation, from 1.
        number: usize,
        /// Whether `number` is that of a line.
        is_line: bool,
        /// What is wrong, and the remedy.
        reason: String,
    },
    /// There is nothing to do.
    #[error("it has no operation; give at least one")]
    Empty,
}

/// An operation of a script, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// Number of the line, from 1.
    pub number: usize,
    /// What it says.
    pub op: Op,
}

impl ScriptLine {
    /// The path that it makes, or may make.
    pub fn made(&self) -> Option<&str> {
        match &self.op {
            Op::Mkdir { path, .. }
            | Op::Create { path, .. }
            | Op::Save { path, .. }
            | Op::Symlink { path, .. }
            | Op::HardLink { path, .. }
            | Op::Append { path, .. }
            | Op::WriteAt { path, .. }
            | Op::Rename { to: path, .. } => Some(path),
            _ => None,
        }
    }
}

/// The operations of a script: one JSON object a line; empty lines and those that begin with `#`
/// are passed over.
///
/// # Errors
/// The first line that is no operation or cannot be done after those before it.
pub fn script_lines(text: &str) -> Result<Vec<ScriptLine>, ScriptError> {
    let mut lines = Vec::new();
    let mut tree = Tree::default();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let op = operation(line).map_err(|wrong| ScriptError::Syntax {
            line: number,
            reason: wrong.reason,
            example: wrong.example,
        })?;
        tree.apply(&op).map_err(|reason| ScriptError::Impossible {
            number,
            is_line: true,
            reason,
        })?;
        lines.push(ScriptLine { number, op });
    }
    match lines.is_empty() {
        true => Err(ScriptError::Empty),
        false => Ok(lines),
    }
}

/// The operations of a script, as [`script_lines`] reads them.
///
/// # Errors
/// As those of [`script_lines`].
pub fn parse_script(text: &str) -> Result<Vec<Op>, ScriptError> {
    let lines = script_lines(text)?;
    Ok(lines.into_iter().map(|line| line.op).collect())
}

/// The script of `ops`, as [`parse_script`] reads it.
pub fn script_text(ops: &[Op]) -> String {
    let line = |op: &Op| {
        serde_json::to_string(op)
            .unwrap_or_else(|error| unreachable!("an Op is strings and numbers: {error}"))
    };
    ops.iter().map(|op| line(op) + "\n").collect()
}

/// Checks that each of `ops` can be done after those before it, inside its directory.
///
/// # Errors
/// The first that cannot.
pub fn check_script(ops: &[Op]) -> Result<(), ScriptError> {
    let mut tree = Tree::default();
    for (at, op) in ops.iter().enumerate() {
        tree.apply(op).map_err(|reason| ScriptError::Impossible {
            number: at + 1,
            is_line: false,
            reason,
        })?;
    }
    match ops.is_empty() {
        true => Err(ScriptError::Empty),
        false => Ok(()),
    }
}

/// Those of `ops` that can be done after those kept before them, as a script.
pub fn possible_script(mut ops: Vec<Op>) -> Vec<Op> {
    let mut tree = Tree::default();
    ops.retain(|op| tree.apply(op).is_ok());
    ops
}

#[cfg(test)]
#[path = "../script_tests.rs"]
mod tests;
