//! Workloads: seeded operation streams and their metrics. No I/O.
//!
//! A [`Workload`] is a list of phases; each phase is a stream of [`Op`]s that is a
//! pure function of specification and seed. The agent performs them, [`metrics`] of
//! what it measured come from the phase's [`Rule`]s, and [`steps`] composes the whole
//! job of a trial. The distributions that trees are drawn from are data
//! (`workloads/*.toml`) with their source.

mod content;
mod distribution;
mod exchange;
mod listing;
mod logger;
mod metrics;
mod names;
mod op;
mod rootfs;
mod steps;
mod tree;
mod workload;

pub use content::{Level, generated_bytes, levels};
pub use distribution::Distribution;
pub use listing::{Entry, Kind, Listing};
pub use metrics::{check_metrics, metrics};
pub use op::{Content, Op};
pub use steps::{Candidate, steps};
pub use workload::{Error, MetricDef, Parameter, PhaseDef, Rule, Unknown, Workload, parameter};

/// Every workload, in the order in which they are listed.
pub const ALL: [&dyn Workload; 3] = [&rootfs::Rootfs, &logger::Logger, &exchange::Exchange];

/// The workload called `name`.
///
/// # Errors
/// If there is none; the error offers the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Workload, Unknown> {
    ALL.into_iter()
        .find(|workload| workload.name() == name)
        .ok_or_else(|| Unknown::new("workload", name, ALL.map(|workload| workload.name())))
}
