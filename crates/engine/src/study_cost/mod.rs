//! What the trials of a study will write, and about how long those take that were never run here.

mod durations;

pub use durations::about;

use crate::error::{Error as Failure, Outcome};
use std::collections::BTreeMap;
use whichfs_study::Spot;
use whichfs_trial::WorkloadSpec;
use whichfs_workload::Phase;

/// What trials write into files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WrittenAmount {
    /// Bytes, at least.
    pub bytes: u64,
    /// Workloads whose programs write what nobody knows beforehand.
    pub unknown: Vec<String>,
}

/// What the trials at `spots` write; each workload is counted with the first seed.
pub fn amount<'a>(spots: impl Iterator<Item = &'a Spot<'a>>) -> Outcome<WrittenAmount> {
    let mut amounts = Amounts::default();
    let mut all = WrittenAmount::default();
    for spot in spots {
        all.bytes += amounts.of(spot)?;
        let workload = &spot.load.workload;
        let programs = whichfs_workload::find(workload).is_ok_and(|known| known.runs_programs());
        if programs && !all.unknown.contains(workload) {
            all.unknown.push(workload.clone());
        }
    }
    Ok(all)
}

/// The bytes that trials write, each kind counted once.
#[derive(Default)]
pub struct Amounts(BTreeMap<(String, bool), u64>);

impl Amounts {
    /// Bytes that the trial at `spot` writes, at least.
    pub fn of(&mut self, spot: &Spot) -> Outcome<u64> {
        let candidate = whichfs_fs::find(spot.candidate);
        let read_only = candidate.is_ok_and(|candidate| candidate.facts().read_only);
        let key = (spot.load.name.clone(), read_only);
        if let Some(&bytes) = self.0.get(&key) {
            return Ok(bytes);
        }
        let load = spot.load;
        let told = operations(&load.workload, &load.parameters, read_only)?;
        let bytes = told.max(written(spot));
        self.0.insert(key, bytes);
        Ok(bytes)
    }
}

/// Bytes that a trial writes at least, as far as its workload says so.
pub fn written(spot: &Spot) -> u64 {
    let given = spot.load.parameters.get("bytes").copied();
    given.unwrap_or_else(|| {
        let workload = whichfs_workload::find(&spot.load.workload).ok();
        let parameters = workload
            .map(|workload| workload.parameters())
            .unwrap_or_default();
        let bytes = parameters
            .iter()
            .find(|parameter| parameter.name == "bytes");
        bytes.map_or(0, |parameter| parameter.default)
    })
}

/// Bytes of content that the operations of a workload write: all of them, or those of the tree
/// alone that is put into an image. Phases that are programs have none.
pub fn operations(
    workload: &str,
    parameters: &BTreeMap<String, u64>,
    read_only: bool,
) -> Outcome<u64> {
    let workload = whichfs_workload::find(workload).map_err(Failure::input)?;
    let spec = WorkloadSpec {
        name: workload.name().to_owned(),
        parameters: parameters.clone(),
        tree: None,
        unix: true,
        script: None,
        input: None,
    };
    let phases = workload.phases().iter();
    let mut bytes = 0;
    for phase in phases.take(if read_only { 1 } else { usize::MAX }) {
        if let Phase::Operations(_) = workload.phase(phase) {
            let stream = workload.operations(phase.name, &spec, None, 1);
            let each = stream.map_err(Failure::input)?.map(|op| op.written());
            bytes += each.sum::<u64>();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::studies::fixture::performance;

    fn of(name: &str, workload: &str, candidate: &str) -> WrittenAmount {
        let study = performance(name);
        let spots = study.spots();
        let is = |spot: &&Spot| spot.load.name == workload && spot.candidate == candidate;
        amount(spots.iter().filter(is).take(1)).unwrap()
    }

    #[test]
    fn all_that_operations_write_counts() {
        let videos = of("bootlin", "videos", "ext4");
        assert!(videos.bytes > 5 * 317_000_000, "{videos:?}");
        let copies = of("bootlin-copies", "copies", "ext4");
        assert_eq!(copies.bytes, 10 * 319_000_000);
        let bonnie = of("pandora", "bonnie", "ext4");
        assert!(bonnie.bytes > 2 << 30, "written and rewritten: {bonnie:?}");
    }

    #[test]
    fn an_image_has_the_tree_alone() {
        let ext4 = of("bootlin", "root filesystem", "ext4");
        let erofs = of("bootlin", "root filesystem", "erofs");
        assert_eq!(erofs.bytes, 1_200_000_000);
        assert!(ext4.bytes > erofs.bytes, "{ext4:?}");
    }

    #[test]
    fn programs_are_named_for_nobody_knows_what_they_write() {
        assert_eq!(of("gentoo", "plain", "ext4").unknown, ["stack"]);
        assert!(of("pandora", "bonnie", "ext4").unknown.is_empty());
    }
}
