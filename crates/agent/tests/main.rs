//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod blocks;
mod clock;
mod executor;

use whichfs_testkit::skip;
