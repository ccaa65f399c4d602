//! A modelled card as a block device of this machine, in real time.
//!
//! ```text
//! filesystem, fio, dd
//!   /dev/loopN           loop driver, direct I/O: queue limits and scheduler as mmc_block's
//!   FUSE file            no mount point, FOPEN_DIRECT_IO: nothing is cached in between
//!   file.rs              requests in the order of arrival
//!   model.rs             the card says when each completes; the bytes move
//!   delivery.rs          sleeps until then and answers
//! ```
//!
//! Works on any Linux from 5.8 with FUSE and loop devices, as root. A ublk back end would
//! save a layer; it is not here, because no machine at hand has `/dev/ublk-control` to test
//! it on.
//!
//! What a process that is killed leaves: see [`clean`].
//!
//! ```no_run
//! # fn example(options: whichfs_attach::Options) -> Result<(), Box<dyn std::error::Error>> {
//! # let interrupted = std::sync::atomic::AtomicBool::new(false);
//! let mut attached = whichfs_attach::attach(options)?;
//! loop {
//!     attached.wait(&interrupted);
//!     match attached.detach() {
//!         Ok(statistics) => break println!("{:?}", statistics.delivery),
//!         // In use: say by whom, and wait for the next time.
//!         Err(refused) => {
//!             eprintln!("{}", refused.error);
//!             attached = refused.attached;
//!         }
//!     }
//! }
//! # Ok(()) }
//! ```

mod attached;
mod clean;
mod clock;
mod control;
mod delivery;
mod error;
mod file;
mod lateness;
mod loopdev;
mod model;
mod mount;
mod options;
mod path;
mod queue;
mod runtime;
mod statistics;
mod thread;

pub use attached::{Attached, StillAttached, attach};
pub use clean::{Leftover, clean, list};
pub use clock::Speed;
pub use control::{request_detach, statistics};
pub use error::AttachError;
pub use lateness::DeliveryError;
pub use options::{CardState, Options};
pub use queue::HostQueue;
pub use runtime::Record;
pub use statistics::Statistics;
pub use whichfs_here::User;
