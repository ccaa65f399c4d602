//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod builders;
mod common;
mod superblocks;
mod updaters;
mod wks;
