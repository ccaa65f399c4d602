//! A series of cuts of one recorded run, checked by several workers.

use super::check::{Checker, Result};
use super::record::{Recorded, RecordingPlan};
use crate::error::{Error, ErrorKind, Outcome};
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
    plan: &RecordingPlan,
    recorded: &Recorded,
    cuts: &[Cut],
    given: Option<&Contents>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(Result) -> Outcome,
) -> Outcome {
    let cores = available_cores();
    let worker = |number: usize| {
        let core = Some(cores[number % cores.len()]);
        let mut checker = Checker::new(plan, recorded).judging(given);
        move |cut: &Cut| checker.check(cut, core, interrupted)
    };
    share_out(plan.bench.jobs, cuts, interrupted, &worker, hear)
}

/// Gives the cuts to so many workers, each made in a thread of its own, as they come free. After
/// a failure none is begun; what was made is heard all the same.
///
/// # Errors
/// As [`check_all`].
pub fn share_out<W: FnMut(&Cut) -> Outcome<Result>>(
    workers: usize,
    cuts: &[Cut],
    interrupted: &AtomicBool,
    worker: &(impl Fn(usize) -> W + Sync),
    hear: &mut dyn FnMut(Result) -> Outcome,
) -> Outcome {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for number in 0..workers.min(cuts.len()) {
            let (next, stop, sender) = (&next, &stop, sender.clone());
            scope.spawn(move || {
                let mut check = worker(number);
                while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
                    let Some(cut) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let result = check(cut);
                    stop.fetch_or(result.is_err(), Ordering::Relaxed);
                    // The receiver lives as long as any worker.
                    let _ = sender.send(result);
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
            failure.get_or_insert(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        failure.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::fixture::result;

    /// Cuts 0 to 7 by so many workers, of which that of cut 5 meets a full disk: the numbers that
    /// were heard, and how it ended.
    fn made(workers: usize, interrupted: bool) -> (Vec<u64>, Outcome) {
        let cuts: Vec<Cut> = (0..8).map(|number| result(number).cut).collect();
        let worker = |_| {
            |cut: &Cut| match cut.number {
                5 => Err(Error::environment("no room")),
                number => Ok(result(number)),
            }
        };
        let mut heard = Vec::new();
        let stop = AtomicBool::new(interrupted);
        let ended = share_out(workers, &cuts, &stop, &worker, &mut |result| {
            heard.push(result.cut.number);
            Ok(())
        });
        heard.sort_unstable();
        (heard, ended)
    }

    #[test]
    fn a_fault_of_this_machine_ends_a_series_and_what_was_made_is_heard() {
        let (heard, ended) = made(1, false);
        assert_eq!(heard, [0, 1, 2, 3, 4]);
        assert_eq!(
            ended.map_err(|failure| failure.kind),
            Err(ErrorKind::Environment)
        );
        let (heard, ended) = made(3, false);
        assert!(heard.starts_with(&[0, 1, 2, 3, 4]), "{heard:?}");
        assert_eq!(
            ended.map_err(|failure| failure.kind),
            Err(ErrorKind::Environment)
        );
    }

    #[test]
    fn an_interrupted_series_begins_no_cut() {
        let (heard, ended) = made(2, true);
        assert!(heard.is_empty());
        assert_eq!(
            ended.map_err(|failure| failure.kind),
            Err(ErrorKind::Interrupted)
        );
    }
}
