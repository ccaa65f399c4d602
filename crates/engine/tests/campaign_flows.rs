//! What a campaign promises, one example each: the mock executor, no guest, no device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use whichfs_decide::Budget;
use whichfs_engine::campaign::{Answers, Campaign, Fair, InOrder, Wanted, WantedTrial};
use whichfs_engine::executor::{Executor, TrialSpec};
use whichfs_engine::images::Images;
use whichfs_engine::mock::{MockExecutor, Scripted};
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_engine::study_run::{DeviceMatrix, PlacedStudy, run_fleet, works};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_engine::{ErrorKind, Outcome, studies};
use whichfs_study::{PerformanceStudy, Study, Variant};
use whichfs_units::Nanos;

static NEVER: AtomicBool = AtomicBool::new(false);

type MockCampaign<'a> = Campaign<'a, MockExecutor<'a>, &'static str>;

fn campaign<'a>(home: &Path) -> MockCampaign<'a> {
    let cache = TrialCache::open(Some(home.join("store.sqlite")), false).unwrap();
    Campaign::new(cache, &NEVER)
}

/// Wants trials of ext4, each by its key and its seed.
fn plan<'a>(
    campaign: &mut MockCampaign<'a>,
    executor: &MockExecutor<'a>,
    wanted: &[(&'static str, u64)],
) -> Outcome<Vec<WantedTrial>> {
    let work = WorkloadRun::named("logger", &BTreeMap::new())?;
    let variant = Variant::default();
    let wanted = wanted.iter().map(|(key, seed)| {
        let spec = TrialSpec {
            candidate: whichfs_fs::find("ext4").unwrap(),
            work: &work,
            variant: &variant,
            seed: *seed,
        };
        Wanted::of(*key, spec)
    });
    campaign.plan(executor, wanted, &Images::unbuilt(), &|_, error| error)
}

fn quick(_: &str, _: u64) -> Scripted {
    Scripted::Takes(Nanos(1_000_000))
}

/// The names of the trials that ended.
#[derive(Default)]
struct Names(Vec<String>);

impl Observer for Names {
    fn hear(&mut self, event: &ProgressEvent) {
        if let ProgressEvent::Ended { what, .. } = event {
            self.0.push(what.clone());
        }
    }
}

#[test]
fn what_comes_to_the_same_commands_runs_once_and_counts_for_both() {
    let home = tempfile::tempdir().unwrap();
    let mock = MockExecutor::new(&quick);
    let mut campaign = campaign(home.path());
    plan(&mut campaign, &mock, &[("plain", 1), ("tuned", 1)]).unwrap();
    let order = &mut InOrder::default();
    campaign.run(&mock, "trials", order, &mut ()).unwrap();
    let keys: Vec<&str> = campaign.by_key().map(|(key, _)| *key).collect();
    assert_eq!((mock.runs(), keys), (1, vec!["plain", "tuned"]));
}

#[test]
fn when_the_time_is_over_no_trial_begins() {
    let home = tempfile::tempdir().unwrap();
    let mock = MockExecutor::new(&quick);
    let mut campaign = campaign(home.path());
    plan(&mut campaign, &mock, &[("plain", 1)]).unwrap();
    let mut order = InOrder::until(Some(Instant::now()));
    campaign.run(&mock, "trials", &mut order, &mut ()).unwrap();
    assert!(order.stopped && mock.runs() == 0 && campaign.missing().count() == 1);
}

#[test]
fn a_failed_trial_runs_again_unless_failing_is_an_answer() {
    let home = tempfile::tempdir().unwrap();
    let fails = |_: &str, _: u64| Scripted::Fails("no space".to_owned());
    let mock = MockExecutor::new(&fails);
    let runs = |answers| {
        let mut campaign = campaign(home.path());
        campaign.accept(answers);
        plan(&mut campaign, &mock, &[("plain", 1)]).unwrap();
        let before = mock.runs();
        let order = &mut InOrder::default();
        campaign.run(&mock, "trials", order, &mut ()).unwrap();
        mock.runs() - before
    };
    assert_eq!(
        [Answers::Done, Answers::Done, Answers::Any].map(runs),
        [1, 1, 0]
    );
}

#[test]
fn on_a_device_the_first_run_does_not_count_and_a_reference_runs_before_and_after() {
    let home = tempfile::tempdir().unwrap();
    let mock = MockExecutor::new(&quick).on_device(1);
    let mut campaign = campaign(home.path());
    plan(&mut campaign, &mock, &[("plain", 1), ("plain", 2)]).unwrap();
    let card = ("mock", 1);
    let budget = Budget::default();
    let mut order = Fair::of(campaign.matrix(), &campaign.cache, card, budget).unwrap();
    let mut names = Names::default();
    campaign
        .run(&mock, "trials", &mut order, &mut names)
        .unwrap();
    let expected = [
        "ext4, seed 1 (not counted: the first)",
        "ext4, seed 1 (reference run 1)",
        "ext4, seed 1",
        "ext4, seed 2",
        "ext4, seed 1 (reference run 2)",
    ];
    assert_eq!(names.0, expected);
    assert_eq!((order.references(), campaign.trials().count()), (2, 2));
    let kept = campaign.cache.measured_on("mock").unwrap();
    assert_eq!(kept.len(), 4, "the discarded run is not kept");
}

#[test]
fn three_failures_of_a_device_in_a_row_end_its_campaign_and_say_what_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let broken = |_: &str, _: u64| Scripted::Fails("write: EIO: I/O error".to_owned());
    let mock = MockExecutor::new(&broken).on_device(1);
    let mut campaign = campaign(home.path());
    plan(&mut campaign, &mock, &[("plain", 1), ("plain", 2)]).unwrap();
    let card = ("mock", 1);
    let budget = Budget::default();
    let mut order = Fair::of(campaign.matrix(), &campaign.cache, card, budget).unwrap();
    let error = campaign
        .run(&mock, "trials", &mut order, &mut ())
        .unwrap_err();
    assert_eq!(mock.runs(), 3);
    assert!(
        error
            .message
            .contains("0 finished trials kept: is it sound?"),
        "{error}"
    );
}

