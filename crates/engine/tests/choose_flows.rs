//! Flows of `choose`, driven by the mock executor: no guest, no kernel, no device.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use whichfs_decide::Need;
use whichfs_engine::ErrorKind;
use whichfs_engine::choose::Choice;
use whichfs_engine::mock::{MockExecutor, Scripted};
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_engine::question::Question;
use whichfs_engine::trial_cache::{TrialCache, TrialStore};
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_store::{Filter, Put, StoreError};
use whichfs_trial::{Trial, TrialRecord};
use whichfs_units::Nanos;

static NEVER: AtomicBool = AtomicBool::new(false);

/// The logger's question to `candidates`.
fn question(candidates: &[&str]) -> Question {
    Question {
        need: Need::named("logger").unwrap(),
        work: WorkloadRun::named("logger", &BTreeMap::new()).unwrap(),
        candidates: candidates.iter().map(|name| (*name).to_owned()).collect(),
        first_seed: 1,
        seeds: 6,
        second_card: None,
    }
}

fn cache(directory: &Path) -> TrialCache {
    TrialCache::open(Some(directory.join("store.sqlite")), false).unwrap()
}

/// `base` times a scatter of ±1 % that depends on the seed.
fn scattered(base: u64, seed: u64) -> Scripted {
    Scripted::Takes(Nanos(base * 1_000_000 * (99 + seed % 3) / 100))
}

/// Counts what happens.
#[derive(Default)]
struct Heard {
    rounds: usize,
    ended: usize,
    reused: usize,
    excluded: Vec<String>,
}

impl Observer for Heard {
    fn hear(&mut self, event: &ProgressEvent) {
        match event {
            ProgressEvent::RoundBegun { .. } => self.rounds += 1,
            ProgressEvent::Ended { .. } => self.ended += 1,
            ProgressEvent::Reused(count) => self.reused += count,
            ProgressEvent::Excluded { candidate, .. } => self.excluded.push(candidate.clone()),
            _ => {}
        }
    }
}

#[test]
fn the_fastest_wins_and_a_clear_contest_takes_two_seeds_of_two() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| scattered(if name == "f2fs" { 100 } else { 300 }, seed);
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let mut heard = Heard::default();
    let verdict = choice.decide(&mut (), &mut heard).unwrap();
    assert_eq!(verdict.ranking[0].candidate, "f2fs");
    assert_eq!(
        (heard.rounds, heard.ended, mock.runs()),
        (2, 5, 5),
        "one seed decides nothing; the third cannot win"
    );
}

