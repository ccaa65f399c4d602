//! Measured curves of flash cards: the form they have ([`Curves`]), what they are
//! measured on ([`Device`]: a modelled card in virtual time, or a real device elsewhere),
//! and flashbench's sequences ([`flashbench`]).
//! Pure: no clock, no entropy, no I/O.

mod curves;
mod device;
pub mod flashbench;
mod modelled;

pub use curves::{Align, Curves, Rates};
pub use device::{Device, DeviceError};
pub use modelled::Modelled;
