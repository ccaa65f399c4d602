//! The agent is at fault: it says that data are durable, and did not ask for it.

#![allow(clippy::unwrap_used)]

use super::check::{Checker, Result};
use super::fixture::spec;
use super::record::{Recorded, RecordingPlan};
use super::spec::Spec;
use crate::board::{self, Board};
use crate::cards::{self, CardState};
use crate::clock::Clock;
use crate::lab_executor::LabExecutor;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_blockdev::Logged;
use whichfs_crash::{Cut, FilesystemCondition, PathOutcome, Promise, random_cuts};
use whichfs_units::MIB;

use whichfs_testkit::skip;

const CUTS: u64 = 16;

fn bench() -> LabExecutor {
    let mut board = board::DEFAULT.to_owned();
    let clock = Clock::parse("cpu", &mut board).unwrap();
    LabExecutor::new(
        cards::open("a1-32gb").unwrap(),
        CardState::Used,
        Board::open(&board).unwrap(),
        clock,
        Duration::from_secs(300),
        1,
    )
    .unwrap()
}

/// The same promises without their fsync: each is given before the first request after the one
/// before it reaches the card.
fn rash(promises: &mut [Promise], log: &[Logged]) {
    let honest: Vec<_> = promises.iter().map(|promise| promise.at).collect();
    for (promise, before) in promises.iter_mut().skip(1).zip(honest) {
        let next = log.partition_point(|request| request.arrived <= before);
        if let Some(request) = log.get(next) {
            promise.at.0 = promise.at.0.min(request.arrived.0 - 1);
        }
    }
}

fn judge(plan: &RecordingPlan, recorded: &Recorded, cuts: &[Cut]) -> Vec<Result> {
    let mut checker = Checker::new(plan, recorded);
    let never = AtomicBool::new(false);
    cuts.iter()
        .map(|cut| checker.check(cut, None, &never).unwrap())
        .collect()
}

#[test]
fn lab_promises_without_fsync_are_caught() {
    let lab = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    if lab.iter().any(|name| std::env::var_os(name).is_none()) {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
        return;
    }
    let bench = bench();
    let spec = Spec {
        workload: "logger".into(),
        parameters: BTreeMap::from([("records".into(), 1000)]),
        partition_bytes: 64 * MIB,
        fsck: false,
        ..spec()
    };
    let plan = RecordingPlan::new(&bench, &spec).unwrap();
    let mut recorded = plan.record(None, &AtomicBool::new(false)).unwrap();
    let cuts = random_cuts(recorded.timeline.log(), recorded.first, CUTS, 1);
    let honest = judge(&plan, &recorded, &cuts);
    assert!(honest.iter().all(|result| !result.broken));
    rash(&mut recorded.run.promises, recorded.timeline.log());
    let caught: Vec<Result> = judge(&plan, &recorded, &cuts)
        .into_iter()
        .filter(|result| result.broken)
        .collect();
    assert!(
        !caught.is_empty(),
        "a promise without fsync was not noticed"
    );
    // What was promised is not there; what is there is right.
    let lost = [
        PathOutcome::Missing,
        PathOutcome::Emptied,
        PathOutcome::Truncated,
        PathOutcome::Old,
    ];
    for result in &caught {
        assert_eq!(
            result.condition,
            FilesystemCondition::DurableLost,
            "{result:#?}"
        );
        let broken = result
            .checked
            .findings
            .iter()
            .filter(|finding| finding.broken);
        for finding in broken {
            assert!(lost.contains(&finding.outcome), "{finding:?}");
        }
    }
}
