//! Exit codes, and how errors of the engine are shown.

use std::process::ExitCode;
use whichfs_attach::AttachError;

pub use whichfs_engine::{Error as Failure, ErrorKind as Kind, Outcome};

/// The exit code that tells a script about `kind`.
pub fn exit_code(kind: Kind) -> u8 {
    match kind {
        Kind::No => 1,
        Kind::Input => 2,
        Kind::Environment => 3,
        Kind::Trial => 4,
        // 128 + SIGINT, as shells count.
        Kind::Interrupted => 130,
    }
}

/// Prints `failure` on standard error and gives its exit code.
pub fn report(failure: &Failure) -> ExitCode {
    // A line of a message never looks like one of ours.
    note!("whichfs: {}", short(&failure.message).replace('\n', "\n  "));
    ExitCode::from(exit_code(failure.kind))
}

/// `message`, without its middle if it is longer than anybody reads: it may quote a file of others.
fn short(message: &str) -> String {
    /// Characters of its beginning, and of its end, where the remedy is.
    const KEPT: usize = 4000;
    let length = message.chars().count();
    if length <= 2 * KEPT {
        return message.to_owned();
    }
    let begin: String = message.chars().take(KEPT).collect();
    let end: String = message.chars().skip(length - KEPT).collect();
    let left_out = length - 2 * KEPT;
    format!("{begin} … ({left_out} characters are left out) … {end}")
}

/// The failure that an error of an attached card is.
pub fn of_attach(error: AttachError) -> Failure {
    let kind = match error {
        AttachError::NotAttached { .. }
        | AttachError::Running { .. }
        | AttachError::Busy { .. } => Kind::Input,
        _ => Kind::Environment,
    };
    Failure::from_source(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_a_long_message_keeps_its_beginning_and_its_remedy() {
        assert_eq!(short("é"), "é");
        let long = format!("no such card: {}; name another", "é".repeat(1_600_000));
        let told = short(&long);
        assert!(told.starts_with("no such card") && told.ends_with("name another"));
        assert!(told.len() < 20_000, "{}", told.len());
    }

    #[test]
    fn exit_codes_are_those_that_the_manual_promises() {
        let kinds = [
            (Kind::No, 1),
            (Kind::Input, 2),
            (Kind::Environment, 3),
            (Kind::Trial, 4),
            (Kind::Interrupted, 130),
        ];
        for (kind, code) in kinds {
            assert_eq!(exit_code(kind), code, "{kind:?}");
        }
    }
}
