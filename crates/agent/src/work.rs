//! What the lab's kernel counts of its own work.

use crate::error::AgentError;
use crate::sink::Sink;
use std::fs::File;
use std::os::unix::fs::FileExt;
use whichfs_trial::{CpuCounts, Event};

/// Where the lab's kernel shows its counts; other kernels have no such file.
const COUNTS: &str = "/proc/um_cpu";

/// Room for the text: nine kinds and the time charged, each a short line.
const TEXT_BYTES: usize = 1024;

/// The counts, open: reading them is one system call.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// The counts of this kernel, if it has any.
    pub fn open() -> Option<Counter> {
        File::open(COUNTS).ok().map(Counter)
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// If they cannot be read or understood.
    pub fn read(&self) -> Result<CpuCounts, AgentError> {
        let mut text = [0; TEXT_BYTES];
        let length = (self.0.read_at(&mut text, 0))
            .map_err(|error| AgentError::io("read", COUNTS, &error))?;
        let text = String::from_utf8_lossy(&text[..length]);
        CpuCounts::parse(&text).ok_or_else(|| {
            AgentError::new(format!(
                "{COUNTS} has not every kind of work: build the lab kernel anew (make kernel): \
                 {text}"
            ))
        })
    }

    /// Reports what was done since `earlier` as the work of `phase`.
    ///
    /// # Errors
    /// As [`Counter::read`], or if the receiver cannot be reached.
    pub fn tell(
        &self,
        phase: &str,
        earlier: &CpuCounts,
        sink: &mut dyn Sink,
    ) -> Result<(), AgentError> {
        let work = self.read()?.since(earlier);
        let phase = phase.to_owned();
        sink.send(&Event::Work { phase, work })
    }
}
