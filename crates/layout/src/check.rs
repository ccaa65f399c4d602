//! Checks of what was made: table, superblocks, fsck, mount, write, read.

use serde::Serialize;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// As it should be.
    Good(String),
    /// It could not be done, and why.
    Skipped(String),
    /// Not as it should be.
    Bad(String),
}

/// One test of a finished card or image, with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Check {
    /// What was checked.
    pub what: String,
    /// How it ended.
    pub outcome: CheckOutcome,
}

impl Check {
    /// The check of `what`.
    pub fn new(what: impl Into<String>, outcome: CheckOutcome) -> Check {
        Check {
            what: what.into(),
            outcome,
        }
    }

    /// Whether something is wrong.
    pub fn is_bad(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Bad(_))
    }
}
