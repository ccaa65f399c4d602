//! What takes a board's power.

use crate::device::DeviceLease;
use crate::error::Outcome;
use crate::labgrid;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use whichfs_remote::{Outage, Power, Refusal};

/// Characters of what a command said that are told.
const SAID: usize = 300;

/// How a board loses its power.
pub enum Way {
    /// It ends itself, after so long.
    Board(Outage, Duration),
    /// The power driver of its labgrid place cycles it.
    Labgrid {
        /// Name of the labgrid place, as `labgrid-client -p` takes it.
        place: String,
        /// Time from the order to the cut.
        lead: Duration,
        /// How long the board is without power.
        off: Duration,
    },
    /// A command here takes it, and another gives it again after a while, if there is one.
    Command {
        /// Command line that switches the power off.
        off: String,
        /// How long to wait, and the command line that switches the power on.
        on: Option<(Duration, String)>,
    },
}

impl Way {
    /// What it is called in results.
    pub fn name(&self) -> String {
        match self {
            Way::Board(Outage::Sysrq, _) => "sysrq".to_owned(),
            Way::Board(Outage::Watchdog, _) => "watchdog".to_owned(),
            Way::Labgrid { .. } => "labgrid".to_owned(),
            Way::Command { off, on: None } => off.clone(),
            Way::Command {
                off,
                on: Some((_, on)),
            } => format!("{off}; {on}"),
        }
    }

    /// Time from the order to the cut.
    pub fn lead(&self) -> Duration {
        match self {
            Way::Board(_, lead) | Way::Labgrid { lead, .. } => *lead,
            Way::Command { .. } => Duration::ZERO,
        }
    }

    /// The same for a board; `act` is [`Way::act`].
    pub fn power<'a>(&self, act: &'a (dyn Fn() -> Result<(), Refusal> + Sync)) -> Power<'a> {
        match self {
            Way::Board(by, _) => Power::Board(*by),
            Way::Command { .. } | Way::Labgrid { .. } => Power::Here(act),
        }
    }

    /// Checks that the power of the board of `lease` can be taken so, and learns how long that
    /// takes; nothing is cut.
    ///
    /// # Errors
    /// It cannot.
    pub fn prepare(&mut self, lease: &mut DeviceLease<'_>) -> Outcome {
        match self {
            Way::Board(by, lead) => *lead = lease.takes(*by)?,
            Way::Labgrid { place, lead, .. } => *lead = labgrid::power_latency(place)?,
            Way::Command { .. } => {}
        }
        Ok(())
    }

    /// Takes the power, and gives it again.
    ///
    /// # Errors
    /// A command fails.
    pub fn act(&self) -> Result<(), Refusal> {
        let (off, on) = match self {
            Way::Board(..) => return Ok(()),
            Way::Labgrid { place, off, .. } => {
                let cycled = labgrid::cycle_power(place, *off);
                return cycled.map_err(|error| Refusal::environment(error.message));
            }
            Way::Command { off, on } => (off, on),
        };
        run("the command that takes the power", off)?;
        let Some((pause, on)) = on else {
            return Ok(());
        };
        std::thread::sleep(*pause);
        run("the command that gives the power", on)
    }
}

/// Runs `command`, which is `what`. A Ctrl-C is not for it: it would leave the board without
/// power.
fn run(what: &str, command: &str) -> Result<(), Refusal> {
    let failed = |why: &dyn std::fmt::Display| {
        Refusal::environment(format!(
            "{what}, '{command}': {why}; try it by hand, in a shell of this machine"
        ))
    };
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .process_group(0)
        .stdin(Stdio::null());
    let output = shell.output().map_err(|error| failed(&error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said: String = String::from_utf8_lossy(&said).chars().take(SAID).collect();
    Err(failed(&format!("{}: {}", output.status, said.trim())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn power_is_taken_and_given_again_or_it_is_told() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("log");
        let log = |what: &str| format!("echo {what} >> {}", file.display());
        let way = Way::Command {
            off: log("off"),
            on: Some((Duration::from_millis(1), log("on"))),
        };
        way.act().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "off\non\n");
        let way = Way::Command {
            off: "echo no such socket >&2; exit 3".to_owned(),
            on: Some((Duration::from_secs(600), log("never"))),
        };
        let error = way.act().unwrap_err().message;
        assert!(
            error.contains("takes the power") && error.contains("no such socket"),
            "{error}"
        );
    }
}
