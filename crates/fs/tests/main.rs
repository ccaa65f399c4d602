//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod recipes;
mod tools;

use whichfs_testkit::skip;
