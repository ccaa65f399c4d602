//! Real devices of this machine.
//!
//! [`target`] says what a path is and whether it may be tested: nothing is opened for writing that
//! is mounted, swapped on, held by another, open elsewhere or read-only. [`Raw`] then is a
//! [`whichfs_curves::TimedDevice`]: direct, synchronous I/O with the time of each request.
//! [`TargetDisk`] is a disk whose data may be lost: nobody uses it, it is no disk of the system,
//! and it is the same one at each step. [`identify`] reads what a card says of itself.
//! [`users_of_disk`] names everybody who uses a disk. [`Inside`] is a directory on a mounted
//! filesystem, where trials have a [`Scratch`] that vanishes. [`sandboxed_agent::run`] has an agent
//! do a job here and leaves nothing behind.

mod error;
mod guard;
mod identity;
mod inside;
mod mounts;
mod raw;
mod roots;
pub mod sandboxed_agent;
mod scratch;
mod sysfs;
mod target_disk;
#[cfg(test)]
mod testing;
mod usage;
mod write_limit;

pub use error::HereError;
pub use guard::{Access, Target, TargetKind, target};
pub use identity::{
    Bus, Csd, DeviceIdentity, Emmc, MarkedMinimum, PreEol, Register, SdStatus, Used, identify,
};
pub use inside::Inside;
pub use raw::Raw;
pub use roots::Roots;
pub use sandboxed_agent::SANDBOX_DIRECTORY;
pub use scratch::Scratch;
pub use target_disk::{DestroyLimits, TargetDisk, id_of};
pub use usage::{User, removable_mounts, users_of_disk};
