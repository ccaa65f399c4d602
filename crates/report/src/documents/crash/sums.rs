//! What a program asks of series of cuts first: how many cuts came to what, all filesystems
//! together, and the worst of them.

use super::row::severity;
use super::series::CutReport;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use whichfs_crash::{CutPlace, CutResult, FilesystemCondition};

/// Most cuts in the list of the worst ones.
const WORST: usize = 10;

/// Numbers of cuts.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutSums {
    /// All of them.
    cuts: u64,
    clean: u64,
    journal_recovery: u64,
    read_only: u64,
    needs_fsck: u64,
    repaired: u64,
    repaired_with_loss: u64,
    mount_failed: u64,
    unfixable: u64,
    card_failed: u64,
    durable_lost: u64,
    silent_corruption: u64,
    oops: u64,
    hang: u64,
    /// Those that broke a promise, whatever they are called.
    broken: u64,
    /// Broken promises first, then by what became of the filesystem.
    worst: Vec<WorstCut>,
}

/// A cut that did harm.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct WorstCut {
    fs: String,
    /// Seed of what chance decided at that cut.
    seed: u64,
    /// The request at which it was; a real device does not show them.
    at_request: Option<usize>,
    place: CutPlace,
    condition: FilesystemCondition,
    broken: bool,
    /// The command that shows it again; none of an image that was given.
    replay: Option<String>,
}

impl CutSums {
    /// Those of `reports`.
    pub fn of(reports: &[CutReport]) -> CutSums {
        let mut sums = CutSums::default();
        let mut all: Vec<(&CutReport, &CutResult)> = Vec::new();
        for report in reports {
            for result in &report.cuts {
                sums.cuts += 1;
                sums.broken += u64::from(result.broken);
                *sums.count(result.condition) += 1;
            }
            all.extend(
                worst_first(&report.cuts)
                    .into_iter()
                    .map(|cut| (report, cut)),
            );
        }
        all.sort_by_key(|(_, result)| rank(result));
        sums.worst = all.into_iter().take(WORST).map(worst).collect();
        sums
    }

    fn count(&mut self, condition: FilesystemCondition) -> &mut u64 {
        match condition {
            FilesystemCondition::Clean => &mut self.clean,
            FilesystemCondition::Recovered => &mut self.journal_recovery,
            FilesystemCondition::ReadOnly => &mut self.read_only,
            FilesystemCondition::NeedsCheck => &mut self.needs_fsck,
            FilesystemCondition::Repaired => &mut self.repaired,
            FilesystemCondition::RepairedWithLoss => &mut self.repaired_with_loss,
            FilesystemCondition::MountFailed => &mut self.mount_failed,
            FilesystemCondition::Unfixable => &mut self.unfixable,
            FilesystemCondition::CardFailed => &mut self.card_failed,
            FilesystemCondition::DurableLost => &mut self.durable_lost,
            FilesystemCondition::SilentCorruption => &mut self.silent_corruption,
            FilesystemCondition::Oops => &mut self.oops,
            FilesystemCondition::Hang => &mut self.hang,
        }
    }
}

/// The cuts that did harm, the worst first: broken promises, then by what became of the filesystem.
pub fn worst_first(cuts: &[CutResult]) -> Vec<&CutResult> {
    let harmful = |cut: &&CutResult| cut.broken || severity(cut.condition) > 0;
    let mut bad: Vec<&CutResult> = cuts.iter().filter(harmful).collect();
    bad.sort_by_key(|cut| (rank(cut), cut.cut.number));
    bad
}

fn rank(result: &CutResult) -> (bool, Reverse<u8>) {
    (!result.broken, Reverse(severity(result.condition)))
}

fn worst((report, result): (&CutReport, &CutResult)) -> WorstCut {
    let cut = &result.cut;
    let series = report.series.as_ref();
    WorstCut {
        fs: report.fs.clone(),
        seed: cut.seed,
        at_request: (cut.place != CutPlace::Unseen).then_some(cut.request),
        place: cut.place,
        condition: result.condition,
        broken: result.broken,
        replay: series.map(|series| format!("whichfs crash replay {series}-{}", cut.number)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixture::result;
    use super::super::series::CutReport;
    use super::*;
    use whichfs_crash::contract;

    fn report(fs: &str, cuts: Vec<CutResult>) -> CutReport {
        let (series, contract) = (format!("of-{fs}"), contract(fs, "").unwrap());
        CutReport::new(Some(series), fs, "", contract, cuts)
    }

    fn cut(number: u64, condition: FilesystemCondition, broken: bool) -> CutResult {
        CutResult {
            condition,
            broken,
            ..result(number)
        }
    }

    #[test]
    fn every_cut_is_counted_once_and_the_worst_come_first() {
        let one = report(
            "ext4",
            vec![
                cut(0, FilesystemCondition::Clean, false),
                cut(1, FilesystemCondition::Recovered, false),
                cut(2, FilesystemCondition::DurableLost, true),
                cut(3, FilesystemCondition::NeedsCheck, false),
            ],
        );
        let other = report(
            "vfat",
            vec![
                cut(0, FilesystemCondition::DurableLost, false),
                cut(1, FilesystemCondition::SilentCorruption, true),
            ],
        );
        let sums = CutSums::of(&[one, other]);
        let counts = (
            sums.cuts,
            sums.clean,
            sums.journal_recovery,
            sums.needs_fsck,
        );
        assert_eq!(counts, (6, 1, 1, 1));
        assert_eq!((sums.durable_lost, sums.silent_corruption), (2, 1));
        assert_eq!(sums.broken, 2);
        let order: Vec<_> = sums
            .worst
            .iter()
            .filter_map(|w| w.replay.as_deref())
            .collect();
        let again = |id: &str| format!("whichfs crash replay of-{id}");
        let ids = ["vfat-1", "ext4-2", "vfat-0", "ext4-3"].map(again);
        assert_eq!(order, ids);
    }

    #[test]
    fn few_of_many_are_told() {
        let cuts = (0..40).map(|number| cut(number, FilesystemCondition::DurableLost, true));
        let sums = CutSums::of(&[report("ext4", cuts.collect())]);
        assert_eq!((sums.cuts, sums.worst.len()), (40, WORST));
    }
}
