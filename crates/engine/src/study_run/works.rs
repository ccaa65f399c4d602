//! What the workloads of a study do.

use crate::error::{Error, Outcome};
use crate::tree;
use crate::workload_run::WorkloadRun;
use std::collections::BTreeMap;
use std::path::Path;
use whichfs_study::PerformanceStudy;
use whichfs_trial::WorkloadSpec;

/// What the workloads of `study` do, by their names in it, with the user's tree for those that
/// write one.
///
/// # Errors
/// If there is a tree and none writes one, or it cannot be read.
pub fn works<'a>(
    study: &'a PerformanceStudy,
    tree: Option<&Path>,
) -> Outcome<BTreeMap<&'a str, WorkloadRun>> {
    let tree = tree.map(tree::absolute).transpose()?;
    if let Some(tree) = &tree {
        tree::tell_odd(tree)?;
    }
    let mut works = BTreeMap::new();
    for load in &study.workloads {
        let mut work = work(study, load)?;
        if let Some(tree) = tree.as_ref().filter(|_| takes_tree(&work)) {
            work.tree_sha256 = tree::digest(tree, work.workload)?;
            work.tree = Some(tree.clone());
        }
        works.insert(load.name.as_str(), work);
    }
    if let Some(tree) = tree
        && works.values().all(|work| work.tree.is_none())
    {
        return Err(Error::input(format!(
            "tree {}: no workload of {} writes a tree; linuxplanet and bootlin do",
            tree.display(),
            study.name
        )));
    }
    Ok(works)
}

/// Whether a workload writes a tree that may be the user's.
fn takes_tree(work: &WorkloadRun) -> bool {
    let spec = WorkloadSpec {
        name: work.workload.name().to_owned(),
        parameters: work.parameters.clone(),
        tree: Some(String::new()),
        unix: true,
        script: None,
        input: None,
    };
    work.workload.check(&spec).is_ok()
}

/// What a load of `study` measures, with the defaults of its workload.
fn work(study: &PerformanceStudy, load: &whichfs_study::StudyWorkload) -> Outcome<WorkloadRun> {
    let workload = whichfs_workload::find(&load.workload).map_err(Error::input)?;
    let defaults = workload.parameters().iter();
    let mut parameters: BTreeMap<String, u64> = defaults
        .map(|parameter| (parameter.name.to_owned(), parameter.default))
        .collect();
    parameters.extend(load.parameters.clone());
    Ok(WorkloadRun {
        workload,
        parameters,
        tree: None,
        tree_sha256: String::new(),
        input: None,
        data_seed: study.same_data.then_some(1),
        partition_bytes: load.partition_bytes,
        any_size: false,
    })
}

/// What the figures of the workloads of `study` leave out in the lab.
pub(super) fn caveats(study: &PerformanceStudy) -> Vec<String> {
    let left_out = study.workloads.iter().filter(|load| load.on_devices);
    let left_out: Vec<&str> = left_out.map(|load| load.name.as_str()).collect();
    let mut all: Vec<String> = Vec::new();
    if !left_out.is_empty() {
        all.push(format!(
            "{}: not run in the lab, which has one CPU; on a device or board: `whichfs study run \
             {} --on DEV`",
            left_out.join(", "),
            study.name
        ));
    }
    for load in &study.workloads {
        let workload = whichfs_workload::find(&load.workload).ok();
        let said = workload.and_then(|workload| workload.caveat());
        let said = said.map(|said| format!("{}: {said}", load.workload));
        all.extend(said.filter(|said| !all.contains(said)));
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::studies::fixture::performance;

    #[test]
    fn a_tree_is_for_those_that_write_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "content").unwrap();
        let study = performance("linuxplanet");
        let works = works(&study, Some(dir.path())).unwrap();
        let has = |name: &str| works[name].tree.is_some();
        assert!(has("kernel tree") && !has("tarball"));
        assert_eq!(works["kernel tree"].tree_sha256.len(), 64);
        let video = performance("pandora");
        let refused = super::works(&video, Some(dir.path())).err().unwrap();
        assert!(refused.message.contains("writes a tree"), "{refused}");
        let none = super::works(&study, Some(&dir.path().join("none")));
        assert!(none.err().unwrap().message.contains("tree "));
    }

    #[test]
    fn what_the_lab_cannot_measure_is_said_once() {
        let said = caveats(&performance("elc2015"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("not measurable in the lab"), "{said:?}");
        assert_eq!(
            caveats(&performance("gentoo")).len(),
            1,
            "of many workloads, once"
        );
        assert!(caveats(&performance("pandora")).is_empty());
    }

    #[test]
    fn several_jobs_are_for_devices_and_the_lab_says_so() {
        let study = performance("elc2015-threads");
        let jobs = |study: &PerformanceStudy| {
            let spots = study.spots_of_seed(1);
            let mut jobs: Vec<u64> = spots
                .iter()
                .filter_map(|spot| spot.load.parameters.get("jobs").copied())
                .collect();
            jobs.dedup();
            jobs
        };
        assert!(
            jobs(&study).is_empty(),
            "one job in the lab: {:?}",
            jobs(&study)
        );
        let said = caveats(&study);
        assert!(said[0].contains("16 jobs: not run in the lab"), "{said:?}");
        assert!(
            said[0].contains("study run elc2015-threads --on DEV"),
            "{said:?}"
        );
        let on_device = PerformanceStudy {
            clock: whichfs_trial::REAL.to_owned(),
            ..study
        };
        assert_eq!(jobs(&on_device), [2, 4, 8, 16]);
    }
}
