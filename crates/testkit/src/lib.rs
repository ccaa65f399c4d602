//! What tests of several crates need: how a test says that it cannot run here, an ssh server of a
//! test's own, a board that loses its power, a lab of boards, and the parts of a virtual machine.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use it, and a test may panic"
)]

pub mod documents;
pub mod labgrid;
pub mod machine;
pub mod powered;
pub mod skip;
pub mod sshd;
