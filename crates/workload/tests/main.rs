//! All tests of the crate from outside, in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod compression;
mod compressors;
mod streams;
