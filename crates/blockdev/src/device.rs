//! What a modelled block device is.

use whichfs_card::{Completion, ContentsError, OpenAus, Request, RequestKind, Stats};
use whichfs_units::Nanos;

/// A modelled block device. Time and bytes are apart: [`BlockDevice::submit`] says when a request
/// completes, in virtual time and at once, so there is nothing to poll; the other methods move the
/// bytes of a request that succeeded.
///
/// A layer names the device below it and overrides what it changes; all else goes below. The
/// lowest device overrides all. Calls are resolved when the stack is compiled.
pub trait BlockDevice {
    /// The device below; the lowest one's is itself.
    type Below: BlockDevice;

    /// The device below.
    fn below(&self) -> &Self::Below;

    /// The device below, to be changed.
    fn below_mut(&mut self) -> &mut Self::Below;

    /// When and how `request` ends, which arrives at `now`.
    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        self.below_mut().submit(now, request)
    }

    /// Reads the bytes from `offset` on.
    ///
    /// # Errors
    /// The range is not on the card, or the bytes cannot be kept.
    #[inline]
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), ContentsError> {
        self.below_mut().read(offset, out)
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// As [`BlockDevice::read`].
    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        self.below_mut().write(offset, data)
    }

    /// Forgets a range.
    ///
    /// # Errors
    /// As [`BlockDevice::read`].
    #[inline]
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), ContentsError> {
        self.below_mut().discard(offset, bytes)
    }

    /// What the card has done since it was made.
    #[inline]
    fn stats(&self) -> &Stats {
        self.below().stats()
    }

    /// How many AUs are open, of how many; `None` for a card without such a limit.
    #[inline]
    fn open_aus(&self) -> Option<OpenAus> {
        self.below().open_aus()
    }

    /// Moves the bytes of `request`; a payload that is not the operation's moves nothing.
    ///
    /// # Errors
    /// The bytes cannot be kept.
    fn transfer(&mut self, request: &Request, payload: Payload<'_>) -> Result<(), ContentsError> {
        match (request.op, payload) {
            (RequestKind::Read, Payload::Fill(out)) => self.read(request.offset, out),
            (RequestKind::Write, Payload::Data(data)) => self.write(request.offset, data),
            (RequestKind::Discard, _) => self.discard(request.offset, request.bytes),
            _ => Ok(()),
        }
    }
}

/// The bytes of a request.
pub enum Payload<'a> {
    /// None: a discard or a flush.
    None,
    /// A read fills this.
    Fill(&'a mut [u8]),
    /// A write brings this.
    Data(&'a [u8]),
}
