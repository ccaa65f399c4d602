//! Why a trial cannot begin.

use crate::error::Error;

/// Why a trial was not prepared.
#[derive(Debug)]
pub enum PrepareError {
    /// The filesystem does not fit the card, or a tool is missing: the candidate is left out.
    Excluded {
        /// One sentence, with the remedy where there is one.
        why: String,
        /// Where the limit comes from.
        source: Option<String>,
    },
    /// Something else is wrong: the whole campaign ends.
    Failed(Error),
}

impl From<whichfs_fs::Unfit> for PrepareError {
    fn from(unfit: whichfs_fs::Unfit) -> PrepareError {
        PrepareError::Excluded {
            why: unfit.reason,
            source: Some(unfit.source.to_owned()),
        }
    }
}
