//! What became of a path, in a word.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of one path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PathOutcome {
    /// As it was when the power went.
    Right,
    /// As it was at an earlier moment.
    Old,
    /// Parts of several of its versions.
    Mixed,
    /// Zeros where its data should be.
    Zeroed,
    /// There, with no bytes.
    Emptied,
    /// Shorter than it was.
    Truncated,
    /// Not there.
    Missing,
    /// There again, or a name that never was.
    Unexpected,
    /// Right or legal in itself, but its directory has its name more than once: no data are lost,
    /// and the filesystem is not consistent.
    ListedTwice,
    /// It cannot be read.
    ReadError,
    /// Other bytes, mode or kind; the kernel warned of damage.
    WrongWithWarning,
    /// Other bytes, mode or kind, and no word.
    WrongSilently,
}

impl PathOutcome {
    /// Whether it says of every byte where it is from. A truncated file is known by its size alone.
    pub fn explains(self) -> bool {
        let known = [
            PathOutcome::Right,
            PathOutcome::Old,
            PathOutcome::Mixed,
            PathOutcome::Zeroed,
            PathOutcome::Emptied,
        ];
        known.contains(&self)
    }

    /// Whether it is garbage, with or without a word of the kernel.
    pub fn is_wrong(self) -> bool {
        [PathOutcome::WrongSilently, PathOutcome::WrongWithWarning].contains(&self)
    }

    /// All of them.
    pub const ALL: [PathOutcome; 12] = [
        PathOutcome::Right,
        PathOutcome::Old,
        PathOutcome::Mixed,
        PathOutcome::Zeroed,
        PathOutcome::Emptied,
        PathOutcome::Truncated,
        PathOutcome::Missing,
        PathOutcome::Unexpected,
        PathOutcome::ListedTwice,
        PathOutcome::ReadError,
        PathOutcome::WrongWithWarning,
        PathOutcome::WrongSilently,
    ];
}
