//! What is said between here and a board: JSON lines.
//!
//! Requests are numbered and idempotent: a retry after a lost connection returns the stored answer.
//! Of the events of a trial only those are sent that the asker does not have yet.

use crate::about::{Machine, RemoteDisk};
use crate::power::Outage;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_device::DestroyLimits;
use whichfs_device::sandboxed_agent::AgentEnd;
use whichfs_format::Span;
use whichfs_trial::{Job, StampedEvent};

/// What a job says for the place where a board mounts: only the board knows its directory.
pub const MOUNT_POINT: &str = "@whichfs-mount-point@";

/// What a board is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Say what the device at `path` is, if nothing but the user's word speaks against losing its
    /// data.
    Find {
        /// Path on the board.
        path: String,
        /// What a user lets be destroyed.
        limits: DestroyLimits,
    },
    /// Say which of `names` are there.
    Tools {
        /// Names or absolute paths.
        names: Vec<String>,
    },
    /// Say whether the kernel knows the filesystem `name`.
    Filesystem {
        /// Kernel's name of it.
        name: String,
    },
    /// Take what the user calls the device as consent to losing its data.
    Confirm {
        /// What the user says.
        given: Option<String>,
    },
    /// Lease the device for trials.
    Begin {
        /// What they are called.
        trials: String,
    },
    /// Say how many bytes were written to the device since it appeared.
    Written,
    /// Say whether the machine can be ended so, and after which time.
    Outage {
        /// How the power is cut.
        by: Outage,
    },
    /// Do a trial.
    Trial(Box<Task>),
    /// No more trials follow.
    End,
}

/// All that a board needs to run one trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// First byte and size of the partition under test.
    pub span: Span,
    /// What it is called.
    pub label: String,
    /// What the agent does.
    pub job: Job,
    /// Seconds after which it is ended.
    pub wall_limit_s: u64,
    /// Bytes after which it is ended, as the disk counts them.
    #[serde(default)]
    pub write_limit: Option<u64>,
    /// The partition is there, and what is on it is looked at.
    #[serde(default)]
    pub keeps: bool,
}

/// What a board answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The device and the machine around it.
    Found {
        /// Identity, size and abilities of the disk.
        device: Box<RemoteDisk>,
        /// Host name, kernel, memory and processors of the board.
        machine: Box<Machine>,
    },
    /// Those tools that are there, each with its version.
    Tools {
        /// Tool → version.
        versions: BTreeMap<String, String>,
    },
    /// Whether it is so.
    Is {
        /// True if what was asked holds.
        so: bool,
    },
    /// The request succeeded and has no result.
    Done,
    /// Bytes written to the device.
    Written {
        /// Since it appeared.
        bytes: u64,
    },
    /// The machine can be ended so.
    Takes {
        /// After so many milliseconds.
        milliseconds: u64,
    },
    /// How the trial ended; what it told came before.
    Ended {
        /// How the trial ended.
        ended: AgentEnd,
    },
}

/// A line to a board.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    /// Answer a question, and report its events meanwhile.
    Ask {
        /// Its number: the first is 1.
        number: u64,
        /// Events of it that the asker has.
        have: usize,
        /// What is to be done or found out.
        what: Ask,
    },
    /// So many events of the question were heard.
    Heard {
        /// Which question, from 1.
        number: u64,
        /// Events of it that the asker has.
        have: usize,
    },
    /// End the machine, now and without any care.
    Cut {
        /// How the power is cut.
        by: Outage,
    },
    /// End the trial under way.
    Stop,
    /// The asker is there, and wants to hear that the connection stands.
    Here,
    /// The session is over: leave nothing behind.
    Leave,
    /// Another asker wants the board: leave, if yours is not there any more.
    Retire,
}

/// A line from a board.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The connection stands.
    Hello,
    /// The next event of the question `number`.
    StampedEvent {
        /// Which question, from 1.
        number: u64,
        /// With its time by the board's clock.
        told: Box<StampedEvent>,
    },
    /// The answer to the question `number`.
    Answer {
        /// Which question, from 1.
        number: u64,
        /// The answer, or why there is none.
        result: Result<Answer, Refusal>,
    },
    /// The machine could not be ended.
    NotCut {
        /// Reason, with the remedy where there is one.
        why: Refusal,
    },
    /// Nothing is left behind.
    Left,
    /// The asker is still there.
    Stays,
}

/// `value` as a line.
pub(crate) fn line<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;
    use whichfs_trial::Event;
    use whichfs_units::Nanos;

    #[test]
    fn every_kind_of_line_comes_back() {
        let told = StampedEvent {
            at: Nanos(3),
            event: Event::Done,
            reading: None,
        };
        let ended = Answer::Ended {
            ended: AgentEnd::TooLong(Duration::from_secs(7)),
        };
        let refusal = Refusal::environment("no");
        for reply in [
            Reply::Hello,
            Reply::StampedEvent {
                number: 2,
                told: Box::new(told),
            },
            Reply::Answer {
                number: 2,
                result: Ok(ended),
            },
            Reply::Answer {
                number: 3,
                result: Err(refusal),
            },
            Reply::Left,
            Reply::Stays,
        ] {
            let text = line(&reply).unwrap();
            let back: Reply = serde_json::from_slice(&text).unwrap();
            assert_eq!(format!("{back:?}"), format!("{reply:?}"));
            assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
        let call = Call::Ask {
            number: 1,
            have: 0,
            what: Ask::Find {
                path: "/dev/mmcblk0".into(),
                limits: DestroyLimits::default(),
            },
        };
        let back: Call = serde_json::from_slice(&line(&call).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{call:?}"));
    }
}
