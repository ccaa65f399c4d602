//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod accuracy;
mod capacity;
mod cost;
mod faults;
mod knowledge;
mod results;
mod shipped;
mod support;
mod tables;
