//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod calibration;
mod sustained;
