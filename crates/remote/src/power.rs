//! How a board ends itself at once: without a sync, an unmount, or a word to any program.
//!
//! Both ways reset the processor. Whether the card loses its supply with that, and with it what
//! its own cache holds, is the board's affair; only a switched socket takes it for certain.

use crate::refusal::Refusal;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

const WATCHDOG: &str = "/dev/watchdog";
const WATCHDOG_FACTS: &str = "/sys/class/watchdog/watchdog0";
const SYSRQ: &str = "/proc/sysrq-trigger";
const SYSRQ_ALLOWED: &str = "/proc/sys/kernel/sysrq";
/// `WDIOC_SETTIMEOUT` of `linux/watchdog.h`; the kernel writes back what it took.
const SET_TIMEOUT: Opcode = opcode::read_write::<i32>(b'W', 6);
/// Timeouts that are tried, in seconds: the first that the driver takes.
const TIMEOUTS: [i32; 7] = [1, 2, 5, 10, 15, 30, 60];

/// What of a board ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// Its watchdog, armed and not fed.
    Watchdog,
    /// The kernel's own restart (`b` to `/proc/sysrq-trigger`).
    Sysrq,
}

impl Outage {
    /// Whether this machine can be ended so, and after which time; nothing is done.
    ///
    /// # Errors
    /// What it lacks, with the remedy.
    pub(crate) fn takes(self) -> Result<Duration, Refusal> {
        match self {
            Outage::Sysrq => writable(SYSRQ).map(|_| Duration::ZERO),
            Outage::Watchdog => watchdog_takes(Path::new(WATCHDOG), Path::new(WATCHDOG_FACTS)),
        }
    }

    /// Ends this machine; returns where that takes time.
    ///
    /// # Errors
    /// It goes on.
    pub(crate) fn cut(self) -> Result<(), Refusal> {
        match self {
            Outage::Sysrq => {
                write(SYSRQ_ALLOWED, "1")?;
                write(SYSRQ, "b")
            }
            Outage::Watchdog => arm(),
        }
    }
}

fn failed(path: &str, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::environment(format!(
        "{path}: {error}; take another --power (watchdog, sysrq, or --power-command)"
    ))
}

fn writable(path: &str) -> Result<File, Refusal> {
    let file = OpenOptions::new().write(true).open(path);
    file.map_err(|error| failed(path, &error))
}

fn write(path: &str, text: &str) -> Result<(), Refusal> {
    let written = std::io::Write::write_all(&mut writable(path)?, text.as_bytes());
    written.map_err(|error| failed(path, &error))
}

/// The least timeout of the watchdog `device`, whose attributes are in `facts`. It is not opened:
/// that would arm it.
fn watchdog_takes(device: &Path, facts: &Path) -> Result<Duration, Refusal> {
    let is_there = device
        .metadata()
        .is_ok_and(|meta| meta.file_type().is_char_device());
    if !is_there {
        let remedy = "the kernel has no driver for a watchdog (modprobe its driver)";
        return Err(failed(WATCHDOG, &remedy));
    }
    let fact = |name: &str| std::fs::read_to_string(facts.join(name)).unwrap_or_default();
    if fact("state").trim() == "active" {
        let remedy = "somebody else feeds it: stop that (RuntimeWatchdogSec=0 in \
                      /etc/systemd/system.conf, or the watchdog daemon)";
        return Err(failed(WATCHDOG, &remedy));
    }
    let least = fact("min_timeout").trim().parse().unwrap_or(0);
    Ok(Duration::from_secs(u64::max(least, 1)))
}

/// Arms the watchdog with the shortest time that it takes, and never feeds it.
fn arm() -> Result<(), Refusal> {
    let file = writable(WATCHDOG)?;
    for seconds in TIMEOUTS {
        let mut taken = seconds;
        // SAFETY: this code takes a pointer to an int, which lives during the call.
        let set = unsafe { ioctl(&file, Updater::<SET_TIMEOUT, i32>::new(&mut taken)) };
        if set.is_ok() {
            break;
        }
    }
    // One that is closed may be disarmed; one whose time is fixed ends the board in its own time.
    std::mem::forget(file);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_watchdog_is_asked_without_arming_it() {
        let facts = tempfile::tempdir().unwrap();
        let device = Path::new("/dev/null");
        let takes = || watchdog_takes(device, facts.path());
        assert_eq!(takes().unwrap(), Duration::from_secs(1));
        std::fs::write(facts.path().join("min_timeout"), "15\n").unwrap();
        assert_eq!(takes().unwrap(), Duration::from_secs(15));
        std::fs::write(facts.path().join("state"), "active\n").unwrap();
        let error = takes().unwrap_err().message;
        assert!(error.contains("RuntimeWatchdogSec=0"), "{error}");
        let error = watchdog_takes(facts.path(), facts.path()).unwrap_err();
        assert!(error.message.contains("--power-command"), "{error}");
    }

    #[test]
    fn the_code_is_that_of_the_kernel() {
        // WDIOC_SETTIMEOUT on x86 and Arm.
        assert_eq!(SET_TIMEOUT, 0xC004_5706);
    }
}
