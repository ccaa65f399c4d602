//! What a killed process left: found, told, removed.
//!
//! The FUSE filesystem has no mount point and dies with the process. What stays is the loop
//! device, every access to which fails, the record of it, and the mount where a filesystem was
//! mounted on the card.

use crate::busy::{self, Holder};
use crate::error::AttachError;
use crate::loopdev;
use crate::runtime::{self, Record, parse_label};
use rustix::mount::{UnmountFlags, unmount};
use std::time::{Duration, Instant};

/// How long the kernel may take to let go of a device.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a dead process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What is known of it.
    pub record: Record,
    /// Mount points of the dead device that were unmounted.
    pub mounts: Vec<String>,
    /// `None` where all of it is gone, else why not and what to do.
    pub remains: Option<String>,
}

/// The cards that are attached by running processes.
///
/// # Errors
/// If the runtime directory cannot be read.
pub fn list() -> Result<Vec<Record>, AttachError> {
    let mut records = all()?;
    records.retain(Record::is_alive);
    Ok(records)
}

/// Removes what dead processes left behind, and says what that was. Devices of running
/// processes and loop devices of others are not touched.
///
/// # Errors
/// If the runtime directory cannot be read.
pub fn clean() -> Result<Vec<Leftover>, AttachError> {
    let mut records = all()?;
    records.retain(|record| !record.is_alive());
    // The runtime directory may be lost; the kernel keeps our label with each device.
    for (number, bound) in loopdev::bound().unwrap_or_default() {
        let Some((pid, start_time)) = parse_label(&bound.label) else {
            continue;
        };
        let record = Record {
            number,
            pid,
            start_time,
            made: true,
            card: "unknown".into(),
            capacity_bytes: 0,
        };
        if !record.is_alive() && records.iter().all(|known| known.number != number) {
            records.push(record);
        }
    }
    Ok(records.into_iter().map(remove).collect())
}

fn all() -> Result<Vec<Record>, AttachError> {
    runtime::records()
        .map_err(|error| AttachError::io(format!("read {}", runtime::DIRECTORY), error))
}

fn remove(record: Record) -> Leftover {
    let name = format!("loop{}", record.number);
    let mut mounts = Vec::new();
    let mut remains = None;
    if still_ours(&record) {
        for holder in busy::holders(&name) {
            match holder {
                Holder::Mount(at) => {
                    // Lazily where somebody is in there: nothing can be read or written anyway.
                    let done = unmount(&*at, UnmountFlags::empty())
                        .or_else(|_| unmount(&*at, UnmountFlags::DETACH));
                    if done.is_ok() {
                        mounts.push(at);
                    }
                }
                other => remains = Some(busy::list(&[other])),
            }
        }
        let _ = loopdev::clear(record.number);
        let cleared = within(PATIENCE, || !loopdev::is_bound(record.number));
        if !cleared && remains.is_none() {
            let holders = busy::holders(&name);
            remains = Some(format!(
                "the kernel still uses it: {}",
                busy::list(&holders)
            ));
        }
    }
    // Another program may have bound the device that was made for us: then it is its own.
    if remains.is_none() && record.made && !loopdev::is_bound(record.number) {
        within(PATIENCE, || {
            loopdev::remove(record.number).is_ok() || gone(&record)
        });
    }
    if remains.is_none() {
        record.remove();
    }
    Leftover {
        record,
        mounts,
        remains,
    }
}

/// Whether the device is bound, and by the process of the record.
fn still_ours(record: &Record) -> bool {
    let bound = loopdev::bound().unwrap_or_default();
    bound.iter().any(|(number, bound)| {
        *number == record.number
            && parse_label(&bound.label) == Some((record.pid, record.start_time))
    })
}

fn gone(record: &Record) -> bool {
    !record.device().exists()
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
