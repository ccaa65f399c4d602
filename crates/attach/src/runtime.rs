//! The runtime directory: which process serves which device.
//!
//! `/run/whichfs/attach/loop7.json` is the record of a device, `loop7.sock` its socket. A
//! record whose process is gone marks what a crash left. A process is known by its number
//! and its start time, because numbers are used again, and by the namespace of the number:
//! loop devices are everybody's, process numbers are not.

use crate::error::AttachError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where records and sockets are.
pub(crate) const DIRECTORY: &str = "/run/whichfs/attach";

/// An attached device and its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the loop device.
    pub number: u32,
    /// The process that serves it.
    pub pid: u32,
    /// Its start, in clock ticks since boot.
    pub start_time: u64,
    /// Inode of its PID namespace.
    pub namespace: u64,
    /// Whether the loop device was made for it, and goes with it.
    pub made: bool,
    /// The card's name.
    pub card: String,
    /// Bytes of the card.
    pub capacity_bytes: u64,
}

impl Record {
    /// The device's path.
    pub fn device(&self) -> PathBuf {
        crate::loopdev::path(self.number)
    }

    /// Whether its process runs; of a process of another namespace that is not known.
    pub(crate) fn life(&self) -> Life {
        match namespace() {
            Some(own) if own == self.namespace => {}
            _ => return Life::Elsewhere,
        }
        match start_time(self.pid) == Some(self.start_time) {
            true => Life::Running,
            false => Life::Dead,
        }
    }

    /// What the kernel keeps with the loop device.
    pub(crate) fn label(&self) -> String {
        label(self.pid, self.start_time, self.namespace)
    }

    pub(crate) fn write(&self) -> Result<(), AttachError> {
        let failed = |error| AttachError::io(format!("write to {DIRECTORY}"), error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(DIRECTORY).map_err(failed)?;
        let text = serde_json::to_string(self).map_err(|e| failed(e.into()))?;
        // By rename: a reader sees all of it or nothing.
        let new = path(self.number, "new");
        fs::write(&new, text).map_err(failed)?;
        fs::rename(&new, path(self.number, "json")).map_err(failed)
    }

    /// Removes what is known of the device. Nothing depends on it having been there.
    pub(crate) fn remove(&self) {
        for ending in ["json", "sock", "new"] {
            let _ = fs::remove_file(path(self.number, ending));
        }
    }
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    Dead,
    /// Its number is one of another namespace.
    Elsewhere,
}

/// Inode of this process's PID namespace.
pub(crate) fn namespace() -> Option<u64> {
    let meta = fs::metadata("/proc/self/ns/pid").ok()?;
    Some(std::os::unix::fs::MetadataExt::ino(&meta))
}

/// The file of loop device `number` with that ending.
pub(crate) fn path(number: u32, ending: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("loop{number}.{ending}"))
}

/// All records, by number; files that are none are passed over.
///
/// # Errors
/// If the directory is there and cannot be read.
pub(crate) fn records() -> io::Result<Vec<Record>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json")
            && let Ok(text) = fs::read_to_string(&path)
            && let Ok(record) = serde_json::from_str::<Record>(&text)
        {
            found.push(record);
        }
    }
    found.sort_by_key(|record| record.number);
    Ok(found)
}

/// When process `pid` started, in clock ticks since boot; `None` if there is none, or only
/// its remains that nobody has waited for.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22 of `/proc/PID/stat`, for a process that is not a zombie. The name in field 2 may
/// hold blanks and brackets.
fn parse_stat(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The label of a device of process `pid` of `namespace`, as the kernel keeps it with the loop
/// device.
pub(crate) fn label(pid: u32, start_time: u64, namespace: u64) -> String {
    format!("whichfs-attach:{pid}:{start_time}:{namespace}")
}

/// Process, start time and namespace in a label of ours.
pub(crate) fn parse_label(label: &str) -> Option<(u32, u64, u64)> {
    let mut parts = label.strip_prefix("whichfs-attach:")?.split(':');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let found = (u32::try_from(number()?).ok()?, number()?, number()?);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time_whatever_its_name() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 999";
        assert_eq!(parse_stat(stat), Some(4242));
        assert_eq!(parse_stat(&stat.replace(") S", ") Z")), None, "a zombie");
        assert_eq!(parse_stat("77 (x) S 1"), None);
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn only_labels_of_ours_are_read() {
        assert_eq!(parse_label(&label(12, 34, 56)), Some((12, 34, 56)));
        for other in [
            "/var/lib/images/disk.img",
            "whichfs-attach:12",
            "whichfs-attach:12:34",
            "whichfs-attach:12:34:56:78",
            "whichfs-attach:x:1",
            "",
        ] {
            assert_eq!(parse_label(other), None, "{other}");
        }
        // Ticks since boot and inodes of namespaces (32 bits) in practice.
        let longest = label(u32::MAX, u64::MAX / 1000, u64::from(u32::MAX));
        assert!(longest.len() < 64, "the kernel keeps 63: {longest}");
    }

    #[test]
    fn a_process_of_another_time_is_dead_and_of_another_namespace_is_not_judged() {
        let pid = std::process::id();
        let record = Record {
            number: 9,
            pid,
            start_time: start_time(pid).unwrap(),
            namespace: namespace().unwrap(),
            made: true,
            card: "x".into(),
            capacity_bytes: 1,
        };
        assert_eq!(record.life(), Life::Running);
        let earlier = Record {
            start_time: record.start_time - 1,
            ..record.clone()
        };
        assert_eq!(earlier.life(), Life::Dead);
        let elsewhere = Record {
            namespace: record.namespace + 1,
            ..earlier
        };
        assert_eq!(elsewhere.life(), Life::Elsewhere);
    }
}
