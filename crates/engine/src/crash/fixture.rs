//! A series of cuts and a result to test with, here and in programs that show them.

use super::check::Result;
use super::spec::{Makers, Selection, Spec};
use std::collections::BTreeMap;
use whichfs_crash::{
    Checked, Cut, CutPlace, Faults, FilesystemCondition, PathFinding, PathOutcome,
};
use whichfs_units::Nanos;

/// What became of cut `number`: one file was lost.
pub fn result(number: u64) -> Result {
    Result {
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

/// A series of ext4 on the default card.
pub fn spec() -> Spec {
    Spec {
        fs: "ext4".into(),
        mount: None,
        card: "a1-32gb".into(),
        card_state: "used".into(),
        board: "generic-1ghz".into(),
        clock: "cpu".into(),
        workload: "rootfs".into(),
        parameters: BTreeMap::from([("bytes".into(), 1 << 24)]),
        script: None,
        returns: false,
        partition_bytes: 1 << 29,
        faults: Faults::new(),
        cuts: Selection::Random(20),
        recovery: 0,
        fsck: true,
        seed: 1,
        measured: None,
        made_by: Makers::default(),
    }
}
