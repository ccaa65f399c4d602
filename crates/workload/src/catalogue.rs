//! All workloads, and the way to find one by name. Each file of the directory `catalogue` is a
//! workload or a few that belong together, and the build script lists the files.

use crate::phase::Phase;
use crate::workload::Workload;
use std::sync::LazyLock;
use whichfs_units::UnknownName;

/// Workloads, each with its place in the list.
type Listed = &'static [(u32, &'static dyn Workload)];

// `mod NAME;` of each file, and `FILES`: name of the file and its workloads, each with its place
// in the list.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

pub use fio_job::fio_complaint;
pub use script::{
    ScriptError, ScriptLine, check_script, parse_script, possible_script, script_lines, script_text,
};

/// The workload whose operations come as data ([`parse_script`]).
pub const SCRIPT: &dyn Workload = &script::Script;

static EVERY: LazyLock<Vec<&'static dyn Workload>> = LazyLock::new(|| {
    let mut all: Vec<_> = FILES.iter().flat_map(|(_, of_file)| *of_file).collect();
    all.sort_by_key(|(place, _)| place);
    all.into_iter().map(|(_, workload)| *workload).collect()
});

/// Every workload, in the order in which they are listed.
pub fn every() -> impl Iterator<Item = &'static dyn Workload> {
    EVERY.iter().copied()
}

/// Every workload all of whose phases are operations that come from a seed.
pub fn seeded() -> impl Iterator<Item = &'static dyn Workload> {
    every().filter(|workload| {
        let mut phases = workload.phases().iter();
        !workload.takes_script()
            && phases.all(|phase| matches!(workload.phase(phase), Phase::Operations(_)))
    })
}

/// The workload called `name`.
///
/// # Errors
/// If there is none; the error offers the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Workload, UnknownName> {
    every()
        .find(|workload| workload.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = every().map(|workload| workload.name()).collect();
            UnknownName::new("workload", name, &names, Some("`whichfs workload list`"))
        })
}
