//! Studies: what they are, what they have to do, and what they gave.

mod cases;
mod claims;
mod columns;
mod crash;
mod crash_shown;
mod device;
#[cfg(test)]
mod fixture;
mod fleet;
mod gains;
mod performance;
mod plan;
mod smallest;

pub use cases::study_cases;
pub use claims::{JudgedClaim, claims_text};
pub use crash::{add_series, compare_mounts, crash_group, crash_study_text, cuts_item};
pub use crash_shown::{CrashStudyShown, crash_study_definition};
pub use device::{DeviceAfter, DeviceCosts, device_sentences, drift_told, time_words};
pub(crate) use fleet::SCATTER_HEAD;
pub use fleet::{FleetRun, PlaceRun, fleet_page, fleet_text};
pub use gains::{GainTable, gain_tables};
pub use performance::{StudyPlace, StudyRun, StudyShown, study_definition, study_page, study_text};
pub use plan::{ExpectedTime, StudyPlan, study_plan_text};
pub use smallest::SmallestFound;

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_decide::{BudgetLimit, Drift};
use whichfs_study::Study;
use whichfs_units::counted;

/// What was seen of a device beside figures; part of the JSON document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceMeasured {
    /// Where it is: its path, or its address on a board (`ssh://…`, `labgrid:…`).
    pub path: String,
    /// What tells the device from others.
    pub device: String,
    /// Which of the series on it.
    pub session: u64,
    /// Bytes written to it in the session.
    pub written_bytes: u64,
    /// Runs by which changes are seen.
    pub reference_runs: usize,
    /// Changes that they show.
    pub drifts: Vec<Drift>,
    /// What of the budget was used up.
    pub stopped: Option<BudgetLimit>,
}

impl Document for Study {
    const NAME: &'static str = "study list";
}

/// All studies, in lines of at most `width` columns.
pub fn studies_text(all: &[Study], width: usize) -> String {
    let mut out = Lines::new(width);
    let rows = all.iter().map(|study| {
        let (size, title) = match study {
            Study::Crash(study) => (
                format!(
                    "{} series of {}",
                    study.cells().len(),
                    counted(study.cuts, "cut")
                ),
                &study.title,
            ),
            Study::Performance(study) => (counted(study.spots().len(), "trial"), &study.title),
        };
        vec![study.name().to_owned(), size, title.clone()]
    });
    out.table(&["study", "size", "question"], rows.collect());
    out.text()
}

/// The paragraphs of a text of a study, each in one line.
pub fn paragraphs(text: &str) -> Vec<String> {
    let parts = text.split("\n\n").map(|part| part.replace('\n', " "));
    parts.map(|part| part.trim().to_owned()).collect()
}
