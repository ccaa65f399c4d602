//! Measured curves of flash cards: the form they have ([`Curves`]), what they are
//! measured on ([`Device`]: a modelled card in virtual time, or a real device elsewhere),
//! the readers and writers of the logs that hold them ([`logs`]), and pictures ([`draw`]).
//! Pure: no clock, no entropy, no I/O.

mod curves;
mod device;
pub mod draw;
pub mod flashbench;
pub mod logs;
mod modelled;

pub use curves::{Align, Curves, Rates};
pub use device::{Device, DeviceError};
pub use modelled::Modelled;
