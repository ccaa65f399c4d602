//! Trials in the order in which they were wanted, as many at once as the executor has slots.

use super::{Cell, NextTrial, Schedule, State, Use};
use crate::error::{Error, ErrorKind, Outcome};
use std::time::{Duration, Instant};
use whichfs_trial::Trial;

/// The order of the lab: trials of virtual time do not disturb each other.
#[derive(Debug, Default)]
pub struct InOrder {
    /// No trial begins after this moment, if there is one.
    until: Option<Instant>,
    /// Whether the time was over before the last trial had begun.
    pub stopped: bool,
    next: usize,
}

impl InOrder {
    /// An order that begins no trial after `until`.
    pub fn until(until: Option<Instant>) -> InOrder {
        InOrder {
            until,
            ..InOrder::default()
        }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl<K, P> Schedule<K, P> for InOrder {
    fn next(&mut self, matrix: &[Cell<K, P>], _written: Option<u64>) -> Option<NextTrial> {
        let (at, _) =
            (matrix.iter().enumerate().skip(self.next)).find(|(_, cell)| cell.trial.is_none())?;
        if self.is_over() {
            self.stopped = true;
            return None;
        }
        self.next = at + 1;
        Some(NextTrial {
            at,
            remark: String::new(),
            write_limit: None,
        })
    }

    fn ended(&mut self, _turn: &NextTrial, _trial: &mut Trial, _wall: Duration) -> Use {
        Use::Result
    }

    fn kept(&mut self, _trial: &Trial, _used: Use, _written: Option<u64>) -> Outcome {
        Ok(())
    }

    fn over_limit(&mut self, _written: Option<u64>) {
        self.stopped = true;
    }

    fn explain(&self, error: Error, what: Option<&str>, state: &State<'_, K, P>) -> Error {
        match (error.kind, what) {
            (ErrorKind::Interrupted, None) => state.cache.interrupted(),
            (_, Some(what)) => error.about(what),
            _ => error,
        }
    }
}
