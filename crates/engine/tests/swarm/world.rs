//! The world around a campaign: faults at moments that the seed decides, and all that happened.
//!
//! Fault model. Every access to the store, every lease and every phase of a trial is a moment, and
//! a fault strikes at one of them:
//! - a kill: from that moment on nothing that the process does has an effect. The kernel gives its
//!   leases back. What had reached the store stays; a line of an archive may be cut short anywhere.
//! - an interruption: the flag of the user is set, as by Ctrl-C.
//! - a full disk: writes to the store fail with "no room" for a while, and lines of an archive are
//!   cut short.
//! - a device that vanishes: every trial fails as the machine's fault until the next process.
//! - a slow disk: the store and trials answer late, so other workers come first.
//!
//! The world sees what passes it, below whatever a canary breaks, and judges by that alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_trial::Status;

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies.
    Kill,
    /// The user asks for an end.
    Interrupt,
    /// So many writes find no room.
    FullDisk(u64),
    /// The device is gone.
    Vanish,
    /// Everything is late from now on.
    Slow,
}

/// What happened so far, over all processes.
#[derive(Default)]
pub struct Happened {
    /// Moments so far.
    pub moments: u64,
    /// Faults that are yet to strike, by moment.
    pub faults: BTreeMap<u64, Fault>,
    /// Faults that struck in this process.
    pub struck: Vec<Fault>,
    /// Writes that find no room from now on.
    full_writes: u64,
    vanished: bool,
    slow: bool,
    /// The process is dead.
    pub dead: bool,
    /// A line of an archive was under way when it died.
    pub torn_at_death: bool,
    /// Leases that are held.
    pub leases: u64,
    /// Trials with figures whose records the store took, by id.
    pub kept: BTreeSet<String>,
    /// Cuts whose results the archive took.
    pub kept_cuts: BTreeSet<u64>,
    /// Trials with figures that somebody heard of, by what they were called and their ids.
    pub reported: Vec<(String, String)>,
    /// Cuts that somebody heard of.
    pub reported_cuts: BTreeSet<u64>,
    /// Ids of trials by what they are called.
    pub ids: BTreeMap<String, String>,
    /// Trials are those of a device, of which some run again on purpose.
    pub on_device: bool,
    /// What went against an invariant.
    pub faults_found: Vec<String>,
    /// All moments and events, for a replay.
    pub trace: Vec<String>,
}

/// The world of one seed.
#[derive(Default)]
pub struct World {
    happened: Mutex<Happened>,
    /// Set when the user asks for an end.
    pub interrupted: AtomicBool,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The operation succeeds.
    Done,
    /// The process is dead: nothing happens any more.
    Dead,
    /// There is no room.
    Full,
    /// The device is gone.
    Gone,
}

impl World {
    /// A world in which `faults` strike.
    pub fn new(faults: BTreeMap<u64, Fault>) -> World {
        let world = World::default();
        world.look().faults = faults;
        world
    }

    /// What happened.
    pub fn look(&self) -> MutexGuard<'_, Happened> {
        self.happened.lock().unwrap()
    }

    /// A new process begins: the kernel has given back what a dead one held.
    pub fn begin_process(&self) {
        let mut happened = self.look();
        if happened.dead {
            happened.leases = 0;
        }
        happened.dead = false;
        happened.torn_at_death = false;
        happened.vanished = false;
        happened.slow = false;
        happened.full_writes = 0;
        happened.struck.clear();
        happened.trace.push("process".to_owned());
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Notes that an invariant is broken.
    pub fn broken(&self, what: String) {
        let mut happened = self.look();
        happened.trace.push(format!("BROKEN: {what}"));
        happened.faults_found.push(what);
    }

    /// A moment: `what` is about to happen, and a fault may strike first.
    pub fn moment(&self, what: &str) -> Fate {
        let mut happened = self.look();
        happened.moments += 1;
        let at = happened.moments;
        let fault = happened.faults.remove(&at);
        let struck = fault.map_or(String::new(), |fault| format!(" <- {fault:?}"));
        happened.trace.push(format!("{at} {what}{struck}"));
        if !happened.dead {
            happened.struck.extend(fault);
            match fault {
                Some(Fault::Kill) => happened.dead = true,
                Some(Fault::Interrupt) => self.interrupted.store(true, Ordering::Relaxed),
                Some(Fault::FullDisk(writes)) => happened.full_writes = writes,
                Some(Fault::Vanish) => happened.vanished = true,
                Some(Fault::Slow) => happened.slow = true,
                None => {}
            }
        }
        let (dead, slow, vanished) = (happened.dead, happened.slow, happened.vanished);
        drop(happened);
        if slow {
            std::thread::sleep(Duration::from_micros(100));
        }
        match (dead, vanished) {
            (true, _) => Fate::Dead,
            (_, true) => Fate::Gone,
            _ => Fate::Done,
        }
    }

    /// The moment of a write to the store or an archive.
    pub fn write_moment(&self, what: &str) -> Fate {
        match self.moment(what) {
            Fate::Dead => Fate::Dead,
            _ => {
                let mut happened = self.look();
                match happened.full_writes {
                    0 => Fate::Done,
                    _ => {
                        happened.full_writes -= 1;
                        Fate::Full
                    }
                }
            }
        }
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.look().dead
    }
}

/// Called thus, a trial is not counted.
const DISCARDED: &str = "(not counted: the first)";
/// Called thus, it is one that runs again on purpose.
const REFERENCE: &str = "(reference run";

/// The observer of a run: notes what was reported, which must be in the store from then on.
pub struct Ear<'w>(pub &'w World);

impl Observer for Ear<'_> {
    fn hear(&mut self, event: &ProgressEvent) {
        let again = |what: &str| what.contains(DISCARDED) || what.contains(REFERENCE);
        if self.0.is_dead() {
            return;
        }
        match event {
            // In the lab the executor sees it.
            ProgressEvent::Begun { what, .. } if self.0.look().on_device && !again(what) => {
                let happened = self.0.look();
                let known = happened.ids.get(what);
                let doubled = known.is_some_and(|id| happened.kept.contains(id));
                drop(happened);
                if doubled {
                    self.0.broken(format!("{what} runs although it is kept"));
                }
            }
            ProgressEvent::Ended { what, trial, .. } if !what.contains(DISCARDED) => {
                let mut happened = self.0.look();
                happened.trace.push(format!("ended {what}"));
                if trial.outcome.status == Status::Done {
                    let id = trial.identity.id();
                    happened.reported.push((what.clone(), id));
                }
            }
            _ => {}
        }
    }
}
