//! Why a card could not be attached or detached, each with the remedy.

use crate::busy::Holder;
use std::io;
use std::path::PathBuf;
use whichfs_units::Bytes;

/// An operational error of attaching.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Not root.
    #[error(
        "attaching a card makes a block device, which needs root: run it with sudo (the lab, \
         `whichfs lab exec`, needs no root)"
    )]
    NotRoot,
    /// No `/dev/fuse`.
    #[error(
        "no FUSE here: /dev/fuse: {source}; remedy: modprobe fuse; in a container, run it with \
         --device /dev/fuse and CAP_SYS_ADMIN"
    )]
    NoFuse {
        /// The system's answer.
        source: io::Error,
    },
    /// No `/dev/loop-control`.
    #[error(
        "no loop devices here: /dev/loop-control: {source}; remedy: modprobe loop; in a \
         container, run it with --privileged"
    )]
    NoLoop {
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel lacks something.
    #[error("this kernel is too old: it lacks {0}; remedy: a kernel of 5.8 or newer")]
    OldKernel(&'static str),
    /// The capacity cannot be.
    #[error("--size: {0}")]
    Size(#[from] whichfs_card::CapacityError),
    /// Less room than the card may come to hold.
    #[error(
        "the card holds {}, but only {} are free: {} of memory and the rest in {}; remedy: a \
         smaller card (--size), room there, or another directory (TMPDIR)",
        Bytes(*capacity), Bytes(*free), Bytes(*memory), directory.display()
    )]
    NoRoom {
        /// Bytes of the card.
        capacity: u64,
        /// Bytes for its contents, memory and spill together.
        free: u64,
        /// Part of them in memory.
        memory: u64,
        /// Where the rest goes.
        directory: PathBuf,
    },
    /// Somebody uses the device.
    #[error("{device} is in use: {}", crate::busy::list(.holders))]
    Busy {
        /// The device's path.
        device: String,
        /// Who uses it, and what to do.
        holders: Vec<Holder>,
    },
    /// No device of ours.
    #[error("{device}: no attached card of a running whichfs; attached are: {attached}")]
    NotAttached {
        /// What was asked for.
        device: String,
        /// What there is.
        attached: String,
    },
    /// A setting that the kernel does not take.
    #[error("{path}: {value} was asked for: {why}")]
    Setting {
        /// The attribute's path.
        path: String,
        /// The value.
        value: String,
        /// What the kernel says.
        why: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl AttachError {
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> AttachError {
        let what = what.into();
        AttachError::Io { what, source }
    }

    pub(crate) fn no_fuse(source: io::Error) -> AttachError {
        AttachError::NoFuse { source }
    }

    pub(crate) fn no_loop(source: io::Error) -> AttachError {
        AttachError::NoLoop { source }
    }
}
