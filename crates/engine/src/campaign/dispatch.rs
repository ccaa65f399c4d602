//! Workers that run what a conductor gives them, and tell it what became of it.
//!
//! The conductor acts in the caller's thread alone: it hears how a trial ended before it gives that
//! worker the next one, so a budget or an early stop holds to the trial.

use crate::error::{Error, Outcome};
use crate::executor::{Lease, WorkerSlot};
use crate::observer::ProgressEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use whichfs_trial::Trial;
use whichfs_units::Nanos;

/// A trial for a worker.
pub(super) struct Assignment<P> {
    /// What is run.
    pub prepared: Arc<P>,
    /// Its place in the matrix.
    pub at: usize,
    /// What it is called.
    pub what: String,
    /// Bytes that it may write.
    pub write_limit: Option<u64>,
}

/// How a trial ended.
pub(super) struct Ended {
    /// Its place in the matrix.
    pub at: usize,
    /// What it is called.
    pub what: String,
    /// The worker that ran it.
    pub worker: usize,
    /// Its record; none if it reached its write limit.
    pub trial: Outcome<Option<Trial>>,
    /// Wall time it took.
    pub wall: Duration,
}

/// Decides what is run, and hears what becomes of it.
pub(super) trait Conductor<P> {
    /// The next trial; none when nothing more is begun.
    fn next(&mut self) -> Option<Assignment<P>>;
    /// Takes what happens while trials run.
    fn hear(&mut self, event: &ProgressEvent);
    /// Takes a trial that ended.
    ///
    /// # Errors
    /// Nothing more is begun; those under way are waited for.
    fn ended(&mut self, ended: Ended) -> Outcome;
}

/// What a worker says.
enum News {
    Event(ProgressEvent),
    Ended(Box<Ended>),
    /// It panicked: the caller panics too, when the others have ended.
    Lost,
}

/// Runs what `conductor` gives with so many `slots`.
///
/// # Errors
/// The first of the conductor's errors, or the caller's interruption.
pub(super) fn dispatch<P: Send + Sync>(
    lease: &impl Lease<P>,
    slots: usize,
    interrupted: &AtomicBool,
    conductor: &mut dyn Conductor<P>,
) -> Outcome {
    let (news, heard) = channel();
    let stopped = || interrupted.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for worker in 0..slots {
            let (give, take) = channel::<Assignment<P>>();
            let news = Telling(news.clone());
            scope.spawn(move || {
                for assignment in take {
                    run_one(lease, assignment, worker, interrupted, &news);
                }
            });
            workers.push(give);
        }
        let mut under_way = 0;
        let give = |worker: usize, conductor: &mut dyn Conductor<P>| {
            let next = if stopped() { None } else { conductor.next() };
            // A worker lives as long as its sender.
            next.is_some_and(|next| workers[worker].send(next).is_ok())
        };
        for worker in 0..slots {
            under_way += usize::from(give(worker, conductor));
        }
        let mut result = Ok(());
        while under_way > 0 {
            match heard.recv() {
                Ok(News::Event(event)) => conductor.hear(&event),
                Ok(News::Ended(ended)) => {
                    under_way -= 1;
                    let worker = ended.worker;
                    result = result.and(conductor.ended(*ended));
                    if result.is_ok() {
                        under_way += usize::from(give(worker, conductor));
                    }
                }
                Ok(News::Lost) | Err(_) => break,
            }
        }
        if stopped() && result.is_ok() {
            result = Err(Error::interrupted());
        }
        result
    })
}

/// The way to the caller's thread, which also tells of a panic.
struct Telling(Sender<News>);

impl Telling {
    fn tell(&self, news: News) {
        // The receiver lives as long as any worker.
        drop(self.0.send(news));
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell(News::Lost);
        }
    }
}

/// Runs one trial and tells what happens to it.
fn run_one<P>(
    lease: &impl Lease<P>,
    assignment: Assignment<P>,
    worker: usize,
    interrupted: &AtomicBool,
    news: &Telling,
) {
    let Assignment {
        prepared,
        at,
        what,
        write_limit,
    } = assignment;
    let tell = |event| news.tell(News::Event(event));
    tell(ProgressEvent::Begun {
        worker,
        what: what.clone(),
    });
    let begun = Instant::now();
    let mut on_phase = |phase: &str, at: Nanos| {
        tell(ProgressEvent::Phase {
            worker,
            phase: phase.to_owned(),
            at,
        });
    };
    let slot = WorkerSlot {
        worker,
        write_limit,
    };
    let trial = lease.run(&prepared, slot, interrupted, &mut on_phase);
    news.tell(News::Ended(Box::new(Ended {
        at,
        what,
        worker,
        trial,
        wall: begun.elapsed(),
    })));
}
