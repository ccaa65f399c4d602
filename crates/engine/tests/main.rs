//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod choose_flows;
mod lab_examples;
mod swarm;
