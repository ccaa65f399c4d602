//! What a caller hears while trials run.

use crate::error::Error;
use std::time::Duration;
use whichfs_trial::Trial;
use whichfs_units::Nanos;

/// What happens while trials run.
pub enum ProgressEvent {
    /// A trial has begun on worker `worker`.
    Begun {
        /// Which worker.
        worker: usize,
        /// Candidate and seed.
        what: String,
    },
    /// A trial has entered a phase.
    Phase {
        /// Which worker.
        worker: usize,
        /// Name of the phase.
        phase: String,
        /// Virtual time.
        at: Nanos,
    },
    /// A trial has ended.
    Ended {
        /// Which worker.
        worker: usize,
        /// Candidate and seed.
        what: String,
        /// Its record.
        trial: Box<Trial>,
        /// Wall time it took.
        wall: Duration,
    },
    /// A trial could not be run at all, or was interrupted; the run ends.
    Stopped(Error),
}

/// Hears of trials as they run, in the thread that asked for them.
pub trait Observer {
    /// Takes `event`; it comes in the order in which things happened to each worker.
    fn hear(&mut self, event: &ProgressEvent);
}

/// Hears nothing.
impl Observer for () {
    fn hear(&mut self, _event: &ProgressEvent) {}
}
