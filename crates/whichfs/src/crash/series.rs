//! A series of cuts of one recorded run, checked by several workers.

use super::check::{Checker, Result};
use super::record::{Plan, Recorded};
use crate::failure::{Failure, Kind, Outcome};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use whichfs_crash::{Cut, Faults};
use whichfs_lab::available_cores;

/// How a series is checked.
pub struct Options<'a> {
    /// Damage beyond the card's own.
    pub faults: &'a Faults,
    /// Run the filesystem's own checker and repair.
    pub fsck: bool,
    /// Workers, one a core.
    pub jobs: usize,
}

/// Checks all `cuts`; `hear` gets each result as it comes, in one thread. The results are in the
/// order of the cuts.
///
/// # Errors
/// The first failure that is not a filesystem's, or the user's interrupt.
pub fn check_all(
    plan: &Plan,
    recorded: &Recorded,
    cuts: &[Cut],
    options: &Options,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(&Result),
) -> Outcome<Vec<Result>> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let cores = available_cores();
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for worker in 0..options.jobs.min(cuts.len()) {
            let (next, stop, sender) = (&next, &stop, sender.clone());
            let core = Some(cores[worker % cores.len()]);
            scope.spawn(move || {
                let mut checker = Checker::new(plan, recorded, options.faults, options.fsck);
                while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
                    let Some(cut) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    // The receiver lives as long as any worker.
                    let _ = sender.send(checker.check(cut, core, interrupted));
                }
            });
        }
        drop(sender);
        let mut results = Vec::new();
        let mut failure = None;
        for result in receiver {
            match result {
                Ok(result) => {
                    hear(&result);
                    results.push(result);
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
            }
        }
        if interrupted.load(Ordering::Relaxed) {
            failure.get_or_insert(Failure::new(Kind::Interrupted, "interrupted"));
        }
        results.sort_by_key(|result| result.cut.number);
        failure.map_or(Ok(results), Err)
    })
}
