//! A modelled card as a block device of this machine, in real time.
//!
//! ```text
//! filesystem, fio, dd
//!   /dev/ublkbN          ublk driver: queue limits and scheduler as mmc_block's
//!   ublk_queue.rs        requests in the order of arrival, answered at their times
//!     or
//!   /dev/loopN           loop driver, direct I/O: the same limits
//!   FUSE file            no mount point, FOPEN_DIRECT_IO: nothing is cached in between
//!   file.rs              requests in the order of arrival
//!   delivery.rs          sleeps until they are done and answers
//!
//!   model.rs             the card says when each completes; the bytes move
//! ```
//!
//! Works on any Linux from 5.8 with FUSE and loop devices, and from 6.5 by ublk where that is
//! there, as root.
//!
//! What a process that is killed leaves: see [`clean`].
//!
//! ```no_run
//! # fn example(options: whichfs_attach::AttachOptions) -> Result<(), Box<dyn std::error::Error>> {
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
mod driver;
mod error;
mod file;
mod lateness;
mod loopdev;
mod model;
mod mount;
mod node;
mod options;
mod path;
mod queue;
mod runtime;
mod serving;
mod statistics;
mod thread;
mod transport;
mod ublk;
mod ublk_queue;
mod way;

pub use attached::{Attached, StillAttached, attach};
pub use clean::{Leftover, clean, left, list};
pub use clock::Speed;
pub use control::{request_detach, statistics};
pub use error::AttachError;
pub use lateness::DeliveryError;
pub use node::Driver;
pub use options::{AttachOptions, BeginState, Transport};
pub use queue::HostQueue;
pub use runtime::Record;
pub use statistics::Statistics;
pub use whichfs_device::User;
