//! Plan, statistics and verdict. Pure.
