//! Why a target is refused, each with its remedy.

use whichfs_units::shell_word;

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HereError {
    /// It is not there, or its path cannot be followed.
    #[error("{path}: {reason}; name a block device (lsblk lists them) or a file")]
    Missing {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// Neither a block device nor a regular file.
    #[error("{path} is {found}; name a block device (lsblk lists them) or a file")]
    NotStorage {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What the path names instead, with an article: "a directory".
        found: &'static str,
    },
    /// A file, of which the question makes no sense.
    #[error("{path} is a file: only a card says who made it; name its disk (lsblk lists them)")]
    NoCard {
        /// Path of the device or directory, as the user named it.
        path: String,
    },
    /// A part of a disk, where offsets are not the card's.
    #[error("{path} is a partition; its offsets are not the card's: name the disk, {disk}")]
    Partition {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The disk it is on.
        disk: String,
    },
    /// Something on it is mounted.
    #[error("{path} is mounted ({device} on {place}); {remedy}, then try again")]
    Mounted {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The device that is mounted: the disk or a partition.
        device: String,
        /// Where, and who sees it if this process does not.
        place: String,
        /// The command that unmounts it.
        remedy: String,
    },
    /// It holds the running system.
    #[error("{path} holds {place} of this system and is left alone; name another device")]
    System {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The part of the system that is on it.
        place: String,
    },
    /// Swap space is on it.
    #[error(
        "{path} has active swap space on {device}; swapoff {}, then try again",
        shell_word(device)
    )]
    Swap {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The device with the swap space.
        device: String,
    },
    /// A RAID, LVM, crypt or loop device is made of it.
    #[error("{path} is part of {holder} ({device}); close that ({tool}) first")]
    Held {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The disk or partition that is held.
        device: String,
        /// Who holds it.
        holder: String,
        /// The tools that do it.
        tool: &'static str,
    },
    /// A filesystem or pool over several devices has it.
    #[error("{path} is one of the devices of a mounted btrfs ({device}); unmount that first")]
    Btrfs {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The disk or partition.
        device: String,
    },
    /// It is made of other devices: offsets in it are not a card's.
    #[error("{path} is made of {parts}; its offsets are not a card's: name the disk itself")]
    Made {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What it is made of.
        parts: String,
    },
    /// A hardware partition of an eMMC.
    #[error(
        "{path} is a hardware partition of an eMMC, where boot loaders and keys lie; name its user \
         area, {disk}"
    )]
    Hardware {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The eMMC to which the hardware partition belongs.
        disk: String,
    },
    /// No card is in the reader.
    #[error("{path} has no medium; put the card in, then try again")]
    NoMedium {
        /// Path of the device or directory, as the user named it.
        path: String,
    },
    /// Larger than anything that is formatted by mistake.
    #[error(
        "{path} has {size}, more than {most}; if it is the right one, say --max-size {size_arg}"
    )]
    TooLarge {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What it has.
        size: whichfs_units::Bytes,
        /// Largest size that needs no `--max-size`.
        most: whichfs_units::Bytes,
        /// The size as an argument.
        size_arg: String,
    },
    /// A disk that nobody takes out.
    #[error(
        "{path} is not removable ({what}); name the card, or say --internal if it is the right one"
    )]
    Internal {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// Kind and kernel name of the disk: "the eMMC mmcblk0".
        what: String,
    },
    /// The user has not said that its data may be lost.
    #[error("{path} loses all its data; if that is meant, say --destroy {id}")]
    NotConfirmed {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// Its identity, quoted for a shell.
        id: String,
    },
    /// The user confirmed another device.
    #[error("--destroy {given}: {path} is another device; it is called {id}")]
    OtherConfirmed {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What was confirmed.
        given: String,
        /// Its identity, quoted for a shell.
        id: String,
    },
    /// Another process has it open.
    #[error("{path} is open in process {pid}, {name}; end it, then try again")]
    Open {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// Process ID, as in `ps`.
        pid: u32,
        /// The kernel's name of the device.
        name: String,
    },
    /// The path led to one device when it was judged and to another when it was opened.
    #[error(
        "{path} is another device than a moment ago (was it plugged in again?); look at lsblk, \
         then try again"
    )]
    Replaced {
        /// Path of the device or directory, as the user named it.
        path: String,
    },
    /// Another program has it.
    #[error(
        "{path} is in use by another program; fuser -v {} names it",
        shell_word(path)
    )]
    Busy {
        /// Path of the device or directory, as the user named it.
        path: String,
    },
    /// It cannot be written to.
    #[error("{path} is read-only; look at the card's lock switch, or only read it")]
    ReadOnly {
        /// Path of the device or directory, as the user named it.
        path: String,
    },
    /// The user may not open it.
    #[error("{path}: no permission; use sudo, or become a member of its group ({group})")]
    Permission {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The group that owns it, as a number or name.
        group: String,
    },
    /// Too small to tell anything.
    #[error(
        "{path} has {bytes} bytes, too few to tell anything: name a device or a file of at least \
         {} (truncate -s {least} FILE makes one)",
        whichfs_units::Bytes(*least)
    )]
    TooSmall {
        /// Path of the device or directory, as the user named it.
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
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// A directory of the running system.
    #[error(
        "{path} is on the filesystem of {place}, which this system runs from: its own work would \
         be measured too, and trials wear it; name a directory on the card, or say --internal if \
         that is meant"
    )]
    SystemFilesystem {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// The part of the system that is on it.
        place: String,
    },
    /// A directory that is on no device of this machine.
    #[error("{path} is on {kind}, {why}")]
    NoDevice {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// Kernel's name of the filesystem.
        kind: String,
        /// What that is, and what to do.
        why: &'static str,
    },
    /// A directory where nothing can be written.
    #[error(
        "{path}: its filesystem is read-only ({place}); mount -o remount,rw {} first",
        shell_word(place)
    )]
    ReadOnlyMount {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// Where the filesystem is mounted.
        place: String,
    },
    /// No room for what a trial writes.
    #[error(
        "{path} has {free} free, and a trial needs {needed}: delete something there, or take less \
         data (whichfs study run --quick; parameters of the study)"
    )]
    NoRoom {
        /// Path of the device or directory, as the user named it.
        path: String,
        /// What is free.
        free: whichfs_units::Bytes,
        /// What is needed.
        needed: whichfs_units::Bytes,
    },
    /// The place of the trials is another's.
    #[error(
        "{path} already exists and was not created by whichfs: move it away, or name another \
             directory"
    )]
    NotOurs {
        /// The directory that trials would run in.
        path: String,
    },
    /// The owner of the directory above has moved the place of the trials away.
    #[error(
        "{path} is not the directory that whichfs made there: somebody has moved or replaced it; \
         name a directory in which nobody else works"
    )]
    Swapped {
        /// The directory that trials run in.
        path: String,
    },
    /// Another run has the place of the trials.
    #[error("another whichfs runs trials in {path}: wait for its end")]
    Taken {
        /// The directory that trials run in.
        path: String,
    },
    /// The place of the trials cannot be made or removed.
    #[error("{path}: {what}: {reason}; is it writable (sudo)?")]
    Scratch {
        /// The directory that trials run in.
        path: String,
        /// What failed.
        what: &'static str,
        /// What the system said.
        reason: String,
    },
    /// No agent can work here.
    #[error("the agent cannot work here: {what}: {reason}; root is needed (sudo)")]
    Agent {
        /// What it lacks.
        what: &'static str,
        /// What the system said.
        reason: String,
    },
    /// Somebody else killed the agent: that says nothing of the filesystem.
    #[error(
        "the agent was killed, by hand or because memory ran out: free memory, or raise its limit \
         (memory.max of the control group)"
    )]
    Killed,
    /// The agent was killed and waits in the kernel.
    #[error(
        "the agent (process {pid}) was killed and does not end: the device answers no more; take \
         it out, or restart the machine"
    )]
    Stuck {
        /// Process ID, as in `ps`.
        pid: u32,
    },
}

impl HereError {
    /// Whether it may be otherwise in a moment without anybody's doing: the user of a disk ends.
    pub(crate) fn may_pass(&self) -> bool {
        use HereError::{Btrfs, Busy, Mounted, Open};
        matches!(
            self,
            Btrfs { .. } | Busy { .. } | Mounted { .. } | Open { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_too_small_is_refused_with_the_remedy() {
        let error = HereError::TooSmall {
            path: "card.img".into(),
            bytes: 1,
            least: 16 << 20,
        };
        let text = error.to_string();
        for part in ["card.img has 1 bytes", "16 MiB", "truncate -s 16777216"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
