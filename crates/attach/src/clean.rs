//! What a killed process left: found, told, removed.
//!
//! The FUSE filesystem has no mount point and dies with the process. What stays is the loop
//! device, every access to which fails, the record of it, and the mount where a filesystem was
//! mounted on the card.

use crate::error::{AttachError, sentence};
use crate::loopdev::{self, Binding};
use crate::runtime::{self, Life, Record, parse_label};
use rustix::mount::{UnmountFlags, unmount};
use std::io;
use std::time::{Duration, Instant};
use whichfs_here::{Roots, User, removable_mounts, users_of_disk};

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
/// processes, those of other PID namespaces and loop devices of others are not touched.
///
/// # Errors
/// If the runtime directory cannot be read.
pub fn clean() -> Result<Vec<Leftover>, AttachError> {
    let mut records = all()?;
    records.retain(|record| record.life() == Life::Dead);
    // The runtime directory may be lost; the kernel keeps our label with each device.
    for (number, bound) in loopdev::bound().unwrap_or_default() {
        let Some((pid, start_time, namespace)) = parse_label(&bound.label) else {
            continue;
        };
        let record = Record {
            number,
            pid,
            start_time,
            namespace,
            made: true,
            card: "unknown".into(),
            capacity_bytes: 0,
        };
        let is_known = records.iter().any(|known| known.number == number);
        if record.life() == Life::Dead && !is_known {
            records.push(record);
        }
    }
    Ok(records.into_iter().map(remove).collect())
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
    match loopdev::binding(record.number, &record.label()) {
        Binding::Ours => {
            leftover.remains = take_apart(record.number, &mut leftover.mounts).err();
        }
        Binding::Others => leftover.taken = true,
        Binding::Free => {}
        Binding::Unknown(why) => {
            let device = record.device();
            leftover.remains = Some(format!(
                "the kernel does not say what it is bound to: {why}; losetup -d {}",
                device.display()
            ));
        }
    }
    if leftover.remains.is_none() {
        if record.made && !leftover.taken {
            // The kernel refuses to remove what somebody uses.
            within(PATIENCE, || {
                loopdev::remove(record.number).is_ok() || !record.device().exists()
            });
        }
        record.remove();
    }
    leftover
}

/// Unmounts what is mounted of the dead device `number`, which is told in `unmounted`, and
/// frees it.
///
/// # Errors
/// Who uses it still, and what to do.
fn take_apart(number: u32, unmounted: &mut Vec<String>) -> Result<(), String> {
    let (name, roots) = (format!("loop{number}"), Roots::default());
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
    let _ = loopdev::clear(number);
    if within(PATIENCE, || !loopdev::is_bound(number)) {
        return Ok(());
    }
    let users = sentence(&users_of_disk(&name, &roots));
    Err(format!("the kernel still uses it: {users}"))
}

/// Whether `done` becomes true in time.
pub(crate) fn within(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if done() {
            return true;
        }
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
