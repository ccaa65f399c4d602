//! Something that reads and writes and tells how long each request took.

use whichfs_units::Nanos;

/// A block device under test: a modelled card in virtual time, or a real one.
///
/// Requests are synchronous and bypass every cache of the host, as with O_DIRECT. The device's
/// own cache works as always: a write is complete when the device says so, and durable only
/// after the next [`TimedDevice::flush`]. (O_DSYNC would flush after each write: a card with a
/// cache would be measured without it.) Each request returns the time from its issue to its
/// completion. Offsets and lengths are in bytes and multiples of 512.
pub trait TimedDevice {
    /// Size that the device claims, in bytes.
    fn capacity_bytes(&self) -> u64;

    /// Time since the test began, in which idle time counts too.
    fn elapsed(&self) -> Nanos;

    /// Reads `buffer.len()` bytes at `offset`.
    ///
    /// # Errors
    /// The device failed, is gone, or the range is not on it.
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError>;

    /// Writes `data` at `offset`, perhaps to the device's cache only.
    ///
    /// # Errors
    /// The device failed, is gone, is read-only, or the range is not on it.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError>;

    /// Declares a range unused.
    ///
    /// # Errors
    /// The device does not know discard, failed, or is gone.
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError>;

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// The device failed or is gone.
    fn flush(&mut self) -> Result<Nanos, DeviceError>;

    /// Leaves the device alone for `span`.
    fn rest(&mut self, span: Nanos);
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// An I/O error; others may work.
    #[error("{operation} of {bytes} bytes at {offset}: {reason}")]
    Failed {
        /// `read`, `write`, `discard` or `flush`.
        operation: &'static str,
        /// First byte.
        offset: u64,
        /// Length of the request.
        bytes: u64,
        /// What the system or the card said.
        reason: String,
    },
    /// The device is no longer there.
    #[error("the device is gone: {0}; plug it in again, then go on (probe --resume) or begin anew")]
    Gone(String),
    /// The device does not have this operation, or it is not allowed here.
    #[error("{0} is not supported by this device")]
    Unsupported(&'static str),
    /// The user or a budget ended the test.
    #[error("stopped: {0}")]
    Stopped(String),
}
