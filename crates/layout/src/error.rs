//! What is wrong with a layout, and the remedy.

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The file is not as it should be.
    #[error("{file}:{line}: {what}; {remedy}")]
    File {
        /// As the caller named it.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What was found.
        what: String,
        /// What is expected.
        remedy: String,
    },
    /// A unit from which nothing can be laid out.
    #[error(
        "an allocation unit of {bytes} bytes; expected a multiple of 4 KiB from 64 KiB up to 64 \
         MiB, such as 4M or 12M"
    )]
    Unit {
        /// What was given.
        bytes: u64,
    },
    /// A partition, or the whole of them, does not go.
    #[error("{what}; {remedy}")]
    Plan {
        /// What was found.
        what: String,
        /// What to do.
        remedy: String,
    },
}

impl LayoutError {
    /// That `what` does not go, with the `remedy`.
    pub(crate) fn plan(what: impl Into<String>, remedy: impl Into<String>) -> LayoutError {
        LayoutError::Plan {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
