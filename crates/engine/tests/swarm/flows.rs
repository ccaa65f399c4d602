//! The flows: what a process of whichfs does from its start to its end or its death.

use super::parts::{Canary, CutEar, FaultyFile, FaultyStore, SwarmCuts, SwarmExecutor};
use super::scenario::{Flow, Scenario};
use super::world::{Ear, World};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use whichfs_decide::{Budget, Need, Verdict};
use whichfs_engine::campaign::session;
use whichfs_engine::choose::Choice;
use whichfs_engine::choose_on_device::DeviceChoice;
use whichfs_engine::crash::archive::SeriesArchive;
use whichfs_engine::crash::campaign::CrashCampaign;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::images::Images;
use whichfs_engine::mock::MockExecutor;
use whichfs_engine::question::Question;
use whichfs_engine::studies;
use whichfs_engine::study_run::{StudyTrials, bench_of, failed, rows, works};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_engine::{Error, ErrorKind, Outcome};
use whichfs_store::Store;
use whichfs_study::{PerformanceStudy, Smallest, Study};
use whichfs_units::MIB;

/// Runs one process of `scenario` in `world` with its files in `home`: the text of its answer.
pub fn process(
    scenario: &Scenario,
    world: &Arc<World>,
    home: &Path,
    canary: Option<Canary>,
) -> Outcome<String> {
    match scenario.flow {
        Flow::Cuts => cuts(scenario, world, home, canary),
        Flow::Study => study(scenario, world, home, canary),
        Flow::Choose => choose(scenario, world, home, canary),
        Flow::Device | Flow::Remote => device(scenario, world, home, canary),
    }
}

fn cache(world: &Arc<World>, home: &Path, canary: Option<Canary>) -> Outcome<TrialCache> {
    let path = home.join("store.sqlite");
    let store = FaultyStore {
        inner: Store::open(&path).map_err(Error::environment)?,
        world: world.clone(),
        path,
        canary,
    };
    Ok(TrialCache::over(Box::new(store), false))
}

fn question(scenario: &Scenario) -> Question {
    let need = Need::named(scenario.need).unwrap();
    Question {
        work: WorkloadRun::named(&need.workload, &need.parameters).unwrap(),
        need,
        candidates: scenario
            .candidates
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        first_seed: 1,
        seeds: scenario.seeds,
        second_card: None,
    }
}

/// A verdict without what the wall clock says.
fn text(mut verdict: Verdict) -> String {
    verdict.wall_s = 0.0;
    serde_json::to_string(&verdict).unwrap()
}

/// The answer of a run that ended as `ended`; the canary tells the verdict of one that did not.
fn answer(
    ended: Outcome<Verdict>,
    half: impl FnOnce() -> Outcome<Verdict>,
    canary: Option<Canary>,
) -> Outcome<String> {
    match ended {
        Err(error)
            if canary == Some(Canary::JudgesHalfARound) && error.kind == ErrorKind::Interrupted =>
        {
            half().map(text)
        }
        ended => ended.map(text),
    }
}

fn choose(
    scenario: &Scenario,
    world: &Arc<World>,
    home: &Path,
    canary: Option<Canary>,
) -> Outcome<String> {
    let script = |name: &str, seed| scenario.scripted(name, seed);
    let executor = SwarmExecutor {
        mock: MockExecutor::new(&script).with_slots(scenario.slots),
        world,
        canary,
        restarts: false,
    };
    let cache = cache(world, home, canary)?;
    let (asked, flag) = (question(scenario), &world.interrupted);
    let mut choice = Choice::new(asked, &executor, cache, flag, Instant::now());
    let ended = choice.decide(&mut (), &mut Ear(world));
    answer(ended, || choice.verdict(&()), canary)
}

/// The limit of bytes of `scenario`, in some of those on devices. With one the verdict depends on
/// what earlier processes wrote.
pub fn limit(scenario: &Scenario) -> Option<u64> {
    let on_device = matches!(scenario.flow, Flow::Device | Flow::Remote);
    (on_device && scenario.cuts.is_multiple_of(4)).then_some(scenario.cuts * 300 * MIB)
}

