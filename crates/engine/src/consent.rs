//! The permission to destroy what is on a device.
//!
//! The engine opens no target disk for writing before a [`Consent`] has named it. The guard
//! compares the name with the device that is open, so consent to one device never serves for
//! another.

use crate::error::Outcome;

/// The device that is to be overwritten, as a person is asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRequest<'a> {
    /// Path of the device, or its address on a board.
    pub shown: &'a str,
    /// Size of the device in bytes.
    pub bytes: u64,
    /// Filesystems and tables found on it; `None` where nobody could look.
    pub contents: Option<&'a [String]>,
    /// The ID that must be given: the CID or serial number of the card, or the file of a loop
    /// device.
    pub id: &'a str,
}

/// Whoever may permit that a device is overwritten.
pub trait Consent {
    /// The ID that the user gives for the device of `request`; `None` if the user gives none.
    /// The guard accepts the ID of this device alone.
    ///
    /// # Errors
    /// The user cannot be asked.
    fn given(&self, request: &ConsentRequest<'_>) -> Outcome<Option<String>>;
}

/// A consent that was given before: the value of an option, or of a program that embeds the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named(pub Option<String>);

impl Consent for Named {
    fn given(&self, _request: &ConsentRequest<'_>) -> Outcome<Option<String>> {
        Ok(self.0.clone())
    }
}
