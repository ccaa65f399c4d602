//! Exit codes, and how errors of the engine are shown.

use crate::output;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;
use whichfs_attach::AttachError;
use whichfs_report::documents::error::{ErrorDocument, ErrorWord};

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

/// Prints `failure` on standard error, with `json` as a document on standard output too, and gives
/// its exit code.
pub fn report(failure: &Failure, json: bool) -> ExitCode {
    let message = short(&failure.message);
    // A line of a message never looks like one of ours.
    alert!("whichfs: {}", message.replace('\n', "\n  "));
    let status = exit_code(failure.kind);
    if json {
        output::error(&ErrorDocument {
            kind: word(failure.kind),
            remedy: short(failure.remedy()),
            message,
            status,
            unknown_argument: None,
        });
    }
    ExitCode::from(status)
}

/// Prints what clap says: help, the version, or which arguments it does not take; the latter with
/// `json` as a document too. Gives the exit code.
pub fn report_usage(error: &clap::Error, json: bool) -> ExitCode {
    let _ = error.print();
    // clap's own code for usage errors is 2 already; help and version are 0.
    let status = error.exit_code() as u8;
    if json && status != 0 {
        output::error(&usage_document(error, status));
    }
    ExitCode::from(status)
}

/// The document of arguments that are not understood.
fn usage_document(error: &clap::Error, status: u8) -> ErrorDocument {
    let text = error.to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let tips = rest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("tip: "));
    let tips: Vec<&str> = tips.collect();
    let unknown = match error.kind() {
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        _ => None,
    };
    ErrorDocument {
        kind: ErrorWord::Input,
        message: short(message.trim_end()),
        remedy: match tips.is_empty() {
            true => {
                "correct the argument that the message names; `--help` after the command lists \
                     what it takes"
                    .to_owned()
            }
            false => short(&tips.join("; ")),
        },
        status,
        unknown_argument: match unknown {
            Some(ContextValue::String(argument)) => Some(argument.clone()),
            _ => None,
        },
    }
}

/// The word of `kind` in a document.
fn word(kind: Kind) -> ErrorWord {
    match kind {
        Kind::No => ErrorWord::No,
        Kind::Input => ErrorWord::Input,
        Kind::Environment => ErrorWord::Environment,
        Kind::Trial => ErrorWord::Trial,
        Kind::Interrupted => ErrorWord::Interrupted,
    }
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
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn arguments_that_are_not_understood_are_told_with_a_remedy() {
        let of = |line: &str| {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            usage_document(&error, 2)
        };
        let unknown = of("whichfs choose --sead 3 --json");
        assert_eq!(unknown.message, "unexpected argument '--sead' found");
        assert_eq!(unknown.unknown_argument.as_deref(), Some("--sead"));
        assert!(unknown.remedy.contains("'--seeds'"), "{unknown:?}");
        let command = of("whichfs fs lost --json");
        assert_eq!(command.unknown_argument.as_deref(), Some("lost"));
        let value = of("whichfs choose --seeds x --json");
        assert!(
            value
                .message
                .starts_with("invalid value 'x' for '--seeds <N>'")
        );
        assert!(value.remedy.contains("--help"), "{value:?}");
        assert_eq!(value.unknown_argument, None);
        let missing = of("whichfs image tree --json");
        assert!(missing.message.contains("--fs <NAME>"), "{missing:?}");
    }

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