#[test]
fn candidates_with_their_journal_on_a_second_card_compete() {
    let home = tempfile::tempdir().unwrap();
    // In the mock, what is called otherwise takes other times.
    let script = |name: &str, seed| scattered(if name == "xfs+journal" { 100 } else { 300 }, seed);
    let mock = MockExecutor::new(&script);
    let mut asked = question(&["xfs", "f2fs"]);
    asked.offer_second_card("emmc-8gb").unwrap();
    assert_eq!(asked.candidates, ["xfs", "f2fs", "xfs+journal"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let verdict = choice.decide(&mut (), &mut ()).unwrap();
    let best = &verdict.ranking[0];
    assert_eq!(best.candidate, "xfs+journal");
    let said = best.caveats.join("; ");
    assert!(
        said.contains("its journal is on a second card, emmc-8gb"),
        "{said}"
    );
    let commands = verdict.commands.join("\n");
    assert!(commands.contains("logdev=$JOURNAL"), "{commands}");
    let refused = question(&[]).offer_second_card("ram").unwrap_err();
    assert!(refused.message.contains("lost with the power"), "{refused}");
    let unknown = question(&[]).offer_second_card("emmc-8g").unwrap_err();
    assert!(unknown.message.contains("second card: "), "{unknown}");
    let asked = question(&["ext4+journal"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let unnamed = choice.decide(&mut (), &mut ()).unwrap_err();
    assert!(unnamed.message.contains("name that card"), "{unnamed}");
}

#[test]
fn a_close_contest_gets_more_seeds_and_those_behind_do_not() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| match name {
        "ext4" => scattered(100, seed),
        "xfs" => scattered(100, seed + 1),
        _ => scattered(400, seed),
    };
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    choice.decide(&mut (), &mut ()).unwrap();
    let seeds = |name: &str| {
        let trials = choice.found.trials.iter();
        trials
            .filter(|trial| trial.identity.candidate == name)
            .count()
    };
    assert_eq!(seeds("f2fs"), 1, "it cannot win");
    assert!(seeds("ext4") > 1 && seeds("ext4") == seeds("xfs"));
    assert!(seeds("ext4") <= 6);
}

#[test]
fn a_second_run_takes_everything_from_the_cache() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| scattered(if name == "ext4" { 100 } else { 101 }, seed);
    let mut verdicts = Vec::new();
    for run in 0..2 {
        let mock = MockExecutor::new(&script).with_slots(2);
        let asked = question(&["ext4", "xfs"]);
        let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
        let mut heard = Heard::default();
        let mut verdict = choice.decide(&mut (), &mut heard).unwrap();
        verdict.wall_s = 0.0;
        verdicts.push(serde_json::to_string(&verdict).unwrap());
        match run {
            0 => assert!(heard.reused == 0 && mock.runs() as usize == heard.ended),
            _ => assert!(heard.reused > 0 && mock.runs() == 0, "{}", mock.runs()),
        }
    }
    assert_eq!(verdicts[0], verdicts[1]);
}

#[test]
fn an_interrupted_run_keeps_what_had_ended_and_the_next_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let script = |name: &str, seed| {
        if name == "xfs" {
            stop.store(true, Ordering::Relaxed);
        }
        scattered(100, seed)
    };
    // The script of `prepare` would stop it before the first trial: it names no xfs yet.
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "f2fs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &stop, Instant::now());
    let first = choice.run_round(
        &whichfs_decide::plan::first_round(&["ext4".to_owned()], 1),
        &mut (),
    );
    first.unwrap();
    let asked = question(&["ext4", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &stop, Instant::now());
    let stopped = choice.decide(&mut (), &mut ()).unwrap_err();
    assert_eq!(stopped.kind, ErrorKind::Interrupted);
    assert_eq!(mock.runs(), 1, "nothing was begun after the interruption");
    stop.store(false, Ordering::Relaxed);
    let calm = |_: &str, seed| scattered(100, seed);
    let mock = MockExecutor::new(&calm);
    let asked = question(&["ext4", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &stop, Instant::now());
    choice.decide(&mut (), &mut ()).unwrap();
    assert!(choice.reused() >= 1, "the first trial of ext4 was kept");
}

#[test]
fn who_fails_or_cannot_run_is_not_ranked_and_says_why() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| match name {
        "f2fs" => Scripted::Fails("mount: wrong fs type".to_owned()),
        "xfs" => Scripted::Excluded("mkfs.xfs is not installed".to_owned()),
        _ => scattered(100, seed),
    };
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let mut heard = Heard::default();
    let verdict = choice.decide(&mut (), &mut heard).unwrap();
    let names: Vec<&str> = verdict
        .ranking
        .iter()
        .map(|one| one.candidate.as_str())
        .collect();
    assert_eq!(names, ["ext4"]);
    assert_eq!(heard.excluded, ["xfs"]);
    let why = choice
        .found
        .excluded
        .iter()
        .find(|one| one.candidate == "xfs")
        .unwrap();
    assert!(why.why.contains("not installed"));
    assert!(verdict.failed.iter().any(|one| one.candidate == "f2fs"));
    let reasons = whichfs_engine::campaign::failures(&choice.found.trials);
    assert!(reasons[0].reason.contains("wrong fs type"), "{reasons:?}");
}

/// The mock's trial of nilfs2 is ten times as fast, and runs without its cleaner.
#[test]
fn what_cannot_be_sustained_is_measured_and_never_wins() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| scattered(if name == "nilfs2" { 10 } else { 100 }, seed);
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "nilfs2", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let verdict = choice.decide(&mut (), &mut ()).unwrap();
    assert!(verdict.ranking.iter().all(|one| one.candidate != "nilfs2"));
    let apart = &verdict.excluded[0];
    assert_eq!(apart.candidate, "nilfs2");
    assert!(!apart.figures.is_empty() && apart.why.contains("never reclaimed"));
}

#[test]
fn a_machine_that_cannot_run_trials_ends_the_run_with_its_own_kind() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| match name {
        "xfs" => Scripted::Breaks("no memory".to_owned()),
        _ => scattered(100, seed),
    };
    let mock = MockExecutor::new(&script);
    let asked = question(&["ext4", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    let error = choice.decide(&mut (), &mut ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Environment);
    assert!(
        error.message.starts_with("xfs, seed 1: no memory"),
        "{error}"
    );
}

#[test]
fn figures_of_a_run_do_not_depend_on_how_many_trials_run_at_once() {
    let verdict = |slots| {
        let home = tempfile::tempdir().unwrap();
        let script = |name: &str, seed| scattered(100 + name.len() as u64, seed);
        let mock = MockExecutor::new(&script).with_slots(slots);
        let asked = question(&[]);
        let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
        let mut verdict = choice.decide(&mut (), &mut ()).unwrap();
        verdict.wall_s = 0.0;
        serde_json::to_string(&verdict).unwrap()
    };
    assert_eq!(verdict(1), verdict(7));
}

/// A store on a disk that is full from the second trial on.
struct FullStore {
    inner: whichfs_store::Store,
    room: usize,
}

impl TrialStore for FullStore {
    fn get(&self, id: &str) -> Result<Option<TrialRecord>, StoreError> {
        self.inner.get(id)
    }

    fn put(&mut self, trial: &Trial, wall_ns: u64, at: i64) -> Result<Put, StoreError> {
        match self.room.checked_sub(1) {
            Some(left) => {
                self.room = left;
                self.inner.put(trial, wall_ns, at)
            }
            None => Err(StoreError::Full {
                path: self.inner.path().to_owned(),
                detail: "database or disk is full".to_owned(),
            }),
        }
    }

    fn find(&self, filter: &Filter) -> Result<Vec<TrialRecord>, StoreError> {
        self.inner.find(filter)
    }

    fn require_writable(&self) -> Result<(), StoreError> {
        self.inner.require_writable()
    }
}

#[test]
fn nobody_hears_of_a_trial_that_a_full_disk_could_not_keep() {
    let home = tempfile::tempdir().unwrap();
    let script = |_: &str, seed| scattered(100, seed);
    let mock = MockExecutor::new(&script);
    let store = FullStore {
        inner: whichfs_store::Store::open(&home.path().join("store.sqlite")).unwrap(),
        room: 1,
    };
    let cache = TrialCache::over(Box::new(store), false);
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache, &NEVER, Instant::now());
    let mut heard = Heard::default();
    let error = choice.decide(&mut (), &mut heard).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Environment);
    assert!(error.message.contains("no room"), "{error}");
    assert_eq!(
        (heard.ended, mock.runs()),
        (1, 2),
        "the second was not kept, the third not begun"
    );
}

