//! A result to test with.

use std::collections::BTreeMap;
use whichfs_crash::{
    Checked, Cut, CutPlace, CutResult, FilesystemCondition, PathFinding, PathOutcome,
};
use whichfs_units::Nanos;

/// What became of cut `number`: one file was lost.
pub fn result(number: u64) -> CutResult {
    CutResult {
        cut: Cut {
            number,
            request: 7,
            place: CutPlace::Inside,
            at: Nanos(5),
            seed: number,
        },
        recovery: Vec::new(),
        window: (3, 4),
        condition: FilesystemCondition::DurableLost,
        broken: true,
        mount: Some(Nanos(9)),
        fsck_check: Some(Nanos(7)),
        fsck_repair: None,
        measured: None,
        live: None,
        outcomes: BTreeMap::from([(PathOutcome::Right, 5), (PathOutcome::Missing, 1)]),
        checked: Checked {
            mounted: Some(Ok(())),
            findings: vec![finding("a", true)],
            ..Checked::default()
        },
    }
}

/// What was found at `path`, which is missing.
pub fn finding(path: &str, broken: bool) -> PathFinding {
    PathFinding {
        path: path.into(),
        outcome: PathOutcome::Missing,
        broken,
        durable: broken,
        what: "it was durable".into(),
    }
}
