//! Tests of the command on block devices (root is needed), in one program, which is linked once.
#![allow(clippy::unwrap_used)]

mod cards;
mod loop_attach;
mod loop_f3;
mod loop_faults;
mod loop_flashbench;
mod loop_format;
mod loop_here;
mod loop_inside;
mod loop_power;
mod loop_ssh;
mod loop_typed;
mod qemu_board;

#[path = "../../../tests/machine.rs"]
mod machine;
#[path = "../../../tests/powered.rs"]
mod powered;
#[path = "../../../tests/skip.rs"]
mod skip;
#[path = "../../../tests/sshd.rs"]
mod sshd;
