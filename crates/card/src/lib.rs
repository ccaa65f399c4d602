//! The flash card model: pure, time is an argument.
