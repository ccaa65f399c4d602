//! The block devices that attached cards are: of the loop driver or of ublk.

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The driver whose device an attached card is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// A loop device on a FUSE file.
    #[default]
    Loop,
    /// A ublk device.
    Ublk,
}

impl Driver {
    const ALL: [Driver; 2] = [Driver::Loop, Driver::Ublk];

    /// What the kernel puts before the number.
    fn prefix(self) -> &'static str {
        match self {
            Driver::Loop => "loop",
            Driver::Ublk => "ublkb",
        }
    }
}

/// One block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub driver: Driver,
    pub number: u32,
}

impl fmt::Display for Node {
    /// The kernel's name of it: `loop7`, `ublkb7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.driver.prefix(), self.number)
    }
}

/// Whose device it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// Of the owner that was asked for, or of a file that nobody serves any more.
    Ours,
    /// Somebody else's.
    Others,
    /// Bound to nothing, or not there.
    Free,
    /// The kernel does not say, and why not.
    Unknown(String),
}

impl Node {
    pub fn of_loop(number: u32) -> Node {
        let driver = Driver::Loop;
        Node { driver, number }
    }

    pub fn of_ublk(number: u32) -> Node {
        let driver = Driver::Ublk;
        Node { driver, number }
    }

    /// The device called `name`: `loop7`, `/dev/loop7`, `/dev/ublkb0`.
    pub fn parse(name: &str) -> Option<Node> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        Driver::ALL.into_iter().find_map(|driver| {
            let digits = name.strip_prefix(driver.prefix())?;
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| plain)?;
            Some(Node { driver, number })
        })
    }

    /// Its path in `/dev`.
    pub fn path(self) -> PathBuf {
        PathBuf::from(format!("/dev/{self}"))
    }

    /// Opens it for writing, and, with `alone`, so that nobody can mount it meanwhile.
    ///
    /// # Errors
    /// The kernel's; `EBUSY` where it is mounted and was to be opened alone.
    pub fn open(self, alone: bool) -> io::Result<OwnedFd> {
        let more = if alone { OFlags::EXCL } else { OFlags::empty() };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | more;
        Ok(open(self.path(), flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_read_and_written() {
        for (name, node) in [
            ("loop0", Node::of_loop(0)),
            ("/dev/loop12", Node::of_loop(12)),
            ("/dev/ublkb3", Node::of_ublk(3)),
        ] {
            assert_eq!(Node::parse(name), Some(node), "{name}");
            assert_eq!(node.to_string(), name.trim_start_matches("/dev/"));
        }
        for other in ["loop", "loop0p1", "sda", "/dev/loop-control", "loop+1", ""] {
            assert_eq!(Node::parse(other), None, "{other}");
        }
        for other in [
            "ublkb",
            "ublkc0",
            "ublkb0p1",
            "/dev/ublk-control",
            "ublkb+1",
        ] {
            assert_eq!(Node::parse(other), None, "{other}");
        }
    }
}
