//! Where a device is: a path of this machine, or `ssh://user@host:port/dev/…`. Pure.

use crate::refusal::{Refusal, Why};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A device of this machine, or of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevicePlace {
    /// Path of a device of this machine.
    Here(PathBuf),
    /// On a board.
    There(Address),
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
}

/// How an address begins.
const SCHEME: &str = "ssh://";
/// An address as it should be.
const EXAMPLE: &str = "ssh://root@board/dev/mmcblk0";

impl FromStr for DevicePlace {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<DevicePlace, Refusal> {
        match text.strip_prefix(SCHEME) {
            Some(rest) => address(text, rest).map(DevicePlace::There),
            None => Ok(DevicePlace::Here(text.into())),
        }
    }
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
    let name = host.rsplit('@').next().unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control() || "'\"\\;&|<>$`".contains(c);
    if name.is_empty() || host.starts_with(['-', '@']) || host.contains(odd) {
        return wrong(format!("{host:?} is no host"));
    }
    if path.len() < 2 || path.contains(char::is_control) {
        return wrong("the path of the device on the board is missing".to_owned());
    }
    Ok(Address {
        host,
        port,
        path: path.to_owned(),
    })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            DevicePlace::Here(path) => panic!("{text} is {}", path.display()),
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