#[test]
fn those_that_can_win_are_run_for_long_and_what_exercised_nothing_is_told() {
    let home = tempfile::tempdir().unwrap();
    let script = |name: &str, seed| scattered(if name == "f2fs" { 400 } else { 100 }, seed);
    let (mock, long) = (MockExecutor::new(&script), MockExecutor::new(&script));
    let long = long.called("cut down");
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    choice.long_executor = Some(&long);
    let verdict = choice.decide(&mut (), &mut ()).unwrap();
    let names = choice.found.sustained.iter();
    let mut names: Vec<&str> = names.map(|one| one.identity.candidate.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ext4", "xfs"], "f2fs is too far behind");
    assert_eq!(long.runs(), 4, "what is free, and the long run, of each");
    let is_small = |one: &Trial| one.identity.card == "cut down";
    assert!(!choice.found.trials.iter().any(is_small));
    // The mock card erases nothing.
    let xfs = verdict
        .ranking
        .iter()
        .find(|one| one.candidate == "xfs")
        .unwrap();
    let said = &xfs.caveats;
    assert!(
        said.iter().any(|one| one.contains("was not exercised")),
        "{said:?}"
    );
}

#[test]
fn one_that_cannot_be_run_for_long_keeps_its_other_figures_and_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    let script = |_: &str, seed| scattered(100, seed);
    let small = |name: &str, seed| match name {
        "xfs" => Scripted::Excluded("too small".to_owned()),
        "f2fs" => Scripted::Fails("no space left".to_owned()),
        _ => scattered(100, seed),
    };
    let (mock, long) = (MockExecutor::new(&script), MockExecutor::new(&small));
    let long = long.called("cut down");
    let asked = question(&["ext4", "f2fs", "xfs"]);
    let mut choice = Choice::new(asked, &mock, cache(home.path()), &NEVER, Instant::now());
    choice.long_executor = Some(&long);
    let verdict = choice.decide(&mut (), &mut ()).unwrap();
    assert_eq!(verdict.ranking.len(), 3);
    for (name, why) in [("xfs", "too small"), ("f2fs", "no space left")] {
        let own = verdict
            .ranking
            .iter()
            .find(|one| one.candidate == name)
            .unwrap();
        let is_told = |said: &String| said.contains("not measured") && said.contains(why);
        assert!(own.caveats.iter().any(is_told), "{name}: {:?}", own.caveats);
    }
}
