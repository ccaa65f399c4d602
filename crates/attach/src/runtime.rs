//! The runtime directory: which process serves which device.
//!
//! `/run/whichfs/attach/loop7.json` is the record of a device, `loop7.sock` its socket (or
//! `ublkb7`). A
//! record whose process is gone marks what a crash left. A process is known by its number
//! and its start time, because numbers are used again, and by the namespace of the number:
//! devices are everybody's, process numbers are not.

use crate::error::AttachError;
use crate::node::{Driver, Node};
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
    /// Number of the device.
    pub number: u32,
    /// Whose device it is; records of versions that knew one driver do not say.
    #[serde(default)]
    pub driver: Driver,
    /// The process that serves it.
    pub pid: u32,
    /// Its start, in clock ticks since boot.
    pub start_time: u64,
    /// Inode of its PID namespace.
    pub namespace: u64,
    /// Whether the device was made for it, and goes with it.
    pub made: bool,
    /// The card's name.
    pub card: String,
    /// Bytes of the card.
    pub capacity_bytes: u64,
}

impl Record {
    /// The device's path.
    pub fn device(&self) -> PathBuf {
        self.node().path()
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

    pub(crate) fn node(&self) -> Node {
        let (driver, number) = (self.driver, self.number);
        Node { driver, number }
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner {
            pid: self.pid,
            start_time: self.start_time,
            namespace: self.namespace,
        }
    }

    pub(crate) fn write(&self) -> Result<(), AttachError> {
        let failed = |error| AttachError::io(format!("write to {DIRECTORY}"), error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(DIRECTORY).map_err(failed)?;
        let text = serde_json::to_string(self).map_err(|e| failed(e.into()))?;
        // By rename: a reader sees all of it or nothing.
        let new = path(self.node(), "new");
        fs::write(&new, text).map_err(failed)?;
        fs::rename(&new, path(self.node(), "json")).map_err(failed)
    }

    /// Removes what is known of the device. Nothing depends on it having been there.
    pub(crate) fn remove(&self) {
        for ending in ["json", "sock", "new"] {
            let _ = fs::remove_file(path(self.node(), ending));
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

/// The file of device `node` with that ending.
pub(crate) fn path(node: Node, ending: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{node}.{ending}"))
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
    found.sort_by_key(|record| (record.driver as u8, record.number));
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

/// The process that a device belongs to, as the kernel keeps it with the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub pid: u32,
    /// Its start, in clock ticks since boot.
    pub start_time: u64,
    /// Inode of its PID namespace.
    pub namespace: u64,
}

/// Marks tags of ours: ten bits that no server is likely to set.
const MARK: u64 = 0x2D5 << 54;
/// The lower bits of a namespace and of a start time in a tag, and all of a process number.
const NAMESPACE_BITS: u32 = 10;
const PID_BITS: u32 = 22;

impl Owner {
    /// The owner that stands for this process.
    pub fn own() -> Owner {
        let pid = std::process::id();
        Owner {
            pid,
            start_time: start_time(pid).unwrap_or_default(),
            namespace: namespace().unwrap_or_default(),
        }
    }

    /// What a loop device is labelled with.
    pub fn label(&self) -> String {
        let Owner {
            pid,
            start_time,
            namespace,
        } = self;
        format!("whichfs-attach:{pid}:{start_time}:{namespace}")
    }

    /// The owner in a label of ours.
    pub fn of_label(label: &str) -> Option<Owner> {
        let mut parts = label.strip_prefix("whichfs-attach:")?.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let owner = Owner {
            pid: u32::try_from(number()?).ok()?,
            start_time: number()?,
            namespace: number()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// What a ublk device is marked with: one word, so not all of each number.
    pub fn tag(&self) -> u64 {
        let namespace = self.namespace & low(NAMESPACE_BITS);
        let start = self.start_time & low(PID_BITS);
        MARK | namespace << 44 | u64::from(self.pid) << PID_BITS | start
    }

    /// The owner of a device with a tag of ours. Of a process that runs, and of this namespace,
    /// all is known; of others what the tag has.
    pub fn of_tag(tag: u64) -> Option<Owner> {
        let pid = (tag >> PID_BITS & low(PID_BITS)) as u32;
        let known = Owner {
            pid,
            start_time: start_time(pid).unwrap_or_default(),
            namespace: namespace().unwrap_or_default(),
        };
        Owner::completed(tag, known)
    }

    /// The owner in `tag`, completed by what is `known` of a process of its number.
    fn completed(tag: u64, known: Owner) -> Option<Owner> {
        if tag & MARK_BITS != MARK {
            return None;
        }
        let (start_time, namespace) = (tag & low(PID_BITS), tag >> 44 & low(NAMESPACE_BITS));
        let is = |whole: u64, bits| whole & low(bits);
        Some(Owner {
            pid: known.pid,
            start_time: match is(known.start_time, PID_BITS) == start_time {
                true => known.start_time,
                false => start_time,
            },
            namespace: match is(known.namespace, NAMESPACE_BITS) == namespace {
                true => known.namespace,
                false => namespace,
            },
        })
    }
}

const MARK_BITS: u64 = 0x3FF << 54;

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
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

    const OWNER: Owner = Owner {
        pid: 4_194_303,
        start_time: 9_876_543_210,
        namespace: 4_026_532_177,
    };

    #[test]
    fn a_tag_tells_a_process_that_runs_from_one_that_had_its_number() {
        let tag = OWNER.tag();
        assert_eq!(Owner::completed(tag, OWNER), Some(OWNER));
        // Dead: another process, or none, has the number.
        let other = Owner {
            start_time: OWNER.start_time + 7,
            ..OWNER
        };
        let dead = Owner::completed(tag, other.clone()).unwrap();
        assert_ne!(dead.start_time, other.start_time);
        assert_eq!((dead.namespace, dead.tag()), (OWNER.namespace, tag));
        // Of another namespace: nothing is known of it.
        let elsewhere = Owner {
            namespace: OWNER.namespace + 1,
            ..OWNER
        };
        let far = Owner::completed(tag, elsewhere.clone()).unwrap();
        assert_ne!(far.namespace, elsewhere.namespace);
        for foreign in [0, 1, 0xFF, tag ^ 1 << 60, u64::MAX] {
            assert_eq!(Owner::completed(foreign, OWNER), None, "{foreign:x}");
        }
    }

    #[test]
    fn only_labels_of_ours_are_read() {
        assert_eq!(Owner::of_label(&OWNER.label()), Some(OWNER));
        for other in [
            "/var/lib/images/disk.img",
            "whichfs-attach:12",
            "whichfs-attach:12:34",
            "whichfs-attach:12:34:56:78",
            "whichfs-attach:x:1",
            "",
        ] {
            assert_eq!(Owner::of_label(other), None, "{other}");
        }
        // Ticks since boot and inodes of namespaces (32 bits) in practice.
        let longest = Owner {
            pid: u32::MAX,
            start_time: u64::MAX / 1000,
            namespace: u64::from(u32::MAX),
        };
        assert!(longest.label().len() < 64, "the kernel keeps 63");
    }

    #[test]
    fn a_process_of_another_time_is_dead_and_of_another_namespace_is_not_judged() {
        let pid = std::process::id();
        let record = Record {
            number: 9,
            driver: Driver::Loop,
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
