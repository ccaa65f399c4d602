//! Real devices of this machine.
//!
//! [`target`] says what a path is and whether it may be tested: nothing is opened for writing
//! that is mounted, swapped on, held by another or read-only. [`Raw`] then is a
//! [`whichfs_curves::Device`]: direct, synchronous I/O with the time of each request.

mod error;
mod guard;
mod mounts;
mod raw;
mod sysfs;

pub use error::HereError;
pub use guard::{Access, Kind, Roots, Target, target};
pub use raw::Raw;
