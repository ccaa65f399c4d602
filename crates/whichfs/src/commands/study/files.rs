//! Study files: the shipped ones and those of the user.

use crate::failure::{Failure, Outcome};
use crate::names;
use std::collections::BTreeMap;
use whichfs_crash::Fault;
use whichfs_study::{Known, STUDIES, Study};
use whichfs_trial::WorkloadSpec;

/// All shipped studies, sorted by name.
pub fn all() -> Outcome<Vec<Study>> {
    let parse = |(file, text): &(&str, &str)| parse(file, text);
    STUDIES.iter().map(parse).collect()
}

/// The shipped study `name`, or the one in the file of this name.
pub fn open(name: &str) -> Outcome<Study> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = std::fs::read_to_string(name)
            .map_err(|e| Failure::input(format!("{name}: {e}; name a file that can be read")))?;
        return parse(name, &text);
    }
    let all = all()?;
    let known: Vec<String> = all.iter().map(|study| study.name.clone()).collect();
    let found = all.into_iter().find(|study| study.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Failure::input(names::unknown("study", name, &known))
    })
}

fn parse(file: &str, text: &str) -> Outcome<Study> {
    let filesystems: Vec<&str> = whichfs_fs::candidates()
        .iter()
        .map(|candidate| candidate.name)
        .filter(|name| whichfs_crash::contract(name, "").is_some())
        .collect();
    let known = Known {
        filesystems: &filesystems,
        faults: &Fault::ALL.map(Fault::name),
        workload: &takes,
    };
    Study::parse(file, text, &known).map_err(Failure::input)
}

/// Whether there is such a workload, and takes these parameters.
fn takes(name: &str, parameters: &BTreeMap<String, u64>) -> Result<(), String> {
    let workload = whichfs_workload::find(name).map_err(|e| e.to_string())?;
    let spec = WorkloadSpec {
        name: name.to_owned(),
        parameters: parameters.clone(),
        tree: None,
        unix: true,
        script: None,
    };
    workload.check(&spec).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_shipped_study_is_whole_and_named_as_its_file() {
        let all = all().unwrap();
        for (study, (file, _)) in all.iter().zip(STUDIES) {
            assert_eq!(format!("studies/{}.toml", study.name), file);
            assert!(study.cells().len() > 1);
        }
        assert_eq!(open("elc2015-power").unwrap().cuts, 226);
        let error = open("elc2015").unwrap_err();
        assert!(error.message.contains("elc2015-power"), "{error}");
    }

    #[test]
    fn a_workload_that_cannot_be_is_refused_with_what_can() {
        assert!(takes("rootfs", &BTreeMap::new()).is_ok());
        let wrong = BTreeMap::from([("byte".to_owned(), 1)]);
        assert!(takes("rootfs", &wrong).unwrap_err().contains("bytes"));
        assert!(takes("rootfss", &BTreeMap::new()).is_err());
    }
}
