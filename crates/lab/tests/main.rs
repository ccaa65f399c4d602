//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod common;
mod lab_cpu;
mod lab_determinism;
mod lab_faults;
mod lab_guest;
mod lab_hostile;
mod lab_killed;
mod lab_seccomp;
mod lab_user;
