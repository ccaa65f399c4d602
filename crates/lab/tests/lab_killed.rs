//! `kill -9` of the engine's process: the guest must not survive it.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::traces::{alive, directories, own_session, sessions_of, wait_until};
use common::{Trial, one_at_a_time, shell};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Set for the process that is to be killed: the seed of its guest.
const SEED: &str = "WHICHFS_TEST_GUEST_SEED";
/// How long the guest may outlive its engine.
const GRACE: Duration = Duration::from_secs(5);

/// Not a test by itself: the process that the other tests kill.
#[test]
fn lab_helper_runs_a_guest_until_it_is_killed() {
    let Ok(seed) = std::env::var(SEED) else {
        return;
    };
    let writes = shell("while :; do dd if=/dev/zero of=/dev/vda bs=4k count=1000; done");
    if let Some(trial) = Trial::new(seed.parse().unwrap(), vec![writes]) {
        let life = trial.run();
        panic!("the guest ended by itself: {:?}", life.result);
    }
}

fn engine(seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "lab_killed::lab_helper_runs_a_guest_until_it_is_killed",
        ])
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for the guest of `seed`; its session.
fn guest(seed: u64) -> BTreeSet<u32> {
    let own = own_session();
    let mut sessions = BTreeSet::new();
    let came = wait_until(Duration::from_secs(20), || {
        sessions = sessions_of(seed);
        sessions.remove(&own);
        !sessions.is_empty()
    });
    assert!(came, "no guest of seed {seed} came up");
    sessions
}

#[test]
fn lab_a_running_guest_dies_with_its_engine() {
    let _one = one_at_a_time();
    if Trial::new(0, Vec::new()).is_none() {
        return;
    }
    let mut engine = engine(201);
    let sessions = guest(201);
    let connected = || directories(engine.id()).is_empty();
    assert!(
        wait_until(Duration::from_secs(20), connected),
        "removed once connected"
    );
    let programs = || alive(&sessions).len() > 2;
    assert!(
        wait_until(Duration::from_secs(20), programs),
        "programs run in the guest"
    );
    engine.kill().unwrap();
    engine.wait().unwrap();
    let gone = wait_until(GRACE, || alive(&sessions).is_empty());
    assert!(gone, "left: {:?}", alive(&sessions));
    assert_eq!(directories(engine.id()), [""; 0]);
}

#[test]
fn lab_a_guest_that_boots_dies_with_its_engine() {
    let _one = one_at_a_time();
    if Trial::new(0, Vec::new()).is_none() {
        return;
    }
    for (seed, after) in (210..).zip([0, 5, 20, 50]) {
        let mut engine = engine(seed);
        let sessions = guest(seed);
        std::thread::sleep(Duration::from_millis(after));
        engine.kill().unwrap();
        engine.wait().unwrap();
        let gone = wait_until(GRACE, || alive(&sessions).is_empty());
        assert!(gone, "after {after} ms, left: {:?}", alive(&sessions));
        // Killed before the guest had connected, the directory is left: the next guest,
        // whoever runs it, removes it.
        Trial::new(220, Vec::new()).unwrap().run().result.unwrap();
        assert_eq!(directories(engine.id()), [""; 0], "after {after} ms");
    }
}
