//! Quantities with units, counts in words, hints for unknown names and the seeded generator;
//! nothing else.
//!
//! Every other crate takes time as [`Nanos`] and randomness as [`Rng`], both as
//! arguments: no clock and no entropy is read anywhere in the pure crates.

pub mod arguments;
mod names;
mod printable;
mod quantity;
mod rng;
mod utc;
mod words;

pub use names::{UnknownName, hint, nearest, unknown_key, wanted};
pub use printable::{is_harmful, printable, printable_json, printable_lines};
pub use quantity::{Bytes, Nanos};
pub use rng::Rng;
pub use utc::{utc, utc_name, utc_words};
pub use words::{counted, shell_word};

/// One kibibyte in bytes.
pub const KIB: u64 = 1 << 10;
/// One mebibyte in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte in bytes.
pub const GIB: u64 = 1 << 30;
/// One sector as the block layer counts them, in bytes.
pub const SECTOR: u64 = 512;
