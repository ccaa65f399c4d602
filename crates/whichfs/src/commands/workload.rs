//! `whichfs workload`: what is done in which phase, and what is measured.

use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_engine::studies;
use whichfs_report::documents::workload::{
    WorkloadShown, workload_lines, workload_table, workload_text,
};

/// All workloads, a line each.
pub fn list(json: bool) -> Outcome<u8> {
    let lines = workload_lines();
    match json {
        true => output::list(&lines)?,
        false => output::text_line(&workload_table(&lines, output::width()))?,
    }
    Ok(0)
}

/// One workload: phases, metrics, parameters.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let workload = whichfs_workload::find(name).map_err(Failure::input)?;
    let document = WorkloadShown::new(workload, studies::all()?);
    match json {
        true => output::document(&document)?,
        false => output::text_line(&workload_text(&document, output::width()))?,
    }
    Ok(0)
}
