//! Finished trials in SQLite: the only SQL.
//!
//! A trial is written in one transaction when it ends, so a program that is killed
//! at any instant leaves whole trials behind and nothing else. The journal is SQLite's
//! rollback journal, not the write-ahead log: one trial a second needs no concurrency,
//! the store stays one file that can be copied, and it works on a network home directory.
//! Trials leave a store only when the user asks for it ([`Store::forget`],
//! [`Store::forget_all`]). A store is never repaired by the program: errors offer the way out, and
//! [`Store::check`] finds damage.

mod check;
mod error;
mod schema;
mod store;

pub use check::{RecordFault, StoreCheck};
pub use error::StoreError;
pub use store::{BATCH, Filter, Put, Store};

#[cfg(test)]
mod tests;
