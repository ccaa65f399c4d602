//! What a program did in the lab.

use crate::document::Document;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_trial::{CpuTime, DeviceFigures, PhaseFigures};
use whichfs_units::{Bytes, counted};

/// What a program did in the lab.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LabExec<'a> {
    /// Name of the card's profile.
    pub card: &'a str,
    /// Name of the modelled computer.
    pub board: &'a str,
    /// Which time counted: `device`, or `cpu:` and the board.
    pub clock: String,
    /// Candidate that was made and mounted.
    pub fs: &'a str,
    /// The program and its arguments.
    pub command: &'a [String],
    /// Its exit status; none if it did not end by itself.
    pub exit_status: Option<i64>,
    /// What it printed.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
    /// Virtual time that it took, in seconds.
    pub virtual_s: f64,
    /// What reached the card meanwhile.
    pub device: DeviceFigures,
    /// All phases of the run.
    pub phases: Vec<PhaseFigures>,
    /// SHA-256 of all requests with their times: the same run has the same.
    pub trace_sha256: &'a str,
    /// Why the guest failed.
    pub error: Option<String>,
    /// The last lines of the kernel of a guest that failed.
    pub log: &'a [String],
}

impl Document for LabExec<'_> {
    const NAME: &'static str = "lab exec";
}

/// The CPU's part, if it was counted.
pub fn cpu_line(ran: &PhaseFigures) -> Option<String> {
    Some(match ran.cpu.as_ref()? {
        CpuTime::Spent { nanoseconds } => {
            let share = nanoseconds.as_secs_f64() * 100.0 / ran.seconds();
            format!("cpu: the kernel worked {nanoseconds}, {share:.0} % of the time")
        }
        CpuTime::Unknown { why, .. } => format!("cpu: not known: {why}"),
    })
}

/// The device's part in two lines.
pub fn device_lines(device: &DeviceFigures) -> String {
    let amplification = device
        .write_amplification()
        .map_or(String::new(), |factor| {
            format!(", write amplification {factor:.2}")
        });
    format!(
        "card: {} of {}, {} of {}, {}, {}\n\
         card: busy {}, {}, {}{amplification}",
        counted(device.reads, "read"),
        Bytes(device.read_bytes),
        counted(device.writes, "write"),
        Bytes(device.write_bytes),
        counted(device.discards, "discard"),
        counted(device.flushes, "flush"),
        device.busy,
        counted(device.erases, "erase"),
        counted(device.au_copies, "AU copy"),
    )
}
