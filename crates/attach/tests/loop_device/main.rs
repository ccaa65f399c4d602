//! Attached cards: as the kernel sees them, after a crash, and by ublk in a virtual machine. By
//! FUSE they need root, FUSE and loop devices; they are skipped without.
#![allow(missing_docs, clippy::unwrap_used)]

mod alive;
#[path = "../common/mod.rs"]
mod common;
mod killed;
use whichfs_testkit::machine;
mod ublk;
mod vm;
