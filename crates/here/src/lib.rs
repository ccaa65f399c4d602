//! Real devices of this machine.
//!
//! [`target`] says what a path is and whether it may be tested: nothing is opened for writing
//! that is mounted, swapped on, held by another, open elsewhere or read-only. [`Raw`] then is a
//! [`whichfs_curves::Device`]: direct, synchronous I/O with the time of each request.
//! [`Doomed`] is a disk whose data may be lost: nobody uses it, it is no disk of the system, and
//! it is the same one at each step. [`identify`] reads what a card says of itself.
//! [`users_of_disk`] names everybody who uses a disk. [`Inside`] is a directory on a mounted
//! filesystem, where trials have a [`Scratch`] that vanishes.
//! [`errand::run`] has an agent do a job here and leaves nothing behind.

mod doomed;
pub mod errand;
mod error;
mod guard;
mod identity;
mod inside;
mod mounts;
mod raw;
mod sandbox;
mod scratch;
mod sysfs;
#[cfg(test)]
mod testing;
mod usage;

pub use doomed::{Doomed, Limits, id_of, quoted};
pub use error::HereError;
pub use guard::{Access, Kind, Roots, Target, target};
pub use identity::{Bus, Csd, Emmc, Identity, PreEol, Promise, Register, SdStatus, Used, identify};
pub use inside::Inside;
pub use raw::Raw;
pub use scratch::Scratch;
pub use usage::{User, removable_mounts, users_of_disk};
