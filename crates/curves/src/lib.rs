//! Measured curves of flash cards: the form they have ([`Curves`]), what they are
//! measured on ([`TimedDevice`]: a modelled card in virtual time, or a real device elsewhere),
//! and flashbench's sequences ([`flashbench`]).
//! Pure: no clock, no entropy, no I/O.

mod curves;
mod device;
pub mod flashbench;
mod modelled;

pub use curves::{Align, Curves, Rates};
pub use device::{DeviceError, TimedDevice};
pub use modelled::Modelled;
