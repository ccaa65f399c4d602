//! Workloads: seeded operation streams and their metrics. No I/O.
//!
//! A [`Workload`] is a list of phases. Each [`Phase`] is a stream of [`Op`]s that is a pure
//! function of specification and seed, a [`Program`], or something done to the device. The agent
//! performs them, [`metrics`] of what it measured come from the phase's [`Rule`]s, and [`steps`]
//! composes the whole job of a trial. The distributions that trees are drawn from are data
//! (`workloads/*.toml`) with their source.

mod catalogue;
mod content;
mod content_model;
mod cpu;
mod distribution;
mod fio_options;
mod fio_output;
mod inside;
mod listing;
mod metrics;
mod names;
mod phase;
mod program;
mod rsync;
mod script_syntax;
mod script_tree;
mod steps;
mod tree;
mod tree_ops;
mod workload;
mod writes;

pub use catalogue::{
    SCRIPT, ScriptError, ScriptLine, check_script, every, find, fio_complaint, parse_script,
    possible_script, script_lines, script_text, seeded,
};
pub use content::{CompressibilityLevel, generated_bytes, levels};
pub use content_model::Model;
pub use distribution::Distribution;
pub use inside::{not_inside, steps_inside};
pub use listing::{EntryKind, Listing, TreeEntry};
pub use metrics::{check_metrics, metrics};
pub use phase::{OnDevice, Operations, Phase, Programs};
pub use program::{PATH, Program, ProgramFigures, environment, programs};
pub use steps::{StepCandidate, StepHelper, StepUpper, steps};
pub use whichfs_trial::{Content, Op, Pieces};
pub use workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter};
pub use writes::{Writes, file_writes, writes};
