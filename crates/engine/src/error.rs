//! Why a request to the engine was not carried out.

use std::error::Error as StdError;
use std::fmt;
use whichfs_device::HereError;
use whichfs_format::FormatError;
use whichfs_layout::LayoutError;
use whichfs_remote::{Refusal, Why};

/// What kind of reason it is: the caller decides by it what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The answer to the question is no: a check failed, nothing qualifies.
    No,
    /// The request is wrong: a name, a value or a file of the caller.
    Input,
    /// This machine or the board lacks something that the request needs.
    Environment,
    /// A trial failed, and the request needs its result.
    Trial,
    /// The caller asked to stop. What had finished is kept.
    Interrupted,
}

impl ErrorKind {
    /// What helps with errors of this kind, whose messages do not say.
    fn remedy(self) -> &'static str {
        match self {
            ErrorKind::No => "look at the message: nothing failed, but the answer is no",
            ErrorKind::Input => "correct the argument that the message names",
            ErrorKind::Environment => {
                "run `whichfs doctor`, which lists missing parts and their remedies"
            }
            ErrorKind::Trial => {
                "look at the reason of the trial; the same command goes on from the finished ones"
            }
            ErrorKind::Interrupted => "run it again: it goes on from the finished trials",
        }
    }
}

/// An error with its kind, a message that names the remedy, and the error below it, if any.
#[derive(Debug)]
pub struct Error {
    /// What kind of reason it is.
    pub kind: ErrorKind,
    /// What was found, what was expected, and the remedy, in one text for a person.
    pub message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with the text of `message`.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Error {
        Error {
            kind,
            message: message.to_string(),
            source: None,
        }
    }

    /// An error of `kind` that says what `source` says, and keeps it.
    pub fn from_source(kind: ErrorKind, source: impl StdError + Send + Sync + 'static) -> Error {
        Error {
            kind,
            message: source.to_string(),
            source: Some(Box::new(source)),
        }
    }

    /// A wrong request.
    pub fn input(message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Input, message)
    }

    /// Something that this machine or the board lacks.
    pub fn environment(message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Environment, message)
    }

    /// The caller asked to stop.
    pub fn interrupted() -> Error {
        Error::new(ErrorKind::Interrupted, "interrupted")
    }

    /// What to do: the end of the message, where it says so, else what helps with errors of this
    /// kind.
    pub fn remedy(&self) -> &str {
        let own = self.message.rsplit_once("; ").map(|(_, remedy)| remedy);
        let command = || {
            let at = self.message.rfind(": run `")?;
            Some(&self.message[at + 2..])
        };
        let told = own.or_else(command).map(str::trim);
        told.filter(|remedy| !remedy.is_empty())
            .unwrap_or_else(|| self.kind.remedy())
    }

    /// The error with `what` it is about before its message. An interruption concerns the whole
    /// request, so it stays as it is.
    #[must_use]
    pub fn about(self, what: &str) -> Error {
        match self.kind {
            ErrorKind::Interrupted => self,
            _ => Error {
                message: format!("{what}: {}", self.message),
                ..self
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let kind = match refusal.why {
            Why::Input => ErrorKind::Input,
            Why::Environment => ErrorKind::Environment,
            Why::Trial => ErrorKind::Trial,
            Why::Interrupted => ErrorKind::Interrupted,
        };
        Error::from_source(kind, refusal)
    }
}

impl From<HereError> for Error {
    fn from(error: HereError) -> Error {
        Refusal::from(error).into()
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Error {
        Refusal::from(error).into()
    }
}

impl From<LayoutError> for Error {
    fn from(error: LayoutError) -> Error {
        Error::from_source(ErrorKind::Input, error)
    }
}

/// What the functions of the engine return.
pub type Outcome<T = ()> = Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_the_one_below_it() {
        let below = std::io::Error::from_raw_os_error(28);
        let text = below.to_string();
        let error = Error::from_source(ErrorKind::Environment, below);
        assert_eq!(error.message, text);
        assert!(
            error
                .source()
                .is_some_and(|below| below.to_string() == text)
        );
        assert!(Error::input("no such card").source().is_none());
    }

    #[test]
    fn the_remedy_is_the_end_of_the_message_or_that_of_the_kind() {
        for (message, remedy) in [
            (
                "no card; nor a file; did you mean 'a'?",
                "did you mean 'a'?",
            ),
            ("no kernel: run `make kernel`", "run `make kernel`"),
            ("wrong; ", "correct the argument that the message names"),
            ("wrong", "correct the argument that the message names"),
        ] {
            assert_eq!(Error::input(message).remedy(), remedy);
        }
        let lacking = Error::environment("no /dev/fuse");
        assert!(lacking.remedy().contains("whichfs doctor"));
    }

    #[test]
    fn an_error_says_what_it_is_about_unless_the_caller_stopped() {
        let error = Error::input("no").about("ext4, seed 1");
        assert_eq!(error.to_string(), "ext4, seed 1: no");
        let stopped = Error::new(ErrorKind::Interrupted, "interrupted").about("ext4, seed 1");
        assert_eq!(stopped.to_string(), "interrupted");
    }
}
