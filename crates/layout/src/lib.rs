//! Partitions in allocation units, and all that follows from them.
//!
//! A [`Layout`] (a file, or one partition) and a [`Medium`] (what is known of the card) make a
//! [`DiskPlan`]: where each partition lies and the commands that make it. [`emit`] writes the plan
//! down in the forms that image builders take. The other way, [`read_table`] and
//! [`superblock::read`] tell what is on a card, and [`judge`] whether it is aligned and tuned.
//! Pure: nothing is run, and bytes come through a function.

mod board;
mod boot;
mod check;
mod commands;
pub mod emit;
mod error;
mod faults;
mod file;
mod judge;
mod label;
mod medium;
mod plan;
pub mod superblock;
mod table;

pub use boot::{BootBoard, BootRules, RawArea};
pub use check::{Check, CheckOutcome};
pub use commands::{fstab, fstab_line, mbr_type, mkfs, sfdisk_script};
pub use error::LayoutError;
pub use faults::{backup_fault, cut_off, overlap};
pub use file::{BUILTIN, KernelFrom, Layout, Partition, Role, Size, is_mount, parse_bytes};
pub use judge::{FoundPartition, LayoutFault, PartitionVerdict, Remedy, judge};
pub use label::{in_file, labelled};
pub use medium::{Medium, Unit};
pub use plan::{DiskPlan, PlannedPartition};
pub use table::{Kind as TableKind, Table, TableEntry, backup_damage, read_table};

/// Reads so many bytes at an offset of a device or image; fewer only at its end.
pub type ReadAt<'a> = dyn FnMut(u64, usize) -> Result<Vec<u8>, String> + 'a;
