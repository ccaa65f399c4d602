//! Plans carried out: partition tables and filesystems written to a card or into an image.
//!
//! A card goes through [`format_disk`]: guarded by [`whichfs_device::TargetDisk`] before every
//! step, with a [`FormatJournal`] that tells after an interruption what state the card is in, and
//! verified afterwards. An image goes through [`format_image`] and needs no root; [`tree_image`]
//! makes a filesystem with files in it. [`PartitionLease`] is a card that trials run on.
//! [`OpenDisk`] reads tables and superblocks of either.

mod builder;
mod device;
mod disk;
mod error;
mod image;
mod journal;
mod mounted;
mod partition_lease;
mod program;
mod proto;
mod tree;
mod unsupported_metadata;
mod verify;

pub use builder::{Builder, builder};
pub use device::{FormatStep, check_commands, format_disk, steps, validate};
pub use disk::OpenDisk;
pub use error::FormatError;
pub use image::{PartialImage, format_image};
pub use journal::{FormatJournal, InterruptedFormat};
pub use mounted::kernel_has;
pub use partition_lease::{PartitionLease, Span, only_partition, partition_commands};
pub use program::PATH;
pub use tree::{Tree, image_checks, tree_image};
pub use unsupported_metadata::UnsupportedEntries;
pub use whichfs_layout::{Check, CheckOutcome as Outcome};

/// Hears what is being done; whoever it belongs to shows it.
pub type FormatListener<'a> = dyn FnMut(&str) + 'a;
