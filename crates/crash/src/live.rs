//! What became of a system whose card failed while a workload ran: the program, the mounted
//! filesystem, the unmount. The image that is left is judged apart, as after a cut.

use crate::messages::{KernelMessage, classify};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whichfs_units::Nanos;

/// What became of the system; the worse, the later.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SystemOutcome {
    /// The program and the unmount ended without an error.
    Completed,
    /// A call of the program, of the one after it, or the unmount, returned an error.
    ErrorReturned,
    /// The filesystem went read-only by itself.
    ReadOnly,
    /// The filesystem shut itself down: every call fails until it is mounted anew.
    ShutDown,
    /// The program ended, and the unmount did not.
    UnmountHangs,
    /// A call of the program did not return.
    ProgramHangs,
    /// The kernel itself failed.
    Oops,
}

/// A run on a card that failed while it went on. Times count from the guest's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct LiveRun {
    /// What became of the system.
    pub outcome: SystemOutcome,
    /// Requests that the faults met; 0: the run was over before them.
    pub hits: u64,
    /// When they met the first.
    pub hit: Option<Nanos>,
    /// The first call of the program that failed, and what it said.
    pub error: Option<String>,
    /// The number of that error (errno(3)), for example 5 for EIO and 30 for EROFS.
    pub errno: Option<i32>,
    /// When the program was told.
    pub noticed: Option<Nanos>,
    /// What the last of the programs after it was told that failed, each of which makes, syncs and
    /// deletes a file: one at once, one after a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When the kernel said that the filesystem goes read-only or shuts down.
    pub stopped: Option<Nanos>,
    /// What the unmount said, if it failed.
    pub unmount: Option<String>,
    /// How the guest ended, if it did not end by itself.
    pub ended: Option<String>,
    /// What the kernel said of damage, errors and recovery; the first lines.
    pub messages: Vec<String>,
}

/// What was seen of a run on a card that failed.
#[derive(Clone, Debug, Default)]
pub struct LiveSeen {
    /// Requests that the faults met, and when they met the first.
    pub hits: (u64, Option<Nanos>),
    /// The call of the program that failed, and when.
    pub failed: Option<(Nanos, String)>,
    /// What the program after it was told, if that failed.
    pub next: Option<String>,
    /// Whether the program had ended, with or without an error.
    pub program_ended: bool,
    /// Whether the filesystem was mounted read-only then.
    pub read_only: bool,
    /// What the unmount said, if it failed.
    pub unmount: Option<String>,
    /// Whether the unmount returned.
    pub unmounted: bool,
    /// The line of a panic.
    pub panicked: Option<String>,
    /// How the guest hung.
    pub hung: Option<String>,
    /// What the kernel said, each line with its time where that is known.
    pub messages: Vec<(Option<Nanos>, String)>,
}

/// Words with which a filesystem says that it shuts down (xfs, f2fs), in lower case.
const SHUTS_DOWN: [&str; 3] = [
    "shutting down filesystem",
    "filesystem has been shut down",
    "stopped filesystem due to",
];

/// The error of writing to what is mounted read-only (errno(3), Linux).
const EROFS: i32 = 30;

/// Lines of the kernel that a result keeps.
const KEPT: usize = 8;

impl LiveSeen {
    /// What became of the system.
    pub fn judged(self) -> LiveRun {
        let kinds = self.messages.iter().map(|(_, line)| classify(line));
        let worst = kinds.max().unwrap_or(KernelMessage::Plain);
        let goes =
            |kind: KernelMessage, line: &str| kind == KernelMessage::ReadOnly || shuts_down(line);
        let mut stops = (self.messages.iter()).filter(|(_, line)| goes(classify(line), line));
        let stopped = stops.next().cloned();
        let shut_down = self.messages.iter().any(|(_, line)| shuts_down(line));
        let told = [
            self.failed.as_ref().map(|(_, said)| said),
            self.next.as_ref(),
        ];
        let refused = told
            .into_iter()
            .flatten()
            .any(|said| errno(said) == Some(EROFS));
        let goes_read_only = stopped.is_some() || self.read_only || refused;
        let outcome = if self.panicked.is_some() || worst == KernelMessage::Oops {
            SystemOutcome::Oops
        } else if self.hung.is_some() && !self.program_ended {
            SystemOutcome::ProgramHangs
        } else if self.hung.is_some() && !self.unmounted {
            SystemOutcome::UnmountHangs
        } else if shut_down {
            SystemOutcome::ShutDown
        } else if goes_read_only {
            SystemOutcome::ReadOnly
        } else if self.failed.is_some() || self.next.is_some() || self.unmount.is_some() {
            SystemOutcome::ErrorReturned
        } else {
            SystemOutcome::Completed
        };
        let (noticed, error) = match self.failed {
            Some((at, message)) => (Some(at), Some(message)),
            None => (None, None),
        };
        let told = self.messages.into_iter().map(|(_, line)| line);
        let told = told.filter(|line| classify(line) > KernelMessage::Plain || shuts_down(line));
        LiveRun {
            outcome,
            hits: self.hits.0,
            hit: self.hits.1,
            errno: error.as_deref().and_then(errno),
            error,
            noticed,
            next: self.next,
            stopped: stopped.and_then(|(at, _)| at),
            unmount: self.unmount,
            ended: self.panicked.or(self.hung),
            messages: told.take(KEPT).collect(),
        }
    }
}

