//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod au_sizes;
mod behaviour;
mod canonical;
mod common;
mod contents;
mod findings;
mod headlines;
mod invariants;
mod lying;
mod profiles;
mod residual;
