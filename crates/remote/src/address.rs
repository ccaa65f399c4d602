//! Where a device is: a path of this machine, `ssh://user@host:port/dev/…`, or
//! `labgrid:PLACE/dev/…`. Pure.

use crate::refusal::{Refusal, Why};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A device of this machine, or of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevicePlace {
    /// Path of a device of this machine.
    Here(PathBuf),
    /// On a board.
    There(Address),
    /// On the board of a place of a labgrid lab, whose address the lab knows.
    Labgrid {
        /// The place, as `labgrid-client -p` takes it.
        place: String,
        /// Path of the device on the board.
        path: String,
    },
}

/// A device of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// User and host as ssh takes them: `root@board`, or a name of ssh's configuration.
    pub host: String,
    /// Port, if not the one that ssh would take.
    pub port: Option<u16>,
    /// Path of the device on the board.
    pub path: String,
    /// The place of a labgrid lab that the board is in, if whichfs acquired one.
    pub place: Option<String>,
    /// Whether it is reached by the place's serial console, and not by ssh.
    pub console: bool,
}

/// How an address begins.
const SCHEME: &str = "ssh://";
/// How a place of a labgrid lab begins.
const LABGRID: &str = "labgrid:";
/// An address as it should be.
const EXAMPLE: &str = "ssh://root@board/dev/mmcblk0";
/// A place as it should be.
const PLACE_EXAMPLE: &str = "labgrid:PLACE/dev/mmcblk0";

impl DevicePlace {
    /// The device that a command line names by `path`.
    ///
    /// # Errors
    /// It begins as an address, and is none.
    pub fn of(path: &Path) -> Result<DevicePlace, Refusal> {
        match path.to_str() {
            Some(text) => text.parse(),
            None => Ok(DevicePlace::Here(path.to_owned())),
        }
    }
}

impl FromStr for DevicePlace {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<DevicePlace, Refusal> {
        if let Some(rest) = text.strip_prefix(LABGRID) {
            return place(text, rest);
        }
        match text.strip_prefix(SCHEME) {
            Some(rest) => address(text, rest).map(DevicePlace::There),
            None => Ok(DevicePlace::Here(text.into())),
        }
    }
}

/// Whether ssh can take `host` for a host, with or without a user before it.
pub fn is_host(host: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "'\"\\;&|<>$`".contains(c);
    let name = host.rsplit('@').next().unwrap_or_default();
    !name.is_empty() && !host.starts_with(['-', '@']) && !host.contains(odd)
}

/// The place of a lab in `text`, whose scheme is taken off in `rest`.
fn place(text: &str, rest: &str) -> Result<DevicePlace, Refusal> {
    let wrong = |what: &str| {
        let message = format!("{text}: {what}; write it as {PLACE_EXAMPLE}");
        Err(Refusal::new(Why::Input, message))
    };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if place.is_empty() || place.starts_with('-') || place.contains(odd) {
        return wrong("the name of the place is missing (labgrid-client places lists them)");
    }
    if path.len() < 2 || path.contains(char::is_control) {
        return wrong("the path of the device on the board is missing");
    }
    Ok(DevicePlace::Labgrid {
        place: place.to_owned(),
        path: path.to_owned(),
    })
}

/// The address `text`, whose scheme is taken off in `rest`.
fn address(text: &str, rest: &str) -> Result<Address, Refusal> {
    let wrong = |what: String| {
        let message = format!("{text}: {what}; write it as {EXAMPLE}");
        Err(Refusal::new(Why::Input, message))
    };
    let Some(slash) = rest.find('/') else {
        return wrong("the path of the device on the board is missing".to_owned());
    };
    let (host, path) = rest.split_at(slash);
    // [::1]:22 has colons of its own.
    let (host, port) = match host.rsplit_once(':') {
        Some((before, port)) if !port.contains(']') => (before, Some(port)),
        _ => (host, None),
    };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(_) => return wrong("the port is no number from 1 to 65535".to_owned()),
    };
    let host = host.replace(['[', ']'], "");
    if !is_host(&host) {
        return wrong(format!("{host:?} is no host"));
    }
    if path.len() < 2 || path.contains(char::is_control) {
        return wrong("the path of the device on the board is missing".to_owned());
    }
    Ok(Address {
        host,
        port,
        path: path.to_owned(),
        place: None,
        console: false,
    })
}

impl Address {
    /// The board as messages name it: the place of its lab, or its user and host.
    pub fn board(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.host)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            return write!(f, "{LABGRID}{place}{}", self.path);
        }
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        write!(f, "{SCHEME}{}{port}{}", self.host, self.path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        let there = |text: &str| match text.parse::<DevicePlace>().unwrap() {
            DevicePlace::There(address) => address,
            other => panic!("{text} is {other:?}"),
        };
        for (text, host, port, path) in [
            ("ssh://pi/dev/mmcblk0", "pi", None, "/dev/mmcblk0"),
            (
                "ssh://root@b.local:2222/dev/sda",
                "root@b.local",
                Some(2222),
                "/dev/sda",
            ),
            (
                "ssh://root@[::1]:22/dev/sda",
                "root@::1",
                Some(22),
                "/dev/sda",
            ),
            (
                "ssh://root@[fe80::1]/dev/disk/by-id/x",
                "root@fe80::1",
                None,
                "/dev/disk/by-id/x",
            ),
        ] {
            let found = there(text);
            let expected = (host, port, path);
            assert_eq!(
                (found.host.as_str(), found.port, found.path.as_str()),
                expected
            );
        }
        assert_eq!(there("ssh://u@h:7/dev/x").to_string(), "ssh://u@h:7/dev/x");
        let here = "/dev/mmcblk0".parse::<DevicePlace>().unwrap();
        assert_eq!(here, DevicePlace::Here("/dev/mmcblk0".into()));
        let place = "labgrid:rpi4-2/dev/mmcblk0".parse::<DevicePlace>().unwrap();
        let expected = DevicePlace::Labgrid {
            place: "rpi4-2".into(),
            path: "/dev/mmcblk0".into(),
        };
        assert_eq!(place, expected);
        let address = Address {
            place: Some("rpi4-2".into()),
            ..there("ssh://u@h:7/dev/x")
        };
        assert_eq!(address.to_string(), "labgrid:rpi4-2/dev/x");
    }

    #[test]
    fn a_place_without_a_name_or_a_device_is_refused_with_an_example() {
        for text in [
            "labgrid:",
            "labgrid:A",
            "labgrid:A/",
            "labgrid:/dev/sda",
            "labgrid:-p/dev/sda",
            "labgrid:a b/dev/sda",
        ] {
            let error = text.parse::<DevicePlace>().unwrap_err();
            assert!(error.message.contains(PLACE_EXAMPLE), "{error}");
            assert_eq!(error.why, Why::Input);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in [
            "ssh://board",
            "ssh://board/",
            "ssh:///dev/sda",
            "ssh://-oProxyCommand=x/dev/sda",
            "ssh://root@/dev/sda",
            "ssh://a b/dev/sda",
            "ssh://a:0/dev/sda",
            "ssh://a:x/dev/sda",
            "ssh://a;reboot/dev/sda",
        ] {
            let error = text.parse::<DevicePlace>().unwrap_err();
            assert!(error.message.contains(EXAMPLE), "{error}");
            assert_eq!(error.why, Why::Input);
        }
    }
}
