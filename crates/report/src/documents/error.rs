//! Why a command gave no answer.

use crate::document::Document;
use schemars::JsonSchema;
use serde::Serialize;

/// What a command with `--json` prints in place of its document when it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorDocument {
    /// Kind of the reason; each has its exit status.
    pub kind: ErrorWord,
    /// What was found, what was expected, and the remedy, in one text for a person.
    pub message: String,
    /// What to do: the part of the message that says so, else what helps with errors of this kind.
    pub remedy: String,
    /// Exit status of the command.
    pub status: u8,
    /// Option or command that this program does not know: it is misspelt, or of another release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_argument: Option<String>,
}

impl Document for ErrorDocument {
    const NAME: &'static str = "error";
}

/// Kind of the reason why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorWord {
    /// Nothing failed, but the answer is no (status 1).
    No,
    /// An argument, a value or a file of the caller is wrong (2).
    Input,
    /// This machine lacks something (3).
    Environment,
    /// A trial failed whose result is needed (4).
    Trial,
    /// The user interrupted the command; finished work is kept (status 130).
    Interrupted,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::document_json;

    #[test]
    fn an_error_says_its_kind_and_what_to_do() {
        let error = ErrorDocument {
            kind: ErrorWord::Environment,
            message: "no lab kernel; run `make kernel`".into(),
            remedy: "run `make kernel`".into(),
            status: 3,
            unknown_argument: None,
        };
        let json: serde_json::Value =
            serde_json::from_str(&document_json(&error).unwrap()).unwrap();
        let expected = serde_json::json!({"document": "error", "schema": 1, "kind": "environment",
            "message": "no lab kernel; run `make kernel`", "remedy": "run `make kernel`",
            "status": 3});
        assert_eq!(json, expected);
    }
}
