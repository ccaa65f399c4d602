//! What an inspection tells, but for what the one before it told already.
//!
//! After a repair nearly everything is as it was. It is read again, all of it; to tell it again
//! would cost the agent and its host a tenth of the time of a power cut's check.

use crate::error::Error;
use crate::record::{RECORD_MAX, split};
use crate::sink::Sink;
use whichfs_trial::{Event, compact, fingerprint};

/// Events that are held back at most: an inspection that never ends has told all but these.
const HELD_MAX: u64 = 8;

/// Fingerprints of what the last inspection of a job told.
#[derive(Debug, Default)]
pub struct InspectionDelta(Vec<u128>);

/// A sink for one inspection.
pub struct Short<'a> {
    before: Vec<u128>,
    told: &'a mut InspectionDelta,
    /// Events that say the same as before and have not been told: the first and their number.
    held: (u64, u64),
    sink: &'a mut dyn Sink,
}

impl<'a> Short<'a> {
    /// Hands on to `sink` what is not in `told`, which is then of this inspection.
    pub fn new(told: &'a mut InspectionDelta, sink: &'a mut dyn Sink) -> Short<'a> {
        Short {
            before: std::mem::take(&mut told.0),
            told,
            held: (0, 0),
            sink,
        }
    }

    /// Tells what is held back.
    ///
    /// # Errors
    /// As [`Sink::send`].
    pub fn finish(&mut self) -> Result<(), Error> {
        let (first, count) = std::mem::take(&mut self.held);
        match count {
            0 => Ok(()),
            _ => self.sink.send(&Event::Again { first, count }),
        }
    }
}

impl Sink for Short<'_> {
    fn send(&mut self, event: &Event) -> Result<(), Error> {
        let Some(bytes) = compact(event) else {
            self.finish()?;
            return self.sink.send(event);
        };
        if bytes.len() > RECORD_MAX {
            // It would become several events further on, and these are counted.
            let mut parts = split(event).into_iter();
            return parts.try_for_each(|part| self.send(&part));
        }
        let number = self.told.0.len();
        let print = fingerprint(&bytes);
        self.told.0.push(print);
        if self.before.get(number) != Some(&print) {
            self.finish()?;
            return self.sink.send(event);
        }
        if self.held.1 == 0 {
            self.held.0 = number as u64;
        }
        self.held.1 += 1;
        match self.held.1 < HELD_MAX {
            true => Ok(()),
            false => self.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::{Found, Node};

    fn found(path: &str) -> Event {
        let error = "read".to_owned();
        let entry = Found {
            path: path.to_owned(),
            node: Node::Unreadable { error },
            mode: 0,
            sectors: Vec::new(),
            zeros: Vec::new(),
        };
        Event::Found {
            entries: vec![entry],
        }
    }

    /// What is sent of an inspection that tells of these paths.
    fn sent(told: &mut InspectionDelta, paths: &[&str]) -> Vec<Event> {
        let mut sink = Vec::new();
        let mut short = Short::new(told, &mut sink);
        for path in paths {
            short.send(&found(path)).unwrap();
        }
        short.finish().unwrap();
        sink
    }

    fn again(first: u64, count: u64) -> Event {
        Event::Again { first, count }
    }

    #[test]
    fn only_what_is_new_is_sent() {
        let mut told = InspectionDelta::default();
        let all = ["a", "b", "c", "d"];
        assert_eq!(sent(&mut told, &all), all.map(found));
        assert_eq!(sent(&mut told, &all), [again(0, 4)]);
        let other = sent(&mut told, &["a", "x", "c", "d"]);
        assert_eq!(other, [again(0, 1), found("x"), again(2, 2)]);
        // Against the one right before it.
        assert_eq!(sent(&mut told, &["a", "x"]), [again(0, 2)]);
        assert_eq!(sent(&mut told, &["x", "a"]), [found("x"), found("a")]);
        assert_eq!(sent(&mut told, &["x", "a", "b"])[1..], [found("b")]);
        assert_eq!(sent(&mut told, &[]), []);
        assert_eq!(sent(&mut told, &["x"]), [found("x")]);
    }

    #[test]
    fn little_is_held_back() {
        let mut told = InspectionDelta::default();
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        sent(&mut told, &names);
        let second = sent(&mut told, &names);
        assert_eq!(second, [again(0, 8), again(8, 8), again(16, 4)]);
    }

    #[test]
    fn parts_of_a_long_event_are_counted_one_by_one() {
        let path = "p".repeat(4000);
        let entries = (0..40).flat_map(|_| match found(&path) {
            Event::Found { entries } => entries,
            _ => unreachable!(),
        });
        let long = Event::Found {
            entries: entries.collect(),
        };
        let mut told = InspectionDelta::default();
        let mut sink = Vec::new();
        let mut short = Short::new(&mut told, &mut sink);
        short.send(&long).unwrap();
        short.finish().unwrap();
        assert_eq!(sink.len(), 2);
        let mut second = Vec::new();
        let mut short = Short::new(&mut told, &mut second);
        short.send(&long).unwrap();
        short.finish().unwrap();
        assert_eq!(second, [again(0, 2)]);
    }
}
