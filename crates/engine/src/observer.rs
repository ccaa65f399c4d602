//! What a caller hears while trials run.

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
        /// Status, figures and identity.
        trial: Box<Trial>,
        /// Wall time it took.
        wall: Duration,
    },
    /// So many finished trials came from the trial cache.
    Reused(usize),
    /// So many of the trials that were announced need not be run.
    Skipped(usize),
    /// One sentence that concerns the whole campaign.
    Remark(String),
    /// What the figures of a candidate leave out.
    Caveat {
        /// Name of the candidate.
        candidate: String,
        /// One sentence.
        caveat: String,
    },
    /// A candidate cannot run here and is left out.
    Excluded {
        /// Name of the candidate.
        candidate: String,
        /// One sentence, with the remedy where there is one.
        why: String,
    },
    /// A round of trials begins.
    RoundBegun {
        /// Trials of the round that are to be run.
        trials: usize,
        /// Trials that run at once.
        slots: usize,
        /// About how many trials later rounds may ask for.
        later: usize,
    },
    /// The round that began last is over.
    RoundEnded,
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
