//! Modelled block devices, in the manner of nbdkit's filters: [`Timing`] is a card with its bytes,
//! and each layer wraps a device and overrides what it changes.
//!
//! ```
//! use whichfs_blockdev::{BlockDevice, Recording, Timing};
//! use whichfs_card::{Card, Contents, Profile, Request, builtin};
//! use whichfs_units::Nanos;
//!
//! let (name, text) = builtin()[0];
//! let profile = Profile::parse(name, text)?;
//! let card = Timing {
//!     card: Card::fresh(&profile),
//!     contents: Contents::new(profile.capacity_bytes()),
//!     request_cost: Nanos(1000),
//! };
//! let mut device = Recording::new(card);
//! device.log = Some(Vec::new());
//! let done = device.submit(Nanos(0), &Request::write(4096, 512));
//! device.write(4096, &[7; 512])?;
//! assert_eq!(device.log.as_ref().map(|log| log[0].done), Some(done.at));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod defects;
mod device;
mod fault;
mod live;
mod record;
mod stats;
mod timing;
mod untimed;

pub use defects::{Defects, Refuses, Tries};
pub use device::{BlockDevice, Payload};
pub use fault::Defective;
pub use live::{LiveDamage, LiveFault, LiveFaults, NEVER};
pub use record::{Logged, Recording};
pub use stats::{Metered, figures};
pub use timing::Timing;
pub use untimed::Untimed;
