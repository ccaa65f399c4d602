//! The lab: a real Linux kernel (User Mode Linux) on modelled cards in virtual time.
//!
//! [`run`] gives a guest its life: it starts the kernel with the agent as its first
//! program, is its calendar and its disks, and returns the agent's events, stamped.
//! One call uses one thread and one core; calls side by side are independent.

mod block;
pub mod calendar;
mod cgroup;
mod confinement;
mod control;
mod cores;
mod cpu;
mod device;
mod disk;
mod engine;
#[cfg(test)]
mod engine_tests;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz_input;
mod guest;
mod guest_directory;
mod host_view;
mod image_disk;
mod initramfs;
mod kernel;
mod memory;
mod modules;
mod ring;
mod run;
mod schedule;
mod shared;
mod socket;
mod spawn;
mod system_calls;
mod trace;
mod userland;
pub mod vhost;
mod watchdog;

pub use block::BlockGeometry;
pub use cgroup::GroupLimits;
pub use confinement::confinement;
pub use cores::{CoreClaim, available_cores};
pub use cpu::CpuPrices;
pub use disk::Disk;
pub use engine::Stamped;
pub use error::LabError;
pub use guest_directory::memory_directory;
pub use host_view::{HostView, Root};
pub use image_disk::ImageDisk;
pub use kernel::Kernel;
pub use modules::{KernelModule, Modules};
pub use run::{Agent, GuestRun, GuestSpec, image_device, run};
pub use shared::SharedDirectory;
pub use userland::Userland;
pub use watchdog::GuestLimits;
