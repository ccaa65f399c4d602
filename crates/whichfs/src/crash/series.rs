//! A series of cuts of one recorded run, checked by several workers.

use super::check::{Checker, Result};
use super::record::{Plan, Recorded};
use crate::failure::{Failure, Kind, Outcome};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use whichfs_card::Contents;
use whichfs_crash::Cut;
use whichfs_lab::available_cores;

/// Checks all `cuts` with a worker on each core that there is memory for; `hear` gets each result
/// as it comes, in one thread. `given`, if there is one, is judged as the image of each cut.
///
/// # Errors
/// The first failure that is not a filesystem's, the user's interrupt, or what `hear` says.
pub fn check_all(
    plan: &Plan,
    recorded: &Recorded,
    cuts: &[Cut],
    given: Option<&Contents>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(Result) -> Outcome,
) -> Outcome {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let cores = available_cores();
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for worker in 0..plan.bench.jobs.min(cuts.len()) {
            let (next, stop, sender) = (&next, &stop, sender.clone());
            let core = Some(cores[worker % cores.len()]);
            scope.spawn(move || {
                let mut checker = Checker::new(plan, recorded).judging(given);
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
        let mut failure = None;
        for result in receiver {
            if let Err(error) = result.and_then(&mut *hear) {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
        if interrupted.load(Ordering::Relaxed) {
            failure.get_or_insert(Failure::new(Kind::Interrupted, "interrupted"));
        }
        failure.map_or(Ok(()), Err)
    })
}
