//! A modelled card as a [`TimedDevice`] in virtual time: timing alone, or with what is written.

use crate::device::{DeviceError, TimedDevice};
use whichfs_blockdev::{BlockDevice, Payload, Timing};
use whichfs_card::{Card, CardStatus, Contents, Request};
use whichfs_units::Nanos;

/// A modelled card under a host that issues one request after the other.
#[derive(Clone, Debug)]
pub struct Modelled {
    device: Timing,
    /// Whether bytes are kept, or only times matter.
    keeps: bool,
    capacity_bytes: u64,
    now: Nanos,
    began: Nanos,
}

impl Modelled {
    /// Puts `card`, which claims `capacity_bytes`, under test from the moment it is idle.
    pub fn new(card: Card, capacity_bytes: u64) -> Modelled {
        let now = card.busy_until();
        Modelled {
            device: Timing {
                card,
                contents: Contents::new(capacity_bytes),
                request_cost: Nanos::ZERO,
            },
            keeps: false,
            capacity_bytes,
            now,
            began: now,
        }
    }

    /// The same card that keeps in `contents` what is written to it. Without contents reads
    /// leave the buffer as it is.
    #[must_use]
    pub fn keeping(mut self, contents: Contents) -> Modelled {
        self.device.contents = contents;
        self.keeps = true;
        self
    }

    /// The card with all that the test did to it.
    pub fn card(&self) -> &Card {
        &self.device.card
    }

    fn serve(
        &mut self,
        operation: &'static str,
        request: &Request,
        payload: Payload<'_>,
    ) -> Result<Nanos, DeviceError> {
        let failed = |reason| DeviceError::Failed {
            operation,
            offset: request.offset,
            bytes: request.bytes,
            reason,
        };
        let done = self.device.submit(self.now, request);
        let spent = done.at - self.now;
        self.now = done.at;
        match done.status {
            CardStatus::Ok if !self.keeps => Ok(spent),
            CardStatus::Ok => {
                let moved = self.device.transfer(request, payload);
                moved.map_or_else(|error| Err(failed(error.to_string())), |()| Ok(spent))
            }
            CardStatus::Unsupported => Err(DeviceError::Unsupported(operation)),
            status => Err(failed(format!("the card says {status:?}"))),
        }
    }
}

impl TimedDevice for Modelled {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn elapsed(&self) -> Nanos {
        self.now - self.began
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let request = Request::read(offset, buffer.len() as u64);
        self.serve("read", &request, Payload::Fill(buffer))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let request = Request::write(offset, data.len() as u64);
        self.serve("write", &request, Payload::Data(data))
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.serve("discard", &Request::discard(offset, bytes), Payload::None)
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.serve("flush", &Request::flush(), Payload::None)
    }

    fn rest(&mut self, span: Nanos) {
        self.now += span;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_card::{ContentLayout, Profile, builtin};

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
        let layout = ContentLayout {
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
