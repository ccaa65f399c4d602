//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod campaign_flows;
mod choose_flows;
mod installed;
mod lab_examples;
mod swarm;
