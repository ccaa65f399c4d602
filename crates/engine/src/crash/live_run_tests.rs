//! What is done in a run on a card that fails, and how the lab's filesystems meet it.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::board::{self, Board};
use crate::cards::{self, CardState};
use crate::clock::Clock;
use crate::crash::check::Checker;
use crate::crash::fixture::spec;
use crate::crash::spec::Spec;
use crate::lab_executor::LabExecutor;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use whichfs_blockdev::{LiveDamage, NEVER};
use whichfs_crash::FilesystemCondition;
use whichfs_units::MIB;

#[test]
fn a_failure_ends_the_workload_and_not_the_look_at_the_system() {
    let unmount = || Step::Unmount {
        phase: Some("unmount".to_owned()),
        target: MOUNT_POINT.to_owned(),
    };
    let all = [Step::DropCaches, unmount(), Step::DropCaches, unmount()];
    let steps = steps(&all);
    assert!(matches!(&steps[0], Step::Try { steps, .. } if steps[..] == [Step::DropCaches]));
    let unmounts = steps.iter().filter(|step| {
        matches!(step, Step::Try { steps, .. } if matches!(steps[..], [Step::Unmount { .. }]))
    });
    assert_eq!(unmounts.count(), 1);
}

#[test]
fn only_the_device_under_test_counts_as_read_only() {
    assert!(is_read_only("/dev/vda /mnt/test ext4 ro,noatime 0 0"));
    assert!(!is_read_only(
        "/dev/vda /mnt/test ext4 rw,errors=remount-ro 0 0"
    ));
    assert!(!is_read_only("/dev/vdc / iso9660 ro 0 0"));
    assert!(!is_read_only(""));
}

#[test]
fn after_an_error_the_unmount_promises_nothing_and_every_fsync_that_returned_does() {
    let promise = |call: &str| Promise {
        at: whichfs_units::Nanos(1),
        call: call.to_owned(),
        path: String::new(),
        operations: 3,
    };
    let calls = ["fsync", "syncfs", "O_SYNC", whichfs_trial::RETURNED];
    let all = || {
        calls
            .iter()
            .chain(&["umount"])
            .map(|call| promise(call))
            .collect::<Vec<_>>()
    };
    let kept = |outcome| {
        let mut promises = all();
        withdraw_unmount(outcome, &mut promises);
        promises
    };
    assert_eq!(
        kept(SystemOutcome::Completed),
        all(),
        "nobody was told of a failure"
    );
    for outcome in [
        SystemOutcome::ErrorReturned,
        SystemOutcome::ReadOnly,
        SystemOutcome::ShutDown,
        SystemOutcome::UnmountHangs,
        SystemOutcome::ProgramHangs,
        SystemOutcome::Oops,
    ] {
        assert_eq!(kept(outcome), all()[..calls.len()], "{outcome:?}");
    }
}

/// What became of `fs` on a card that does `damage` from the middle of the workload on, or from
/// never on; and of the image.
fn outcome(fs: &str, damage: LiveDamage, never: bool) -> (LiveRun, FilesystemCondition) {
    let mut board = board::DEFAULT.to_owned();
    let clock = Clock::parse("cpu", &mut board).unwrap();
    let lab = LabExecutor::new(
        cards::open("a1-32gb").unwrap(),
        CardState::Used,
        Board::open(&board).unwrap(),
        clock,
        Duration::from_secs(300),
        1,
    );
    let lab = lab.unwrap();
    let spec = Spec {
        fs: fs.to_owned(),
        workload: "logger".into(),
        parameters: BTreeMap::from([("records".into(), 300)]),
        partition_bytes: 512 * MIB,
        faults: ["live-hang".parse().unwrap()].into(),
        ..spec()
    };
    let plan = RecordingPlan::new(&lab, &spec).unwrap();
    let interrupted = AtomicBool::new(false);
    let good = plan.record(None, &interrupted).unwrap();
    let cut = spec.cuts(&good)[0];
    let log = good.timeline.log();
    let middle = log[(good.first + log.len()) / 2].arrived;
    let fault = LiveFault {
        from: if never { NEVER } else { middle },
        alternates: None,
        damage,
    };
    let failed = befallen(&plan, &good, (&cut, vec![fault]), None, &interrupted).unwrap();
    let mut checker = Checker::new(&plan, &failed.recorded);
    let result = checker.check(&failed.cut, None, &interrupted).unwrap();
    (failed.run, result.condition)
}

fn has_lab() -> bool {
    let lab = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    let there = lab.iter().all(|name| std::env::var_os(name).is_some());
    if !there {
        whichfs_testkit::skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set");
    }
    there
}

#[test]
fn lab_a_fault_that_never_begins_leaves_all_as_it_was() {
    if !has_lab() {
        return;
    }
    for fs in ["ext4", "xfs"] {
        let (run, condition) = outcome(fs, LiveDamage::Hang, true);
        assert_eq!(run.outcome, SystemOutcome::Completed, "{run:#?}");
        assert_eq!((run.hits, run.error), (0, None));
        assert_eq!(condition, FilesystemCondition::Clean, "{fs}");
    }
}

#[test]
fn lab_a_card_that_answers_no_more_hangs_the_program_and_not_this_process() {
    if !has_lab() {
        return;
    }
    let begun = Instant::now();
    let (run, condition) = outcome("ext4", LiveDamage::Hang, false);
    assert_eq!(run.outcome, SystemOutcome::ProgramHangs, "{run:#?}");
    assert!(run.hits > 0 && run.ended.is_some());
    assert_eq!(condition, FilesystemCondition::Recovered, "by its journal");
    assert!(
        begun.elapsed() < Duration::from_secs(120),
        "in virtual time"
    );
}

#[test]
fn lab_a_card_that_refuses_writes_makes_ext4_read_only_and_shuts_xfs_down() {
    if !has_lab() {
        return;
    }
    let (run, _) = outcome("ext4", LiveDamage::FailWrites, false);
    assert_eq!(run.outcome, SystemOutcome::ReadOnly, "{run:#?}");
    assert!(matches!(run.errno, Some(5 | 30)), "{run:#?}");
    assert!(run.noticed >= run.hit && run.stopped.is_some(), "{run:#?}");
    let (run, _) = outcome("xfs", LiveDamage::FailWrites, false);
    assert_eq!(run.outcome, SystemOutcome::ShutDown, "{run:#?}");
}
