//! The lowest device: a modelled card with its bytes.

use crate::device::BlockDevice;
use whichfs_card::{Card, Completion, Contents, ContentsError, OpenAus, Request, Stats};
use whichfs_units::Nanos;

/// A modelled card behind a host controller.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Timing and mapping of the card.
    pub card: Card,
    /// What is stored on the card.
    pub contents: Contents,
    /// Time that the host's controller and driver add to each request.
    pub request_cost: Nanos,
}

impl BlockDevice for Timing {
    type Below = Timing;

    fn below(&self) -> &Timing {
        self
    }

    fn below_mut(&mut self) -> &mut Timing {
        self
    }

    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        self.card.submit(now + self.request_cost, request)
    }

    #[inline]
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), ContentsError> {
        self.contents.read(offset, out)
    }

    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        self.contents.write(offset, data)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), ContentsError> {
        self.contents.discard(offset, bytes)
    }

    fn stats(&self) -> &Stats {
        self.card.stats()
    }

    fn open_aus(&self) -> Option<OpenAus> {
        self.card.open_aus()
    }
}
