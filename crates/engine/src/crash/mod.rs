//! Power cuts in the lab: a run is recorded once, then images of any instant of it are checked.

pub mod archive;
pub mod campaign;
pub mod check;
#[cfg(any(test, feature = "testing"))]
pub mod fixture;
pub mod image_file;
pub mod inputs;
pub mod live_run;
pub mod look;
pub mod measured;
pub mod minimiser;
pub mod planned_cuts;
pub mod power;
#[cfg(test)]
mod promise_tests;
pub mod record;
pub mod reproducer;
pub mod script;
mod seen;
pub mod series;
pub mod shell;
pub mod spec;
