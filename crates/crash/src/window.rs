//! Which operations a cut may have seen: from the promises and phases of the recorded run.

use serde::{Deserialize, Serialize};
use whichfs_trial::RETURNED;
use whichfs_units::Nanos;

/// A call that returned with data durable, or an operation that returned ([`RETURNED`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// When it returned.
    pub at: Nanos,
    /// `fsync`, `fdatasync`, `O_SYNC`, `syncfs`, `umount` or [`RETURNED`].
    pub call: String,
    /// The file or directory it is about; empty for all of the filesystem.
    pub path: String,
    /// Operations done by then, the promising one included.
    pub operations: u64,
}

impl Promise {
    /// Whether it is about everything on the filesystem.
    pub fn is_of_all(&self) -> bool {
        self.path.is_empty() && !self.is_return()
    }

    /// Whether it only tells that an operation returned.
    fn is_return(&self) -> bool {
        self.call == RETURNED
    }
}

/// When the operations of a run were done, as far as its events tell.
#[derive(Clone, Debug, Default)]
pub struct RunTimeline {
    /// Promises in the order of time.
    pub promises: Vec<Promise>,
    /// When each phase began, and the operations done before it.
    pub phases: Vec<(Nanos, u64)>,
    /// All operations of the run.
    pub operations: u64,
}

/// The operations that may or must be seen after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// All operations up to this number are durable.
    pub durable: u64,
    /// No operation beyond this number had begun.
    pub begun: u64,
    /// When the power went.
    pub at: Nanos,
}

impl Window {
    /// Whether all that had begun was durable.
    pub fn is_settled(&self) -> bool {
        self.durable == self.begun
    }
}

impl RunTimeline {
    /// The window of a cut at `at`. A promise binds if it had returned by then.
    pub fn window(&self, at: Nanos) -> Window {
        let kept = self.promises.iter().filter(|promise| promise.at <= at);
        let durable = kept
            .filter(|promise| promise.is_of_all())
            .map(|promise| promise.operations)
            .max();
        // The promise that came next had not returned: what follows it had not begun.
        let next = self.promises.iter().find(|promise| promise.at > at);
        let later = self.phases.iter().find(|(begin, _)| *begin > at);
        let bounds = [
            next.map(|promise| promise.operations),
            later.map(|(_, before)| *before),
        ];
        let begun = bounds.into_iter().flatten().fold(self.operations, u64::min);
        Window {
            durable: durable.unwrap_or(0),
            begun,
            at,
        }
    }

    /// Operations that had returned by then, as far as that was told.
    pub fn returned(&self, at: Nanos) -> u64 {
        let kept = self.promises.iter().take_while(|promise| promise.at <= at);
        kept.filter(|promise| promise.is_return())
            .last()
            .map_or(0, |promise| promise.operations)
    }

    /// Promises about single files and directories that had returned by then.
    pub fn of_files(&self, at: Nanos) -> impl Iterator<Item = &Promise> {
        let kept = self
            .promises
            .iter()
            .take_while(move |promise| promise.at <= at);
        kept.filter(|promise| !promise.path.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(at: u64, call: &str, path: &str, operations: u64) -> Promise {
        Promise {
            at: Nanos(at),
            call: call.into(),
            path: path.into(),
            operations,
        }
    }

    fn run() -> RunTimeline {
        RunTimeline {
            promises: vec![
                promise(100, "syncfs", "", 10),
                promise(200, "fsync", "a", 12),
                promise(300, "fsync", "b", 15),
                promise(400, "umount", "", 20),
            ],
            phases: vec![(Nanos(0), 0), (Nanos(350), 18)],
            operations: 20,
        }
    }

    #[test]
    fn a_promise_binds_from_when_it_returned() {
        assert_eq!(run().window(Nanos(99)).durable, 0);
        assert_eq!(run().window(Nanos(100)).durable, 10);
        assert_eq!(run().window(Nanos(250)).durable, 10, "fsync is of one file");
        assert_eq!(run().window(Nanos(400)).durable, 20);
        assert_eq!(run().of_files(Nanos(250)).count(), 1);
    }

    #[test]
    fn an_operation_that_returned_is_no_promise_by_itself() {
        let mut run = run();
        run.promises.insert(1, promise(150, RETURNED, "", 11));
        let window = run.window(Nanos(160));
        assert_eq!((window.durable, window.begun), (10, 12));
        assert_eq!(run.window(Nanos(120)).begun, 11, "it had not returned");
        assert_eq!(run.returned(Nanos(149)), 0);
        assert_eq!(run.returned(Nanos(150)), 11);
        assert_eq!(run.of_files(Nanos(160)).count(), 0);
    }

    #[test]
    fn nothing_behind_the_next_promise_or_phase_had_begun() {
        assert_eq!(run().window(Nanos(99)).begun, 10);
        assert_eq!(run().window(Nanos(250)).begun, 15);
        assert_eq!(run().window(Nanos(320)).begun, 18);
        assert_eq!(run().window(Nanos(500)).begun, 20);
    }
}