fn shuts_down(line: &str) -> bool {
    let line = line.to_lowercase();
    SHUTS_DOWN.iter().any(|words| line.contains(words))
}

/// The number of the system's error at the end of a message: `… (os error 5)`.
fn errno(message: &str) -> Option<i32> {
    let (_, rest) = message.rsplit_once("(os error ")?;
    rest.split(')').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that ended well.
    fn good() -> LiveSeen {
        LiveSeen {
            program_ended: true,
            unmounted: true,
            ..LiveSeen::default()
        }
    }

    fn said(line: &str) -> Vec<(Option<Nanos>, String)> {
        vec![(Some(Nanos(7)), line.to_owned())]
    }

    #[test]
    fn a_fault_that_does_nothing_leaves_a_run_that_completed() {
        let run = good().judged();
        assert_eq!(run.outcome, SystemOutcome::Completed);
        assert_eq!((run.hits, run.hit, run.errno), (0, None, None));
    }

    #[test]
    fn damage_that_is_only_logged_does_not_stop_a_program() {
        let run = LiveSeen {
            hits: (3, Some(Nanos(5))),
            messages: said("BTRFS warning (device vda): csum failed root 5 ino 257"),
            ..good()
        };
        let run = run.judged();
        assert_eq!((run.outcome, run.hits), (SystemOutcome::Completed, 3));
        assert_eq!(run.messages.len(), 1, "and is kept");
    }

    #[test]
    fn an_error_has_its_number_and_its_time() {
        let run = LiveSeen {
            failed: Some((Nanos(9), "fsync a: I/O error (os error 5)".to_owned())),
            ..good()
        };
        let run = run.judged();
        assert_eq!(run.outcome, SystemOutcome::ErrorReturned);
        assert_eq!((run.errno, run.noticed), (Some(5), Some(Nanos(9))));
    }

    #[test]
    fn each_filesystem_stops_in_its_own_words() {
        for (line, outcome) in [
            (
                "EXT4-fs (vda): Remounting filesystem read-only",
                SystemOutcome::ReadOnly,
            ),
            (
                "BTRFS info (device vda state E): forced readonly",
                SystemOutcome::ReadOnly,
            ),
            (
                "NILFS (vda): Remounting filesystem read-only",
                SystemOutcome::ReadOnly,
            ),
            (
                "XFS (vda): Metadata I/O Error (0x1) detected at xfs_inode_item_precommit. \
                 Shutting down filesystem.",
                SystemOutcome::ShutDown,
            ),
            (
                "F2FS-fs (vda): Stopped filesystem due to reason: 3",
                SystemOutcome::ShutDown,
            ),
        ] {
            let run = LiveSeen {
                messages: said(line),
                ..good()
            };
            let run = run.judged();
            assert_eq!(
                (run.outcome, run.stopped),
                (outcome, Some(Nanos(7))),
                "{line}"
            );
        }
        let mounted = LiveSeen {
            read_only: true,
            ..good()
        };
        assert_eq!(mounted.judged().outcome, SystemOutcome::ReadOnly);
        let next = |errno: i32| LiveSeen {
            next: Some(format!("mkdir a: refused (os error {errno})")),
            ..good()
        };
        assert_eq!(next(30).judged().outcome, SystemOutcome::ReadOnly);
        assert_eq!(next(5).judged().outcome, SystemOutcome::ErrorReturned);
    }

    #[test]
    fn a_hang_is_of_the_program_or_of_the_unmount() {
        let hung = |program_ended| LiveSeen {
            program_ended,
            unmounted: false,
            hung: Some("it hangs".to_owned()),
            ..good()
        };
        assert_eq!(hung(false).judged().outcome, SystemOutcome::ProgramHangs);
        assert_eq!(hung(true).judged().outcome, SystemOutcome::UnmountHangs);
        let panicked = LiveSeen {
            panicked: Some("Kernel panic".to_owned()),
            ..hung(false)
        };
        assert_eq!(panicked.judged().outcome, SystemOutcome::Oops);
    }
}
