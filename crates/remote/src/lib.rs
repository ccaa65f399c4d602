//! Trials on a board: a device in another machine, reached by the system's `ssh`.
//!
//! The board gets one static program in a private directory. [`attend`] runs there, apart from any
//! connection: it guards the device, does one [`Ask`] at a time and keeps what the trial under way
//! tells. [`BoardSession`] asks it from here, connects again when the connection is lost, and sets
//! everything up anew when the board has restarted. [`trial`] is one trial on the machine that it
//! is called on: a board or this one.

mod about;
mod address;
mod attend;
mod board;
mod power;
mod refusal;
mod retire;
mod script;
mod ssh;
mod tools;
mod trial;
mod wire;

pub use about::{Machine, RemoteDisk};
pub use address::{Address, DevicePlace, is_host};
pub use attend::{attend, begin_to_attend, link};
pub use board::{BoardSession, Cutting, Parted, Patience, Power};
pub use power::Outage;
pub use refusal::{Refusal, Why};
pub use script::{ARCHITECTURES, Kit};
pub use tools::{Versions, cpu_features_sha256, find, sha256};
pub use trial::{Means, trial};
pub use wire::{Answer, Ask, MOUNT_POINT, Task};
