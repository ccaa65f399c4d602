//! Why a target is refused, each with its remedy.

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HereError {
    /// It is not there, or its path cannot be followed.
    #[error("{path}: {reason}; name a block device (lsblk lists them) or a file")]
    Missing {
        /// As given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// Neither a block device nor a regular file.
    #[error("{path} is {found}; name a block device (lsblk lists them) or a file")]
    NotStorage {
        /// As given.
        path: String,
        /// What it is.
        found: &'static str,
    },
    /// A part of a disk, where offsets are not the card's.
    #[error("{path} is a partition; its offsets are not the card's: name the disk, {disk}")]
    Partition {
        /// As given.
        path: String,
        /// The disk it is on.
        disk: String,
    },
    /// Something on it is mounted.
    #[error("{path} is mounted ({device} on {place}); umount {place}, then try again")]
    Mounted {
        /// As given.
        path: String,
        /// The device that is mounted: the disk or a partition.
        device: String,
        /// Where.
        place: String,
    },
    /// It holds the running system.
    #[error("{path} holds {place} of this system; it is never tested: name another device")]
    System {
        /// As given.
        path: String,
        /// The part of the system that is on it.
        place: String,
    },
    /// Swap space is on it.
    #[error("{path} has active swap space on {device}; swapoff {device}, then try again")]
    Swap {
        /// As given.
        path: String,
        /// The device with the swap space.
        device: String,
    },
    /// A RAID, LVM, crypt or loop device is made of it.
    #[error("{path} is part of {holder} ({device}); close that ({tool}) first")]
    Held {
        /// As given.
        path: String,
        /// The disk or partition that is held.
        device: String,
        /// Who holds it.
        holder: String,
        /// The tools that do it.
        tool: &'static str,
    },
    /// Another process has it open.
    #[error("{path} is open in process {pid}, {name}; end it, then try again")]
    Open {
        /// As given.
        path: String,
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The path led to one device when it was judged and to another when it was opened.
    #[error(
        "{path} is another device than a moment ago (was it plugged in again?); look at lsblk, \
         then try again"
    )]
    Replaced {
        /// As given.
        path: String,
    },
    /// Another program has it.
    #[error("{path} is in use by another program; fuser -v {path} names it")]
    Busy {
        /// As given.
        path: String,
    },
    /// It cannot be written to.
    #[error("{path} is read-only; look at the card's lock switch, or leave out --write")]
    ReadOnly {
        /// As given.
        path: String,
    },
    /// The user may not open it.
    #[error("{path}: no permission; use sudo, or become a member of its group ({group})")]
    Permission {
        /// As given.
        path: String,
        /// The group that owns it, as a number or name.
        group: String,
    },
    /// Too small to tell anything.
    #[error("{path} has {bytes} bytes; at least {least} are needed")]
    TooSmall {
        /// As given.
        path: String,
        /// What it has.
        bytes: u64,
        /// What is needed.
        least: u64,
    },
    /// Its filesystem or driver has no direct I/O.
    #[error(
        "{path}: direct I/O is not possible here ({reason}); without it the page cache would be \
         measured: name the device itself, or a file on ext4 or xfs"
    )]
    NoDirect {
        /// As given.
        path: String,
        /// What the system said.
        reason: String,
    },
}
