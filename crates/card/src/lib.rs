//! The flash card model: pure, discrete-event, integer nanoseconds; time is an argument.
//!
//! A [`Profile`] (TOML, hand-writable, every figure with its source) describes a card. A
//! [`Card`] is the timing and mapping state of one: [`Card::submit`] says when a request
//! completes and moves the mapping on. [`Contents`] holds the bytes, apart from the timing.
//!
//! Layers, from the host inwards: `card` (serial service, figures), `bus` (reader, command,
//! transfer, read steps), `cache` and `slc` (what is in front of the flash), `ftl` (the FAT
//! region), `families` (one file per family of translation layer, of parts from `flash`),
//! `residual` (what the family does not explain). `wear` tells what it does to life.
//! No clock, no entropy, no I/O: equal calls give equal answers.

mod builtin;
mod bus;
mod cache;
mod card;
mod cells;
mod contents;
mod cow;
mod families;
pub mod figures;
pub mod fit_hints;
mod flash;
mod ftl;
#[cfg(test)]
mod legal;
pub mod limits;
mod load;
mod profile;
mod request;
mod residual;
mod slc;
mod stats;
mod wear;

pub use builtin::builtin;
pub use card::Card;
pub use cells::{CELL_TYPES, Cycles};
pub use contents::{CHUNK_BYTES, ContentLayout, Contents, ContentsError, Spill};
pub use families::{Family, legal_range};
pub use figures::Figure;
pub use flash::{OpenAus, Violation};
pub use load::{Load, LoadError, LoadWear, wear_under};
pub use profile::{Basis, CapacityError, Interface, Profile, ProfileError};
pub use request::{CardStatus, Completion, Request, RequestKind};
pub use residual::{FACTOR_PERCENT, Residual};
pub use stats::Stats;
pub use wear::{Life, Wear, programmed_life, projected_life};
