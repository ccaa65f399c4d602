//! Why something is not done: one error for what fails here and what fails on a board.

use serde::{Deserialize, Serialize};
use whichfs_device::HereError;
use whichfs_format::FormatError;

/// What kind of obstacle it is: it decides the exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Bad usage or input.
    Input,
    /// The environment lacks something.
    Environment,
    /// A step failed.
    Trial,
    /// The user asked to stop.
    Interrupted,
}

/// What was not done, why, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of obstacle.
    pub why: Why,
    /// What was found, what was expected, and the remedy.
    pub message: String,
}

impl Refusal {
    /// A refusal for the reason `message`.
    pub fn new(why: Why, message: impl Into<String>) -> Refusal {
        let message = message.into();
        Refusal { why, message }
    }

    /// One that the environment is the reason of.
    pub fn environment(message: impl Into<String>) -> Refusal {
        Refusal::new(Why::Environment, message)
    }

    /// The same, said of `place`; an interrupt is of the whole run.
    pub(crate) fn on(self, place: &str) -> Refusal {
        match self.why {
            Why::Interrupted => self,
            why => Refusal::new(why, format!("on {place}: {}", self.message)),
        }
    }
}

impl From<HereError> for Refusal {
    fn from(error: HereError) -> Refusal {
        let why = match error {
            HereError::Permission { .. }
            | HereError::NoDirect { .. }
            | HereError::Agent { .. }
            | HereError::Killed
            | HereError::Stuck { .. } => Why::Environment,
            _ => Why::Input,
        };
        // Names in it are those of devices, mount points and processes.
        Refusal::new(why, whichfs_units::printable(&error.to_string()))
    }
}

impl From<FormatError> for Refusal {
    fn from(error: FormatError) -> Refusal {
        let message = error.to_string();
        let why = match error {
            FormatError::Guard(guard) => return guard.into(),
            FormatError::GivenUp { error, .. } => Refusal::from(*error).why,
            FormatError::Missing { .. } => Why::Environment,
            FormatError::Failed { .. } | FormatError::Partitions { .. } => Why::Trial,
            FormatError::Interrupted { .. } => Why::Interrupted,
            _ => Why::Input,
        };
        Refusal::new(why, whichfs_units::printable_lines(&message))
    }
}
