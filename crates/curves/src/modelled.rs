//! A modelled card as a [`Device`] in virtual time: timing only, data are not kept.

use crate::device::{Device, DeviceError};
use whichfs_card::{Card, CardStatus, Request};
use whichfs_units::Nanos;

/// A modelled card under a host that issues one request after the other.
#[derive(Clone, Debug)]
pub struct Modelled {
    card: Card,
    capacity_bytes: u64,
    now: Nanos,
    began: Nanos,
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
        }
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

impl Device for Modelled {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn elapsed(&self) -> Nanos {
        self.now - self.began
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        self.submit("read", &Request::read(offset, buffer.len() as u64))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        self.submit("write", &Request::write(offset, data.len() as u64))
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.submit("discard", &Request::discard(offset, bytes))
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
    use whichfs_card::{Profile, builtin};

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
}
