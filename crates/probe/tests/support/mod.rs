//! Doubles for the probe's tests: random cards, noise as in real logs, faults, contents.
#![allow(dead_code, clippy::unwrap_used)]

pub mod cards;
pub mod faulty;
pub mod measured;
pub mod noise;
pub mod noisy;
pub mod score;
