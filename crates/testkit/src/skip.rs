//! How a test of any crate says that it cannot run here.

use std::fmt::Display;
use std::io::Write;

/// Says on standard error which test is skipped and why. Not by a print macro: the test runner
/// keeps to itself what those print in a test that passes.
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
}
