//! What the host asks of a card and what it gets back.

use whichfs_units::Nanos;

/// What a request does to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Declare sectors unused (SD erase, eMMC discard or trim).
    Discard,
    /// Make all completed writes durable; offset and bytes are ignored.
    Flush,
}

/// One request of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the card is to do.
    pub op: RequestKind,
    /// First byte on the card; a multiple of the 512-byte sector.
    pub offset: u64,
    /// Length in bytes; a multiple of the sector, not zero except for a flush.
    pub bytes: u64,
    /// Forced unit access: a write that is durable when it completes. It changes
    /// something only on a card with a volatile cache.
    pub fua: bool,
}

impl Request {
    /// A read of `bytes` at `offset`.
    pub const fn read(offset: u64, bytes: u64) -> Request {
        Request {
            op: RequestKind::Read,
            offset,
            bytes,
            fua: false,
        }
    }

    /// A write of `bytes` at `offset`.
    pub const fn write(offset: u64, bytes: u64) -> Request {
        Request {
            op: RequestKind::Write,
            offset,
            bytes,
            fua: false,
        }
    }

    /// A discard of `bytes` at `offset`.
    pub const fn discard(offset: u64, bytes: u64) -> Request {
        Request {
            op: RequestKind::Discard,
            offset,
            bytes,
            fua: false,
        }
    }

    /// Makes all earlier writes durable; it has no range.
    pub const fn flush() -> Request {
        Request {
            op: RequestKind::Flush,
            offset: 0,
            bytes: 0,
            fua: false,
        }
    }
}

/// When and how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Instant of the completion; never before the previous one's.
    pub at: Nanos,
    /// How it ended. A device error is data, not an error of the caller.
    pub status: CardStatus,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardStatus {
    /// The whole request succeeded.
    Ok,
    /// Some of it lies beyond the end of the card; nothing was done.
    OutOfRange,
    /// Offset or length is not a multiple of 512 bytes, or the length is zero; nothing was done.
    Misaligned,
    /// The card does not know the operation (discard on a USB stick); nothing was done.
    Unsupported,
    /// The card is defective and refuses the request; nothing was done.
    Failed,
}
