//! The JSON Schema of every document that a command prints with `--json`, and that of an error.

use crate::commands::attach::{AttachedCard, Detached, EndedCard};
use crate::commands::crash::{CrashMinimise, CrashReplay, CrashRun, PlanLine, RecordLine};
use crate::commands::identify::CardIdentity;
use whichfs_crash::FaultFacts;
use whichfs_engine::board::SpeedBasis;
use whichfs_engine::doctor::MachineCheck;
use whichfs_probe::{CapacityReport, Findings, Rescue, Sweep};
use whichfs_report::documents::board::{BoardLine, BoardShown};
use whichfs_report::documents::cache::CacheShown;
use whichfs_report::documents::card::{CardLine, CardShown};
use whichfs_report::documents::card_rank::CardRankShown;
use whichfs_report::documents::check::CheckReport;
use whichfs_report::documents::doctor::Doctor;
use whichfs_report::documents::error::ErrorDocument;
use whichfs_report::documents::exec::LabExec;
use whichfs_report::documents::fit::CardFit;
use whichfs_report::documents::format::Formatted;
use whichfs_report::documents::fs::{FsComparison, FsLine, FsShown, FsWhyDocument};
use whichfs_report::documents::image::ImageDocument;
use whichfs_report::documents::kernel::LabKernel;
use whichfs_report::documents::life::CardLife;
use whichfs_report::documents::need::{NeedLine, NeedShown};
use whichfs_report::documents::planned::{CutsImported, StoreImported, TrialChecked};
use whichfs_report::documents::store::{StoreChanged, StoreChecked, StoreInfo, TrialListed};
use whichfs_report::documents::study::{
    CrashStudyShown, FleetRun, JudgedClaim, StudyRun, StudyShown,
};
use whichfs_report::documents::workload::{WorkloadLine, WorkloadShown};
use whichfs_report::{CrashPage, DocumentSchema, Page, ResultRow, Sweeps, TrialTold};
use whichfs_study::{Comparison, Study, TrialRequest};
use whichfs_trial::TrialRecord;

/// All of them, sorted by name.
pub fn all() -> Vec<DocumentSchema> {
    let mut all = vec![
        DocumentSchema::of::<ErrorDocument>(),
        DocumentSchema::of::<Page>(),
        DocumentSchema::of::<LabExec>(),
        DocumentSchema::of::<LabKernel>(),
        DocumentSchema::of::<CrashRun>(),
        DocumentSchema::of::<CrashReplay>(),
        DocumentSchema::of::<CrashMinimise>(),
        DocumentSchema::of::<PlanLine>(),
        DocumentSchema::of::<RecordLine>(),
        DocumentSchema::of::<CutsImported>(),
        DocumentSchema::of_list::<FaultFacts>(),
        DocumentSchema::of_list::<Study>(),
        DocumentSchema::of::<StudyShown>(),
        DocumentSchema::of::<CrashStudyShown>(),
        DocumentSchema::of::<StudyRun>(),
        DocumentSchema::of::<FleetRun>(),
        DocumentSchema::of::<CrashPage>(),
        DocumentSchema::of_list::<JudgedClaim>(),
        DocumentSchema::of::<Comparison>(),
        DocumentSchema::of::<Sweep>(),
        DocumentSchema::of::<Sweeps>(),
        DocumentSchema::of::<TrialTold>(),
        DocumentSchema::of_list::<TrialListed>(),
        DocumentSchema::of::<StoreInfo>(),
        DocumentSchema::of::<StoreChanged>(),
        DocumentSchema::of::<StoreChecked>(),
        DocumentSchema::of::<StoreImported>(),
        DocumentSchema::of::<TrialRequest>(),
        DocumentSchema::of::<TrialRecord>(),
        DocumentSchema::of::<TrialChecked>(),
        DocumentSchema::of::<CacheShown>(),
        DocumentSchema::of_list::<NeedLine>(),
        DocumentSchema::of::<NeedShown>(),
        DocumentSchema::of_list::<CardLine>(),
        DocumentSchema::of::<CardShown>(),
        DocumentSchema::of::<CardFit>(),
        DocumentSchema::of::<CardIdentity>(),
        DocumentSchema::of::<CardLife>(),
        DocumentSchema::of::<CardRankShown>(),
        DocumentSchema::of::<EndedCard>(),
        DocumentSchema::of_list::<AttachedCard>(),
        DocumentSchema::of_list::<Detached>(),
        DocumentSchema::of::<Findings>(),
        DocumentSchema::of::<CapacityReport>(),
        DocumentSchema::of::<Rescue>(),
        DocumentSchema::of::<Formatted>(),
        DocumentSchema::of::<CheckReport>(),
        DocumentSchema::of::<ImageDocument>(),
        DocumentSchema::of_list::<FsLine>(),
        DocumentSchema::of::<FsShown>(),
        DocumentSchema::of::<FsWhyDocument>(),
        DocumentSchema::of_list::<FsComparison>(),
        DocumentSchema::of_list::<BoardLine<SpeedBasis>>(),
        DocumentSchema::of::<BoardShown<SpeedBasis>>(),
        DocumentSchema::of_list::<WorkloadLine>(),
        DocumentSchema::of::<WorkloadShown>(),
        DocumentSchema::of::<Doctor<MachineCheck>>(),
        DocumentSchema::of_rows::<ResultRow>("results"),
    ];
    all.sort_by_key(|one| one.name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_of_one_schema() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), all.len());
    }
}
