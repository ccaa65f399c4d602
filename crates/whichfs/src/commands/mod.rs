//! One file a command.

pub mod card;
pub mod choose;
pub mod doctor;
pub mod exec;
pub mod fs;
pub mod kernel;
mod table;
pub mod workload;