fn device(
    scenario: &Scenario,
    world: &Arc<World>,
    home: &Path,
    canary: Option<Canary>,
) -> Outcome<String> {
    world.look().on_device = true;
    let mut cache = cache(world, home, canary)?;
    let script = |name: &str, seed| scenario.scripted(name, seed);
    let number = session(&mut cache, "mock")?;
    let mut executor = SwarmExecutor {
        mock: MockExecutor::new(&script).on_device(number),
        world,
        canary,
        restarts: scenario.flow == Flow::Remote,
    };
    let budget = Budget {
        time: None,
        bytes: limit(scenario),
    };
    let (asked, flag) = (question(scenario), &world.interrupted);
    let mut choice = DeviceChoice::new(&asked, number, cache, flag, budget, Instant::now());
    let images = Images::unbuilt();
    let decided = choice.decide(&mut executor, &|_| Ok(()), &images, &mut Ear(world));
    let ended = decided.map(|(verdict, _)| verdict);
    answer(ended, || choice.verdict(&executor), canary)
}

/// A small study: a shipped one with few variants, cards and seeds.
fn small_study(scenario: &Scenario) -> PerformanceStudy {
    let Ok(Study::Performance(study)) = studies::open("alignment") else {
        panic!("alignment is a shipped study of trials");
    };
    let mut study = study.quick();
    study.variants.truncate(2);
    study.workloads.truncate(1);
    study.cards.truncate(1 + (scenario.cuts % 2) as usize);
    study.seeds = scenario.seeds.min(2);
    study.candidates = scenario
        .candidates
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    study.smallest = scenario.cuts.is_multiple_of(3).then(|| Smallest {
        workload: study.workloads[0].name.clone(),
        resolution_bytes: 64 * MIB,
        largest_bytes: 512 * MIB,
    });
    study
}

fn study(
    scenario: &Scenario,
    world: &Arc<World>,
    home: &Path,
    canary: Option<Canary>,
) -> Outcome<String> {
    let study = small_study(scenario);
    let script = |name: &str, seed| scenario.scripted(name, seed);
    let mut benches = BTreeMap::new();
    for bench in study.spots().iter().map(bench_of) {
        let mock = MockExecutor::new(&script).with_slots(scenario.slots);
        let executor = SwarmExecutor {
            mock: mock.called(bench.0),
            world,
            canary,
            restarts: false,
        };
        benches.insert(bench, executor);
    }
    let cache = cache(world, home, canary)?;
    let works = works(&study, None)?;
    let mut trials = StudyTrials::new(&study, benches, works, cache, &world.interrupted);
    let ended = trials.run(None, &|_| (), &mut Ear(world));
    match ended {
        Err(error)
            if canary == Some(Canary::JudgesHalfARound) && error.kind == ErrorKind::Interrupted => {
        }
        ended => drop(ended?),
    }
    let all = trials.trials();
    let mut failures = failed(&study, &all);
    failures.sort();
    let smallest = trials.smallest(true, &mut Ear(world))?;
    let smallest = smallest
        .iter()
        .map(|one| (one.spot.candidate, one.bytes, &one.why));
    Ok(format!(
        "{:?}\n{failures:?}\n{:?}\n{:?}",
        rows(&study, &all),
        trials.left_out(),
        smallest.collect::<Vec<_>>()
    ))
}

/// The series of cuts of `scenario`.
pub fn spec(scenario: &Scenario) -> Spec {
    Spec {
        fs: scenario.candidates[0].to_owned(),
        mount: None,
        card: "mock".to_owned(),
        card_state: "used".to_owned(),
        board: "mock".to_owned(),
        clock: "mock".to_owned(),
        workload: scenario.need.to_owned(),
        parameters: BTreeMap::new(),
        script: None,
        returns: false,
        partition_bytes: 512 * MIB,
        faults: Default::default(),
        cuts: Selection::Random(scenario.cuts),
        recovery: 0,
        fsck: true,
        seed: scenario.seed,
        measured: None,
        made_by: Makers::default(),
    }
}

fn cuts(
    scenario: &Scenario,
    world: &Arc<World>,
    home: &Path,
    canary: Option<Canary>,
) -> Outcome<String> {
    let directory = home.join("cuts");
    let through = |inner| {
        let world = world.clone();
        let directory = directory.clone();
        Box::new(FaultyFile {
            inner,
            world,
            canary,
            directory,
            torn: false,
        }) as Box<dyn std::io::Write>
    };
    let opened = SeriesArchive::open_through(&directory, &spec(scenario), false, &through)?;
    let mut campaign = CrashCampaign::new(opened, (0..scenario.cuts).collect(), false);
    let mut cuts = SwarmCuts {
        world,
        workers: scenario.slots,
    };
    campaign.run(&mut cuts, &world.interrupted, &mut CutEar(world))?;
    Ok(format!("{:?}", campaign.into_results()))
}
