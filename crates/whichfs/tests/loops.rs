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
mod loop_labgrid;
mod loop_lava;
mod loop_power;
mod loop_ssh;
mod loop_typed;
mod qemu_arm;
mod qemu_board;
mod qemu_labgrid;

use whichfs_testkit::labgrid;
use whichfs_testkit::machine;
use whichfs_testkit::powered;
use whichfs_testkit::skip;
use whichfs_testkit::sshd;
