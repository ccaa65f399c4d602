//! Where events go: the control disk in the lab, a stream elsewhere.

use crate::error::AgentError;
use crate::reading::Reader;
use std::io::{Read, Write};
use std::time::Instant;
use whichfs_trial::{CounterReading, Event, StampedEvent};
use whichfs_units::Nanos;

/// Takes the events of a job in order.
pub trait Sink {
    /// Hands `event` over; on return the receiver has it.
    ///
    /// # Errors
    /// If the receiver cannot be reached: the job cannot go on.
    fn send(&mut self, event: &Event) -> Result<(), AgentError>;
}

/// [`StampedEvent`] as JSON lines: no lab stamps them, so the agent does, with the real clock and
/// with what it reads of the machine. The reading is outside of the phase.
pub struct Stream<W> {
    out: W,
    /// Where a byte comes for each event that was heard, if those are waited for.
    heard: Option<Box<dyn Read>>,
    reader: Option<Reader>,
    begun: Instant,
}

impl<W: Write> Stream<W> {
    /// Lines to `out`; with readings if there is a disk to read of.
    pub fn new(out: W, reader: Option<Reader>) -> Stream<W> {
        Stream {
            out,
            heard: None,
            reader,
            begun: Instant::now(),
        }
    }

    /// Waits from now on for a byte from `heard` after each event that is awaited
    /// ([`Event::is_awaited`]).
    pub fn wait_for(&mut self, heard: impl Read + 'static) {
        self.heard = Some(Box::new(heard));
    }

    fn acknowledged(&mut self, event: &Event) -> Result<(), AgentError> {
        let heard = self.heard.as_mut().filter(|_| event.is_awaited());
        let read = heard.map_or(Ok(()), |heard| heard.read_exact(&mut [0]));
        read.map_err(|error| AgentError::io("hear that it was heard", "an event", &error))
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn reading(&self) -> Result<Option<CounterReading>, AgentError> {
        self.reader.as_ref().map(Reader::read).transpose()
    }

    fn write(&mut self, told: &StampedEvent) -> Result<(), AgentError> {
        let json = serde_json::to_string(told)
            .map_err(|error| AgentError::new(format!("encode {told:?}: {error}")))?;
        writeln!(self.out, "{json}")
            .and_then(|()| self.out.flush())
            .map_err(|error| AgentError::io("write", "an event", &error))
    }
}

impl<W: Write> Sink for Stream<W> {
    fn send(&mut self, event: &Event) -> Result<(), AgentError> {
        let ended = self.now();
        let reading = match event {
            Event::PhaseBegin { .. } | Event::PhaseEnd { .. } => self.reading()?,
            _ => None,
        };
        let at = match event {
            Event::PhaseBegin { .. } => self.now(),
            _ => ended,
        };
        let told = StampedEvent {
            at,
            event: event.clone(),
            reading,
        };
        self.write(&told)?;
        self.acknowledged(event)
    }
}

impl Sink for Vec<Event> {
    fn send(&mut self, event: &Event) -> Result<(), AgentError> {
        self.push(event.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_event_is_a_line_with_its_time() {
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, None);
        let phase = || "mount".to_owned();
        stream.send(&Event::PhaseBegin { phase: phase() }).unwrap();
        stream.send(&Event::Done).unwrap();
        let text = String::from_utf8(out).unwrap();
        let told: Vec<StampedEvent> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].at <= told[1].at);
        assert_eq!(told[1].event, Event::Done);
    }

    #[test]
    fn an_awaited_event_is_waited_for_and_its_hearer_must_be_there() {
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, None);
        stream.wait_for(&b"\n"[..]);
        let phase = || "mount".to_owned();
        stream.send(&Event::PhaseBegin { phase: phase() }).unwrap();
        stream
            .send(&Event::KernelLog {
                lines: Vec::new(),
                times_us: Vec::new(),
            })
            .unwrap();
        let error = stream.send(&Event::PhaseBegin { phase: phase() });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("was heard"), "{error}");
    }

    #[test]
    fn a_disk_that_is_gone_ends_the_job() {
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, Some(Reader::of("no-such-disk")));
        stream.send(&Event::Done).unwrap();
        let begin = Event::PhaseBegin {
            phase: "mount".into(),
        };
        let error = stream.send(&begin).unwrap_err().to_string();
        assert!(error.contains("no-such-disk"), "{error}");
    }
}