/// Who ended what, and on which worker.
#[derive(Default)]
struct Workers(Vec<(usize, String)>);

impl Observer for Workers {
    fn hear(&mut self, event: &ProgressEvent) {
        if let ProgressEvent::Ended { worker, what, .. } = event {
            self.0.push((*worker, what.clone()));
        }
    }
}

#[test]
fn a_board_that_fails_stops_no_other_of_the_fleet_and_each_has_its_own_budget() {
    let home = tempfile::tempdir().unwrap();
    let study = match studies::open("pandora").unwrap() {
        Study::Performance(study) => study.quick(),
        Study::Crash(_) => panic!("it has trials"),
    };
    let mut study = study;
    study
        .candidates
        .retain(|name| name == "ext4" || name == "ext2");
    let ran = AtomicUsize::new(0);
    let breaks = |_: &str, _: u64| match ran.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Scripted::Takes(Nanos(1_000_000)),
        _ => Scripted::Breaks("labgrid place b: somebody released it".to_owned()),
    };
    let mocks = [
        MockExecutor::new(&quick).called("a").on_device(1),
        MockExecutor::new(&breaks).called("b").on_device(1),
        MockExecutor::new(&quick).called("c").on_device(1),
    ];
    let run = |observer: &mut Workers| {
        let parts = mocks.iter().map(|mock| {
            // Two trials of 1 MiB are within that, and what the estimates add.
            let is_limited = mock.capabilities().card == "c";
            let bytes = is_limited.then_some(3 << 20);
            placed(&study, mock, home.path(), &NEVER, bytes)
        });
        let mut parts: Vec<PlacedStudy<'_, _>> = parts.collect();
        run_fleet(&mut parts, &mocks, observer).unwrap();
        parts
    };
    let mut heard = Workers::default();
    let parts = run(&mut heard);
    let all = study.spots().len();
    let done: Vec<usize> = parts
        .iter()
        .map(|part| part.matrix.trials().len())
        .collect();
    assert_eq!(done[0], all, "a ran all");
    assert!(done[1] < all && done[2] < all, "{done:?}");
    assert!(parts[0].ended.is_none() && parts[2].ended.is_none());
    let why = parts[1].ended.as_ref().unwrap();
    assert!(why.message.contains("somebody released it"), "{why}");
    assert!(parts[2].order.stopped.is_some(), "c had no bytes left");
    let named = |(worker, what): &(usize, String)| what.starts_with(["a: ", "b: ", "c: "][*worker]);
    assert!(heard.0.iter().all(named), "{:?}", heard.0);

    // What had finished is known to the next run of the fleet.
    let again = run(&mut Workers::default());
    assert_eq!(again[0].matrix.campaign.cache.reused, done[0]);
    assert_eq!(again[1].matrix.campaign.cache.reused, done[1]);
}

/// The study on the device of `mock`, which may write so many `bytes`.
fn placed<'a>(
    study: &'a PerformanceStudy,
    mock: &MockExecutor<'a>,
    home: &Path,
    stop: &'a AtomicBool,
    bytes: Option<u64>,
) -> PlacedStudy<'a, MockExecutor<'a>> {
    let cache = TrialCache::open(Some(home.join("store.sqlite")), false).unwrap();
    let works = works(study, None).unwrap();
    let images = Images::unbuilt();
    let matrix = DeviceMatrix::new(study, mock, &works, cache, &images, stop, &mut ()).unwrap();
    let (card, campaign) = (mock.capabilities().card, &matrix.campaign);
    let budget = Budget { time: None, bytes };
    let order = Fair::of(campaign.matrix(), &campaign.cache, (&card, 1), budget).unwrap();
    PlacedStudy {
        study,
        place: card,
        matrix,
        order,
        ended: None,
    }
}

#[test]
fn a_signal_ends_all_of_a_fleet() {
    let home = tempfile::tempdir().unwrap();
    let study = match studies::open("pandora").unwrap() {
        Study::Performance(study) => study.quick(),
        Study::Crash(_) => panic!("it has trials"),
    };
    let stop = AtomicBool::new(false);
    let mocks = ["a", "b"].map(|name| MockExecutor::new(&quick).called(name).on_device(1));
    let parts = mocks.iter();
    let parts = parts.map(|mock| placed(&study, mock, home.path(), &stop, None));
    let mut parts: Vec<PlacedStudy<'_, _>> = parts.collect();
    let error = run_fleet(&mut parts, &mocks, &mut AfterOne(&stop)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

/// Interrupts when the first trial has ended.
struct AfterOne<'s>(&'s AtomicBool);

impl Observer for AfterOne<'_> {
    fn hear(&mut self, event: &ProgressEvent) {
        if matches!(event, ProgressEvent::Ended { .. }) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
