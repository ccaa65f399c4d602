//! Exit codes and how errors are shown (DESIGN.md §5).

use std::fmt;
use std::process::ExitCode;
use whichfs_attach::AttachError;
use whichfs_board::{Refusal, Why};
use whichfs_format::FormatError;
use whichfs_here::HereError;
use whichfs_layout::LayoutError;

/// Why a command ends without doing what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The answer is "no": a check failed, nothing qualifies.
    No = 1,
    /// Bad usage or input.
    Input = 2,
    /// The environment lacks something.
    Environment = 3,
    /// A trial failed.
    Trial = 4,
    /// Interrupted by the user (128 + SIGINT).
    Interrupted = 130,
}

/// An error of a command: what, and the remedy, in one text.
#[derive(Debug)]
pub struct Failure {
    /// Decides the exit code.
    pub kind: Kind,
    /// What was found, what was expected, and the remedy.
    pub message: String,
}

impl Failure {
    /// A failure of `kind`.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Failure {
        Failure {
            kind,
            message: message.to_string(),
        }
    }

    /// Bad usage or input.
    pub fn input(message: impl fmt::Display) -> Failure {
        Failure::new(Kind::Input, message)
    }

    /// The environment lacks something.
    pub fn environment(message: impl fmt::Display) -> Failure {
        Failure::new(Kind::Environment, message)
    }

    /// The failure, said of `what`; an interrupt is of the whole run.
    pub fn of(self, what: &str) -> Failure {
        match self.kind {
            Kind::Interrupted => self,
            kind => Failure::new(kind, format!("{what}: {}", self.message)),
        }
    }

    /// Prints the failure on standard error and gives its exit code.
    pub fn report(&self) -> ExitCode {
        note!("whichfs: {}", self.message);
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let kind = match refusal.why {
            Why::Input => Kind::Input,
            Why::Environment => Kind::Environment,
            Why::Trial => Kind::Trial,
            Why::Interrupted => Kind::Interrupted,
        };
        Failure::new(kind, refusal)
    }
}

impl From<HereError> for Failure {
    fn from(error: HereError) -> Failure {
        Refusal::from(error).into()
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        Refusal::from(error).into()
    }
}

impl From<LayoutError> for Failure {
    fn from(error: LayoutError) -> Failure {
        Failure::input(error)
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Failure {
        let kind = match error {
            AttachError::NotAttached { .. }
            | AttachError::Running { .. }
            | AttachError::Busy { .. } => Kind::Input,
            _ => Kind::Environment,
        };
        Failure::new(kind, error)
    }
}

/// What commands return.
pub type Outcome<T = ()> = Result<T, Failure>;
