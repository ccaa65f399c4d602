//! A seeded swarm in the manner of TigerBeetle's VOPR: a seed decides a flow, its trials, and
//! faults at moments of it. Processes run until one ends, each on what the one before has left.
//!
//! Whatever strikes, at the end of each process:
//! - nothing is lost: a trial or cut that somebody heard of is in the store or archive;
//! - nothing is doubled: none that is kept runs again or is kept again;
//! - nothing is left behind: no lease, no temporary file;
//! - a run fails only if a fault struck it, and the answer at last is that of a run without faults.
//!
//! Each canary breaks one part on purpose, and the swarm must find that. One seed again, with all
//! that happened: `WHICHFS_SWARM_SEED=7 cargo test --release -p whichfs-engine --test all
//! swarm_replay -- --nocapture`.

mod flows;
mod parts;
mod scenario;
mod world;

use flows::{limit, process, spec};
use parts::{CANARIES, Canary, remains};
use scenario::{Flow, Scenario};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use whichfs_engine::ErrorKind;
use whichfs_engine::crash::archive;
use whichfs_store::Store;
use world::{Fault, World};

/// A directory that lives in memory where the machine has such: the swarm tries what is kept, not
/// how fast a disk is.
fn home() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm"); // tidy: path: a directory in memory, if there is one
    let made = tempfile::Builder::new()
        .prefix("whichfs-swarm")
        .tempdir_in(memory);
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

/// What a seed came to: what is broken, and the trace.
struct Ran {
    broken: Vec<String>,
    trace: Vec<String>,
}

/// Runs `seed`, with the broken part `canary` if there is one.
fn run(seed: u64, canary: Option<Canary>) -> Ran {
    let scenario = Scenario::of(seed);
    let calm = Arc::new(World::new(BTreeMap::new()));
    let place = home();
    let expected = process(&scenario, &calm, place.path(), None);
    let mut broken = calm.look().faults_found.clone();
    let expected = expected.unwrap_or_else(|error| {
        broken.push(format!("without a fault: {error}"));
        String::new()
    });
    let faults = scenario.faults(calm.look().moments);
    let most = faults.len() + 1;
    let world = Arc::new(World::new(faults));
    let place = home();
    let mut answer = None;
    for _ in 0..most {
        world.begin_process();
        let ended = process(&scenario, &world, place.path(), canary);
        check_end(&scenario, &world, place.path(), &ended);
        if let Ok(text) = ended
            && !world.is_dead()
        {
            answer = Some(text);
            break;
        }
    }
    match answer {
        None => world.broken(format!("no answer after {most} processes")),
        Some(text) if text != expected && limit(&scenario).is_none() => {
            world.broken(format!(
                "the answer is another one: {}",
                difference(&text, &expected)
            ));
        }
        Some(_) => {}
    }
    let happened = world.look();
    broken.extend(happened.faults_found.iter().cloned());
    Ran {
        broken,
        trace: [vec![format!("{scenario:?}")], happened.trace.clone()].concat(),
    }
}

/// What must hold when a process has ended.
fn check_end(
    scenario: &Scenario,
    world: &World,
    home: &Path,
    ended: &whichfs_engine::Outcome<String>,
) {
    let (struck, dead, leases) = {
        let happened = world.look();
        (happened.struck.clone(), happened.dead, happened.leases)
    };
    if let Err(error) = ended {
        let asked = struck.contains(&Fault::Interrupt);
        let harm = struck.iter().any(|fault| !matches!(fault, Fault::Slow));
        if !harm || (error.kind == ErrorKind::Interrupted && !asked) {
            world.broken(format!("it failed for no reason: {error}"));
        }
    }
    check_nothing_is_lost(scenario, world, home);
    if dead {
        return;
    }
    if leases > 0 {
        world.broken(format!("{leases} leases are held after the end"));
    }
    let left = [remains(home), remains(&home.join("cuts"))].concat();
    if !left.is_empty() {
        world.broken(format!("left behind: {}", left.join(", ")));
    }
}

