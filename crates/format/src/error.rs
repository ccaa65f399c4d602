//! Why something was not written, with the remedy.

use whichfs_device::HereError;
use whichfs_layout::LayoutError;

/// Why a card or image was not made.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The device must not be written to.
    #[error(transparent)]
    Guard(#[from] HereError),
    /// The layout does not go.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A program is missing.
    #[error("{tool} is not installed, which {purpose}: apt install {package}")]
    Missing {
        /// Name of the program, as a shell finds it.
        tool: String,
        /// What it does.
        purpose: String,
        /// Debian's package.
        package: String,
    },
    /// A program failed.
    #[error("{command}: {reason}")]
    Failed {
        /// Its command line.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The partitions do not appear, or are others than those that were written.
    #[error("{what}; {remedy}")]
    Partitions {
        /// What was found.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{path}: {reason}; {remedy}")]
    File {
        /// What was to be read or written.
        path: String,
        /// What the system said.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A tree that cannot be put into this filesystem.
    #[error("{what}; {remedy}")]
    Tree {
        /// What was found.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// It failed while a card was written.
    #[error("{error}; {state}")]
    GivenUp {
        /// What failed.
        error: Box<FormatError>,
        /// What is on the card.
        state: String,
    },
    /// The user asked to stop.
    #[error("interrupted after step {done} of {all}; {state}")]
    Interrupted {
        /// Steps that were done.
        done: usize,
        /// All steps.
        all: usize,
        /// What is on the card.
        state: String,
    },
}
