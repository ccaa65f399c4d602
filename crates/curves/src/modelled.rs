//! A modelled card as a [`Device`] in virtual time: timing alone, or with what is written.

use crate::device::{Device, DeviceError};
use whichfs_card::{Card, CardStatus, Contents, ContentsError, Request};
use whichfs_units::Nanos;

/// A modelled card under a host that issues one request after the other.
#[derive(Clone, Debug)]
pub struct Modelled {
    card: Card,
    capacity_bytes: u64,
    now: Nanos,
    began: Nanos,
    /// What was written; `None` where only times matter.
    contents: Option<Contents>,
}

impl Modelled {
    /// Puts `card`, which claims `capacity_bytes`, under test from the moment it is idle.
    pub fn new(card: Card, capacity_bytes: u64) -> Modelled {
        let now = card.busy_until();
        Modelled {
            card,
            capacity_bytes,
            now,
            began: now,
            contents: None,
        }
    }

    /// The same card that keeps in `contents` what is written to it. Without contents reads
    /// leave the buffer as it is.
    #[must_use]
    pub fn keeping(self, contents: Contents) -> Modelled {
        let contents = Some(contents);
        Modelled { contents, ..self }
    }

    /// The card with all that the test did to it.
    pub fn card(&self) -> &Card {
        &self.card
    }

    fn submit(&mut self, operation: &'static str, request: &Request) -> Result<Nanos, DeviceError> {
        let completion = self.card.submit(self.now, request);
        let spent = completion.at - self.now;
        self.now = completion.at;
        match completion.status {
            CardStatus::Ok => Ok(spent),
            CardStatus::Unsupported => Err(DeviceError::Unsupported(operation)),
            status => Err(DeviceError::Failed {
                operation,
                offset: request.offset,
                bytes: request.bytes,
                reason: format!("the card says {status:?}"),
            }),
        }
    }
}

fn failed(operation: &'static str, offset: u64, bytes: u64, error: &ContentsError) -> DeviceError {
    DeviceError::Failed {
        operation,
        offset,
        bytes,
        reason: error.to_string(),
    }
}

impl Device for Modelled {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn elapsed(&self) -> Nanos {
        self.now - self.began
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let spent = self.submit("read", &Request::read(offset, buffer.len() as u64))?;
        if let Some(contents) = &mut self.contents {
            let bytes = buffer.len() as u64;
            let read = contents.read(offset, buffer);
            read.map_err(|error| failed("read", offset, bytes, &error))?;
        }
        Ok(spent)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let bytes = data.len() as u64;
        let spent = self.submit("write", &Request::write(offset, bytes))?;
        if let Some(contents) = &mut self.contents {
            let written = contents.write(offset, data);
            written.map_err(|error| failed("write", offset, bytes, &error))?;
        }
        Ok(spent)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        let spent = self.submit("discard", &Request::discard(offset, bytes))?;
        if let Some(contents) = &mut self.contents {
            let discarded = contents.discard(offset, bytes);
            discarded.map_err(|error| failed("discard", offset, bytes, &error))?;
        }
        Ok(spent)
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.submit("flush", &Request::flush())
    }

    fn rest(&mut self, span: Nanos) {
        self.now += span;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_card::{Layout, Profile, builtin};

    #[test]
    fn time_is_the_cards_and_rest_counts() {
        let (name, text) = builtin()[0];
        let profile = Profile::parse(name, text).unwrap();
        let mut device = Modelled::new(Card::fresh(&profile), profile.capacity_bytes());
        let read = device.read(0, &mut [0; 4096]).unwrap();
        device.rest(Nanos::from_millis(5));
        let write = device.write(0, &[0; 4096]).unwrap();
        assert_eq!(device.elapsed(), read + Nanos::from_millis(5) + write);
        let beyond = device.read(device.capacity_bytes(), &mut [0; 512]);
        assert!(
            matches!(beyond, Err(DeviceError::Failed { .. })),
            "{beyond:?}"
        );
    }

    #[test]
    fn a_card_with_contents_keeps_what_is_written_where_its_layout_says() {
        let (name, text) = builtin()[0];
        let profile = Profile::parse(name, text).unwrap();
        let layout = Layout {
            real_bytes: 1 << 20,
            ..profile.layout()
        };
        let contents = Contents::new(profile.capacity_bytes()).laid_out(layout);
        let timing = Modelled::new(Card::fresh(&profile), profile.capacity_bytes());
        let mut device = timing.keeping(contents);
        device.write((1 << 20) + 4096, &[7; 4096]).unwrap();
        let mut found = [0; 4096];
        device.read(4096, &mut found).unwrap();
        assert_eq!(found, [7; 4096], "addresses wrap");
    }
}