/// Whatever somebody heard of is kept.
fn check_nothing_is_lost(scenario: &Scenario, world: &World, home: &Path) {
    let (reported, cuts) = {
        let happened = world.look();
        (happened.reported.clone(), happened.reported_cuts.clone())
    };
    if scenario.flow == Flow::Cuts {
        let read = archive::read(&home.join("cuts"), &spec(scenario).id());
        let kept = read.map(|(_, kept)| kept).unwrap_or_default();
        for number in cuts.iter().filter(|number| !kept.contains_key(number)) {
            world.broken(format!("cut {number} is lost"));
        }
        return;
    }
    let store = Store::open(&home.join("store.sqlite")).unwrap();
    for (what, id) in reported {
        if !matches!(store.get(&id), Ok(Some(_))) {
            world.broken(format!("{what} is lost"));
        }
    }
}

/// Where two answers differ.
fn difference(found: &str, expected: &str) -> String {
    let same = found
        .bytes()
        .zip(expected.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let part = |text: &str| {
        let bytes = text.as_bytes();
        let from = same.saturating_sub(60).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..bytes.len().min(same + 60)]).into_owned()
    };
    format!("…{} for …{}", part(found), part(expected))
}

/// What is broken in `seed`, a panic too.
fn broken_in(seed: u64, canary: Option<Canary>) -> Vec<String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run(seed, canary).broken));
    ran.unwrap_or_else(|_| vec!["it panicked".to_owned()])
}

/// Runs `seeds` on all cores; fails with the first seed that breaks something.
fn swarm(seeds: std::ops::Range<u64>) {
    let next = AtomicU64::new(seeds.start);
    let begun = Instant::now();
    let failed = std::sync::Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while failed.lock().unwrap().is_empty() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let broken = broken_in(seed, None);
                    if !broken.is_empty() {
                        failed.lock().unwrap().insert(seed, broken);
                    }
                }
            });
        }
    });
    let count = seeds.end - seeds.start;
    eprintln!(
        "swarm: {count} seeds in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    if let Some((seed, broken)) = failed.into_inner().unwrap().pop_first() {
        panic!(
            "seed {seed}: {}\nagain, with all that happened: WHICHFS_SWARM_SEED={seed} cargo test \
             --release -p whichfs-engine --test all swarm_replay -- --nocapture",
            broken.join("\n")
        );
    }
}

#[test]
fn swarm_smoke() {
    swarm(0..300);
}

#[test]
fn swarm_ten_thousand_seeds() {
    swarm(0..10_000);
}

#[test]
fn swarm_replay_of_one_seed_with_its_trace() {
    let given = std::env::var("WHICHFS_SWARM_SEED").ok();
    let seed = given.as_deref().map_or(Ok(1), str::parse).unwrap();
    let ran = run(seed, None);
    if given.is_some() {
        for line in &ran.trace {
            eprintln!("{line}");
        }
    }
    assert!(ran.broken.is_empty(), "seed {seed}: {:?}", ran.broken);
}

#[test]
fn swarm_the_same_seed_is_the_same_run() {
    let of_one_slot = (0..).filter(|seed| Scenario::of(*seed).slots == 1);
    for seed in of_one_slot.take(20) {
        assert_eq!(run(seed, None).trace, run(seed, None).trace, "seed {seed}");
    }
}

/// Whether `canary` breaks a part that `flow` has.
fn concerns(canary: Canary, flow: Flow) -> bool {
    let of_cuts = [Canary::JoinsTornLines, Canary::LeavesAFile];
    of_cuts.contains(&canary) == (flow == Flow::Cuts)
}

#[test]
fn swarm_finds_every_planted_fault() {
    const SEEDS: usize = 400;
    for canary in CANARIES {
        let mut seeds = (0..).filter(|seed| concerns(canary, Scenario::of(*seed).flow));
        let broken = |seed| broken_in(seed, Some(canary)).into_iter().next();
        let found = seeds
            .by_ref()
            .take(SEEDS)
            .find_map(|seed| Some((seed, broken(seed)?)));
        eprintln!("{canary:?}: {found:?}");
        assert!(found.is_some(), "{canary:?} is not found in {SEEDS} seeds");
    }
}
