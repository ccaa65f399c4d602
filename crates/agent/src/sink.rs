//! Where events go: the control disk in the lab, standard output on a board.

use crate::error::Error;
use std::io::Write;
use whichfs_trial::Event;

/// Takes the events of a job in order.
pub trait Sink {
    /// Hands `event` over; on return the receiver has it.
    ///
    /// # Errors
    /// If the receiver cannot be reached: the job cannot go on.
    fn send(&mut self, event: &Event) -> Result<(), Error>;
}

/// JSON lines on standard output.
#[derive(Debug, Default)]
pub struct Stdout;

impl Sink for Stdout {
    fn send(&mut self, event: &Event) -> Result<(), Error> {
        let json = serde_json::to_string(event)
            .map_err(|error| Error::new(format!("encode {event:?}: {error}")))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{json}")
            .and_then(|()| out.flush())
            .map_err(|error| Error::io("write", "standard output", &error))
    }
}

impl Sink for Vec<Event> {
    fn send(&mut self, event: &Event) -> Result<(), Error> {
        self.push(event.clone());
        Ok(())
    }
}
