//! What a killed process left: found, told, removed.
//!
//! The FUSE filesystem has no mount point and dies with the process. What stays is the loop
//! device, every access to which fails, the record of it, and the mount where a filesystem was
//! mounted on the card. Of a ublk device the disk goes with the process; its number and the
//! server's device stay.

use crate::clock::within;
use crate::driver;
use crate::error::{AttachError, sentence};
use crate::node::{Binding, Driver, Node};
use crate::runtime::{self, Life, Record};
use rustix::mount::{UnmountFlags, unmount};
use std::io;
use std::time::Duration;
use whichfs_device::{Roots, User, removable_mounts, users_of_disk};

/// How long the kernel may take to let go of a device.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a dead process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What is known of it.
    pub record: Record,
    /// Mount points of the dead device that were unmounted.
    pub mounts: Vec<String>,
    /// The device is another program's by now: only the record of ours was removed.
    pub taken: bool,
    /// `None` where all of it is gone, else why not and what to do.
    pub remains: Option<String>,
}

impl Leftover {
    /// What became of it, in a line for people.
    pub fn told(&self) -> String {
        let device = self.record.device();
        let device = device.display();
        let mut text = match &self.remains {
            Some(why) => {
                format!("{device}, which a dead process left, could not be removed: {why}")
            }
            None if self.taken => {
                format!(
                    "{device}, which a dead process left, is another program's by now: left alone"
                )
            }
            None => format!("removed {device}, which a dead process left"),
        };
        if !self.mounts.is_empty() {
            text.push_str(&format!("; unmounted {}", self.mounts.join(", ")));
        }
        text
    }
}

/// The cards that are attached by running processes.
///
/// # Errors
/// If the runtime directory cannot be read.
pub fn list() -> Result<Vec<Record>, AttachError> {
    let mut records = all()?;
    records.retain(|record| record.life() == Life::Running);
    Ok(records)
}

/// Removes what dead processes left behind, and says what that was. Devices of running
/// processes, those of other PID namespaces and devices of others are not touched.
///
/// # Errors
/// If the runtime directory cannot be read.
pub fn clean() -> Result<Vec<Leftover>, AttachError> {
    Ok(left()?.into_iter().map(remove).collect())
}

/// What dead processes left behind, which [`clean`] removes.
///
/// # Errors
/// As [`clean`].
pub fn left() -> Result<Vec<Record>, AttachError> {
    let mut records = all()?;
    records.retain(|record| record.life() == Life::Dead);
    // The runtime directory may be lost; the kernel keeps our label with each device.
    for (node, owner) in driver::bound() {
        let record = Record {
            number: node.number,
            driver: node.driver,
            pid: owner.pid,
            start_time: owner.start_time,
            namespace: owner.namespace,
            made: true,
            card: "unknown".into(),
            capacity_bytes: 0,
        };
        let is_known = records.iter().any(|known| known.node() == node);
        if record.life() == Life::Dead && !is_known {
            records.push(record);
        }
    }
    Ok(records)
}

fn all() -> Result<Vec<Record>, AttachError> {
    runtime::records().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => AttachError::NotRoot,
        _ => AttachError::io(format!("read {}", runtime::DIRECTORY), error),
    })
}

fn remove(record: Record) -> Leftover {
    let mut leftover = Leftover {
        taken: false,
        mounts: Vec::new(),
        remains: None,
        record,
    };
    let record = &leftover.record;
    let node = record.node();
    match node.binding(&record.owner()) {
        Binding::Ours => {
            leftover.remains = take_apart(node, &mut leftover.mounts).err();
        }
        Binding::Others => {
            node.flush_again();
            leftover.taken = true;
        }
        Binding::Free => node.as_new(),
        Binding::Unknown(why) => {
            leftover.remains = Some(format!(
                "the kernel does not say what it is bound to: {why}; {}",
                node.by_hand()
            ));
        }
    }
    if leftover.remains.is_none() && record.made && !leftover.taken {
        // The kernel refuses to remove what somebody uses.
        let gone = within(PATIENCE, || node.remove().is_ok() || !node.exists());
        // A loop device that is free and as new harms nobody; the next one to want one takes it.
        if !gone && node.driver == Driver::Ublk {
            leftover.remains = Some(still_used(node));
        }
    }
    if leftover.remains.is_none() {
        record.remove();
    }
    leftover
}

/// Unmounts what is mounted of the dead device `node`, which is told in `unmounted`, and
/// frees it.
///
/// # Errors
/// Who uses it still, and what to do.
fn take_apart(node: Node, unmounted: &mut Vec<String>) -> Result<(), String> {
    let (name, roots) = (node.to_string(), Roots::default());
    while let Some(place) = removable_mounts(&name, &roots).pop() {
        // Lazily where somebody is in there: nothing can be read or written anyway.
        let done = unmount(&*place, UnmountFlags::empty())
            .or_else(|_| unmount(&*place, UnmountFlags::DETACH));
        done.map_err(|error| format!("umount {place}: {error}"))?;
        unmounted.push(place);
    }
    let mut rest = users_of_disk(&name, &roots);
    rest.retain(|user| !matches!(user, User::Process { .. } | User::Claimed));
    if !rest.is_empty() {
        return Err(sentence(&rest));
    }
    let _ = node.clear();
    if within(PATIENCE, || !node.is_bound()) {
        return Ok(());
    }
    Err(still_used(node))
}

/// That the kernel does not let go of `node`, and why, as far as it tells.
fn still_used(node: Node) -> String {
    let users = match &*users_of_disk(&node.to_string(), &Roots::default()) {
        [] => sentence(&[User::Claimed]),
        users => sentence(users),
    };
    format!("the kernel still uses it: {users}")
}
