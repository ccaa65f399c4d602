//! A result to test with.

use std::collections::BTreeMap;
use whichfs_crash::{Checked, Condition, Cut, CutResult, Finding, Outcome, Place};
use whichfs_units::Nanos;

/// What became of cut `number`: one file was lost.
pub fn result(number: u64) -> CutResult {
    CutResult {
        cut: Cut {
            number,
            request: 7,
            place: Place::Inside,
            at: Nanos(5),
            seed: number,
        },
        recovery: Vec::new(),
        window: (3, 4),
        condition: Condition::DurableLost,
        broken: true,
        mount: Some(Nanos(9)),
        fsck_check: Some(Nanos(7)),
        fsck_repair: None,
        measured: None,
        outcomes: BTreeMap::from([(Outcome::Right, 5), (Outcome::Missing, 1)]),
        checked: Checked {
            mounted: Some(Ok(())),
            findings: vec![finding("a", true)],
            ..Checked::default()
        },
    }
}

/// What was found at `path`, which is missing.
pub fn finding(path: &str, broken: bool) -> Finding {
    Finding {
        path: path.into(),
        outcome: Outcome::Missing,
        broken,
        durable: broken,
        what: "it was durable".into(),
    }
}
