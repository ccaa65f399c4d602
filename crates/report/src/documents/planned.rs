//! Trials that cross machines: planned ones, their records, and what became of these in a store.

use crate::document::Document;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use whichfs_study::TrialRequest;
use whichfs_trial::TrialRecord;
use whichfs_units::counted;

impl Document for TrialRequest {
    const NAME: &'static str = TrialRequest::DOCUMENT;
    const SCHEMA: u32 = TrialRequest::SCHEMA;
}

impl Document for TrialRecord {
    const NAME: &'static str = TrialRecord::DOCUMENT;
    const SCHEMA: u32 = TrialRecord::SCHEMA;
}

/// The line of `trial run --check` for a planned trial that this machine would make.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialChecked {
    /// Id of the trial.
    pub id: String,
}

impl Document for TrialChecked {
    const NAME: &'static str = "trial run --check";
}

/// The document of `store import`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreImported {
    /// File of the store.
    pub store: PathBuf,
    /// Records that were not in the store.
    pub new: u64,
    /// Records that took the place of a failed trial.
    pub replaced: u64,
    /// Records that the store had.
    pub known: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// The first hundred of these.
    pub refusals: Vec<ImportRefusal>,
    /// Trials of the plan that the store has no figures of; absent without a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

/// A line that was refused.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportRefusal {
    /// File that it stands in, or `-`.
    pub source: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong, with the remedy.
    pub why: String,
}

impl Document for StoreImported {
    const NAME: &'static str = "store import";
}

/// What became of records, in lines.
pub fn imported_text(imported: &StoreImported) -> String {
    let StoreImported {
        store,
        new,
        replaced,
        known,
        refused,
        refusals,
        missing,
    } = imported;
    let mut text = String::new();
    for refusal in refusals {
        let ImportRefusal { source, line, why } = refusal;
        let _ = writeln!(text, "{source}, line {line}: refused: {why}");
    }
    let unlisted = refused.saturating_sub(refusals.len() as u64);
    if unlisted > 0 {
        let more = counted(unlisted, "more line");
        let _ = writeln!(text, "… and {more} refused");
    }
    let _ = writeln!(
        text,
        "{}: {new} new, {replaced} in place of failed ones, {known} known, {refused} refused",
        store.display()
    );
    match missing {
        Some(0) => text.push_str("the plan is complete\n"),
        Some(missing) => {
            let _ = writeln!(
                text,
                "of the plan {} missing: `whichfs study plan --only-missing` names them",
                counted(*missing, "trial")
            );
        }
        None => {}
    }
    text
}

/// The document of `crash import`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutsImported {
    /// Directory of the archive.
    pub directory: PathBuf,
    /// Cuts that the archive did not have.
    pub new: u64,
    /// Cuts that it had.
    pub known: u64,
    /// Lines that were refused.
    pub refusals: Vec<ImportRefusal>,
    /// Cuts of the plan that the archive lacks; absent without a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

impl Document for CutsImported {
    const NAME: &'static str = "crash import";
}

/// What became of records of cuts, in lines.
pub fn cuts_imported_text(imported: &CutsImported) -> String {
    let mut text = String::new();
    for ImportRefusal { source, line, why } in &imported.refusals {
        let _ = writeln!(text, "{source}, line {line}: refused: {why}");
    }
    let (new, known) = (imported.new, imported.known);
    let _ = writeln!(
        text,
        "{}: {new} new, {known} known, {} refused",
        imported.directory.display(),
        imported.refusals.len()
    );
    match imported.missing {
        Some(0) => text.push_str("the plan is complete\n"),
        Some(missing) => {
            let _ = writeln!(
                text,
                "of the plan {} missing: `whichfs crash plan --only-missing` names them",
                counted(missing, "cut")
            );
        }
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_and_what_is_missing_is_told() {
        let mut imported = StoreImported {
            store: "/s".into(),
            new: 2,
            refused: 101,
            refusals: vec![ImportRefusal {
                source: "a.jsonl".to_owned(),
                line: 7,
                why: "it is cut off".to_owned(),
            }],
            missing: Some(3),
            ..StoreImported::default()
        };
        let text = imported_text(&imported);
        for told in [
            "a.jsonl, line 7: refused: it is cut off\n",
            "… and 100 more lines refused\n",
            "/s: 2 new, 0 in place of failed ones, 0 known, 101 refused\n",
            "3 trials missing: `whichfs study plan --only-missing`",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
        imported.missing = Some(0);
        assert!(imported_text(&imported).ends_with("the plan is complete\n"));
    }

    #[test]
    fn cuts_that_are_missing_are_told() {
        let mut imported = CutsImported {
            directory: "/c".into(),
            new: 7,
            refusals: vec![ImportRefusal {
                source: "-".to_owned(),
                line: 2,
                why: "it is cut off".to_owned(),
            }],
            missing: Some(1),
            ..CutsImported::default()
        };
        let text = cuts_imported_text(&imported);
        assert_eq!(
            text,
            "-, line 2: refused: it is cut off\n/c: 7 new, 0 known, 1 refused\nof the plan 1 cut \
             missing: `whichfs crash plan --only-missing` names them\n"
        );
        imported.missing = Some(0);
        assert!(cuts_imported_text(&imported).ends_with("the plan is complete\n"));
    }
}
