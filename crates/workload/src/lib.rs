//! Workloads: seeded operation streams and their metrics. No I/O.
//!
//! A [`Workload`] is a list of phases. Each [`Phase`] is a stream of [`Op`]s that is a pure
//! function of specification and seed, a [`Program`], or something done to the device. The agent
//! performs them, [`metrics`] of what it measured come from the phase's [`Rule`]s, and [`steps`]
//! composes the whole job of a trial. The distributions that trees are drawn from are data
//! (`workloads/*.toml`) with their source.

mod aged;
mod appstart;
mod atomic;
mod blocksize;
mod bonnie;
mod boot;
mod camera;
mod command;
mod content;
mod copies;
mod cpu;
mod distribution;
mod exchange;
mod fio;
mod fio_job;
mod fio_options;
mod fio_output;
mod inside;
mod limits;
mod listing;
mod logger;
mod metrics;
mod mkfs;
mod names;
mod ota;
mod packages;
mod phase;
mod program;
mod rootfs;
mod script;
mod script_syntax;
mod script_tree;
mod source_tree;
mod sqlite;
mod stack;
mod steps;
mod tarball;
mod tree;
mod tree_ops;
mod video;
mod workload;
mod writes;
mod written;

pub use content::{Level, generated_bytes, levels};
pub use distribution::Distribution;
pub use fio_job::fio_complaint;
pub use inside::{not_inside, steps_inside};
pub use listing::{Entry, Kind, Listing};
pub use metrics::{check_metrics, metrics};
pub use phase::{OnDevice, Operations, Phase, Programs};
pub use program::{PATH, Program, Told, environment, programs};
pub use script::{
    Line, ScriptError, check_script, parse_script, possible_script, script_lines, script_text,
};
pub use steps::{Candidate, Helper, steps};
pub use whichfs_trial::{Content, Op, Pieces};
pub use workload::{Error, MetricDef, Parameter, PhaseDef, Rule, Unknown, Workload, parameter};

pub use writes::{Writes, writes};

/// Every workload whose operations come from a seed, in the order in which they are listed.
pub const ALL: [&dyn Workload; 16] = [
    &rootfs::Rootfs,
    &logger::Logger,
    &exchange::Exchange,
    &atomic::Atomic,
    &written::OneFile,
    &written::ManyFiles,
    &bonnie::Bonnie,
    &blocksize::BUFFERED,
    &blocksize::DIRECT,
    &video::Video,
    &camera::Camera,
    &packages::Packages,
    &tarball::Tarball,
    &source_tree::SourceTree,
    &aged::Aged,
    &copies::Copies,
];

/// The workload whose operations come as data ([`parse_script`]).
pub const SCRIPT: &dyn Workload = &script::Script;

/// Workloads whose phases run programs of the host.
pub const PROGRAMS: [&dyn Workload; 7] = [
    &fio::Fio,
    &sqlite::Sqlite,
    &appstart::AppStart,
    &stack::Stack,
    &mkfs::Mkfs,
    &limits::Limits,
    &ota::Ota,
];

/// Workloads that load the filesystem's modules: they need the lab kernel that has such.
pub const BOOTS: [&dyn Workload; 1] = [&boot::Boot];

/// Workloads whose program the user gives, or what it does.
pub const GIVEN: [&dyn Workload; 2] = [&fio_job::FioJob, &command::Command];

/// Every workload.
pub fn every() -> impl Iterator<Item = &'static dyn Workload> {
    ALL.into_iter()
        .chain(PROGRAMS)
        .chain(BOOTS)
        .chain(GIVEN)
        .chain([SCRIPT])
}

/// The workload called `name`.
///
/// # Errors
/// If there is none; the error offers the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Workload, Unknown> {
    every()
        .find(|workload| workload.name() == name)
        .ok_or_else(|| Unknown::new("workload", name, every().map(|workload| workload.name())))
}
