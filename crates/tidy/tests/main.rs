//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod house_rules;
mod kernel_build;
mod setup_script;
