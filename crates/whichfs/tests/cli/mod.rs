//! The command line from outside: bad input, faults of the environment, output. No guest runs.
#![allow(clippy::unwrap_used)]

mod capacity;
mod cards;
mod crash;
mod environment;
mod format;
mod format_board;
mod golden;
mod input;
mod manual;
mod output;
mod profiles;
mod records;
mod results;
mod sandbox;
mod schemas;
mod stores;
mod study;
mod sweeps;
