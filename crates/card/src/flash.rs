//! What translation layers are made of: free and worn blocks, what programming takes, live data of
//! blocks, and AUs with a stream of their own.

mod live;
mod pool;
mod program;
mod streams;

pub(crate) use live::Live;
pub(crate) use pool::{Fill, Pool};
pub(crate) use program::{Order, Program};
pub(crate) use streams::Streams;

/// An invariant of the mapping that does not hold: a bug of the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the card's map is inconsistent: {0}")]
pub struct Violation(pub String);

/// AUs that a card can write into without copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAus {
    /// Open now.
    pub now: u32,
    /// Open at once, at most.
    pub limit: u32,
}
