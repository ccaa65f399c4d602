//! What a campaign promises, one example each: the mock executor, no guest, no device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use whichfs_decide::Budget;
use whichfs_engine::Outcome;
use whichfs_engine::campaign::{Answers, Campaign, Fair, InOrder, Wanted, WantedTrial};
use whichfs_engine::executor::TrialSpec;
use whichfs_engine::images::Images;
use whichfs_engine::mock::{MockExecutor, Scripted};
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_study::Variant;
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
