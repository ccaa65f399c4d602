//! Why a card could not be attached or detached, each with the remedy.

use std::io;
use std::path::PathBuf;
use whichfs_device::User;
use whichfs_units::Bytes;

/// An operational error of attaching.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The user is not root, which a new block device needs.
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
    /// The kernel has no driver for ublk, or it is not loaded.
    #[error(
        "no ublk here: /dev/ublk-control: {source}; remedy: modprobe ublk_drv (Linux 6.5 or newer \
         with CONFIG_BLK_DEV_UBLK), or --transport fuse"
    )]
    NoUblk {
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel lacks something.
    #[error("this kernel is too old: it lacks {0}; remedy: a kernel of 5.8 or newer")]
    OldKernel(&'static str),
    /// Less room than the card may come to hold.
    #[error(
        "the card holds {}, but only {} are free: {} of memory and the rest in {}; remedy: a \
         smaller card (--size), room there, another directory (XDG_CACHE_HOME) or more memory \
         (--memory)",
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
    #[error("{device} is in use: {}", sentence(.holders))]
    Busy {
        /// The device's path.
        device: String,
        /// Who uses it, and what to do.
        holders: Vec<User>,
    },
    /// It ends with a command.
    #[error(
        "{device} ends with the command that it was attached for, process {pid}; end that \
         (kill {pid})"
    )]
    Running {
        /// The device's path.
        device: String,
        /// The command's process.
        pid: u32,
    },
    /// No device of ours.
    #[error(
        "{device}: no attached card of a running whichfs; name one of those that are: {attached} \
         (whichfs card detach without a name removes what dead ones left)"
    )]
    NotAttached {
        /// What was asked for.
        device: String,
        /// What there is.
        attached: String,
    },
    /// A setting that the kernel does not take.
    #[error("{path}: {value} was asked for: {why}; change {key} in the board file (--board)")]
    Setting {
        /// What the value comes from.
        key: &'static str,
        /// The attribute's path.
        path: String,
        /// What the board file asks the kernel to set.
        value: String,
        /// What the kernel says.
        why: String,
    },
    /// A system call failed.
    #[error("{what}: {source}{}", advice(.source))]
    Io {
        /// What was attempted.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// The users with what to do about each, as one sentence.
pub(crate) fn sentence(users: &[User]) -> String {
    let each: Vec<String> = users.iter().map(User::to_string).collect();
    each.join("; ")
}

/// What to do about what the system said, where that is known; begins with the separator.
fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; remedy: all rights of root (in a container, run it with --privileged)"
        }
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "; remedy: room there (df tells), or another directory (XDG_CACHE_HOME)"
        }
        Some(libc::EROFS) => "; remedy: another directory (XDG_CACHE_HOME)",
        Some(libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE) => {
            "; remedy: more memory, or higher limits (ulimit -a)"
        }
        Some(libc::EBUSY) => {
            "; remedy: end who uses it (fuser -v names them); whichfs card detach removes what \
             dead processes left"
        }
        Some(_) => "; remedy: dmesg tells more; another way to the card is --transport",
        // A text of our own.
        None => "",
    }
}

impl AttachError {
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> AttachError {
        let what = what.into();
        AttachError::Io { what, source }
    }

    pub(crate) fn no_fuse(source: io::Error) -> AttachError {
        AttachError::NoFuse { source }
    }

    pub(crate) fn no_ublk(source: io::Error) -> AttachError {
        AttachError::NoUblk { source }
    }

    pub(crate) fn no_loop(source: io::Error) -> AttachError {
        AttachError::NoLoop { source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_told_with_a_remedy() {
        for (errno, remedy) in [
            (libc::EPERM, "--privileged"),
            (libc::ENOSPC, "XDG_CACHE_HOME"),
            (libc::ENOMEM, "ulimit"),
            (libc::EBUSY, "card detach"),
            (libc::EIO, "dmesg"),
        ] {
            let source = io::Error::from_raw_os_error(errno);
            let text = AttachError::io("make a device", source).to_string();
            assert!(text.contains(remedy), "{text}");
        }
        let own = AttachError::io("loop0 is in use", io::Error::other("mounted (umount /mnt)"));
        assert_eq!(own.to_string(), "loop0 is in use: mounted (umount /mnt)");
    }
}
